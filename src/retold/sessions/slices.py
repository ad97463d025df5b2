"""Parts of a session and its outline. Of a long session, no more is read than the part needs.

The index keeps the timelines of long sessions in chunks. Other sessions are read whole, and the last ones are cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from threading import Lock

import msgspec
from msgspec.structs import replace

from retold.archive.database import DamagedError
from retold.archive.index.reader import StoredTimeline, open_timeline
from retold.archive.queries.listing import has_copied_prompts, load_prompt_seqs
from retold.archive.queries.lookups import load_cluster_size, load_stamp_by_id
from retold.archive.store import Store
from retold.model.serialization import ENTRY_PACKER, UnpackError, unbundle
from retold.model.session import Session, View
from retold.sessions import conversations
from retold.sessions.load import Ownership, SessionRow, find_session, load_raw
from retold.sessions.timelines import OUTLINE, OutlineEntry, SessionTurn, add_calls, outline_entries

SLICE_BYTES = 1 << 20
"""Bytes of the entries in a slice."""


class SessionCache:
    """The sessions that were used last, bounded by the bytes of the files that they were read from."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size, self._lock = limit, 0, Lock()
        self._sessions: OrderedDict[Hashable, tuple[int, Session]] = OrderedDict()

    def get(self, key: Hashable, read: Callable[[], Session]) -> Session:
        """Return the session for a key, which has everything that the session depends on; read it if it is missing."""
        with self._lock:
            if key in self._sessions:
                self._sessions.move_to_end(key)
                return self._sessions[key][1]
        session = read()  # without the lock: other threads may read, even the same session
        size = _size(session)
        if size <= self._limit:
            with self._lock:
                self._size += size - self._sessions.pop(key, (0, session))[0]
                self._sessions[key] = (size, session)
                while self._size > self._limit:
                    self._size -= self._sessions.popitem(last=False)[1][0]
        return session


_CACHE = SessionCache(8 << 20)
_WHOLE_LOCK = Lock()
"""Held while a long session is read whole, which takes several times the size of its files: one at a time."""


def select_turns(entries: Iterable[OutlineEntry], ownership: Ownership) -> tuple[SessionTurn, ...]:
    """Return the turns among possible ones, with copied ones marked as not the session's own."""
    turns: list[SessionTurn] = []
    for entry in entries:
        turn = entry.turn
        is_own = turn.own and not ownership.is_copied(entry.id, entry.request)
        if entry.is_prompt or not is_own:
            turns.append(replace(turn, own=is_own))
        elif turns:
            turns[-1] = add_calls(turns[-1], turn.calls, turn.errors)
    return tuple(turns)


class TimelineSlice(msgspec.Struct, frozen=True):
    """Consecutive entries of a session."""

    session: Session
    """The session with these entries as its timeline."""
    first: int
    """The index of the first one in the whole timeline of the view."""
    total: int
    """Entries in the whole timeline."""
    size: int
    """Bytes of the files that the session was read from."""


def load_slice(  # noqa: PLR0913 - the options of a page
    store: Store, key: str, first: int, count: int, view: View = "full", limit: int = SLICE_BYTES
) -> TimelineSlice | None:
    """Return some entries of a session, fewer where they exceed a limit in bytes; None if there is no session.

    A slice has at least one entry, however large, unless it starts behind the end of the timeline.
    """
    found = None
    with store.connection:  # in one transaction
        row = find_session(store, key)
        if row is not None:
            found = _load_slice(store, row, _SliceBounds(max(first, 0), max(count, 0), limit), view)
    return found


def load_slices(
    store: Store, key: str, count: int = 200, first: int = 0, view: View = "full"
) -> Iterator[TimelineSlice]:
    """Yield the slices of a session from an entry on, so that little of a long session is in memory at a time.

    Slices of large entries have fewer entries than `count`. A session without entries has one empty slice.
    """
    part = load_slice(store, key, first, count, view)
    while part is not None:
        yield part
        end = part.first + len(part.session.timeline)
        is_last = end >= part.total or not part.session.timeline
        part = None if is_last else load_slice(store, key, end, count, view)


def load_turns(store: Store, key: str, view: View = "full") -> tuple[SessionTurn, ...]:
    """Return the turns of a session; none if there is no session."""
    turns: tuple[SessionTurn, ...] = ()
    with store.connection:
        row = find_session(store, key)
        if row is not None:
            turns = select_turns(_load_outline(store, row, view), Ownership(store, row.id))
    return turns


