"""A part of a session, and its outline: of a long one, no more is read than has to be."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from threading import Lock
from typing import Any

import msgspec
from msgspec.structs import replace

from retold.archive.database import DamagedError
from retold.archive.index.writer import KeptTimeline, TimelineChunk, kept_timeline
from retold.archive.queries.lookups import known_by, size_of_cluster, stamp_of_session
from retold.archive.store import Store, summary_of
from retold.ingest import stretches
from retold.ingest.belonging import Ownership
from retold.ingest.held import SessionCache
from retold.ingest.retell import load_raw
from retold.ingest.turns import OPENINGS, OutlineEntry, SessionTurn, openings, outline
from retold.model.serialization import ENTRIES, Unreadable, decode_summary, unbundled
from retold.model.session import Entry, Session, View

__all__ = ["ROOM", "SessionTurn", "TimelineSlice", "load_slice", "slices", "turns"]

ROOM = 1 << 20
"""Bytes of entries in a slice: forty huge outputs are no page."""
_HELD = SessionCache(8 << 20)
"""What is not kept in stretches: short sessions, and those that the agent would load now."""


_ALONE = Lock()
"""One long session is read whole at a time: while it is, it takes several times the size of its files."""


class TimelineSlice(msgspec.Struct, frozen=True):
    """Some entries of a session that follow each other."""

    session: Session
    """All that is told of it; its timeline are the entries of the slice alone."""
    first: int
    """The place of the first of them in the whole timeline of the view, from 0."""
    total: int
    """Entries in the whole timeline."""
    size: int
    """Bytes of the files that the session was read from."""


def load_slice(  # noqa: PLR0913 - what a page can be asked for
    record: Store, key: str, first: int, count: int, view: View = "full", room: int = ROOM
) -> TimelineSlice | None:
    """Return so many entries of a session, or fewer where they take too much room; None if there is no session.

    There is always one entry, however large, unless the session has ended before it.
    """
    with record.connection:  # all of it as it was at one moment
        row = known_by(record, key)
        part = _Part(max(first, 0), max(count, 0), room)
        found = [None if row is None else _told(record, row, part, view)]
    return found[0]


def slices(
    record: Store, key: str, count: int = 200, first: int = 0, view: View = "full"
) -> Iterator[TimelineSlice]:
    """Yield a session from a place on, one slice after the other: however long it is, little is in memory at a time.

    Each may hold fewer entries than were asked for, where they are large; of nothing, one slice tells that.
    """
    part = load_slice(record, key, first, count, view)
    while part is not None:
        yield part
        end = part.first + len(part.session.timeline)
        is_last = end >= part.total or not part.session.timeline
        part = None if is_last else load_slice(record, key, end, count, view)


def turns(record: Store, key: str, view: View = "full") -> tuple[SessionTurn, ...]:
    """Return what people said in a session, each with what followed; nothing if there is no session."""
    with record.connection:
        row = known_by(record, key)
        found = [() if row is None else outline(_openings(record, row, view), Ownership(record, row[0]))]
    return found[0]


class _Part(msgspec.Struct, frozen=True):
    """Which entries are asked for."""

    first: int
    count: int
    room: int

    def fitting(self, packed: Iterable[bytes]) -> list[bytes]:
        """Return those of the following entries, packed, that are told."""
        found: list[bytes] = []
        filled = 0
        for entry in islice(packed, self.count):
            filled += len(entry)
            if found and filled > self.room:
                break
            found.append(entry)
        return found


def _told(record: Store, row: Sequence[Any], part: _Part, view: View) -> TimelineSlice:
    found = _of_stretches(record, row, part) if view == "full" else None
    if found is None:
        with _turn(record, row):
            found = _of_whole(_whole(record, row, view), part)
    marked = Ownership(record, row[0]).marked(found.session.timeline)
    return replace(found, session=replace(found.session, timeline=tuple(marked)))


def _whole(record: Store, row: Sequence[Any], view: View) -> Session:
    number, name, *_, packed = row
    key = (record.path, name, view, stamp_of_session(record, number), packed)
    return _HELD.session(key, lambda: load_raw(record, row, view))


def _of_whole(session: Session, part: _Part) -> TimelineSlice:
    timeline = session.timeline
    first = min(part.first, len(timeline))
    taken = len(part.fitting(map(ENTRIES.packed, timeline[first:])))
    told = replace(session, timeline=timeline[first : first + taken])
    return TimelineSlice(told, first, len(timeline), _size(session))


def _of_stretches(record: Store, row: Sequence[Any], part: _Part) -> TimelineSlice | None:
    """Return a slice of what the index keeps of a long session; None where that is nothing, or damaged."""
    kept = _kept(record, row)
    if kept is None:
        return None
    session = decode_summary(summary_of(row[4]))
    first, total = min(part.first, kept.total), kept.total
    with kept:
        try:
            entries = _entries(kept, first, part) if first < total else ()
        except (DamagedError, Unreadable):
            return None
    return TimelineSlice(replace(session, timeline=entries), first, total, _size(session))


def _kept(record: Store, row: Sequence[Any]) -> KeptTimeline | None:
    number, name, *_ = row
    if not _is_long(record, row):  # two more files need not be opened
        return None
    return kept_timeline(record.folder, name, stamp_of_session(record, number))


def _is_long(record: Store, row: Sequence[Any]) -> bool:
    _, _, agent, cluster, _ = row
    return size_of_cluster(record, agent, cluster) >= stretches.LONG


def _turn(record: Store, row: Sequence[Any]) -> AbstractContextManager[object]:
    """Return what a long session has to wait for before it is read whole."""
    return _ALONE if _is_long(record, row) else nullcontext()


def _entries(kept: KeptTimeline, first: int, part: _Part) -> tuple[Entry, ...]:
    """Return the entries of a part."""
    packed = part.fitting(_packed(kept.stretches(first), first, kept.total))
    return tuple(map(ENTRIES.unpacked, packed))


def _packed(found: Iterable[TimelineChunk], first: int, total: int) -> Iterator[bytes]:
    """Yield the entries from a place on, packed; raises Unreadable where one is missing."""
    place = first
    for stretch in found:
        packed = unbundled(stretch.data)
        end = stretch.place + len(packed)
        if not stretch.place <= place < end:
            raise Unreadable("a stretch is missing")
        yield from packed[place - stretch.place :]
        place = end
    if place != total:
        raise Unreadable("the end is missing")


def _openings(record: Store, row: Sequence[Any], view: View) -> Sequence[OutlineEntry]:
    kept = _kept(record, row) if view == "full" else None
    if kept is not None:
        with kept:
            try:
                return [OPENINGS.unpacked(data) for data in unbundled(kept.outline())]
            except (DamagedError, Unreadable):
                pass  # it is read anew
    with _turn(record, row):
        return list(openings(_whole(record, row, view).timeline))


def _size(session: Session) -> int:
    return sum(source.bytes for source in session.sources)
