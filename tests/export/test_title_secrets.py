"""A title is one line that was made of several, and may be cut: no half of a secret is left in it."""

from pathlib import Path

import pytest

from support.conversation_files import Turn, claude
from support.mcp_client import connect_person
from support.person import Person

TOKEN = "ghp" + "_" + "q7Rk2VbX9tLm4ZpW8sYd" + "Ab3De5Fg7Hi9Jk1L"
FIRST, SECOND = TOKEN[:20], TOKEN[20:]
PARTED = f"the token is {FIRST}\n{SECOND} of today"
CUT = [f"{'tide ' * 10}{'w' * width} {TOKEN} of today" for width in range(30, 66)]
"""The title ends within the token, at each of its characters in turn."""
DECISION = f"We decided to use {FIRST}\n{SECOND} for the deploys, because the old one expires."
FORMATS = ("md", "html", "json", "jsonl", "csv", "atif", "otel", "chat", "share-md", "share-json")


def exported(person: Person, form: str, folder: Path) -> str:
    done = person.run("export", "--all", "--format", form, "-o", f"{folder}/")
    if done.code:
        done = person.run("export", "--all", "--format", form, "-o", str(folder))
    assert done.code == 0
    files = [file for file in folder.rglob("*") if file.is_file()] if folder.is_dir() else [folder]
    return "\n".join(f"{file.name}\n{file.read_text(encoding='utf-8')}" for file in files)


def leaks(text: str) -> list[str]:
    """Return the pieces of the token that are in a text."""
    low = text.lower()
    pieces = [TOKEN[place : place + 6].lower() for place in range(3, len(TOKEN) - 5)]
    return [piece for piece in pieces if piece in low]


@pytest.fixture(params=["parted", "cut"])
def person(request: pytest.FixtureRequest, tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    for number, prompt in enumerate([PARTED] if request.param == "parted" else CUT, 1):
        claude(person.folder, number, [Turn(prompt, "out", DECISION), Turn("go on", "out", "It is done.")])
    person.sync()
    return person


@pytest.mark.parametrize("form", FORMATS)
def test_no_export_has_a_piece_of_it(person: Person, form: str, tmp_path: Path) -> None:
    assert leaks(exported(person, form, tmp_path / "out")) == []


def test_neither_has_an_answer_to_an_agent_or_a_brief(person: Person) -> None:
    with connect_person(str(person.archive), is_all=True) as agent:
        for tool, asked in ("recent_work", {}), ("project_brief", {}), ("search_history", {"query": "done"}):
            answers = agent.pages(tool, budget=20_000, **asked)
            assert all(answer.text for answer in answers)
            assert [leaks(answer.text) for answer in answers] == [[]] * len(answers), tool
    assert leaks(person.run("brief", "almanac").out) == []
