"""Bookmarks in JSON lines: the places at which they may stand, and the lines behind them that concern earlier ones."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from retold.agents.bookmarks import Bookmark, KnownIds, ReadWholeError
from retold.agents.gemini.discovery import origin_of
from retold.agents.gemini.raw import SPOKEN_TYPES, Record
from retold.agents.gemini.session import count_responses
from retold.agents.gemini.state import EarlierPart, State, Transcript, is_loadable
from retold.agents.protocol import Reading, Source
from retold.model.builder import summarise_beginning
from retold.model.problem import Problem
from retold.model.session import Entry, Message, Session, ToolCall
from retold.reading.diagnostics import parse_time
from retold.reading.disk import time_from_ns
from retold.reading.json_decode import text_or_none
from retold.reading.jsonl import JsonLine

OPAQUE_CODES = frozenset(("unexpected-shape", "unknown-part", "unknown-record", "unknown-type"))
"""Codes of problems of values that are kept as they were."""


class PackedState(msgspec.Struct, frozen=True, array_like=True):
    """The part of a state that later lines change, and an `EarlierPart`, as they are stored."""

    metadata: Record
    starts: tuple[Any, ...]
    loader_keys: tuple[str, ...]
    records: int
    line_problems: tuple[Problem, ...]
    problems: tuple[Problem, ...]
    opaque: int
    responses: int
    counted: int
    known: bytes


_DECODER = msgspec.msgpack.Decoder(PackedState)


def is_place(before: Any, value: Any) -> bool:
    """Return whether a bookmark may stand before a line: that of a message which the line before it does not have."""
    if type(value) is not dict or value.get("type") not in SPOKEN_TYPES or type(value.get("id")) is not str:
        return False
    return type(before) is dict and before.get("id") != value["id"]


def reject_unusual(lines: Iterable[JsonLine | Problem], known: KnownIds) -> Iterator[JsonLine | Problem]:
    """Yield the lines behind a bookmark; raise ReadWholeError for one that changes what is before it."""
    for line in lines:
        value = line.value if isinstance(line, JsonLine) else None
        if type(value) is dict:
            changes = value.get("$set")
            if (
                "$rewindTo" in value
                or "messages" in value
                or (type(changes) is dict and "messages" in changes)
            ):
                raise ReadWholeError("the messages are replaced")
            known.check(value.get("id"))
        yield line


def find_bookmarks(reading: Reading, session: Session) -> Iterator[Bookmark]:
    """Yield bookmarks, the last one of the file first."""
    transcript = reading.state
    if not isinstance(transcript, Transcript) or not isinstance(transcript.state, State):
        return
    state, earlier = transcript.state, transcript.earlier
    if state.document_messages is not None or session.usage.estimated or not is_loadable(state):
        return
    later_problems = session.problems[len(reading.problems) + len(state.problems) :]
    for mark, state_there in reversed(transcript.places):
        count = _count_entries(session.timeline, state, state_there)
        problems = tuple(one for one in later_problems if one.line is not None and one.line <= mark.lines)
        if count is None or any(one.code == "orphan-tool-result" for one in problems):
            continue
        before = session.timeline[:count]
        beginning = summarise_beginning(before, None if earlier is None else earlier.beginning)
        packed = _pack(state_there, earlier, before, session.timeline[count], problems)
        if beginning.usage.requests and packed is not None:
            yield Bookmark(mark, beginning, packed)


def _count_entries(timeline: tuple[Entry, ...], state: State, state_there: State) -> int | None:
    """Return the number of entries before a place: the message there must be the first behind it."""
    keys = iter(state.versions)
    for _ in state_there.versions:
        next(keys, None)
    first = next(keys, None)
    found = (place for place, entry in enumerate(timeline) if entry.id == first)
    return next(found, None) if type(first) is str else None


def _pack(
    state: State,
    earlier: EarlierPart | None,
    before: tuple[Entry, ...],
    following: Entry,
    problems: tuple[Problem, ...],
) -> bytes | None:
    """Return the state at a place as bytes; None if it cannot be packed, or if the session's start is not recorded."""
    if not any(parse_time(start)[0] for start in state.starts):
        return None
    responses, counted = count_responses((*before, following), len(before))
    if earlier is not None:
        responses, counted = responses + earlier.responses, counted + earlier.counted
    calls = (
        part.id
        for entry in before
        if type(entry) is Message
        for part in entry.parts
        if type(part) is ToolCall
    )
    ids = (key for key in state.versions if type(key) is str)
    known = (KnownIds() if earlier is None else earlier.known).pack((*ids, *calls))
    packed = PackedState(
        state.metadata,
        state.starts,
        tuple(sorted(state.loader_keys)),
        state.records,
        state.problems,
        problems,
        sum(one.code in OPAQUE_CODES for one in problems),
        responses,
        counted,
        known,
    )
    try:
        return msgspec.msgpack.encode(packed)
    except (OverflowError, RecursionError, UnicodeEncodeError):
        return None


def open_bookmark(source: Source, bookmark: Bookmark) -> Reading:
    """Return the reading of the lines before a bookmark."""
    packed, path = _DECODER.decode(bookmark.state), source.display_path
    earlier = EarlierPart(
        bookmark.beginning,
        KnownIds(packed.known),
        packed.problems,
        packed.opaque,
        packed.responses,
        packed.counted,
    )
    state = State(
        path,
        metadata=packed.metadata,
        starts=packed.starts,
        loader_keys=frozenset(packed.loader_keys),
        lines=bookmark.mark.lines,
        records=packed.records,
        problems=packed.line_problems,
    )
    transcript = Transcript(origin_of(source), state, mark=bookmark.mark, earlier=earlier)
    native_id = text_or_none(packed.metadata.get("sessionId"))
    return Reading(source, "gemini-jsonl", native_id, bookmark.mark.offset, time_from_ns(0), transcript, ())
