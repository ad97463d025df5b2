"""Parts of a session and its outline. Of a long session, no more is read than the part needs.

The index keeps the timelines of long sessions in chunks. Other sessions are read whole, and the last ones are cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from itertools import islice
from threading import Lock

import msgspec
from msgspec.structs import replace

from retold.archive.database import DamagedError
from retold.archive.index.documents import entry_texts
from retold.archive.index.reader import StoredTimeline, open_timeline
from retold.archive.index.writer import Timeline, TimelineChunk
from retold.archive.queries.listing import has_copied_prompts, load_prompt_seqs
from retold.archive.queries.lookups import load_cluster_size, load_stamp_by_id
from retold.archive.store import Store
from retold.model.serialization import ENTRY_PACKER, UnpackError, ValuePacker, bundle, unbundle
from retold.model.session import Entry, Fate, Message, Session, ToolCall, View, first_text, is_spoken
from retold.sessions import conversations
from retold.sessions.load import Ownership, SessionRow, find_session, load_raw

LINE = 300
_LINE_SOURCE = 4 * LINE
"""Characters of a prompt from which its line is made: more than the line has, because runs of spaces become one."""
SLICE_BYTES = 1 << 20
"""Bytes of the entries in a slice."""
_CHUNK_ENTRIES, _CHUNK_BYTES = 32, 256 << 10
"""Entries of a chunk, and the bytes after which a chunk ends."""


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


class SessionTurn(msgspec.Struct, frozen=True):
    """A prompt of a person, and the counts of what followed."""

    seq: int = msgspec.field(name="place")
    """The index of the prompt in the timeline."""
    message: int
    """The number of the message, counted from 1."""
    text: str
    """The person's own words, on one line."""
    fate: Fate
    at: datetime | None
    own: bool
    calls: int
    """Tool calls until the next turn."""
    errors: int
    """Failed calls among them."""


class OutlineEntry(msgspec.Struct, frozen=True):
    """A possible turn. Where `is_prompt` is false, only the archive can tell whether the words were copied."""

    turn: SessionTurn
    is_prompt: bool
    id: str | None
    request: str | None


OUTLINE: ValuePacker[OutlineEntry] = ValuePacker(OutlineEntry)


def outline_entries(timeline: Iterable[Entry]) -> Iterator[OutlineEntry]:
    """Yield the possible turns of a timeline, each with the counts until the next."""
    last, messages = None, 0
    for seq, entry in enumerate(timeline):
        if not isinstance(entry, Message):
            continue
        messages += 1
        opening = _outline_entry(entry, seq, messages)
        if opening is not None:
            if last is not None:
                yield last
            last = opening
        statuses = [part.status for part in entry.parts if isinstance(part, ToolCall)]
        if last is not None and statuses:
            last = replace(last, turn=_add_calls(last.turn, len(statuses), statuses.count("error")))
    if last is not None:
        yield last


def _outline_entry(message: Message, seq: int, number: int) -> OutlineEntry | None:
    words = message.prompt if message.prompt is not None else first_text(message)
    if message.role != "user" or words is None:
        return None
    line = " ".join(words[:_LINE_SOURCE].split())[:LINE]
    turn = SessionTurn(seq, number, line, message.fate, message.at, message.own, 0, 0)
    request = message.usage.request if message.usage else None
    return OutlineEntry(turn, message.prompt is not None, message.id, request)


def select_turns(entries: Iterable[OutlineEntry], ownership: Ownership) -> tuple[SessionTurn, ...]:
    """Return the turns among possible ones, with copied ones marked as not the session's own."""
    turns: list[SessionTurn] = []
    for entry in entries:
        turn = entry.turn
        is_own = turn.own and not ownership.is_copied(entry.id, entry.request)
        if entry.is_prompt or not is_own:
            turns.append(replace(turn, own=is_own))
        elif turns:
            turns[-1] = _add_calls(turns[-1], turn.calls, turn.errors)
    return tuple(turns)


def _add_calls(turn: SessionTurn, calls: int, errors: int) -> SessionTurn:
    return replace(turn, calls=turn.calls + calls, errors=turn.errors + errors)


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


def make_timeline(session: Session) -> Timeline:
    """Return the timeline of a session as the index stores it."""
    timeline = session.timeline
    outline = bundle(map(OUTLINE.pack, outline_entries(timeline)))
    return Timeline(len(timeline), outline, _make_chunks(timeline, has_documents=is_spoken(session)))


def _make_chunks(timeline: Sequence[Entry], *, has_documents: bool) -> Iterator[TimelineChunk]:
    """Yield chunks, cut from the start on: where a session grows, all but the last stay the same."""
    packed: list[bytes] = []
    texts: list[str] = []
    size = 0
    for end, entry in enumerate(timeline, 1):
        packed.append(ENTRY_PACKER.pack(entry))
        size += len(packed[-1])
        if has_documents:
            texts.append(entry_texts(end - 1, entry))
        if len(packed) == _CHUNK_ENTRIES or size >= _CHUNK_BYTES or end == len(timeline):
            yield TimelineChunk(end - len(packed), bundle(packed), "".join(texts).encode("utf-8", "replace"))
            packed, texts, size = [], [], 0
