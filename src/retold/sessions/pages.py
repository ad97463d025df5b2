"""A part of a session, and its outline: of a long one, no more is read than has to be."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from itertools import islice
from threading import Lock
from typing import Any

import msgspec
from msgspec.structs import replace

from retold.archive.database import DamagedError
from retold.archive.index.writer import KeptTimeline, Timeline, TimelineChunk, kept_timeline
from retold.archive.queries.listing import has_copied_words, prompt_places
from retold.archive.queries.lookups import known_by, size_of_cluster, stamp_of_session
from retold.archive.store import Store, summary_of
from retold.model.serialization import ENTRIES, Packing, Unreadable, bundled, decode_summary, unbundled
from retold.model.session import Entry, Fate, Message, Session, ToolCall, View, first_text
from retold.sessions.load import Ownership, load_raw


class SessionCache:
    """A few sessions, those that were asked for last; bounded by the bytes of the files that they were read from."""

    def __init__(self, most: int) -> None:
        self._most, self._filled, self._lock = most, 0, Lock()
        self._sessions: OrderedDict[Hashable, tuple[int, Session]] = OrderedDict()

    def session(self, key: Hashable, read: Callable[[], Session]) -> Session:
        """Return a session by all that it depends on; it is read if it is not held."""
        with self._lock:
            if key in self._sessions:
                self._sessions.move_to_end(key)
                return self._sessions[key][1]
        found = read()  # others may read meanwhile, and even the same
        size = sum(source.bytes for source in found.sources)
        if size <= self._most:
            self._hold(key, size, found)
        return found

    def _hold(self, key: Hashable, size: int, session: Session) -> None:
        with self._lock:
            self._filled += size - self._sessions.pop(key, (0, session))[0]
            self._sessions[key] = (size, session)
            while self._filled > self._most:
                self._filled -= self._sessions.popitem(last=False)[1][0]


LINE = 300
_LOOKED_AT = 4 * LINE
"""Characters of a prompt of which a line is made: more than a line, as there may be many spaces."""


class SessionTurn(msgspec.Struct, frozen=True):
    """A prompt of a person, and what followed."""

    place: int
    """In the timeline."""
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
    """Those of them that failed."""


class OutlineEntry(msgspec.Struct, frozen=True):
    """What may be a turn: whether it is one, only the archive can tell where nobody is known to have said it here."""

    turn: SessionTurn
    is_prompt: bool
    id: str | None
    request: str | None


OPENINGS: Packing[OutlineEntry] = Packing(OutlineEntry)


def openings(timeline: Iterable[Entry]) -> Iterator[OutlineEntry]:
    """Yield what may be a turn, each with what followed until the next."""
    last, messages = None, 0
    for place, entry in enumerate(timeline):
        if not isinstance(entry, Message):
            continue
        messages += 1
        opening = _opening(entry, place, messages)
        if opening is not None:
            if last is not None:
                yield last
            last = opening
        statuses = [part.status for part in entry.parts if isinstance(part, ToolCall)]
        if last is not None and statuses:
            last = replace(last, turn=_grown(last.turn, len(statuses), statuses.count("error")))
    if last is not None:
        yield last


def _opening(message: Message, place: int, number: int) -> OutlineEntry | None:
    words = message.prompt if message.prompt is not None else first_text(message)
    if message.role != "user" or words is None:
        return None
    line = " ".join(words[:_LOOKED_AT].split())[:LINE]
    turn = SessionTurn(place, number, line, message.fate, message.at, message.own, 0, 0)
    request = message.usage.request if message.usage else None
    return OutlineEntry(turn, message.prompt is not None, message.id, request)


def outline(found: Iterable[OutlineEntry], belonging: Ownership) -> tuple[SessionTurn, ...]:
    """Return the turns among what may be one, with what belongs to other sessions marked."""
    turns: list[SessionTurn] = []
    for opening in found:
        turn = opening.turn
        is_own = turn.own and not belonging.is_others(opening.id, opening.request)
        if opening.is_prompt or not is_own:
            turns.append(replace(turn, own=is_own))
        elif turns:
            turns[-1] = _grown(turns[-1], turn.calls, turn.errors)
    return tuple(turns)


def _grown(turn: SessionTurn, calls: int, errors: int) -> SessionTurn:
    return replace(turn, calls=turn.calls + calls, errors=turn.errors + errors)


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
    return size_of_cluster(record, agent, cluster) >= LONG


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


LONG = 3 << 20
"""Bytes of files that are read for one session; from so many on, to read them takes longer than all else about a page."""
_MOST, _ROOM = 32, 256 << 10
"""Entries in a stretch, and bytes behind which a stretch ends."""


def timeline_of(timeline: Sequence[Entry]) -> Timeline:
    """Return a timeline as the index takes it."""
    outline = bundled(map(OPENINGS.packed, openings(timeline)))
    return Timeline(len(timeline), outline, _stretches(timeline))


def _stretches(timeline: Sequence[Entry]) -> Iterator[TimelineChunk]:
    """Yield stretches, cut from the beginning on: where a session grows, all but the last stay as they are."""
    waiting: list[bytes] = []
    size = 0
    for place, entry in enumerate(timeline, 1):
        waiting.append(ENTRIES.packed(entry))
        size += len(waiting[-1])
        if len(waiting) == _MOST or size >= _ROOM or place == len(timeline):
            yield TimelineChunk(place - len(waiting), bundled(waiting))
            waiting, size = [], 0


def turn_places(record: Store, session: int, key: str) -> list[int]:
    """Return where each turn begins in the timeline; the first does at its start.

    The archive knows that without reading a session, but for one that begins with what was said in another.
    """
    if has_copied_words(record, session):
        places = [turn.place for turn in turns(record, key)]
    else:
        places = prompt_places(record, session)
    return [0, *places[1:]]
