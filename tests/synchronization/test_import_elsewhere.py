"""Paths of other machines, as this archive knows them."""

import os
import sqlite3
from pathlib import Path

import pytest

from retold.synchronization.import_offers import is_label, localize_path
from support.conversation_files import FORMS, turns
from support.merged_archives import import_into
from support.person import Person

PLACES = {
    "/home/ben/.claude/x.jsonl": "/import:ben/home/ben/.claude/x.jsonl",
    "/home/ben/a\\b": "/import:ben/home/ben/a\\b",
    "C:\\Users\\Ben\\.claude\\x.jsonl": "/import:ben/C:/Users/Ben/.claude/x.jsonl",
    "c:/Users/Ben/.claude\\x.jsonl": "/import:ben/c:/Users/Ben/.claude/x.jsonl",
    "\\\\nas\\ben\\.codex\\x": "/import:ben/nas/ben/.codex/x",
    "\\import:cy\\home\\x": "/import:cy/home/x",
    "/import:cy/home/x": "/import:cy/home/x",
    "C:\\Users\\..\\x": None,
    "C:x": None,
    "x": None,
    "/": None,
    "/home/ben/./x": None,
    "/x\0y": None,
    "/" + "x" * 4096: None,
}


@pytest.mark.parametrize("path", PLACES)
def test_a_path_of_another_machine_gets_its_place(path: str) -> None:
    expected = PLACES[path]
    assert localize_path(path, "ben") == (None if expected is None else expected.replace("/", os.sep))


def test_a_label_is_a_short_word() -> None:
    assert [label for label in ("ben", "b" * 64, "the laptop", "München") if not is_label(label)] == []
    assert [
        label
        for label in ("", "b" * 65, " ben", "ben.", "a/b", "a\\b", "a:b", "a=b", "a\tb")
        if is_label(label)
    ] == []


def test_an_archive_of_windows_is_read(tmp_path: Path) -> None:
    ben, ann = Person(tmp_path / "ben"), Person(tmp_path / "ann")
    for number, form in enumerate(FORMS.values()):
        form.write(ben.folder, number, turns("perigee"))
    ben.sync()
    connection = sqlite3.connect(ben.archive / "archive.db")
    for column in ("path", "home", "folder"):
        asked = f"UPDATE sources SET {column} = 'C:' || replace({column}, '/', '\\')"  # noqa: S608 - ours
        connection.execute(asked)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    done = import_into(ann.archive, ben.archive, "ben")
    assert (done.new_sessions, done.problems) == (len(FORMS), [])
    places = {source["path"] for row in ann.rows().values() for source in row["sources"]}
    assert all(place.startswith(f"{os.sep}import:ben{os.sep}C:{os.sep}") for place in places)
