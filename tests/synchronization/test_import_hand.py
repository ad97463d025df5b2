"""Titles and tags of another's archive: taken as a person writes them, and what no person writes is left out and told."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from retold.archive.foreign import load_annotations
from retold.archive.store import Store
from support.conversation_files import FORMS, turns
from support.merged_archives import import_into
from support.person import Person

KEY = FORMS["claude"].key(1)


@pytest.fixture
def ben(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ben")
    for number in (1, 2):
        FORMS["claude"].write(person.folder, number, turns("perigee", f"tide{number}"))
    person.sync()
    return person


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


def write(person: Person, sql: str, rows: Sequence[tuple[str, ...]]) -> None:
    """Write by hand, as no command of ours lets one."""
    connection = sqlite3.connect(person.archive / "archive.db")
    name = f"(SELECT uid FROM sessions WHERE key = '{KEY}')"  # noqa: S608 - ours
    connection.executemany(sql.replace("NAME", name), rows)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def test_a_title_is_taken_as_one_line(ann: Person, ben: Person) -> None:
    write(ben, "INSERT INTO titles VALUES (NAME, ?)", [("Of tides\n  and\tof moons ",)])
    assert import_into(ann.archive, ben.archive).titles == 1
    assert ann.rows()[KEY]["title"] == "Of tides and of moons"
    again = import_into(ann.archive, ben.archive)
    assert (again.titles, again.refused_titles) == (0, [])


def test_a_title_that_both_have_written_alike_is_not_refused(ann: Person, ben: Person) -> None:
    import_into(ann.archive, ben.archive)
    for person in (ann, ben):
        write(person, "INSERT INTO titles VALUES (NAME, ?)", [("Of  tides",)])
    assert import_into(ann.archive, ben.archive).refused_titles == []


def test_a_title_that_nobody_writes_is_left_out_and_told(ann: Person, ben: Person) -> None:
    write(ben, "INSERT INTO titles VALUES (NAME, ?)", [("x" * 1_001,)])
    done = import_into(ann.archive, ben.archive)
    assert (done.titles, [one.message for one in done.problems]) == (
        0,
        ["titles of more than 1,000 characters: 1 left out"],
    )
    ann.run("name", KEY, "Mine")
    assert import_into(ann.archive, ben.archive).refused_titles == []


def test_a_title_that_gives_way_forges_no_lines(ann: Person, ben: Person) -> None:
    import_into(ann.archive, ben.archive)
    ann.run("name", KEY, "Mine")
    write(ben, "INSERT INTO titles VALUES (NAME, ?)", [("Theirs\nretold: all is well " + "x" * 200,)])
    lines = ann.run("import", str(ben.archive)).err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("retold: “Mine” keeps its title; the other's is “Theirs retold: all is well x")
    assert len(lines[0]) < 150


def test_a_path_that_is_left_out_forges_no_lines(ann: Person, ben: Person) -> None:
    write(ben, "UPDATE sources SET path = ? WHERE cluster LIKE '00000001%'", [("/x\nretold: all is well",)])
    lines = ann.run("import", str(ben.archive)).err.splitlines()
    assert [line[:10] for line in lines] == ["retold: /i", "sessions: "]


def test_tags_that_are_no_words_are_left_out_and_told(ann: Person, ben: Person) -> None:
    tags = ("shore", "two words", "", "\x1b[2J", "y" * 100, "z" * 101)
    write(ben, "INSERT INTO tags VALUES (NAME, ?)", [(tag,) for tag in tags])
    done = import_into(ann.archive, ben.archive)
    assert (done.tags, [one.code for one in done.problems]) == (2, ["unexpected-shape"])
    assert "4 left out" in done.problems[0].message
    assert ann.rows()[KEY]["tags"] == ["shore", "y" * 100]


def test_a_session_gets_as_many_tags_as_a_person_gives(
    ann: Person, ben: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(record: Store, name: int) -> tuple[str | None, list[str]]:
        asked.append(name)
        return load_annotations(record, name)

    monkeypatch.setattr("retold.synchronization.importer.load_annotations", counted)
    write(ben, "INSERT INTO tags VALUES (NAME, ?)", [(f"tag{number:05}",) for number in range(3_000)])
    for taken in (1_000, 0):
        done = import_into(ann.archive, ben.archive)
        assert (done.tags, len(done.problems)) == (taken, 1)
        assert "2,000 left out" in done.problems[0].message
    assert len(asked) == 2
    assert len(ann.rows()[KEY]["tags"]) == 1_000
