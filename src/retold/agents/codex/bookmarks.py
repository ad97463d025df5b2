"""Bookmarks in rollouts: what they keep of the lines before them."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from retold.agents.bookmarks import Bookmark, GuardedDict, GuardedList, KnownIds
from retold.agents.codex.discovery import ARCHIVED, parse_name
from retold.agents.codex.raw import Record
from retold.agents.codex.reader import BookmarkPlace, Rollout, new_state
from retold.agents.codex.state import EarlierPart, State, TokenMeter, Twin
from retold.agents.protocol import Reading, Source
from retold.model.builder import summarise_beginning
from retold.model.problem import Problem
from retold.model.session import Session
from retold.reading.diagnostics import parse_time
from retold.reading.disk import time_from_ns


class PackedState(msgspec.Struct, frozen=True, array_like=True):
    """The part of a state that later lines change, and an `EarlierPart`, as they are stored."""

    meter: TokenMeter
    entries: int
    turns: int
    place: int
    records: int
    last_at: datetime | None
    meta: Record
    latest: dict[str, Record]
    limits: Record | None
    window: Any
    model: str | None
    name: str | None
    answer: str | None
    is_subagent: bool
    items_without_event: list[Twin]
    events_without_item: list[Twin]
    thoughts: dict[str, int | None]
    is_unconfirmed: bool
    has_spoken_events: bool
    copied_from: str | None
    has_turn_ids: bool
    unnamed: dict[str, int]
    opaque: int
    problems: tuple[Problem, ...]
    known: bytes


_DECODER = msgspec.msgpack.Decoder(PackedState)


def find_bookmarks(reading: Reading, session: Session) -> Iterator[Bookmark]:
    """Yield bookmarks, the last one of the file first."""
    rollout = reading.state
    if not isinstance(rollout, Rollout) or rollout.own_start is not None or session.usage.estimated:
        return
    state, earlier = rollout.state, rollout.earlier
    if "history_base" in state.meta or parse_time(state.meta.get("timestamp"))[0] is None:
        return
    for place in reversed(rollout.bookmark_places):
        count = sum([entry is not None for entry in islice(state.entries, place.entries)])
        before = None if earlier is None else earlier.beginning
        beginning = summarise_beginning(session.timeline[:count], before)
        packed = _pack(state, place, earlier)
        if beginning.usage.requests and packed is not None:
            yield Bookmark(place.mark, beginning, packed)


def _pack(state: State, place: BookmarkPlace, earlier: EarlierPart | None) -> bytes | None:
    """Return the state at a place as bytes; None if calls are open there, or if lines are another thread's."""
    there = place.state
    if there.pending_calls or there.calls_without_id or there.is_copying:
        return None
    is_unconfirmed = any(index < place.entries for index in state.unconfirmed)
    is_unconfirmed = is_unconfirmed or (earlier is not None and earlier.is_unconfirmed)
    names = (*there.call_places, *there.event_calls, *there.meter.closed)
    packed = PackedState(
        msgspec.structs.replace(there.meter, closed=set()),
        place.entries,
        place.turns,
        there.place,
        there.records,
        there.last_at,
        there.meta,
        there.latest,
        there.limits,
        there.window,
        there.model,
        there.name,
        there.answer,
        there.is_subagent,
        there.items_without_event,
        there.events_without_item,
        there.thoughts,
        is_unconfirmed and not there.has_spoken_events,
        there.has_spoken_events,
        there.copied_from,
        there.has_turn_ids,
        dict(there.notes.unnamed),
        there.notes.opaque,
        tuple(there.notes.problems),
        (KnownIds() if earlier is None else earlier.known).pack(names),
    )
    try:
        return msgspec.msgpack.encode(packed)
    except (OverflowError, RecursionError, UnicodeEncodeError):
        return None


def open_bookmark(source: Source, bookmark: Bookmark) -> Reading:
    """Return the reading of the lines before a bookmark."""
    packed = _DECODER.decode(bookmark.state)
    known = KnownIds(packed.known)
    notes = new_state(source).notes
    notes.problems, notes.opaque = list(packed.problems), packed.opaque
    notes.unnamed.update(packed.unnamed)
    state = State(
        notes,
        packed.meter,
        entries=GuardedList(None, packed.entries),
        places=[0] * packed.entries,
        place=packed.place,
        records=packed.records,
        last_at=packed.last_at,
        meta=packed.meta,
        latest=packed.latest,
        limits=packed.limits,
        window=packed.window,
        model=packed.model,
        name=packed.name,
        answer=packed.answer,
        is_subagent=packed.is_subagent,
        call_places=GuardedDict(known),
        event_calls=GuardedDict(known),
        items_without_event=packed.items_without_event,
        events_without_item=packed.events_without_item,
        thoughts=packed.thoughts,
        has_spoken_events=packed.has_spoken_events,
        turns=GuardedList(0, packed.turns),
        copied_from=packed.copied_from,
        has_turn_ids=packed.has_turn_ids,
    )
    rollout = Rollout(
        parse_name(source.path),
        state,
        is_archived=source.path.parent.name == ARCHIVED,
        mark=bookmark.mark,
        earlier=EarlierPart(bookmark.beginning, known, len(packed.problems), packed.is_unconfirmed),
    )
    return Reading(source, "codex-jsonl", rollout.thread, bookmark.mark.offset, time_from_ns(0), rollout, ())
