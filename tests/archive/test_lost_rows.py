"""Rows that are missing in the archive: no sync lets a session go because of them, and doctor tells of each."""

from pathlib import Path

import apsw
import pytest

from support import cases
from support.conversation_files import FORMS, turns
from support.person import Person

FILES = "(SELECT source FROM session_sources JOIN sessions ON sessions.id = session WHERE key = ?)"
ROWS = {
    "the row of a file": f"DELETE FROM sources WHERE id IN {FILES}",  # noqa: S608 - fixed SQL
    "the row of a kept file": f"DELETE FROM originals WHERE source IN {FILES}",  # noqa: S608 - fixed SQL
}


def key(form: str) -> str:
    return FORMS[form].key(place(form))


def place(form: str) -> int:
    """Return the number of a session that shares its cluster with no other."""
    return (list(FORMS).index(form) + 1) << 12


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    for form in FORMS:
        FORMS[form].write(person.folder, place(form), turns(form))
    person.age()
    person.sync()
    return person


def lose(person: Person, statement: str, form: str) -> None:
    connection = apsw.Connection(str(person.archive / "archive.db"))
    connection.execute(statement, (key(form),))
    connection.close()


def faults(person: Person, *options: str) -> list[tuple[str | None, str]]:
    found = person.run("doctor", "--json", *options).objects
    return [(one["session"], one["text"]) for one in found if one["finding"] == "archive-damaged"]


def remove_file(person: Person, form: str) -> None:
    number = f"{place(form):08x}"
    (file,) = [path for path in person.sources() if path.is_file() and number in path.name]
    file.unlink()
    person.sync()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", ROWS)
def test_a_session_stays_when_the_archive_no_longer_knows_its_file(
    person: Person, rows: str, form: str
) -> None:
    remove_file(person, form)
    lose(person, ROWS[rows], form)
    told = faults(person)
    assert key(form) in [session for session, _ in told]
    for _ in range(2):
        done = person.run("sync", "--json", "--reindex")
        assert (done.code, done.objects[0]["problems"]) == (0, 1), done
        assert "original-damaged" in done.err
        assert person.rows().keys() == {key(other) for other in FORMS}
    assert faults(person) == told
    shown = person.run("show", key(form))
    assert (shown.code, "lacks all that it kept" in shown.err) == (4, True)
    for other in FORMS.keys() - {form}:
        assert person.keys(f'"asked {other}"') == [key(other)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", ROWS)
def test_a_file_that_is_there_is_kept_again_when_the_archive_no_longer_knows_it(
    person: Person, rows: str, form: str
) -> None:
    before = person.show(key(form))
    lose(person, ROWS[rows], form)
    assert person.run("sync", "--reindex").code == 0
    assert person.show(key(form)) == before
    assert person.keys(f'"asked {form}"') == [key(form)]
    remove_file(person, form)
    assert person.show(key(form))["timeline"] == before["timeline"]


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_reindex_reads_a_session_whose_row_is_missing_again(
    person: Person, form: str, *, is_there: bool
) -> None:
    if not is_there:
        remove_file(person, form)
    before = person.show(key(form))
    lose(person, "DELETE FROM sessions WHERE key = ?", form)
    (told,) = faults(person)
    assert told[0] == key(form)
    assert person.run("sync", "--reindex").code == 0
    assert faults(person, "--full") == []
    assert person.show(key(form)) == before
    assert person.keys(f'"asked {form}"') == [key(form)]


@pytest.mark.parametrize(("table", "named"), [("tool_calls", "tool calls"), ("requests", "requests")])
def test_a_full_examination_counts_tool_calls_and_requests(person: Person, table: str, named: str) -> None:
    lose(
        person,
        f"DELETE FROM {table} WHERE session = (SELECT id FROM sessions WHERE key = ?)",  # noqa: S608 - fixed SQL
        "claude",
    )
    assert faults(person) == []
    ((session, text),) = faults(person, "--full")
    assert (session, f"rows of its {named} are missing" in text) == (key("claude"), True)
    assert person.run("sync", "--reindex").code == 0
    assert faults(person, "--full") == []


@pytest.mark.parametrize("case", [name for name in cases.NAMES if name.startswith("captured-json")])
def test_totals_that_the_agent_printed_are_no_lost_requests(tmp_path: Path, case: str) -> None:
    person = Person(tmp_path / "ann")
    (file,) = cases.input_files(case)
    chats = person.folder / ".gemini/tmp/almanac/chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-03-01T09-00-00000001.json").write_bytes((cases.FOLDER / case / file).read_bytes())
    person.sync()
    assert len(person.rows()) == 1
    assert faults(person, "--full") == []
