"""`import retold`: the archive for programs."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import retold
from retold.archive.database import DamagedError, NewerVersionError, RetoldError
from retold.archive.store import Store
from retold.model.serialization import decode_summary
from support.conversation_files import FORMS, ROOT, claude, claude_key, codex_key, gemini_key, turns
from support.person import CLEARED_VARIABLES, Person


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with one conversation of each form, of which the last is without an answer."""
    person = Person(tmp_path / "ann")
    for number, form in enumerate(FORMS.values(), 1):
        form.write(person.folder, number, turns("tide", f"only{number}"))
    person.sync()
    return person


@pytest.fixture
def archive(person: Person) -> Iterator[retold.Archive]:
    with retold.open(person.archive) as archive:
        yield archive


KEYS = {gemini_key(1), gemini_key(2), claude_key(3), codex_key(4)}


def test_sessions_come_without_their_timelines(archive: retold.Archive) -> None:
    sessions = list(archive.sessions())
    assert {session.key for session in sessions} == KEYS
    assert {session.timeline for session in sessions} == {()}
    ended = [session.ended_at or datetime.min.replace(tzinfo=UTC) for session in sessions]
    assert ended == sorted(ended, reverse=True)
    assert {session.project.root for session in sessions} == {ROOT}


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ({"agent": "claude"}, {claude_key(3)}),
        ({"tool": "shell_exec"}, {claude_key(3), codex_key(4)}),
        ({"project": "alma", "agent": "gemini"}, {gemini_key(1), gemini_key(2)}),
        ({"since": "2026-03-02"}, set()),
        ({"until": "2026-03-01"}, KEYS),
        ({"status": "failure"}, set()),
    ],
)
def test_sessions_can_be_chosen(archive: retold.Archive, filters: dict[str, Any], keys: set[str]) -> None:
    assert {session.key for session in archive.sessions(**filters)} == keys


def test_a_session_has_all_that_was_said(archive: retold.Archive, person: Person) -> None:
    session = archive.session(claude_key(3))
    assert isinstance(session.timeline[0], retold.Message)
    assert session.timeline[0].prompt == "asked tide"
    assert session.timeline[0].at == datetime(2026, 3, 1, 9, tzinfo=UTC)
    (read,) = retold.read(next(path for path in person.sources() if ".claude" in path.parts))
    assert session.timeline == read.timeline
    for name in ("00000003", "claude:00000003", session.native_id or ""):
        assert archive.session(name) == session


def test_both_views_are_told(archive: retold.Archive) -> None:
    assert archive.session(codex_key(4), "active").view == "active"
    assert archive.session(codex_key(4)).view == "full"


@pytest.mark.parametrize(
    ("name", "told"), [("feed", "0 sessions"), ("0000000", "3 sessions: claude:00000003")]
)
def test_a_name_that_means_none_or_several_is_a_lookup_error(
    archive: retold.Archive, name: str, told: str
) -> None:
    with pytest.raises(LookupError, match=told):
        archive.session(name)


def test_a_search_tells_where_it_is_said(archive: retold.Archive) -> None:
    (found,) = archive.search("only4")
    assert isinstance(found, retold.Match)
    assert (found.key, found.title, found.score) == (codex_key(4), "asked tide", 1.0)
    assert (found.project.root, found.ended_at) == (ROOT, archive.session(found.key).ended_at)
    hit = found.hits[0]
    assert isinstance(hit, retold.Hit)
    assert (hit.role, hit.tool, hit.fate) == ("user", None, "live")
    assert hit.at == datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(seconds=10)
    ((start, end),) = hit.match
    assert hit.snippet[start:end] == "only4"


def test_searches_and_scans_can_be_chosen_and_limited(archive: retold.Archive) -> None:
    assert {found.key for found in archive.search("tide")} == KEYS
    assert [found.key for found in archive.search("tide", agent="codex")] == [codex_key(4)]
    assert [found.key for found in archive.search("tide agent:claude")] == [claude_key(3)]
    assert len(list(archive.search("tide", limit=2))) == 2
    assert {found.key for found in archive.scan("ked tid")} == KEYS
    assert [found.key for found in archive.scan(r"only[34]\b", is_regex=True, agent="claude")] == [
        claude_key(3)
    ]
    assert len(list(archive.scan("tide", limit=3))) == 3
    assert list(archive.search("nowhere")) == list(archive.scan("nowhere")) == []


