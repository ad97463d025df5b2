"""Secrets stay in the archive: no part of one is told, wherever it stands and wherever an answer is cut."""

import random
import string
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from retold.export import redacted_session
from retold.export.redacted_session import LEARNING_LIMIT
from support.gemini_home import ROOT, GeminiHome, call, gemini, user
from support.mcp_client import McpClient, ToolAnswer, connect, connect_person

LONGEST = 8
"""Characters of a secret that may be told."""
KEY = "gemini:session-2026-03-01T09-00-00000001"
_DICE = random.Random(7)  # noqa: S311 - they are made up


def token() -> str:
    """Return what looks like a token of a well-known service."""
    return "ghp" + "_" + "".join(_DICE.choices(string.ascii_letters + string.digits, k=36))


PROMPT, ANSWER, GIVEN, PRINTED, TITLE, PATH, CALLED, THOUGHT = (token() for _ in range(8))
PASSWORD = "Vk7#quiet" + "Heron!42"
ALL = (PROMPT, ANSWER, GIVEN, PRINTED, TITLE, PATH, CALLED, THOUGHT, PASSWORD)


def leaks(texts: Iterable[str], secrets: Iterable[str] = ALL) -> list[str]:
    """Return the parts of secrets that are told."""
    joined = "\n".join(texts)
    # A token begins with the name of its service, which is no secret.
    bare = [secret.removeprefix("ghp_") for secret in secrets]
    pieces = (
        secret[place : place + LONGEST + 1] for secret in bare for place in range(len(secret) - LONGEST)
    )
    return [piece for piece in pieces if piece in joined]


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpClient]:
    home = GeminiHome(tmp_path_factory.mktemp("secrets") / "ann")
    home.mark("almanac", ROOT)
    edit = call(
        "replace",
        {"file_path": f"{ROOT}/{PATH}/main.py", "old_string": "a needle", "new_string": f"key = '{GIVEN}'"},
        2,
        result=[
            {"functionResponse": {"id": "e", "name": "replace", "response": {"output": f"now {PRINTED}"}}}
        ],
    )
    shell = call("run_shell_command", {"command": f"{'echo ' * 14}{GIVEN} needle"}, 2, status="error",
                 resultDisplay=f"error: {PRINTED} is wrong")  # fmt: skip
    thought = {"subject": "Hm", "description": f"use {THOUGHT}", "timestamp": "2026-03-01T09:01:00.000Z"}
    home.json(
        "almanac",
        1,
        0,
        [
            user("u1", 0, f"the needle: password = '{PASSWORD}' and {PROMPT}, please"),
            {**gemini("g1", 1, f"I keep {ANSWER} in mind", [edit, shell]), "thoughts": [thought], "model": f"m-{CALLED}"},
            user("u2", 3, f"is {PASSWORD} long enough? {PROMPT}"),
            gemini("g2", 4, f"{PASSWORD} is long. {'word ' * 60}{ANSWER} again, needle"),
        ],
        summary=f"About {TITLE} and other things",
    )  # fmt: skip
    with connect(home.folder) as found:
        yield found


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("read_session", {"session": KEY, "tools": "full", "thoughts": True}),
    ("read_session", {"session": KEY}),
    ("file_history", {"path": "main.py"}),
    ("recent_work", {}),
    ("project_brief", {}),
    ("find_fix", {"problem": "why did the needle fail?"}),
    ("find_decisions", {"about": "the needle"}),
    ("search_history", {"query": "needle"}),
    ("search_history", {"query": "needle", "mode": "letters"}),
]
UNREAD = ("search_history", "project_brief")
"""Tools that do not look through whole sessions for secrets."""