def turn_starts(store: Store, session: int, key: str) -> list[int]:
    """Return the index in the timeline at which each turn begins; the first turn begins at 0.

    The archive lists them, except for a session that begins with copied messages.
    """
    if has_copied_prompts(store, session):
        starts = [turn.seq for turn in load_turns(store, key)]
    else:
        starts = load_prompt_seqs(store, session)
    return [0, *starts[1:]]


class _SliceBounds(msgspec.Struct, frozen=True):
    """The first entry of a slice, and the most entries and bytes in it."""

    first: int
    count: int
    limit: int

    def take(self, packed: Iterable[bytes]) -> list[bytes]:
        """Return the packed entries that fit."""
        entries: list[bytes] = []
        size = 0
        for entry in islice(packed, self.count):
            size += len(entry)
            if entries and size > self.limit:
                break
            entries.append(entry)
        return entries


def _load_slice(store: Store, row: SessionRow, bounds: _SliceBounds, view: View) -> TimelineSlice:
    found = _slice_of_chunks(store, row, bounds) if view == "full" else None
    if found is None:
        with _whole_lock(store, row):
            session = _load_whole(store, row, view)
            timeline = session.timeline
            first = min(bounds.first, len(timeline))
            count = len(bounds.take(map(ENTRY_PACKER.pack, timeline[first:])))
            part = replace(session, timeline=timeline[first : first + count])
            found = TimelineSlice(part, first, len(timeline), _size(session))
    marked = Ownership(store, row.id).mark(found.session.timeline)
    return replace(found, session=replace(found.session, timeline=tuple(marked)))


def _load_whole(store: Store, row: SessionRow, view: View) -> Session:
    """Return a session from the cache, or read it."""
    key = (store.path, row.uid, view, load_stamp_by_id(store, row.id), row.packed)
    return _CACHE.get(key, lambda: load_raw(store, row, view))


def _whole_lock(store: Store, row: SessionRow) -> AbstractContextManager[object]:
    return _WHOLE_LOCK if _is_long(store, row) else nullcontext()


def _slice_of_chunks(store: Store, row: SessionRow, bounds: _SliceBounds) -> TimelineSlice | None:
    """Return a slice of the timeline in the index; None if there is none, or it is damaged."""
    stored = _open_timeline(store, row)
    if stored is None:
        return None
    session = row.summary
    first, total = min(bounds.first, stored.total), stored.total
    with stored:
        try:
            packed = bounds.take(_packed_entries(stored.chunks(first), first, total)) if first < total else ()
            entries = tuple(map(ENTRY_PACKER.unpack, packed))
        except (DamagedError, UnpackError):
            return None
    return TimelineSlice(replace(session, timeline=entries), first, total, _size(session))


def _open_timeline(store: Store, row: SessionRow) -> StoredTimeline | None:
    if not _is_long(store, row):  # saves opening the index
        return None
    return open_timeline(store, row.uid, load_stamp_by_id(store, row.id))


def _is_long(store: Store, row: SessionRow) -> bool:
    return load_cluster_size(store, row.agent, row.cluster) >= conversations.LONG_SESSION


def _packed_entries(chunks: Iterable[tuple[int, bytes]], first: int, total: int) -> Iterator[bytes]:
    """Yield the packed entries from one on; raises UnpackError if one is missing."""
    seq = first
    for start, data in chunks:
        packed = unbundle(data)
        end = start + len(packed)
        if not start <= seq < end:
            raise UnpackError("a stretch is missing")
        yield from packed[seq - start :]
        seq = end
    if seq != total:
        raise UnpackError("the end is missing")


def _load_outline(store: Store, row: SessionRow, view: View) -> Sequence[OutlineEntry]:
    stored = _open_timeline(store, row) if view == "full" else None
    if stored is not None:
        with stored:
            try:
                return [OUTLINE.unpack(data) for data in unbundle(stored.outline())]
            except (DamagedError, UnpackError):
                pass  # the session is read instead
    with _whole_lock(store, row):
        return list(outline_entries(_load_whole(store, row, view).timeline))


def _size(session: Session) -> int:
    return sum(source.bytes for source in session.sources)
