"""The text index for reading: its files are queried at the same time, and return documents, scores and counts."""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

import apsw

from retold.archive.database import (
    MACHINE_ERRORS,
    DamagedError,
    IndexDamagedError,
    RetoldError,
    as_index_error,
    as_retold_error,
    migrate,
    open_connection,
    sqlite_path,
)
from retold.archive.index.tokenizer import LONGEST_NAME
from retold.archive.queries.listing import join_conditions, register_functions
from retold.archive.schema import INDEX_MARK, INDEX_STEPS
from retold.archive.store import SHARDS, Originals, Store, decompress, decompress_with, shard_path

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any, Self, TypeVar

    from retold.archive.queries.listing import Condition

    T = TypeVar("T")

    Score = Callable[[Any], float]
    """Takes FTS5's view of a row and returns its score."""
    ScoredRow = tuple[int, int, int, int | None, float]
    """Entry of a session, document, seq, position of the call, and score."""
    SessionHead = tuple[int, int, str, int | None]
    """Entry of a session, its id and key in the archive, and its end in seconds since 1970."""

    Occurrence = tuple[int, int, int, float]
    """Entry of a session, document, seq, and worth."""


_COLUMNS = "sessions.id, entries.id, docs.seq, docs.position, docs.regions, unixepoch(sessions.ended_at)"
_JOIN_SESSIONS = (
    "JOIN entries ON entries.id = docs.session JOIN archive.sessions ON sessions.uid = entries.uid {messages}"
)
_FIRST_DOCUMENTS = f"""
SELECT {_COLUMNS}, min(docs.id) FROM docs {_JOIN_SESSIONS}
WHERE {{which}} GROUP BY entries.id
"""  # noqa: S608 - ours
_DOCUMENTS = f"SELECT {_COLUMNS} FROM docs {_JOIN_SESSIONS} WHERE entries.id = ? AND {{which}} ORDER BY docs.seq DESC, docs.id"  # noqa: S608 - ours
TABLES = ("said", "output")
# The documents of one session have consecutive ids, and FTS5 finds a range of rows fast.
_MATCHES = {
    table: f"""
SELECT {_COLUMNS} FROM {table} JOIN docs ON docs.id = {table}.rowid {_JOIN_SESSIONS}
WHERE {table} MATCH ? AND docs.session = ? AND {table}.rowid BETWEEN
    (SELECT min(id) FROM docs WHERE session = ?) AND (SELECT max(id) FROM docs WHERE session = ?) AND {{which}}
ORDER BY docs.seq, docs.id LIMIT ?
"""  # noqa: S608 - ours
    for table in TABLES
}
_SESSIONS = """
SELECT sessions.id, entries.id, sessions.ended_at, entries.originals, (SELECT 1 FROM pages WHERE pages.session = entries.id)
FROM entries JOIN archive.sessions ON sessions.uid = entries.uid WHERE {which}
"""
_ENTRY_OF_KEY = "SELECT entries.id FROM entries JOIN archive.sessions ON sessions.uid = entries.uid WHERE sessions.key = ?"
_SESSIONS_WITH = """
SELECT DISTINCT sessions.id FROM {table} JOIN docs ON docs.id = {table}.rowid
JOIN entries ON entries.id = docs.session JOIN archive.sessions ON sessions.uid = entries.uid WHERE {table} MATCH ?
"""
_IS_OF_ARCHIVE = (
    "SELECT (SELECT value FROM main.facts WHERE name = 'archive')"
    " IS (SELECT value FROM archive.facts WHERE name = 'id')"
)
_TIMELINE = "SELECT entries.id, total, outline FROM entries JOIN timelines ON session = entries.id WHERE uid = ? AND stamp = ?"
_CHUNKS_FROM = """
SELECT seq, packed, needs_texts,
    (SELECT min(later.seq) FROM timeline_chunks AS later WHERE later.session = ?1 AND later.seq > timeline_chunks.seq)
FROM timeline_chunks WHERE session = ?1 AND seq >=
    (SELECT max(seq) FROM timeline_chunks WHERE session = ?1 AND seq <= ?2) ORDER BY seq
"""
_MOST_ENTRIES = 1 << 62
_REGIONS = "SELECT regions FROM docs WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq, position"
_JOIN_MESSAGES = "LEFT JOIN archive.messages ON messages.session = sessions.id AND messages.seq = docs.seq"
MAPPED_BYTES = 256 << 20
"""Bytes of a file that are mapped into memory."""


