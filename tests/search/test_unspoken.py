"""A session without any message or prompt is archived, and no list, count or finding takes it for a conversation."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from retold.archive.queries.listing import count_sessions
from retold.archive.store import Store
from retold.search.filters import Filters
from retold.search.listing import list_projects
from retold.search.pages import PageBounds, load_list_page
from retold.search.quick_find import load_cards
from support.conversation_files import FORMS, as_lines, codex_records, uuid, write_file
from support.gemini_home import ROOT, GeminiHome, Json, at, gemini, metadata, session_id, sha, user
from support.person import Person

PAGE = Path(__file__).parents[2] / "docs/conversations.md"
TALK = [user("u1", 1, "How high is the tide?"), gemini("g1", 2, "Two metres.")]
SET_UP = {"sessionId": "a2a-server", "projectHash": sha(ROOT), "startTime": at(1), "lastUpdated": at(1)}
CONTEXT = {
    "id": "d04923d38bb0f6017037e74183378ef4",
    "type": "user",
    "content": [{"text": "<session_context>lighthouse</session_context>"}],
}
STARTED = {
    "only set up": [{**SET_UP, "kind": "main"}],
    "only context": [metadata(2, 2), {"$set": {"messages": [CONTEXT]}}],
    "only what the agent tells the model": [
        metadata(4, 4),
        user("u1", 4, "This is the Gemini CLI. We are setting up the context for our chat.\nThe lighthouse."),
        {"id": "g1", "timestamp": at(4), "type": "gemini", "content": "Got it. Thanks for the context!"},
    ],
    "only a notice": [
        metadata(3, 3),
        {"id": "n1", "type": "info", "timestamp": at(3), "content": "lighthouse"},
    ],
    "only a set-up with fields that nobody knows": [{**SET_UP, "kind": "main", "surface": "lighthouse"}],
}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with one conversation and, in another project, three sessions in which nobody spoke."""
    made = GeminiHome(tmp_path / "ann")
    made.lines("almanac", 1, 1, TALK)
    for number, records in enumerate(STARTED.values()):
        text = "".join(json.dumps(record) + "\n" for record in records)
        made.write(f"tmp/harbour/chats/session-2026-03-01T09-1{number}-a2a-ser{number}.jsonl", text)
    return Person(made.folder)


@pytest.fixture
def record(person: Person) -> Store:
    person.run("sync")
    return Store(str(person.archive))


def test_lists_show_it_only_when_asked_for_all(person: Person) -> None:
    spoken = f"gemini:session-2026-03-01T09-01-{session_id(1)[:8]}"
    assert [one["key"] for one in person.run("list", "--json").objects] == [spoken]
    assert "no prompt is left" not in person.run("list").out
    every = {one["key"]: one["kind"] for one in person.run("list", "--all", "--json").objects}
    assert len(every) == 1 + len(STARTED)
    assert set(every.values()) == {"main"}
    assert not any("lost-" in key for key in every)
    assert len(person.run("list", "--all").out.splitlines()) == 2 + len(STARTED)


def test_its_bytes_are_archived(person: Person, record: Store) -> None:
    asked = "SELECT path, originals.id FROM sources JOIN originals ON source = sources.id WHERE path LIKE '%a2a-ser%'"
    kept = {path: record.originals.read(number) for path, number in record.rows(asked)}
    assert len(kept) == len(STARTED)
    assert all(Path(path).read_bytes() == data for path, data in kept.items())
    (key,) = {one["key"] for one in person.run("list", "--all", "--json").objects if "T09-11" in one["key"]}
    assert "lighthouse" in person.run("show", key, "--notices").out


def test_no_search_finds_it(person: Person) -> None:
    person.run("sync")
    assert person.run("search", "lighthouse", "--json").objects == []
    assert len(person.run("search", "tide", "--json").objects) == 1
    assert person.run("search", "lighthouse", "--substring", "--json").objects == []


