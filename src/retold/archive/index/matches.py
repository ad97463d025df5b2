"""Rows of one index file that match: documents with their scores, and sums over the documents of each session."""

from __future__ import annotations

from retold.archive.index.reader import COLUMNS, MESSAGES, TOLD, IndexHit
from retold.archive.queries.conditions import clause

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from retold.archive.index.reader import Conditions, IndexFile
    from retold.archive.queries.conditions import Condition

    Score = Callable[[Any], float]
    """Takes FTS5's view of a row and returns what the row is worth."""
    Row = tuple[int, int, int, int | None, float]
    """A session of the file, its document, the place in the timeline, the call, and the score."""
    Head = tuple[int, int, str, int | None]
    """A session of the file, its id and key in the archive, and its end in seconds since 1970."""

    Occurrence = tuple[int, int, int, float]
    """A session of the file, a document of it, its place in the timeline, and what FTS5 says it is worth."""


# LIMIT keeps SQLite from evaluating a score outside of the loop in which FTS5 knows the row.
_SCORED = """
SELECT docs.session, docs.id, docs.seq, docs.place, matched.score
FROM (SELECT rowid, global_score(said) AS score FROM said WHERE said MATCH ? {range} LIMIT -1) AS matched
CROSS JOIN docs ON docs.id = matched.rowid {told} WHERE {which}
"""
_BEST_OF_EACH = """
SELECT docs.session, max(matched.score)
FROM (SELECT rowid, -bm25(said, ?, ?) AS score FROM said WHERE said MATCH ? LIMIT -1) AS matched
CROSS JOIN docs ON docs.id = matched.rowid {told} WHERE {which} GROUP BY docs.session
"""
_BEST = """
SELECT docs.session, docs.id, docs.seq, docs.place, best.score, said_docsize.sz
FROM (SELECT rowid, -bm25(said, ?, ?) AS score FROM said WHERE said MATCH ? ORDER BY score DESC LIMIT ?) AS best
CROSS JOIN docs ON docs.id = best.rowid CROSS JOIN said_docsize ON said_docsize.id = best.rowid
"""
_BY_SESSION = """
SELECT docs.session, group_concat(docs.id) FROM {table} CROSS JOIN docs ON docs.id = {table}.rowid {told}
WHERE {table} MATCH ? AND {which} GROUP BY docs.session
"""
_WITHIN = """
SELECT docs.id FROM {table} CROSS JOIN docs ON docs.id = {table}.rowid {told}
WHERE {table} MATCH ? AND docs.session = ? {range} AND {which}
"""
# The documents of one session lie side by side, and FTS5 finds its way to a range of rows.
_RANGE = (
    "AND {table}.rowid BETWEEN (SELECT min(id) FROM docs WHERE session = ?)"
    " AND (SELECT max(id) FROM docs WHERE session = ?)"
)
_HEADS = (
    "SELECT told.id, sessions.id, sessions.key, unixepoch(sessions.ended_at) FROM told"
    " JOIN archive.sessions ON sessions.name = told.name WHERE told.id IN (SELECT value FROM json_each(?))"
)
# FTS5 keeps the number of its rows, and of the words in each column, as variable-length integers in this record.
_TOTALS = "SELECT block FROM said_data WHERE id = 1"
_COUNT_HOLDING = "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"


def said_totals(file: IndexFile) -> tuple[int, int]:
    """Return how many documents the conversation of a file has, and how many words are in them."""
    rows, *columns = [*_integers(bytes(next(file.rows(_TOTALS), (b"",))[0])), 0]
    return rows, sum(columns)


def _integers(packed: bytes) -> Iterator[int]:
    """Yield the integers of a record of FTS5: seven bits in each byte, the highest bits first."""
    value = 0
    for byte in packed:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that the integer goes on
            yield value
            value = 0


def documents_with(file: IndexFile, table: str, match: str, most: int = -1) -> int:
    """Return how many documents of a table match, up to so many."""
    return int(next(file.rows(_COUNT_HOLDING.format(table=table), (match, most)))[0])


def scored_rows(file: IndexFile, match: str, score: Score, wanted: Conditions) -> list[Row]:
    """Return every document in which something was said, with its score."""
    return _scored(file, match, score, wanted, "", ())


def scored_within(file: IndexFile, match: str, score: Score, told_id: int, wanted: Conditions) -> list[Row]:
    """Return the documents of one session in which something was said, with their scores."""
    return _scored(file, match, score, wanted, _RANGE.format(table="said"), (told_id, told_id), told_id)


def _scored(  # noqa: PLR0913 - the two ways to ask differ in the last three
    file: IndexFile,
    match: str,
    score: Score,
    wanted: Conditions,
    within: str,
    bounds: tuple[int, ...],
    told_id: int | None = None,
) -> list[Row]:
    asked, values = _narrowed(_SCORED, wanted, range=within)
    if told_id is not None:
        asked, values = f"{asked} AND docs.session = ?", [*values, told_id]
    return file.scored_rows(score, asked, [match, *bounds, *values])


def best_scores(
    file: IndexFile, match: str, weights: tuple[float, float], wanted: Conditions
) -> Iterator[tuple[int, float]]:
    """Yield the sessions in which something was said, each with what FTS5 takes its best document to be worth.

    FTS5 knows one file only: its scores are not those of `scored_rows`, but near them.
    """
    asked, values = _narrowed(_BEST_OF_EACH, wanted)
    rows: Iterator[Any] = file.rows(asked, [*weights, match, *values])
    return rows


def best_rows(
    file: IndexFile, match: str, weights: tuple[float, float], most: int
) -> Iterator[tuple[Row, int]]:
    """Yield the best documents by what FTS5 takes them to be worth, each with that score and the number of its words."""
    for *row, size in file.rows(_BEST, (*weights, match, most)):
        yield (*row,), sum(_integers(bytes(size)))


def documents_by_session(
    file: IndexFile, table: str, match: str, wanted: Conditions
) -> Iterator[tuple[int, str]]:
    """Yield the sessions that match, with the ids of their documents, between commas."""
    asked, values = _narrowed(_BY_SESSION, wanted, table=table)
    rows: Iterator[Any] = file.rows(asked, [match, *values])
    return rows


def documents_within(
    file: IndexFile, table: str, match: str, told_id: int, wanted: Conditions
) -> Iterator[int]:
    """Yield the documents of one session that match."""
    asked, values = _narrowed(_WITHIN, wanted, table=table, range=_RANGE.format(table=table))
    return (doc for (doc,) in file.rows(asked, [match, told_id, told_id, told_id, *values]))


def heads(file: IndexFile, told_ids: Iterable[int]) -> Iterator[Head]:
    """Yield sessions of a file as the archive has them; one that is gone from the archive is left out."""
    rows: Iterator[Any] = file.rows(_HEADS, (f"[{','.join(map(str, told_ids))}]",))
    return rows


def _narrowed(asked: str, wanted: Conditions, **names: str) -> tuple[str, list[Any]]:
    """Return a question with conditions; only where there are some, sessions and messages are looked up."""
    conditions: list[Condition] = [*wanted.sessions, *wanted.messages]
    which, values = clause(conditions)
    told = TOLD.format(messages=MESSAGES if wanted.messages else "") if conditions else ""
    return asked.format(told=told, which=which, **names), values


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
