"""Others at an archive while it is imported: who reads it is no matter, and who writes to it stops what is not chosen yet."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retold.archive.foreign import OtherArchive, write_source
from retold.synchronization.import_selection import ImportSelection, ImportSelector
from support.conversation_files import FORMS, turns
from support.person import Person

Meanwhile = Callable[[sqlite3.Connection], object]


@pytest.fixture
def ben(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ben")
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns("perigee"))
    person.sync()
    return person


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    person.sync()
    return person


def read(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT count(*) FROM sessions").fetchall()


def write(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM originals")
    connection.execute("DELETE FROM pieces")
    connection.commit()


def while_choosing(person: Person, what: Meanwhile, patched: pytest.MonkeyPatch) -> None:
    select = ImportSelector.select

    def meanwhile(self: ImportSelector, excluded: list[str]) -> ImportSelection:
        what(sqlite3.connect(person.archive / "archive.db"))
        return select(self, excluded)

    patched.setattr(ImportSelector, "select", meanwhile)


def while_taking(person: Person, what: Meanwhile, patched: pytest.MonkeyPatch) -> None:
    def meanwhile(*given: Any, **more: Any) -> int:
        what(sqlite3.connect(person.archive / "archive.db"))
        patched.setattr("retold.synchronization.importer.write_source", write_source)
        return write_source(*given, **more)

    patched.setattr("retold.synchronization.importer.write_source", meanwhile)


@pytest.mark.parametrize("when", [while_choosing, while_taking])
def test_who_only_reads_is_no_matter(
    ann: Person, ben: Person, when: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    when(ben, read, monkeypatch)
    done = ann.run("import", str(ben.archive), "--json")
    assert (done.code, done.objects[0]["new_sessions"]) == (0, len(FORMS))


def test_who_writes_while_it_is_chosen_stops_it_before_anything_is_taken(
    ann: Person, ben: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_choosing(ben, write, monkeypatch)
    done = ann.run("import", str(ben.archive))
    assert (done.code, "was written to meanwhile" in done.err) == (4, True)
    assert ann.rows() == {}


def test_who_writes_later_changes_nothing_of_what_was_chosen(
    ann: Person, ben: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_taking(ben, write, monkeypatch)
    assert ann.run("import", str(ben.archive)).code == 0
    assert len(ann.rows()) == len(FORMS)


def test_what_is_gone_when_it_is_taken_is_told_as_what_it_is(
    ann: Person, ben: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(self: OtherArchive, *_: object) -> None:
        self._check(is_right=False)

    def rewrite(connection: sqlite3.Connection) -> None:
        monkeypatch.setattr(OtherArchive, "_read_chunk", other)
        write(connection)

    while_taking(ben, rewrite, monkeypatch)
    done = ann.run("import", str(ben.archive))
    assert (done.code, "was written to meanwhile" in done.err) == (4, True)
    assert ann.rows() == {}
