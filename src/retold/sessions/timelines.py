"""Timelines for the index: the entries of a long session in chunks, and the outline of what people said."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from retold.archive.index.documents import entry_texts
from retold.archive.index.reader import StoredTimeline
from retold.archive.index.writer import Timeline, TimelineChunk
from retold.model.serialization import ENTRY_PACKER, UnpackError, ValuePacker, bundle, unbundle
from retold.model.session import Entry, Fate, Message, Session, ToolCall, first_text, is_spoken

LINE = 300
_LINE_SOURCE = 4 * LINE
"""Characters of a prompt from which its line is made: more than the line has, because runs of spaces become one."""
_CHUNK_ENTRIES, _CHUNK_BYTES = 32, 256 << 10
"""Entries of a chunk, and the bytes after which a chunk ends."""


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


def outline_entries(
    timeline: Iterable[Entry], start: "TimelineStart | None" = None
) -> Iterator[OutlineEntry]:
    """Yield the possible turns of a timeline, or of the end of one, each with the counts until the next."""
    start = start or TimelineStart()
    last, messages = start.turn, start.messages
    for seq, entry in enumerate(timeline, start.entries):
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
            last = replace(last, turn=add_calls(last.turn, len(statuses), statuses.count("error")))
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


def add_calls(turn: SessionTurn, calls: int, errors: int) -> SessionTurn:
    """Return a turn with more calls."""
    return replace(turn, calls=turn.calls + calls, errors=turn.errors + errors)


def make_timeline(session: Session) -> Timeline:
    """Return the timeline of a session as the index stores it."""
    timeline = session.timeline
    outline = bundle(map(OUTLINE.pack, outline_entries(timeline)))
    return Timeline(len(timeline), outline, _make_chunks(timeline, has_documents=is_spoken(session)))


class TimelineStart(msgspec.Struct, frozen=True, array_like=True):
    """The entries of a timeline before a seq: the seq, how many of them are messages, and the last turn among them."""

    entries: int = 0
    messages: int = 0
    turn: OutlineEntry | None = None


def start_timeline(timeline: Sequence[Entry], before: TimelineStart) -> TimelineStart:
    """Return the start of a timeline that an earlier start and the entries behind it make."""
    turn = before.turn
    for entry in outline_entries(timeline, before):
        turn = entry
    messages = sum(isinstance(entry, Message) for entry in timeline)
    return TimelineStart(before.entries + len(timeline), before.messages + messages, turn)


def extend_timeline(stored: StoredTimeline, start: TimelineStart, timeline: Sequence[Entry]) -> Timeline:
    """Return a timeline with other entries behind a start; raise UnpackError if the start is not stored."""
    turns, (seq, data) = unbundle(stored.outline()), next(stored.chunks(start.entries))
    packed = unbundle(data)[: start.entries - seq]
    if stored.total < start.entries or len(packed) != start.entries - seq:
        raise UnpackError("entries are missing")
    least = start.entries if start.turn is None else start.turn.turn.seq
    while turns and OUTLINE.unpack(turns[-1]).turn.seq >= least:
        turns.pop()
    turns += map(OUTLINE.pack, outline_entries(timeline, start))
    entries = [*map(ENTRY_PACKER.unpack, packed), *timeline]
    chunks = _make_chunks(entries, seq, has_documents=True)
    return Timeline(start.entries + len(timeline), bundle(turns), chunks, seq)


def _make_chunks(
    timeline: Sequence[Entry], first: int = 0, *, has_documents: bool
) -> Iterator[TimelineChunk]:
    """Yield chunks, cut from the start on: where a session grows, all but the last stay the same.

    `first` is the seq of the first entry.
    """
    packed: list[bytes] = []
    texts: list[str] = []
    size = 0
    for end, entry in enumerate(timeline, 1):
        packed.append(ENTRY_PACKER.pack(entry))
        size += len(packed[-1])
        if has_documents:
            texts.append(entry_texts(first + end - 1, entry))
        if len(packed) == _CHUNK_ENTRIES or size >= _CHUNK_BYTES or end == len(timeline):
            text = "".join(texts).encode("utf-8", "replace")
            yield TimelineChunk(first + end - len(packed), bundle(packed), text)
            packed, texts, size = [], [], 0
