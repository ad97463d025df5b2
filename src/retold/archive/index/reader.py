"""The whole text index: its files, asked at the same time, and kept open where it is asked often."""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

import apsw

from retold.archive.database import (
    MACHINE,
    PATIENCE,
    IndexDamagedError,
    RetoldError,
    as_retold_error,
    connection_to,
    index_trouble,
    sqlite_name,
)
from retold.archive.index.files import SHARDS, shard_path
from retold.archive.index.tokenizer import LONGEST_NAME
from retold.archive.index.writer import MARK, STEPS
from retold.archive.queries.conditions import clause, register_functions
from retold.archive.store import Originals, Store

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from retold.archive.queries.conditions import Condition

    T = TypeVar("T")


COLUMNS = "sessions.id, told.id, docs.seq, docs.place, docs.regions, unixepoch(sessions.ended_at)"
TOLD = "JOIN told ON told.id = docs.session JOIN archive.sessions ON sessions.name = told.name {messages}"
_ANY = f"""
SELECT {COLUMNS}, min(docs.id) FROM docs {TOLD}
WHERE {{which}} GROUP BY told.id
"""  # noqa: S608 - ours
_OF_ONE = f"SELECT {COLUMNS} FROM docs {TOLD} WHERE told.id = ? AND {{which}} ORDER BY docs.seq DESC, docs.id"  # noqa: S608 - ours
TABLES = ("said", "output")
# FTS5 finds its way to a range of rows: the documents of one session lie side by side.
_WITHIN = {
    table: f"""
SELECT {COLUMNS} FROM {table} JOIN docs ON docs.id = {table}.rowid {TOLD}
WHERE {table} MATCH ? AND docs.session = ? AND {table}.rowid BETWEEN
    (SELECT min(id) FROM docs WHERE session = ?) AND (SELECT max(id) FROM docs WHERE session = ?) AND {{which}}
ORDER BY docs.seq, docs.id LIMIT ?
"""  # noqa: S608 - ours
    for table in TABLES
}
_SESSIONS = """
SELECT sessions.id, told.id, sessions.ended_at, told.originals, (SELECT 1 FROM pages WHERE pages.session = told.id)
FROM told JOIN archive.sessions ON sessions.name = told.name WHERE {which}
"""
_NAMED = "SELECT told.id FROM told JOIN archive.sessions ON sessions.name = told.name WHERE sessions.key = ?"
_SESSIONS_WITH = """
SELECT DISTINCT sessions.id FROM {table} JOIN docs ON docs.id = {table}.rowid
JOIN told ON told.id = docs.session JOIN archive.sessions ON sessions.name = told.name WHERE {table} MATCH ?
"""
_IS_OF_IT = (
    "SELECT (SELECT value FROM main.facts WHERE name = 'archive')"
    " IS (SELECT value FROM archive.facts WHERE name = 'id')"
)
MESSAGES = "LEFT JOIN archive.messages ON messages.session = sessions.id AND messages.seq = docs.seq"
MAPPED = 256 << 20
"""Bytes of a file that are read where the system has them, without a copy."""


class IndexHit:
    """A document that was found: which session of which file of the index, and where in it."""

    __slots__ = ("ended_at", "place", "regions", "seq", "session", "shard", "told")

    def __init__(self, shard: IndexFile, row: Sequence[Any]) -> None:
        self.shard = shard
        self.session, self.told, self.seq, self.place, self.regions, self.ended_at, *_ = row

    def texts(self) -> Iterator[str]:
        """Yield the texts of a document, one behind the other; what cannot be found any more is left out."""
        for region in self.regions.split():
            text = self.shard.text(self.told, region)
            if text is not None:
                yield text


class Conditions:
    """What must hold of sessions, and of the messages that documents are of."""

    __slots__ = ("messages", "sessions")

    def __init__(self, sessions: Sequence[Condition], messages: Sequence[Condition]) -> None:
        self.sessions, self.messages = sessions, messages


class _Scorer:
    """The SQL function `global_score`.

    The connection holds it until it closes, so it must not lead back to the connection: nothing would ever close that.
    """

    __slots__ = ("score",)

    def __init__(self) -> None:
        self.score: Callable[[Any], float] | None = None

    def __call__(self, row: Any, *_: Any) -> float:
        return 0.0 if self.score is None else self.score(row)


