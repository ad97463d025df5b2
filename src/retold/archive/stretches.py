"""Long sessions in stretches of their timelines, in the index beside their documents: to show a part, not all is read.

A cache as the rest of the index: what is missing, or of another time than the record, or damaged, is read anew.
"""

from __future__ import annotations

import os

import apsw

from retold.archive.database import PATIENCE, IndexDamagedError, connection_to
from retold.archive.originals import digest, packed, unpacked
from retold.archive.shards import SHARDS, shard_path

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Self

    Ask = Callable[[str, Sequence[Any]], list[Any]]

STEP = """
-- Sessions that are long, as their files tell them; what they are to others, only the record knows.
CREATE TABLE timelines (
    session INTEGER PRIMARY KEY, -- as in told
    total INTEGER NOT NULL,     -- entries
    outline BLOB NOT NULL       -- what people said, zstd
);
CREATE TABLE stretches (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,     -- of its first entry in the timeline
    messages INTEGER NOT NULL,  -- among the entries before it
    seal BLOB NOT NULL,         -- to know an unchanged stretch again
    packed BLOB NOT NULL        -- zstd
);
CREATE UNIQUE INDEX session_stretches ON stretches (session, place);
"""
WITHOUT_MESSAGES = "ALTER TABLE stretches DROP COLUMN messages"
_KEPT = """
SELECT told.id, total, outline FROM told JOIN timelines ON timelines.session = told.id WHERE name = ? AND stamp = ?
"""
_FROM = """
SELECT place, packed FROM stretches WHERE session = ?1 AND place >=
    (SELECT max(place) FROM stretches WHERE session = ?1 AND place <= ?2) ORDER BY place
"""

_LEVEL = 1
"""Of zstd: half the time of the originals' level, a fifth more room."""


class TimelineChunk:
    """Entries that follow each other, packed, and where they begin."""

    __slots__ = ("data", "place")

    def __init__(self, place: int, data: bytes) -> None:
        self.place, self.data = place, data


class Timeline:
    """A long session as the index takes it: how many entries, what people said, and its stretches, made when asked for."""

    __slots__ = ("outline", "stretches", "total")

    def __init__(self, total: int, outline: bytes, stretches: Iterable[TimelineChunk]) -> None:
        self.total, self.outline, self.stretches = total, outline, stretches


def put_timeline(ask: Ask, session: int, timeline: Timeline | None) -> None:
    """Keep the timeline of a session; stretches that are as they were are not written again."""
    if timeline is None:
        remove_timeline(ask, session)
        return
    known = {
        place: bytes(sealed)
        for place, sealed in ask("SELECT place, seal FROM stretches WHERE session = ?", (session,))
    }
    for stretch in timeline.stretches:
        sealed = digest(stretch.data)
        if known.get(stretch.place) != sealed:
            ask("DELETE FROM stretches WHERE session = ? AND place = ?", (session, stretch.place))
            row = (session, stretch.place, sealed, packed(stretch.data, _LEVEL))
            ask("INSERT INTO stretches VALUES (NULL, ?, ?, ?, ?)", row)
        known.pop(stretch.place, None)
    for place in known:
        ask("DELETE FROM stretches WHERE session = ? AND place = ?", (session, place))
    ask("DELETE FROM timelines WHERE session = ?", (session,))
    ask("INSERT INTO timelines VALUES (?, ?, ?)", (session, timeline.total, packed(timeline.outline)))


def remove_timeline(ask: Ask, session: int) -> None:
    """Take the timeline of a session out."""
    for table in ("timelines", "stretches"):
        ask(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 - ours


class KeptTimeline:
    """The timeline of a session, as of one moment; raises Damaged for what is not as we wrote it."""

    def __init__(self, connection: apsw.Connection, session: int, total: int, outline: bytes) -> None:
        self._connection, self._session, self.total, self._outline = connection, session, total, outline

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def outline(self) -> bytes:
        """Return what people said."""
        return unpacked(self._outline)

    def stretches(self, first: int) -> Iterator[TimelineChunk]:
        """Yield the stretch in which an entry is, and those that follow."""
        try:
            for place, data in self._connection.execute(_FROM, (self._session, first)):
                yield TimelineChunk(place, unpacked(data))
        except apsw.Error as error:
            raise IndexDamagedError(f"a stretch of a timeline cannot be read ({error})") from error


def kept_timeline(folder: str, name: int, stamp: bytes) -> KeptTimeline | None:
    """Open the timeline of a session, made from what the record knows it by; None if there is none."""
    for number in range(SHARDS):
        path = shard_path(folder, number)
        found = _opened(path, name, stamp) if os.path.exists(path) else None
        if found is not None:
            return found
    return None


def _opened(path: str, name: int, stamp: bytes) -> KeptTimeline | None:
    try:
        connection = connection_to(path)
    except apsw.Error:  # where nobody may write
        return None
    try:
        connection.set_busy_timeout(PATIENCE)
        # The file may be made anew meanwhile: whoever closes the old one must not tidy up beside the new.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("PRAGMA query_only = 1; BEGIN")
        row = connection.execute(_KEPT, (name, stamp)).fetchone()
    except apsw.Error:  # damaged, or made before there were timelines
        row = None
    if row is None:
        connection.close()
        return None
    return KeptTimeline(connection, *row)
