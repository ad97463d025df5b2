"""Bookmarks in transcripts: the places at which they may stand, and what they keep of the lines before them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any

import msgspec

from retold.agents.bookmarks import Bookmark, GuardedDict, KnownIds
from retold.agents.claude.discovery import origin_of
from retold.agents.claude.raw import Record
from retold.agents.claude.session import BookmarkPlace, Transcript, can_be_leaf, find_parents, path_to_root
from retold.agents.claude.state import MAIN, EarlierPart, Node, State
from retold.agents.protocol import Reading, Source
from retold.model.builder import summarise_beginning
from retold.model.problem import Problem
from retold.model.session import Entry, Event, Message, Session
from retold.reading.disk import time_from_ns
from retold.reading.jsonl import FileMark

FORMAT = "claude-jsonl"
_WITHOUT_TIME = ", None]"
"""The end of the names of lines without an id and a time: such lines describe a state, and repeat it."""
_SUMMARY = "summary of "
_IDS = ("places", "line_hashes", "calls", "responses")
"""The fields of a state that have an id for each line, call or response."""


class PackedState(msgspec.Struct, frozen=True, array_like=True):
    """The part of a state that later lines change, and an `EarlierPart`, as they are stored."""

    tip: str
    """The line on which the next one hangs."""
    tip_at: datetime | None
    tip_session: str | None
    line_hashes: dict[str, int]
    facts: dict[str, dict[str, None]]
    last_facts: tuple[Any, ...]
    last_side_records: dict[str, Record]
    titles: dict[str, str]
    leaf: str | None
    retracted_ids: tuple[str, ...]
    queue_numbers: dict[str, tuple[int, int]]
    last_prompt: str
    sessions: tuple[str, ...]
    agent_id: str | None
    records: int
    opaque: int
    problems: tuple[Problem, ...]
    started_at: datetime
    ended_at: datetime
    known: bytes


_DECODER = msgspec.msgpack.Decoder(PackedState)


def is_place(before: Any, value: Any) -> bool:
    """Return whether a bookmark may stand before a line: a prompt, or the first line of a response.

    The API gets the results of all calls before it responds again.
    """
    if type(value) is not dict or type(value.get("uuid")) is not str or type(before) is not dict:
        return False
    message, message_before = value.get("message"), before.get("message")
    if type(message) is not dict:
        return False
    if value.get("type") == "user":
        content = message.get("content")
        blocks = content if type(content) is list else ()
        return not any(type(block) is dict and block.get("type") == "tool_result" for block in blocks)
    response = message.get("id")
    is_begun = type(message_before) is dict and message_before.get("id") == response
    return value.get("type") == "assistant" and type(response) is str and not is_begun


def note_place(state: State, mark: FileMark) -> BookmarkPlace:
    """Return a place for a bookmark, with the part of the state that is small."""
    names = (*_IDS, "early_results", "results", "indexes", "queue", "preserved")
    empty: dict[str, Any] = {name: {} for name in names}
    bare = msgspec.structs.replace(state, nodes=[], **empty).copy()
    bare.line_hashes = {
        name: seal for name, seal in state.line_hashes.items() if name.endswith(_WITHOUT_TIME)
    }
    bare.facts = {name: dict(values) for name, values in state.facts.items()}
    return BookmarkPlace(mark, bare, len(state.nodes), tuple(len(getattr(state, field)) for field in _IDS))


def find_bookmarks(reading: Reading, session: Session) -> Iterator[Bookmark]:
    """Yield bookmarks, the last one of the file first."""
    transcript: Transcript = reading.state
    state, earlier = transcript.state, transcript.earlier
    hidden = 0 if earlier is None else 1  # the line on which the next one hangs
    if len(transcript.places) + hidden != len(state.nodes) or state.early_results or session.usage.estimated:
        return
    parents = find_parents(state) if transcript.bookmark_places else ()
    for place in reversed(transcript.bookmark_places):
        before = session.timeline[: place.nodes - hidden]
        beginning = summarise_beginning(before, None if earlier is None else earlier.beginning)
        packed = _pack(state, place, earlier, before, parents)
        if beginning.usage.requests and packed is not None:
            yield Bookmark(place.mark, beginning, packed)


def _pack(
    state: State,
    place: BookmarkPlace,
    earlier: EarlierPart | None,
    before: Sequence[Entry],
    parents: Sequence[int | None],
) -> bytes | None:
    """Return the state at a place as bytes; None if later lines may go on elsewhere than from the last line before it."""
    there = place.state
    last = next((one for one in range(place.nodes - 1, -1, -1) if can_be_leaf(state, one)), None)
    named = None if there.leaf is None else state.places.get(there.leaf)
    is_named = named is not None and named < place.nodes
    summarised = (name.removeprefix(_SUMMARY) for name in there.titles if name.startswith(_SUMMARY))
    times = [entry.at for entry in before if entry.at is not None and entry.own]
    times += [] if earlier is None else [earlier.started_at, earlier.ended_at]
    if (
        last is None
        or not times
        or there.is_leaf_explicit
        or (is_named and named not in path_to_root(parents, last))
        or any(name in state.places for name in summarised)
    ):
        return None
    tip = state.nodes[last]
    packed = PackedState(
        tip.entry.id or "",
        tip.entry.at,
        tip.session,
        there.line_hashes,
        there.facts,
        there.last_facts,
        there.last_side_records,
        there.titles,
        tip.entry.id if is_named else there.leaf,
        tuple(sorted(there.retracted_ids)),
        {words: numbers for words, numbers in there.queue_numbers.items() if numbers[0] < numbers[1]},
        there.last_prompt,
        tuple(there.sessions),
        there.agent_id,
        there.records,
        there.opaque,
        tuple(there.problems),
        min(times),
        max(times),
        (KnownIds() if earlier is None else earlier.known).pack(_ids_before(state, place)),
    )
    try:
        return msgspec.msgpack.encode(packed)
    except (OverflowError, RecursionError, UnicodeEncodeError):
        return None


def _ids_before(state: State, place: BookmarkPlace) -> Iterator[str]:
    """Yield the ids that lines behind a place must not name: of lines, calls and responses, and of lines that are missing."""
    fields = zip(_IDS, place.ids, strict=True)
    names = chain.from_iterable(islice(getattr(state, field), count) for field, count in fields)
    yield from (name for name in names if not name.endswith(_WITHOUT_TIME) or name in state.places)
    for node in islice(state.nodes, place.nodes):
        if isinstance(node.entry, Message) and node.entry.response is not None:
            yield node.entry.response
        if node.parent is not None:
            yield node.parent


def open_bookmark(source: Source, bookmark: Bookmark) -> Reading:
    """Return the reading of the lines before a bookmark."""
    packed = _DECODER.decode(bookmark.state)
    known = KnownIds(packed.known)
    tip = Event(packed.tip, "notice", packed.tip_at, "live", "")
    state = State(
        source.display_path,
        origin_of(source.path),
        nodes=[Node(tip, None, packed.tip_session, is_chained=True)],
        places=GuardedDict(known, {packed.tip: 0}),
        line_hashes=GuardedDict(known, packed.line_hashes),
        calls=GuardedDict(known),
        early_results=GuardedDict(known),
        responses=GuardedDict(known),
        answered_chains={MAIN},
        billed_chains={MAIN},
        results=GuardedDict(known),
        queue=GuardedDict(known),
        queue_numbers=packed.queue_numbers,
        facts=packed.facts,
        last_facts=packed.last_facts,
        last_side_records=packed.last_side_records,
        titles=packed.titles,
        leaf=packed.leaf,
        retracted_ids=set(packed.retracted_ids),
        last_prompt=packed.last_prompt,
        sessions=dict.fromkeys(packed.sessions),
        agent_id=packed.agent_id,
        records=packed.records,
        opaque=packed.opaque,
        problems=list(packed.problems),
    )
    earlier = EarlierPart(
        bookmark.beginning,
        known,
        frozenset(packed.retracted_ids),
        state.owner,
        packed.started_at,
        packed.ended_at,
    )
    transcript = Transcript(state, mark=bookmark.mark, earlier=earlier)
    return Reading(source, FORMAT, state.native_id, bookmark.mark.offset, time_from_ns(0), transcript, ())
