"""`read_session`: all of a conversation, page by page, or some turns of it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from retold.archive.store import Store
from retold.export import redacted_session
from retold.export.redacted_session import LEARNING_LIMIT, RedactedSession
from retold.model.session import Entry
from retold.redaction import Redactor
from support import conversation_files
from support.gemini_home import ROOT, GeminiHome, call, gemini, user
from support.mcp_client import McpClient, ToolAnswer, connect, connect_person
from support.token_budget import tokens

KEY = "gemini:session-2026-03-01T09-00-00000001"
PROMPTS = ("Why are the herons late?", "And the tides?", "Write it down.")


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpClient]:
    """One conversation of three turns, with thoughts, calls, a rewind, and a second conversation."""
    home = GeminiHome(tmp_path_factory.mktemp("read") / "ann")
    home.mark("almanac", ROOT)
    edit = call("write_file", {"file_path": f"{ROOT}/herons.md", "content": "late\n"}, 2)
    failed = call(
        "run_shell_command",
        {"command": "make tides"},
        3,
        status="error",
        resultDisplay="no rule to make tides",
    )
    thought = {
        "subject": "Weather",
        "description": "the wind turned in May",
        "timestamp": "2026-03-01T09:01:00.000Z",
    }
    home.lines(
        "almanac",
        1,
        0,
        [
            user("u1", 0, PROMPTS[0]),
            {**gemini("g1", 1, "They follow the frogs.", [edit]), "thoughts": [thought]},
            user("u2", 2, PROMPTS[1]),
            gemini("g2", 3, "The tides keep their time.", [failed]),
            user("u3", 4, PROMPTS[2]),
            gemini("g3", 5, "First draft, to be dropped."),
            {"$rewindTo": "g3"},
            gemini("g4", 6, "Second draft, which stays."),
        ],
    )  # fmt: skip
    home.json("almanac", 0x1A, 10, [user("u9", 10, "Another matter"), gemini("g9", 11, "Indeed.")])
    with connect(home.folder) as found:
        yield found


def heads(told: ToolAnswer) -> list[str]:
    return [line for line in told.body.split("\n") if line and not line.startswith(">")]


def test_a_session_is_told_with_its_facts_its_turns_and_its_calls(ann: McpClient) -> None:
    told = ann.ask("read_session", session=KEY)
    assert heads(told) == [
        f"session {KEY}",
        "turn 1 · you · 2026-03-01 09:00 UTC",
        "turn 1 · gemini-2.5-pro · 2026-03-01 09:01 UTC",
        "turn 2 · you · 2026-03-01 09:02 UTC",
        "turn 2 · gemini-2.5-pro · 2026-03-01 09:03 UTC",
        "turn 3 · you · 2026-03-01 09:04 UTC",
        "turn 3 · gemini-2.5-pro (rewound) · 2026-03-01 09:05 UTC",
        "turn 3 · gemini-2.5-pro · 2026-03-01 09:06 UTC",
    ]
    facts = told.quotes.split("\n")[:4]
    assert facts[0] == PROMPTS[0]
    assert facts[1] == f"{KEY} · 2026-03-01 09:00 UTC · /home/user-1/dev/almanac · gemini-2.5-pro"
    assert facts[2].startswith("3 prompts · 2 tool calls, 1 failed · ")
    assert facts[3] == "gemini · 3 turns · success · ended 2026-03-01 09:06 UTC"
    assert "✗ run_shell_command  make tides" in told.quotes
    assert "the wind turned in May" not in told.text
    assert "late" not in told.quotes.replace(PROMPTS[0], "")
    assert told.next is None


@pytest.mark.parametrize(
    ("tools", "is_named", "is_full"),
    [("none", False, False), ("names", True, False), ("full", True, True)],
)
def test_calls_are_told_as_far_as_is_asked(
    ann: McpClient, tools: str, *, is_named: bool, is_full: bool
) -> None:
    told = ann.ask("read_session", session=KEY, tools=tools).quotes
    assert ("write_file" in told) is is_named
    assert ('"content": "late' in told) is is_full


def test_thoughts_are_told_if_asked_for(ann: McpClient) -> None:
    assert "~ Weather: the wind turned in May" in ann.ask("read_session", session=KEY, thoughts=True).quotes


@pytest.mark.parametrize(
    ("turn", "turns", "expected"), [(1, 1, {1}), (2, 1, {2}), (2, 0, {2, 3}), (3, 9, {3})]
)
def test_some_turns(ann: McpClient, turn: int, turns: int, expected: set[int]) -> None:
    told = ann.ask("read_session", session=KEY, turn=turn, turns=turns)
    assert {int(found) for found in re.findall(r"^turn (\d+) ", told.body, re.MULTILINE)} == expected
    said = told.quotes.split("\n", 4)[4]
    assert [PROMPTS[number - 1] in said for number in (1, 2, 3)] == [
        number in expected for number in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "name",
    [KEY, KEY.removeprefix("gemini:"), KEY[:-1] + "1", "00000001-3b2d-4f68-9a01-5d2e8c4b6f13", "00000001"],
)
def test_a_session_is_known_by_its_key_its_id_and_the_start_of_either(ann: McpClient, name: str) -> None:
    assert heads(ann.ask("read_session", session=name))[0] == f"session {KEY}"


def test_several_that_are_meant_are_named(ann: McpClient) -> None:
    told = ann.ask("read_session", session="000000")
    assert told.is_error
    assert KEY in told.text
    assert "00-0000001a" not in told.text.replace("09-10-0000001a", "")
    assert "09-10-0000001a" in told.text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"session": "nope"}, "there is no session 'nope'"),
        ({"session": KEY, "turn": 4}, "the session has 3 turns: there is no turn 4"),
        ({"session": KEY, "turn": 0}, "these arguments are not understood"),
        ({"session": KEY, "turns": -1}, "these arguments are not understood"),
        ({"session": ""}, "these arguments are not understood"),
        ({}, "these arguments are not understood"),
        ({"session": KEY, "tools": "all"}, "these arguments are not understood"),
        ({"session": KEY, "cursor": "x"}, "'x' is no cursor"),
        ({"session": "\x00\ud800'; DROP TABLE sessions"}, "there is no session"),
    ],
)
def test_what_cannot_be_answered_is_told(ann: McpClient, arguments: dict[str, object], words: str) -> None:
    told = ann.ask("read_session", **arguments)
    assert told.is_error
    assert told.text.startswith(words)


def test_a_cursor_behind_the_end_leads_to_nothing(ann: McpClient) -> None:
    told = ann.ask("read_session", session=KEY, cursor="999999999.5")
    assert not told.is_error
    assert told.text.startswith("There is nothing more to read.")


# Pages -------------------------------------------------------------------------------------------------------------


def long_talk(count: int, size: int) -> list[conversation_files.Turn]:
    """Return turns of which every word is another, so that none can be lost or told twice unseen."""
    words = (f"w{number}" for number in range(10**9))

    def text() -> str:
        lines = [" ".join(next(words) for _ in range(7)) for _ in range(size)]
        return "\n".join(lines)

    return [conversation_files.Turn(f"p{number} {text()}", text(), text()) for number in range(count)]


@pytest.mark.parametrize("budget", [300, 777, 2_000, 20_000])
@pytest.mark.parametrize("form", ["gemini-lines", "claude", "codex"])
def test_the_pages_of_a_session_hold_every_word_once(tmp_path: Path, form: str, budget: int) -> None:
    talk = long_talk(4, 30)
    conversation_files.FORMS[form].write(tmp_path / "ann", 1, talk)
    with connect(tmp_path / "ann") as ann:
        pages = ann.pages(
            "read_session", session=conversation_files.FORMS[form].key(1), tools="full", budget=budget
        )
    assert all(tokens(page.text) <= budget for page in pages)
    assert (len(pages) > 1) is (budget < 20_000)
    title, *rest = "\n".join(page.quotes for page in pages).split("\n")
    assert title.startswith("p0 w0 w1")
    expected = [word for turn in talk for text in turn for word in text.split()]
    assert sorted(re.findall(r"\b[pw]\d+\b", "\n".join(rest))) == sorted(expected)


@pytest.mark.parametrize("limit", [0, LEARNING_LIMIT])
def test_secrets_do_not_shift_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(redacted_session, "LEARNING_LIMIT", limit)
    mails = [f"w{number} write to m{number}@herons-almanac.org, e{number}" for number in range(120)]
    conversation_files.gemini_lines(tmp_path / "ann", 1, [conversation_files.Turn("\n".join(mails), "", "")])
    with connect(tmp_path / "ann") as ann:
        pages = ann.pages("read_session", session=conversation_files.gemini_key(1), budget=300)
    _, *rest = "\n".join(page.quotes for page in pages).split("\n")
    told = " ".join(" ".join(rest).split())
    assert len(pages) > 10
    assert "herons-almanac" not in told
    whole = re.findall(r"w(\d+) write to \[redacted:email:(\d+)\], e(\d+)\b", told)
    assert [(int(first), int(last)) for first, _, last in whole] == [
        (number, number) for number in range(120)
    ]
    assert len({stand_in for _, stand_in, _ in whole}) == 120


def test_one_endless_line_is_told_to_its_end(tmp_path: Path) -> None:
    line = "".join(f"{number:06};" for number in range(20_000))
    conversation_files.claude(tmp_path / "ann", 1, [conversation_files.Turn("go", "", line)])
    with connect(tmp_path / "ann") as ann:
        pages = ann.pages(
            "read_session", session=conversation_files.claude_key(1), tools="none", budget=20_000
        )
    assert all(tokens(page.text) <= 20_000 for page in pages)
    assert len(pages) > 2
    assert "".join(found for page in pages for found in page.quotes.split("\n") if ";" in found) == line


def test_of_a_long_session_no_more_is_looked_at_than_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_files.gemini_lines(tmp_path / "ann", 1, long_talk(300, 3))
    seen: list[Entry] = []
    cleaned = RedactedSession.redact_entry

    def entry(self: RedactedSession, entry: Entry) -> Entry:
        seen.append(entry)
        return cleaned(self, entry)

    monkeypatch.setattr(redacted_session, "LEARNING_LIMIT", 1_000)
    monkeypatch.setattr(RedactedSession, "redact_entry", entry)
    monkeypatch.setattr(Redactor, "learn", lambda *_: pytest.fail("it was read as a whole"))
    with connect(tmp_path / "ann") as ann:
        told = ann.ask("read_session", session=conversation_files.gemini_key(1), turn=200, budget=500)
    assert "p199 " in told.quotes
    assert 1 <= len(seen) < 10


def test_subagents_are_cited_by_keys_that_can_be_read(demo_env: dict[str, str]) -> None:
    with (
        connect_person(demo_env["RETOLD_HOME"], is_all=True) as mira,
        Store(demo_env["RETOLD_HOME"]) as record,
    ):
        rows = list(
            record.rows("SELECT key, parent FROM sessions WHERE kind = 'subagent' AND parent IS NOT NULL")
        )
        assert rows
        for key, parent in rows:
            told = "\n".join(
                page.quotes for page in mira.pages("read_session", session=parent, budget=20_000)
            )
            assert f"  → subagent {key}" in told.split("\n")
            assert mira.ask("read_session", session=key).quotes.split("\n")[4] == f"part of {parent}"


def test_pictures_are_named_and_not_told(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "ann")
    home.mark("almanac", ROOT)
    data = "iVBORw0KGgo" * 50
    content = [{"text": "What is on it?"}, {"inlineData": {"mimeType": "image/png", "data": data}}]
    home.json("almanac", 1, 0, [{**user("u1", 0, ""), "content": content}, gemini("g1", 1, "A heron.")])
    with connect(home.folder, is_redacted=False) as ann:
        told = ann.ask("read_session", session=KEY, tools="full", thoughts=True)
    assert told.quotes.split("\n")[4:] == ["What is on it?", "  + image/png", "A heron."]
    assert "iVBOR" not in told.text
