"""What was learned before: how something was mended, and what was decided, with where it stands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retold.mcp.service import NARROW
from retold.mcp.tools.find_decisions import FIND_DECISIONS
from retold.mcp.tools.find_fix import FIND_FIX
from support.gemini_home import ROOT, GeminiHome, gemini, user
from support.mcp_client import McpClient, connect, connect_person


def answer(env: dict[str, str], tool: str, **arguments: Any) -> str:
    """What a tool answers about all of an archive."""
    with connect_person(env["RETOLD_HOME"], is_all=True) as found:
        told = found.ask(tool, **arguments)
    assert not told.is_error
    return told.text


KEY = re.compile(r"^(\w+:\S+) · ", re.MULTILINE)


def test_an_error_leads_to_what_failed_and_what_mended_it(demo_env: dict[str, str]) -> None:
    text = answer(
        demo_env, "find_fix", problem="TypeError: 'hour' is an invalid keyword argument for replace()"
    )
    first, fork = text.split("\n\n")[:2]
    assert "Pickup times an hour off" in first
    assert "What if we stored local time" in fork  # which begins with a copy of all this
    assert "> turn 2 failed: Bash pytest -q tests/test_slots.py -> E TypeError: 'hour' is an invalid" in first
    assert (
        "> turn 3 worked again after it changed crumb-orders/app/slots.py, crumb-orders/app/mail.py" in first
    )


@pytest.mark.parametrize(
    "problem",
    [
        "what made the pickup slot text an hour wrong?",
        'invalid keyword argument for "replace()',
        "tests/test_slots.py -q: file:slots.py OR",
        "¿por qué falla pytest tests/test_slots.py?",
    ],
)
def test_a_problem_is_told_in_any_words_and_signs(demo_env: dict[str, str], problem: str) -> None:
    text = answer(demo_env, "find_fix", problem=problem)
    assert any("Pickup times an hour off" in one for one in text.split("\n\n")[:2])


@pytest.mark.parametrize("problem", ["???", "the what how", "- :"])
def test_a_question_without_words_has_no_answer(demo_env: dict[str, str], problem: str) -> None:
    assert answer(demo_env, "find_fix", problem=problem) == FIND_FIX.empty_text


def test_what_has_little_of_the_question_is_left_out_behind_the_first_five(demo_env: dict[str, str]) -> None:
    text = answer(demo_env, "find_fix", problem="pickup times an hour off", budget=20_000)
    assert 5 <= len(KEY.findall(text)) < 12
    assert "There is more" not in text


def test_pages_go_on_where_the_last_one_ended(demo_env: dict[str, str]) -> None:
    whole = answer(demo_env, "find_fix", problem="tests fail", budget=20_000)
    keys: list[str] = []
    cursor = ""
    for _ in range(40):
        text = answer(demo_env, "find_fix", problem="tests fail", budget=400, cursor=cursor)
        keys += [key for key in KEY.findall(text) if key not in keys]
        found = re.search(r'cursor "([\d.]+)"', text)
        if found is None:
            break
        cursor = found[1]
    assert keys == KEY.findall(whole)


def test_a_subject_leads_to_what_was_decided(ann: McpClient) -> None:
    text = ann.ask("find_decisions", about="which store do we keep sessions in?").quotes
    assert (
        "turn 2, decided by person (said): Let's use SQLite for the tide sessions instead of JSON files."
        in text
    )
    text = ann.ask("find_decisions", about="lighthouse colours").quotes
    assert "spoken of, turn 1, user:" in text
    assert "decided" not in text


def test_nothing_is_said_to_be_nothing_and_where_it_was_looked_for(ann: McpClient) -> None:
    folder = ann.desk.place.folder
    for tool, name in ((FIND_FIX, "problem"), (FIND_DECISIONS, "about")):
        with connect_person(folder, is_all=True) as everywhere:
            assert everywhere.ask(tool.name, **{name: "zanzibar"}) == (tool.empty_text, False)
        with connect_person(folder, "/home/ann/dev/other") as elsewhere:
            assert elsewhere.ask(tool.name, **{name: "SQLite"}) == (f"{tool.empty_text} {NARROW}", False)


@pytest.fixture
def ann(tmp_path: Path) -> Iterator[McpClient]:
    """Somebody in whose archive something was decided."""
    home = GeminiHome(tmp_path / "ann")
    home.mark("almanac", ROOT)
    talk = [
        user("a", 1, "The lighthouse colours are wrong, and the tide sessions are slow to load."),
        gemini("b", 2, "I will look."),
        user("c", 3, "Let's use SQLite for the tide sessions instead of JSON files."),
        gemini("d", 4, "Fine, SQLite it is."),
    ]
    home.json("almanac", 1, 1, talk)
    with connect(home.folder) as found:
        yield found
