"""Where words occur in one file of the index: bare rows, for those who weigh thousands of them and show a few."""

from __future__ import annotations

from retold.archive.conditions import clause
from retold.archive.index_file import COLUMNS, MESSAGES, TOLD, IndexHit

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.index_file import Conditions, IndexFile

    Occurrence = tuple[int, int, int, float]
    """A session of the file, a document of it, its place in the timeline, and what FTS5 says it is worth."""

_WORTH = {"said": "-bm25(said, ?, ?)", "output": "1.0"}
_HOLDING = """
SELECT docs.session, docs.id, docs.seq, holding.worth
FROM (SELECT rowid, {worth} AS worth FROM {table} WHERE {table} MATCH ? ORDER BY {order} DESC {bound}) AS holding
JOIN docs ON docs.id = holding.rowid
"""
_MEANT = f"{_HOLDING} {TOLD} WHERE {{which}} ORDER BY holding.{{order}} DESC LIMIT ?"
_AMONG = "SELECT value FROM json_each(?) WHERE value IN (SELECT rowid FROM said WHERE said MATCH ?)"
_COUNT = "SELECT count(*) FROM {table}_docsize"
_BEGIN = "SELECT count(*), max(rowid) FROM (SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid LIMIT ?)"
_LAST = "SELECT max(id) FROM docs"
_AGAIN = f"SELECT docs.id, {COLUMNS} FROM docs {TOLD} WHERE docs.id IN (SELECT value FROM json_each(?))"  # noqa: S608 - ours
_COPIED = (
    f"SELECT docs.id FROM docs {TOLD} WHERE docs.id IN (SELECT value FROM json_each(?)) AND messages.copied"  # noqa: S608 - ours
)


class Weighed:
    """What is looked for in a table, and what it weighs in what a person said and in what the agent did."""

    __slots__ = ("is_best", "match", "table", "weights")

    def __init__(
        self, table: str, match: str, weights: tuple[float, float], *, is_best: bool = False
    ) -> None:
        self.table, self.match, self.weights = table, match, weights
        self.is_best = is_best
        """Whether the best come first, not the latest that were put in."""


def occurrences(file: IndexFile, sought: Weighed, wanted: Conditions, most: int) -> Iterator[Occurrence]:
    """Return the documents that hold something, in their order."""
    values: list[Any] = [*(sought.weights if sought.table == "said" else ()), sought.match]
    is_any = not wanted.sessions and not wanted.messages
    which, narrowing = clause([*wanted.sessions, *wanted.messages])
    sql = (_HOLDING if is_any else _MEANT).format(
        table=sought.table,
        worth=_WORTH[sought.table],
        order="worth" if sought.is_best else "rowid",
        bound="LIMIT ?" if is_any else "",
        messages=MESSAGES if wanted.messages else "",
        which=which,
    )
    rows: Iterator[Any] = file.rows(sql, [*values, *narrowing, most])
    return rows


def said_in(file: IndexFile, match: str, documents: Iterable[int]) -> Iterator[int]:
    """Yield those of some documents in which something was said; however common it is, few rows come out of SQLite."""
    return (document for (document,) in file.rows(_AMONG, (_as_json(documents), match)))


def count(file: IndexFile, table: str) -> int:
    """Return how many documents a table has."""
    return int(next(file.rows(_COUNT.format(table=table)))[0])


def frequency(file: IndexFile, table: str, match: str, most: int) -> int:
    """Return how many documents hold something: counted up to so many, and then as if it went on like that."""
    found, place = next(file.rows(_BEGIN.format(table=table), (match, most)))
    return int(found if found < most else found * next(file.rows(_LAST))[0] // place)


def found_again(file: IndexFile, documents: Iterable[int]) -> dict[int, IndexHit]:
    """Return documents by their ids, as they are shown; none of a session that has gone."""
    rows = file.rows(_AGAIN.format(messages=""), (_as_json(documents),))
    return {row[0]: IndexHit(file, row[1:]) for row in rows}


def copied_among(file: IndexFile, documents: Iterable[int]) -> set[int]:
    """Return those of some documents that are of messages which belong to another session."""
    rows = file.rows(_COPIED.format(messages=MESSAGES), (_as_json(documents),))
    return {document for (document,) in rows}


def _as_json(documents: Iterable[int]) -> str:
    return f"[{','.join(map(str, documents))}]"