class IndexHit:
    """A document that a search has found: its session, and its place in it."""

    __slots__ = ("ended_at", "entry_id", "position", "regions", "seq", "session", "shard")

    def __init__(self, shard: IndexFile, row: Sequence[Any]) -> None:
        self.shard = shard
        self.session, self.entry_id, self.seq, self.position, self.regions, self.ended_at, *_ = row

    def texts(self) -> Iterator[str]:
        """Yield the texts of the document; a text that is no longer in an original is left out."""
        for region in self.regions.split():
            text = self.shard.read_text(self.entry_id, region)
            if text is not None:
                yield text


class Conditions:
    """Conditions on sessions, and on the messages of documents."""

    __slots__ = ("messages", "sessions")

    def __init__(self, sessions: Sequence[Condition], messages: Sequence[Condition]) -> None:
        self.sessions, self.messages = sessions, messages


class _Scorer:
    """The SQL function `global_score`.

    The connection holds it until it closes. It must not refer to the connection, which would then never close.
    """

    __slots__ = ("score",)

    def __init__(self) -> None:
        self.score: Callable[[Any], float] | None = None

    def __call__(self, row: Any, *_: Any) -> float:
        return 0.0 if self.score is None else self.score(row)


class IndexFile:
    """One file of the index, attached to the archive."""

    def __init__(self, path: str, store: Store, *, is_mapped: bool = True) -> None:
        if not os.path.exists(path):
            raise IndexDamagedError(f"{path} is missing")
        # Without the store itself: it may hold the index, and would then never close.
        self.path, self._archive, self._damage = path, store.path, store.damage
        try:
            self.connection = open_connection(path)
            self.connection.set_busy_timeout(store.patience)
            is_ours = self.connection.pragma("application_id") == INDEX_MARK
            if not is_ours or not 1 <= self.connection.pragma("user_version") <= len(INDEX_STEPS):
                raise IndexDamagedError(f"{path} is of another version")
            migrate(self.connection, path, INDEX_MARK, INDEX_STEPS)
            self.connection.execute("ATTACH ? AS archive", (sqlite_path(store.path),))
            if not self.connection.execute(_IS_OF_ARCHIVE).get:
                raise IndexDamagedError(f"{path} is of another archive")
            self.connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES if is_mapped else 0}")
            self.connection.execute("PRAGMA query_only = 1")
            self._inode = os.stat(path).st_ino
            self._scorer: _Scorer | None = None
            self._begin()
        except apsw.Error as error:
            raise self._as_error(error) from error

    def load_scored_rows(self, score: Callable[[Any], float], sql: str, values: Sequence[Any]) -> list[Any]:
        """Return the rows of a query with `global_score`, which computes a score from FTS5's view of a row."""
        if self._scorer is None:
            self._scorer = _Scorer()
            self.connection.register_fts5_function("global_score", self._scorer)
        self._scorer.score = score
        try:
            return list(self.rows(sql, values))
        finally:
            self._scorer.score = None

    def _as_error(self, error: apsw.Error) -> RetoldError:
        """Return an error about this file, or about the archive if that is damaged."""
        if isinstance(error, apsw.CorruptError | apsw.NotADBError) and not self._is_archive_whole():
            return as_retold_error(error, self._archive)
        return as_index_error(error, self.path)

    def _is_archive_whole(self) -> bool:
        try:
            with Store(os.path.dirname(self._archive)) as store:
                return store.row("PRAGMA quick_check(1)") == ("ok",)
        except RetoldError:
            return False

    def _begin(self) -> None:
        """Begin a snapshot of the file and of the archive."""
        self.connection.execute("BEGIN")
        self._originals = Originals(self.connection, is_snapshot=True)  # of the archive, in the same snapshot
        self._original_ids: dict[int, list[int]] = {}
        self._last_page: tuple[int, int, bytes] = (-1, -1, b"")

    def release_snapshot(self) -> None:
        """End the snapshot: it would keep the logs of writers from being emptied."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def refresh(self) -> bool:
        """Begin a new snapshot; return False if another file has replaced this one."""
        try:
            if os.stat(self.path).st_ino != self._inode:
                return False
            self.release_snapshot()
            self._begin()
        except (OSError, apsw.Error):
            return False
        return True

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query."""
        try:
            yield from self.connection.execute(sql, values)
        except MACHINE_ERRORS as error:
            raise self._as_error(error) from error

    def _load_hits(
        self, query: str, conditions: Conditions, before: Sequence[Any] = (), behind: Sequence[Any] = ()
    ) -> Iterator[IndexHit]:
        """Yield documents; messages are joined only if there are conditions on them."""
        which, values = join_conditions([*conditions.sessions, *conditions.messages])
        sql = query.format(which=which, messages=_JOIN_MESSAGES if conditions.messages else "")
        return (IndexHit(self, row) for row in self.rows(sql, [*before, *values, *behind]))

    def load_matches_by_key(
        self, table: str, match: str, key: str, conditions: Conditions, most: int
    ) -> Iterator[IndexHit]:
        """Yield the matching documents of a session, by its key, in order."""
        for (entry,) in list(self.rows(_ENTRY_OF_KEY, (key,))):
            yield from self._load_hits(_MATCHES[table], conditions, (match, entry, entry, entry), (most,))

    def load_documents_by_key(self, key: str, conditions: Conditions) -> Iterator[IndexHit]:
        """Yield the documents of a session, by its key."""
        for (entry,) in list(self.rows(_ENTRY_OF_KEY, (key,))):
            yield from self.load_documents(entry, conditions)

    def load_matches(self, table: str, match: str, entry: int) -> Iterator[IndexHit]:
        """Yield the matching documents of a session."""
        return self._load_hits(_MATCHES[table], Conditions([], []), (match, entry, entry, entry), (-1,))

    def load_session_ids_with(self, table: str, match: str) -> Iterator[int]:
        """Yield the ids in the archive of sessions with a match."""
        return (session for (session,) in self.rows(_SESSIONS_WITH.format(table=table), (match,)))

    def load_first_documents(self, conditions: Conditions) -> Iterator[IndexHit]:
        """Yield the first document of each selected session."""
        return self._load_hits(_FIRST_DOCUMENTS, conditions)

    def load_documents(self, entry: int, conditions: Conditions) -> Iterator[IndexHit]:
        """Yield the documents of a session, the last message first."""
        return self._load_hits(_DOCUMENTS, Conditions([], conditions.messages), (entry,))

    def load_sessions(self, conditions: Conditions) -> Iterator[tuple[int, int, str | None, str, int | None]]:
        """Yield the selected sessions: id in the archive, entry, end, originals, and whether there are pages."""
        which, values = join_conditions(conditions.sessions)
        return self.rows(_SESSIONS.format(which=which), values)

    def identifiers_with(self, words: Collection[str]) -> Iterator[str]:
        """Yield identifiers that contain one of some words as letters."""
        # SQLite limits the length of patterns.
        short = [word for word in words if len(word) <= LONGEST_NAME]
        for word in short:
            for (lines,) in self.rows(
                "SELECT lines FROM identifier_lists WHERE lines LIKE ?", (f"%{word}%",)
            ):
                yield from _names_with(word, lines)

    def read_text(self, entry: int, region: str) -> str | None:
        """Return the text in a region; None if it is no longer there, or the archive's copy of it is damaged."""
        try:
            return _decode_string(self._read_escaped(entry, region).decode("utf-8", "surrogatepass"))
        except ValueError:  # the original has been rewritten
            return None
        except DamagedError as error:  # one bad file costs no other: the hit has no text
            self._damage[str(error)] = None
            return None

    def read_texts(self, entry: int, regions: Iterable[str]) -> str:
        """Return the texts in some regions together; raises ValueError for an original that has been rewritten."""
        escaped = b"".join([self._read_escaped(entry, region) for region in regions])
        return _decode_string(escaped.decode())

    def _read_escaped(self, entry: int, region: str) -> bytes:
        """Return the text in a region as JSON has it."""
        where, first, length, *nesting = region.split(".")
        start, size = int(first, 16), int(length, 16)
        if where.startswith("-"):
            return self._read_page(entry, int(where[1:], 16))[start : start + size]
        if entry not in self._original_ids:
            self._original_ids[entry] = self._load_original_ids(entry)
        original = self._original_ids[entry][int(where, 16)]
        raw = self._originals.read(original, start, size) if original >= 0 else b""
        # JSON in JSON is escaped twice.
        return _decode_string(raw.decode()).encode() if nesting else raw

    def _load_original_ids(self, entry: int) -> list[int]:
        """Return the ids of the originals that a session's regions refer to; -1 for one that is gone."""
        row = next(self.rows("SELECT originals FROM entries WHERE id = ?", (entry,)), ("",))
        sql = "SELECT id FROM archive.originals WHERE uid = ?"
        return [next(self.rows(sql, (int(uid, 16),)), (-1,))[0] for uid in row[0].split()]

    def _read_page(self, entry: int, position: int) -> bytes:
        """Return a page, from a cache of one."""
        if self._last_page[:2] != (entry, position):
            sql = "SELECT packed FROM pages WHERE session = ? AND position = ?"
            packed = next(self.rows(sql, (entry, position)), (b"",))[0]
            self._last_page = (entry, position, decompress(bytes(packed)) if packed else b"")
        return self._last_page[2]