def test_nothing_is_read_before_it_is_asked_for(
    archive: retold.Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []

    def decode(summary: str) -> retold.Session:
        decoded.append(summary)
        return decode_summary(summary)

    monkeypatch.setattr("retold.api.decode_summary", decode)
    sessions = archive.sessions()
    assert len(decoded) == 0
    assert next(sessions).key in KEYS
    assert len(decoded) == 1


@pytest.mark.parametrize("query", ['"open', "is:purple", "OR", ""])
def test_an_unclear_query_is_a_value_error(archive: retold.Archive, query: str) -> None:
    with pytest.raises(ValueError, match="write"):
        list(archive.search(query))


def test_a_pattern_that_is_none_is_a_value_error(archive: retold.Archive) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        list(archive.scan("(", is_regex=True))


def test_a_filter_that_is_none_is_a_type_error(archive: retold.Archive) -> None:
    with pytest.raises(TypeError, match="colour"):
        list(archive.sessions(colour="red"))
    with pytest.raises(TypeError, match="colour"):
        list(archive.search("tide", colour="red"))
    with pytest.raises(TypeError, match="colour"):
        list(archive.scan("tide", colour="red"))


def test_where_there_is_no_archive_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="retold sync"):
        retold.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_archive_is_told(person: Person) -> None:
    (person.archive / "archive.db").write_bytes(b"nothing of ours" * 1000)
    with pytest.raises(DamagedError, match="move it away"):
        retold.open(person.archive)
    assert issubclass(DamagedError, RetoldError)
    assert issubclass(NewerVersionError, RetoldError)


def test_the_archive_of_the_user_is_the_one_that_is_opened(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(CLEARED_VARIABLES)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(person.folder))
    monkeypatch.setenv("RETOLD_HOME", str(person.archive))
    claude(person.folder, 9, turns("brand new"))
    coverage = retold.sync()
    assert (coverage.found, coverage.read, coverage.new_sessions) == (5, 1, 1)
    with retold.open() as archive:
        assert [found.key for found in archive.search("brand")] == [claude_key(9)]
    elsewhere = person.folder / "elsewhere"
    assert retold.sync(elsewhere).new_sessions == 5
    with retold.open(str(elsewhere)) as archive:
        assert len(list(archive.sessions())) == 5


def test_an_archive_that_was_closed_is_closed(person: Person) -> None:
    archive = retold.open(person.archive)
    archive.close()
    with pytest.raises(Exception, match="closed"):
        list(archive.sessions())


def test_what_it_cost_is_counted_as_the_command_counts(archive: retold.Archive, person: Person) -> None:
    for by in ("day", "model", "agent", "session", "tool"):
        lines = archive.stats(by, utc=True)
        told = person.run("stats", "--json", "--utc", "--by", by).objects
        assert [line.of for line in lines] == [one["of"] for one in told]
        if by != "tool":
            figures = [
                (line.measured.requests, line.measured.figures["total"], line.sessions) for line in lines
            ]
            assert figures == [(one["requests"], one["usage"]["total"], one["sessions"]) for one in told]
            costs = [None if line.measured.cost is None else str(line.measured.cost) for line in lines]
            assert costs == [one["cost_usd"] for one in told]
    assert archive.stats("agent", agent="codex")[0].of == "codex"
    assert archive.stats(until="2001-01-01") == []


def test_a_report_that_cannot_be_made_is_an_error(archive: retold.Archive, person: Person) -> None:
    with pytest.raises(ValueError, match="no report by year: there are day, week"):
        archive.stats("year")
    with pytest.raises(TypeError, match="no filter kind"):
        archive.stats(kind="main")
    with Store(str(person.archive), can_write=True) as record:
        record.connection.execute("DELETE FROM facts WHERE name LIKE 'priced%'")
    with pytest.raises(LookupError, match=r"retold\.sync\(\) makes them"):
        archive.stats()