def test_no_count_has_it(person: Person, record: Store) -> None:
    assert count_sessions(record) == 1
    assert [place.sessions for place in list_projects(record)] == [1]
    assert load_list_page(record, {}, PageBounds(0, 10)).count == 1
    assert len(list(load_cards(record, Filters()))) == 1
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [[*row.values()] for row in person.run("sql", "--json", query).objects] == [[1]]
    told = person.run(
        "sql", "--json", "SELECT count(*) AS n FROM sessions GROUP BY is_spoken ORDER BY n"
    ).objects
    assert told == [{"n": 1}, {"n": len(STARTED)}]
    (total,) = person.run("stats", "--by", "project", "--json").objects
    assert total["sessions"] == 1
    assert person.run("sync", "--json").objects[0]["new_sessions"] == 0


def test_a_sync_counts_conversations_as_new(person: Person) -> None:
    assert person.run("sync", "--json").objects[0]["new_sessions"] == 1


def test_doctor_finds_nothing_about_it(person: Person) -> None:
    old = (datetime.now(UTC) - timedelta(days=29)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    chats = person.folder / ".gemini/tmp/harbour/chats"
    aged = {**SET_UP, "kind": "main", "startTime": old, "lastUpdated": old}
    (chats / "session-2026-03-01T09-10-a2a-ser0.jsonl").write_text(json.dumps(aged) + "\n")
    person.run("sync")
    os.unlink(chats / "session-2026-03-01T09-11-a2a-ser1.jsonl")
    unspoken = {
        one["key"] for one in person.run("list", "--all", "--json").objects if "09-01" not in one["key"]
    }
    findings = person.run("doctor", "--json").objects
    assert not [
        one for one in findings if one["session"] in {*unspoken, "a2a-server", session_id(2), session_id(3)}
    ]
    assert "prompts-only" not in {one["finding"] for one in findings}


@pytest.mark.parametrize("form", ["claude", "codex"])
def test_doctor_finds_nothing_about_a_set_up_of_another_agent(tmp_path: Path, form: str) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, ())
    records: dict[str, list[Json]] = {
        "claude": [
            {"type": "summary", "summary": "Tides", "leafUuid": uuid(7)},
            {
                "type": "file-history-snapshot",
                "messageId": uuid(8),
                "snapshot": {},
                "isSnapshotUpdate": False,
            },
        ],
        "codex": codex_records(1, ()),
    }
    write_file(file, as_lines(records[form]))
    assert person.sync()["new_sessions"] == 0
    assert person.run("doctor", "--json").objects == []
    assert person.run("list").out == ""


@pytest.mark.parametrize(
    "line", ['{"type": "said", "words": "heron"}\n', '{"type": "user", "message": {"ro\n', ""]
)
def test_doctor_names_a_transcript_that_cannot_be_understood(tmp_path: Path, line: str) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS["claude"].write(person.folder, 1, ())
    known = as_lines([{"type": "summary", "summary": "Tides", "leafUuid": uuid(7)}])
    write_file(file, known + line if line else "")
    person.run("sync")
    assert [one["finding"] for one in person.run("doctor", "--json").objects] == ["refused-file"]


def test_a_file_that_cannot_be_understood_stays_in_the_list(person: Person) -> None:
    chats = person.folder / ".gemini/tmp/harbour/chats"
    damaged = json.dumps(metadata(4, 4)) + '\n{"id": "u1", "type": "user", "content": "How\n'
    (chats / "session-2026-03-01T09-14-00000004.jsonl").write_text(damaged)
    unknown = json.dumps(metadata(5, 5)) + '\n{"saying": "How high is the tide?"}\n'
    (chats / "session-2026-03-01T09-15-00000005.jsonl").write_text(unknown)
    ids = {one["native_id"] for one in person.run("list", "--json").objects}
    assert ids == {session_id(1), session_id(4), session_id(5)}


def test_it_is_a_conversation_once_somebody_speaks(person: Person) -> None:
    person.run("sync")
    file = person.folder / ".gemini/tmp/harbour/chats/session-2026-03-01T09-11-a2a-ser1.jsonl"
    file.write_text(file.read_text() + json.dumps(user("u2", 9, "Is it foggy?")) + "\n")
    person.run("sync")
    assert [one["native_id"] for one in person.run("list", "--json").objects] == [
        session_id(2),
        session_id(1),
    ]
    assert len(person.run("search", "foggy", "--json").objects) == 1