def _names_with(word: str, lines: str) -> Iterator[str]:
    """Yield the names in a list of identifiers that contain a word, in any case."""
    small = lines.lower()
    start = small.find(word)
    while start >= 0:
        begin, end = small.rfind("\n", 0, start) + 1, small.find("\n", start)
        name = lines[begin : small.index(" ", begin)]
        if start < begin + len(name):  # not in the session behind it
            yield name
        start = small.find(word, end) if end >= 0 else -1


def _decode_string(inner: str) -> str:
    """Return the string of which this is the JSON form without quotes; raises ValueError. `json` would take a millisecond to import."""
    try:
        from _json import scanstring
    except ImportError:  # another Python
        import json

        return str(json.loads(f'"{inner}"'))
    text, end = scanstring(f'{inner}"', 0)
    if end <= len(inner):
        raise ValueError(inner)
    return str(text)


class StoredTimeline:
    """The timeline of a session in one snapshot; raises DamagedError for damage."""

    def __init__(self, file: IndexFile, entry: int, total: int, outline: bytes) -> None:
        self._file, self._entry, self.total, self._outline = file, entry, total, outline

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.connection.close()

    def outline(self) -> bytes:
        """Return the outline of what people said."""
        return decompress(self._outline)

    def chunks(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield the chunk with an entry, and those after it, each with the seq of its first entry."""
        try:
            rows = self._file.rows(_CHUNKS_FROM, (self._entry, first))
            for seq, packed, needs_texts, end in rows:
                yield seq, decompress_with(packed, self._texts(seq, end) if needs_texts else b"")
        except (apsw.Error, RetoldError, TypeError, ValueError) as error:
            raise IndexDamagedError(f"a part of a timeline cannot be read ({error})") from error

    def _texts(self, first: int, end: int | None) -> bytes:
        """Return the texts of documents of the entries from one to another, as `entry_texts` returned them."""
        rows = self._file.rows(_REGIONS, (self._entry, first, _MOST_ENTRIES if end is None else end - 1))
        regions = (region for (found,) in rows for region in found.split())
        return self._file.read_texts(self._entry, regions).encode()


def open_timeline(store: Store, uid: int, stamp: bytes) -> StoredTimeline | None:
    """Open the timeline of a session with a stamp; None if there is none."""
    for number in range(SHARDS):
        try:
            file = IndexFile(shard_path(store.folder, number), store, is_mapped=False)
        except RetoldError:  # missing, damaged, or in a folder that may not be written
            continue
        # The file may have been replaced: closing the old one must not touch the log of the new one.
        file.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        try:
            row = next(file.rows(_TIMELINE, (uid, stamp)), None)
        except (apsw.Error, RetoldError):
            row = None
        if row is not None:
            return StoredTimeline(file, *row)
        file.connection.close()
    return None


class Index:
    """The whole text index."""

    def __init__(self, store: Store, matches_project: Callable[..., bool], *, is_mapped: bool = True) -> None:
        """Open the index of an archive; `matches_project` becomes an SQL function.

        A caller that often opens the index should not map its files into memory, because that is done again each time.
        """
        self.files = [
            IndexFile(shard_path(store.folder, number), store, is_mapped=is_mapped)
            for number in range(SHARDS)
        ]
        for file in self.files:
            register_functions(file.connection, matches_project)

    def release_snapshot(self) -> None:
        """End the snapshots of all files."""
        for file in self.files:
            file.release_snapshot()

    def refresh(self) -> bool:
        """Begin new snapshots; return False if other files have replaced these."""
        return all([file.refresh() for file in self.files])

    def ask_all(self, query: Callable[[IndexFile], Iterable[T]]) -> list[T]:
        """Return the results of a query on all files, which run at the same time."""
        first, *others = self.files
        threads = [_ThreadedQuery(file, query) for file in others]
        return [*query(first), *(found for one in threads for found in one.result())]


def open_shared_index(store: Store, matches_project: Callable[..., bool]) -> Index:
    """Return the index that stays open with the archive, for callers that search often."""
    index = store.index
    if index is None or not index.refresh():
        index = store.index = Index(store, matches_project, is_mapped=False)
    return index


class _ThreadedQuery:
    """A query on a file of the index in a thread: SQLite releases Python's lock while it runs."""

    def __init__(self, file: IndexFile, query: Callable[[IndexFile], Iterable[Any]]) -> None:
        self._result: list[Any] = []
        self._error: BaseException | None = None
        self._lock = allocate_lock()  # threading takes a millisecond to import
        self._lock.acquire()
        start_new_thread(self._run, (file, query))

    def _run(self, file: IndexFile, query: Callable[[IndexFile], Iterable[Any]]) -> None:
        try:
            self._result = list(query(file))
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            self._error = error
        finally:
            self._lock.release()

    def result(self) -> list[Any]:
        """Wait for the result."""
        with self._lock:
            if self._error is not None:
                raise self._error
            return self._result


# LIMIT keeps SQLite from evaluating a score outside of the loop in which FTS5 knows the row.
_SCORED = """
SELECT docs.session, docs.id, docs.seq, docs.position, matched.score
FROM (SELECT rowid, global_score(said) AS score FROM said WHERE said MATCH ? {range} LIMIT -1) AS matched
CROSS JOIN docs ON docs.id = matched.rowid {joined} WHERE {which}
"""
_BEST_SCORES = """
SELECT docs.session, max(matched.score)
FROM (SELECT rowid, -bm25(said, ?, ?) AS score FROM said WHERE said MATCH ? LIMIT -1) AS matched
CROSS JOIN docs ON docs.id = matched.rowid {joined} WHERE {which} GROUP BY docs.session
"""
_BEST_ROWS = """
SELECT docs.session, docs.id, docs.seq, docs.position, best.score, said_docsize.sz
FROM (SELECT rowid, -bm25(said, ?, ?) AS score FROM said WHERE said MATCH ? ORDER BY score DESC LIMIT ?) AS best
CROSS JOIN docs ON docs.id = best.rowid CROSS JOIN said_docsize ON said_docsize.id = best.rowid
"""
_BY_SESSION = """
SELECT docs.session, group_concat(docs.id) FROM {table} CROSS JOIN docs ON docs.id = {table}.rowid {joined}
WHERE {table} MATCH ? AND {which} GROUP BY docs.session
"""
_DOCUMENTS_WITHIN = """
SELECT docs.id FROM {table} CROSS JOIN docs ON docs.id = {table}.rowid {joined}
WHERE {table} MATCH ? AND docs.session = ? {range} AND {which}
"""
_RANGE = (
    "AND {table}.rowid BETWEEN (SELECT min(id) FROM docs WHERE session = ?)"
    " AND (SELECT max(id) FROM docs WHERE session = ?)"
)
_HEADS = (
    "SELECT entries.id, sessions.id, sessions.key, unixepoch(sessions.ended_at) FROM entries"
    " JOIN archive.sessions ON sessions.uid = entries.uid WHERE entries.id IN (SELECT value FROM json_each(?))"
)
# FTS5 keeps the number of its rows, and of the words in each column, as variable-length integers in this record.
_TOTALS = "SELECT block FROM said_data WHERE id = 1"
_COUNT_MATCHES = "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"


def load_totals(file: IndexFile) -> tuple[int, int]:
    """Return how many documents the conversation of a file has, and how many words."""
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


def count_documents_with(file: IndexFile, table: str, match: str, most: int = -1) -> int:
    """Return how many documents of a table match, counted up to `most`."""
    return int(next(file.rows(_COUNT_MATCHES.format(table=table), (match, most)))[0])


def load_scored_rows(
    file: IndexFile, match: str, score: Score, conditions: Conditions, entry: int | None = None
) -> list[ScoredRow]:
    """Return the documents in which something was said, of all sessions or of one, with their scores."""
    if entry is None:
        sql, values = _with_conditions(_SCORED, conditions, range="")
        return file.load_scored_rows(score, sql, [match, *values])
    sql, values = _with_conditions(_SCORED, conditions, range=_RANGE.format(table="said"))
    return file.load_scored_rows(score, f"{sql} AND docs.session = ?", [match, entry, entry, *values, entry])


def load_best_scores(
    file: IndexFile, match: str, weights: tuple[float, float], conditions: Conditions
) -> Iterator[tuple[int, float]]:
    """Yield the sessions in which something was said, each with FTS5's score of its best document.

    FTS5 knows one file only: its scores are near those of `load_scored_rows`.
    """
    sql, values = _with_conditions(_BEST_SCORES, conditions)
    return file.rows(sql, [*weights, match, *values])


def load_best_rows(
    file: IndexFile, match: str, weights: tuple[float, float], most: int
) -> Iterator[tuple[ScoredRow, int]]:
    """Yield the documents with the best scores of FTS5, each with the number of its words."""
    for *row, size in file.rows(_BEST_ROWS, (*weights, match, most)):
        yield (*row,), sum(_integers(bytes(size)))


def load_documents_by_session(
    file: IndexFile, table: str, match: str, conditions: Conditions
) -> Iterator[tuple[int, str]]:
    """Yield the sessions that match, with the ids of their documents separated by commas."""
    sql, values = _with_conditions(_BY_SESSION, conditions, table=table)
    return file.rows(sql, [match, *values])


def load_documents_of_session(
    file: IndexFile, table: str, match: str, entry: int, conditions: Conditions
) -> Iterator[int]:
    """Yield the documents of one session that match."""
    sql, values = _with_conditions(
        _DOCUMENTS_WITHIN, conditions, table=table, range=_RANGE.format(table=table)
    )
    return (doc for (doc,) in file.rows(sql, [match, entry, entry, entry, *values]))


def load_heads(file: IndexFile, entries: Iterable[int]) -> Iterator[SessionHead]:
    """Yield entries with their sessions in the archive; a session that is gone is left out."""
    return file.rows(_HEADS, (_json_list(entries),))


def _with_conditions(sql: str, conditions: Conditions, **names: str) -> tuple[str, list[Any]]:
    """Return a query with conditions; sessions and messages are joined only if there are some."""
    joined = _JOIN_SESSIONS.format(messages=_JOIN_MESSAGES if conditions.messages else "")
    which, values = join_conditions([*conditions.sessions, *conditions.messages])
    return sql.format(
        joined=joined if conditions.sessions or conditions.messages else "", which=which, **names
    ), values


_WORTH = {"said": "-bm25(said, ?, ?)", "output": "1.0"}
_OCCURRENCES = """
SELECT docs.session, docs.id, docs.seq, occurrences.worth
FROM (SELECT rowid, {worth} AS worth FROM {table} WHERE {table} MATCH ? ORDER BY {order} DESC {bound}) AS occurrences
JOIN docs ON docs.id = occurrences.rowid
"""
_SELECTED_OCCURRENCES = (
    f"{_OCCURRENCES} {_JOIN_SESSIONS} WHERE {{which}} ORDER BY occurrences.{{order}} DESC LIMIT ?"
)
_SELECT_WITH_WORDS = (
    "SELECT value FROM json_each(?) WHERE value IN (SELECT rowid FROM said WHERE said MATCH ?)"
)
_COUNT_DOCUMENTS = "SELECT count(*) FROM {table}_docsize"
_FIRST_MATCHES = "SELECT count(*), max(rowid) FROM (SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid LIMIT ?)"
_LAST_DOCUMENT = "SELECT max(id) FROM docs"
_HITS = (
    f"SELECT docs.id, {_COLUMNS} FROM docs {_JOIN_SESSIONS} WHERE docs.id IN (SELECT value FROM json_each(?))"  # noqa: S608 - ours
)
_COPIES = f"SELECT docs.id FROM docs {_JOIN_SESSIONS} WHERE docs.id IN (SELECT value FROM json_each(?)) AND messages.copied"  # noqa: S608 - ours


class WeightedQuery:
    """A match in a table, and the weights of what a person said and of what the agent did."""

    __slots__ = ("is_best", "match", "table", "weights")

    def __init__(
        self, table: str, match: str, weights: tuple[float, float], *, is_best: bool = False
    ) -> None:
        self.table, self.match, self.weights = table, match, weights
        self.is_best = is_best
        """Whether the best documents come first, instead of the latest."""


def load_occurrences(
    file: IndexFile, query: WeightedQuery, conditions: Conditions, most: int
) -> Iterator[Occurrence]:
    """Yield the documents that match, in the order of the query."""
    values: list[Any] = [*(query.weights if query.table == "said" else ()), query.match]
    is_any = not conditions.sessions and not conditions.messages
    which, narrowing = join_conditions([*conditions.sessions, *conditions.messages])
    sql = (_OCCURRENCES if is_any else _SELECTED_OCCURRENCES).format(
        table=query.table,
        worth=_WORTH[query.table],
        order="worth" if query.is_best else "rowid",
        bound="LIMIT ?" if is_any else "",
        messages=_JOIN_MESSAGES if conditions.messages else "",
        which=which,
    )
    return file.rows(sql, [*values, *narrowing, most])


def select_with_words(file: IndexFile, match: str, documents: Iterable[int]) -> Iterator[int]:
    """Yield those of some documents in which something was said."""
    return (document for (document,) in file.rows(_SELECT_WITH_WORDS, (_json_list(documents), match)))


def count_documents(file: IndexFile, table: str) -> int:
    """Return how many documents a table has."""
    return int(next(file.rows(_COUNT_DOCUMENTS.format(table=table)))[0])


def estimate_frequency(file: IndexFile, table: str, match: str, most: int) -> int:
    """Return how many documents match: counted up to `most`, then extrapolated."""
    found, last = next(file.rows(_FIRST_MATCHES.format(table=table), (match, most)))
    return int(found if found < most else found * next(file.rows(_LAST_DOCUMENT))[0] // last)


def load_hits(file: IndexFile, documents: Iterable[int]) -> dict[int, IndexHit]:
    """Return documents by their ids, without those of sessions that are gone."""
    rows = file.rows(_HITS.format(messages=""), (_json_list(documents),))
    return {row[0]: IndexHit(file, row[1:]) for row in rows}


def select_copied(file: IndexFile, documents: Iterable[int]) -> set[int]:
    """Return those of some documents whose messages belong to another session."""
    rows = file.rows(_COPIES.format(messages=_JOIN_MESSAGES), (_json_list(documents),))
    return {document for (document,) in rows}


def _json_list(ids: Iterable[int]) -> str:
    return f"[{','.join(map(str, ids))}]"