class IndexFile:
    """One file of the index, with the archive beside it."""

    def __init__(self, path: str, archive: str, *, is_mapped: bool = True, patience: int = PATIENCE) -> None:
        if not os.path.exists(path):
            raise IndexDamagedError(f"{path} is missing")
        self.path, self._archive = path, archive
        try:
            self.connection = connection_to(path)
            self.connection.set_busy_timeout(patience)
            is_ours = self.connection.pragma("application_id") == MARK
            # Whoever searches needs the tables of the first step alone: the next sync takes the others.
            if not is_ours or not 1 <= self.connection.pragma("user_version") <= len(STEPS):
                raise IndexDamagedError(f"{path} is of another version")
            self.connection.execute("ATTACH ? AS archive", (sqlite_name(archive),))
            if not self.connection.execute(_IS_OF_IT).get:
                raise IndexDamagedError(f"{path} is of another archive")
            self.connection.execute(f"PRAGMA mmap_size = {MAPPED if is_mapped else 0}")
            self.connection.execute("PRAGMA query_only = 1")
            self._number = os.stat(path).st_ino
            self._scorer: _Scorer | None = None
            self._begin()
        except apsw.Error as error:
            raise self._trouble(error) from error

    def scored_rows(
        self, score: Callable[[Any], float], asked: str, values: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query in which `global_score` is a function of what FTS5 knows about a row."""
        if self._scorer is None:
            self._scorer = _Scorer()
            self.connection.register_fts5_function("global_score", self._scorer)
        self._scorer.score = score
        try:
            return list(self.rows(asked, values))
        finally:
            self._scorer.score = None

    def _trouble(self, error: apsw.Error) -> RetoldError:
        """Return what is wrong: with this file, or with the archive that is read along with it."""
        if isinstance(error, apsw.CorruptError | apsw.NotADBError) and not self._is_archive_whole():
            return as_retold_error(error, self._archive)
        return index_trouble(error, self.path)

    def _is_archive_whole(self) -> bool:
        try:
            with Store(os.path.dirname(self._archive)) as record:
                return next(record.rows("PRAGMA quick_check(1)")) == ("ok",)
        except RetoldError:
            return False

    def _begin(self) -> None:
        """Answer all that is asked from now on as of one moment."""
        self.connection.execute("BEGIN")
        self._originals = Originals(self.connection, is_still=True)  # of the archive, as of the same moment
        self._known: dict[int, list[int]] = {}
        self._opened: tuple[int, int, bytes] = (-1, -1, b"")

    def rest(self) -> None:
        """Hold on to no moment: what others write could not be tidied up meanwhile."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def is_renewed(self) -> bool:
        """Go on at the present moment; tell whether this is still the file that lies there."""
        try:
            if os.stat(self.path).st_ino != self._number:
                return False
            self.rest()
            self._begin()
        except (OSError, apsw.Error):
            return False
        return True

    def rows(self, asked: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield what a question gives."""
        try:
            yield from self.connection.execute(asked, values)
        except MACHINE as error:
            raise self._trouble(error) from error

    def _found(
        self, asked: str, wanted: Conditions, before: Sequence[Any] = (), behind: Sequence[Any] = ()
    ) -> Iterator[IndexHit]:
        """Yield documents; only where something is asked of messages are they looked up."""
        which, values = clause([*wanted.sessions, *wanted.messages])
        sql = asked.format(which=which, messages=MESSAGES if wanted.messages else "")
        return (IndexHit(self, row) for row in self.rows(sql, [*before, *values, *behind]))

    def within(self, table: str, match: str, key: str, wanted: Conditions, most: int) -> Iterator[IndexHit]:
        """Yield the documents of one session that hold something, in its order."""
        for (told_id,) in list(self.rows(_NAMED, (key,))):
            yield from self._found(_WITHIN[table], wanted, (match, told_id, told_id, told_id), (most,))

    def documents_of(self, key: str, wanted: Conditions) -> Iterator[IndexHit]:
        """Yield the documents of one session."""
        for (told_id,) in list(self.rows(_NAMED, (key,))):
            yield from self.documents(told_id, wanted)

    def documents_with(self, table: str, match: str, told: int) -> Iterator[IndexHit]:
        """Yield the documents of a session that hold something."""
        return self._found(_WITHIN[table], Conditions([], []), (match, told, told, told), (-1,))

    def sessions_with(self, table: str, match: str) -> Iterator[int]:
        """Yield the sessions, by their ids in the archive, that hold something."""
        return (session for (session,) in self.rows(_SESSIONS_WITH.format(table=table), (match,)))

    def beginnings(self, wanted: Conditions) -> Iterator[IndexHit]:
        """Yield the first document of each session that meets the conditions."""
        return self._found(_ANY, wanted)

    def documents(self, told: int, wanted: Conditions) -> Iterator[IndexHit]:
        """Yield the documents of a session, the last message first."""
        return self._found(_OF_ONE, Conditions([], wanted.messages), (told,))

    def sessions(self, wanted: Conditions) -> Iterator[tuple[Any, ...]]:
        """Yield the sessions in this file: their ids in the archive and here, end, originals, and whether there are pages."""
        which, values = clause(wanted.sessions)
        return self.rows(_SESSIONS.format(which=which), values)

    def names_with(self, words: Collection[str]) -> Iterator[str]:
        """Yield the names in which one of the words stands, if only as letters."""
        patterns = [
            f"%{word}%" for word in words if len(word) <= LONGEST_NAME
        ]  # SQLite takes none of any length
        if patterns:
            asked = f"SELECT name FROM names WHERE {' OR '.join(['name LIKE ?'] * len(patterns))}"  # noqa: S608 - ours
            yield from (name for (name,) in self.rows(asked, patterns))

    def text(self, told_id: int, region: str) -> str | None:
        """Return the text in a region."""
        import json

        where, *place = region.split(".")
        start, size = (int(number, 16) for number in place)
        if where.startswith("-"):
            raw = self._page(told_id, int(where[1:], 16))[start : start + size]
        else:
            if told_id not in self._known:
                self._known[told_id] = self._originals_of(told_id)
            original = self._known[told_id][int(where, 16)]
            raw = self._originals.data(original, start, size) if original >= 0 else b""
        try:
            text = json.loads(b'"' + raw + b'"')
        except ValueError:  # the original was written anew meanwhile
            return None
        return text if isinstance(text, str) else None

    def _originals_of(self, told_id: int) -> list[int]:
        """Return the ids of the originals that a session's regions lie in."""
        row = next(self.rows("SELECT originals FROM told WHERE id = ?", (told_id,)), ("",))
        ids = []
        for name in row[0].split():
            found = next(
                self.rows("SELECT id FROM archive.originals WHERE name = ?", (int(name, 16),)), (-1,)
            )
            ids.append(found[0])
        return ids

    def _page(self, told_id: int, place: int) -> bytes:
        """Return a page; the next text often stands on the same."""
        if self._opened[:2] != (told_id, place):
            asked = "SELECT packed FROM pages WHERE session = ? AND place = ?"
            packed = next(self.rows(asked, (told_id, place)), (b"",))[0]
            self._opened = (told_id, place, self._originals.unpacked(bytes(packed)) if packed else b"")
        return self._opened[2]


class Index:
    """The whole index."""

    def __init__(self, record: Store, is_meant: Callable[..., bool], *, is_mapped: bool = True) -> None:
        """Open the index beside an archive; `is_meant` tells which project a name means.

        Whoever opens it often does better without files in its memory: they are put there anew each time.
        """
        self.files = [
            IndexFile(
                shard_path(record.folder, number), record.path, is_mapped=is_mapped, patience=record.patience
            )
            for number in range(SHARDS)
        ]
        for file in self.files:
            register_functions(file.connection, is_meant)

    def rest(self) -> None:
        """Stay open, and hold on to no moment."""
        for file in self.files:
            file.rest()

    def is_renewed(self) -> bool:
        """Go on at the present moment; tell whether these are still the files that lie there."""
        return all([file.is_renewed() for file in self.files])

    def at_once(self, ask: Callable[[IndexFile], Iterable[T]]) -> list[T]:
        """Return what a question to each file gives, asked of all of them at the same time."""
        first, *others = self.files
        asked = [_Asked(file, ask) for file in others]
        return [*ask(first), *(found for one in asked for found in one.answer())]


def kept_index(record: Store, is_meant: Callable[..., bool]) -> Index:
    """Return the index, which stays open with the archive: whoever asks often finds what was read before still there."""
    kept = record.index
    if kept is None or not kept.is_renewed():
        kept = record.index = Index(record, is_meant, is_mapped=False)
    return kept


class _Asked:
    """A question to a file of the index, in a thread of its own: SQLite lets others run while it looks."""

    def __init__(self, file: IndexFile, ask: Callable[[IndexFile], Iterable[Any]]) -> None:
        self._answer: list[Any] = []
        self._error: BaseException | None = None
        self._working = allocate_lock()  # threading takes a millisecond to import
        self._working.acquire()
        start_new_thread(self._run, (file, ask))

    def _run(self, file: IndexFile, ask: Callable[[IndexFile], Iterable[Any]]) -> None:
        try:
            self._answer = list(ask(file))
        except BaseException as error:  # noqa: BLE001 - raised where the answer is wanted
            self._error = error
        finally:
            self._working.release()

    def answer(self) -> list[Any]:
        """Wait for what was found."""
        with self._working:
            if self._error is not None:
                raise self._error
            return self._answer
