"""Identifiers with humps are kept in few lists, which a sync merges and a forgotten session leaves."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from retold.archive.database import connect
from retold.archive.index import writer
from retold.archive.index.documents import SearchDocument
from retold.archive.index.reader import _names_with
from retold.archive.index.writer import IndexEntry, IndexWriter
from retold.archive.schema import INDEX_MARK, INDEX_STEPS


def lists(path: str) -> list[str]:
    connection = connect(path, INDEX_MARK, INDEX_STEPS)
    found = [lines for (lines,) in connection.execute("SELECT lines FROM identifier_lists ORDER BY id")]
    connection.close()
    return found


def names(path: str, word: str) -> list[str]:
    return sorted({name for lines in lists(path) for name in _names_with(word, lines)})


def add(path: str, uid: int, texts: Sequence[str]) -> None:
    """Write a session as a sync of its own."""
    index = IndexWriter(path, "archive")
    index.begin()
    docs = [(SearchDocument(seq, None, [text], [], []), "") for seq, text in enumerate(texts)]
    index.put(IndexEntry(uid, b"%d" % uid, [], [(docs, [])]))
    index.commit(uid)
    index.close()


def test_identifiers_of_an_earlier_index_are_found(tmp_path: Path) -> None:
    path = str(tmp_path / "index.db")
    older = connect(path, INDEX_MARK, INDEX_STEPS[:4])
    older.executemany(
        "INSERT INTO identifiers VALUES (?, ?)", [("timeZone", 1), ("TimeTable", 300), ("zoneOf", 2)]
    )
    older.close()
    assert names(path, "time") == ["TimeTable", "timeZone"]
    assert names(path, "zone") == ["timeZone", "zoneOf"]
    assert names(path, "ez") == ["timeZone"]
    assert names(path, "1") == []


def test_lists_are_merged_with_each_identifier_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_MOST_LISTS", 3)
    monkeypatch.setattr(writer, "_LIST_LENGTH", 4)
    path = str(tmp_path / "index.db")
    for uid in range(1, 8):
        add(path, uid, ["sharedName and", f"the onlyName{uid}"])
        assert len(lists(path)) <= 4
    assert names(path, "name") == [*(f"onlyName{uid}" for uid in range(1, 8)), "sharedName"]
    assert "\n".join(lists(path)).count("sharedName") < 7


def test_a_forgotten_session_takes_its_identifiers_along(tmp_path: Path) -> None:
    path = str(tmp_path / "index.db")
    for uid in (1, 2, 33):
        add(path, uid, [f"the onlyName{uid} of"])
    index = IndexWriter(path, "archive")
    index.erase([2])
    index.close()
    assert names(path, "name") == ["onlyName1", "onlyName33"]