@pytest.mark.parametrize(("tool", "arguments"), QUESTIONS)
def test_no_tool_tells_a_secret_however_it_is_paged(
    ann: McpClient, tool: str, arguments: dict[str, Any]
) -> None:
    for budget in (300, 317, 350, 400, 503, 2_000):
        pages = ann.pages(tool, **arguments, budget=budget)
        assert all(page.body for page in pages)
        # What tells a line of a session without reading all of it cannot know what only another line gives away.
        known = [secret for secret in ALL if tool not in UNREAD or secret != PASSWORD]
        assert leaks((page.text for page in pages), known) == []


@pytest.mark.parametrize("passage", [1, 2, 3, 4])
def test_no_cursor_leads_into_a_secret(ann: McpClient, passage: int) -> None:
    """Whoever asks gives the cursor, and may give any."""
    for told in range(0, 420, 3):
        page = ann.ask(
            "read_session", session=KEY, tools="full", thoughts=True, cursor=f"{passage}.{told}", budget=300
        )
        assert leaks([page.text]) == []


def test_no_resource_or_prompt_tells_a_secret(ann: McpClient) -> None:
    listed = ann.said(lambda client: client.list_resources()).resources
    told = [ann.read(one.uri).text for one in listed]
    told += [one.model_dump_json() for one in listed]
    told += [ann.prompted(name, session=KEY).text for name in ("continue_from", "hand_over")]
    told.append(ann.prompted("retrospective").text)
    assert len(listed) == 2
    assert leaks(told) == []


def test_the_archive_has_them_all_and_tells_them_if_it_may(ann: McpClient) -> None:
    with connect_person(ann.desk.place.folder, is_redacted=False) as open_handed:
        told = open_handed.ask("read_session", session=KEY, tools="full", thoughts=True, budget=20_000).text
    assert [secret for secret in ALL if secret not in told] == []


@pytest.mark.parametrize("limit", [0, LEARNING_LIMIT])
def test_secrets_that_a_title_or_a_line_cuts_in_two(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """A title is cut when it is archived, and again when it is cited; an argument is cut to a line."""
    monkeypatch.setattr(redacted_session, "LEARNING_LIMIT", limit)
    home = GeminiHome(tmp_path_factory.mktemp("cut") / "ann")
    home.mark("almanac", ROOT)
    secrets = []
    for number in range(1, 48):
        secrets.append(token())
        said = f"{'x' * (20 + 3 * (number - 1))} {secrets[-1]} needle"
        shell = call("run_shell_command", {"command": said}, 2, status="error", resultDisplay=said)
        talk = [user(f"u{number}", 0, said), gemini(f"g{number}", 1, said, [shell])]
        home.json("almanac", number, number, talk)
    with connect(home.folder) as ann:
        told: list[ToolAnswer] = []
        for tool, arguments in (("recent_work", {}), ("search_history", {"query": "needle"})):
            told += ann.pages(tool, **arguments, budget=20_000)
        listed = ann.said(lambda client: client.list_resources()).resources
        texts = [page.text for page in told] + [one.model_dump_json() for one in listed]
        texts += [ann.read(one.uri).text for one in listed]
        texts += [ann.prompted("hand_over", session=f"{number:08x}").text for number in range(1, 48, 5)]
    assert len(listed) == 48
    assert leaks(texts, secrets) == []


def test_a_title_is_without_what_only_a_prompt_gives_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = GeminiHome(tmp_path_factory.mktemp("title") / "ann")
    home.mark("almanac", ROOT)
    edit = call("replace", {"file_path": "main.py", "old_string": "a", "new_string": "b"}, 2)
    talk = [user("u1", 0, f"password = '{PASSWORD}'"), gemini("g1", 1, "Done.", [edit])]
    home.json("almanac", 1, 0, talk, summary=f"Try {PASSWORD} once")
    with connect(home.folder) as ann:
        told = [ann.ask(tool, **given).text for tool, given in QUESTIONS if tool not in UNREAD]
        told.append(ann.prompted("hand_over", session=KEY).text)
    assert any("Try [redacted:password:1] once" in text for text in told)
    assert leaks(told, [PASSWORD]) == []
