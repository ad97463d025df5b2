"""What threads took, counted without reading what was said in them.

The counts are folded by `tokens`, as ever; of what they belong to no more is taken than where and when it stands. Only
threads of one plain file: forks, packed files, threads in which somebody spoke before a response was counted, and lines
without an envelope are left to `read`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from retold.agents.codex.counts import (
    InfoRecord,
    LineRecord,
    PayloadRecord,
    decode,
    decode_item,
    decode_name,
    decode_spent,
    decode_text,
    decode_texts,
    decode_whole,
)
from retold.agents.codex.metas import is_subagent, kind_of, parent_of, project_of
from retold.agents.codex.places import name_of
from retold.agents.codex.raw import LINE_TYPES, Record, text_or_none
from retold.agents.codex.shape import form_of
from retold.agents.codex.state import Meter, State, Twin
from retold.agents.codex.tokens import count, record, settle
from retold.agents.codex.twins import NEAR, taken, wait
from retold.agents.protocol import Source
from retold.model.entries import Message
from retold.model.metered import Metered, Unsure
from retold.model.request import Request, micros
from retold.reading.notes import Notes
from retold.reading.streams import whole_lines
from retold.reading.times import parse_time

_PIECES = frozenset(
    ("reasoning", "function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call",
     "image_generation_call")
)  # fmt: skip
"""Items that are pieces of a response, besides what was said."""
_BOUNDS = frozenset(("task_started", "turn_started", "task_complete", "turn_complete", "turn_aborted"))


class Thread:
    """A rollout while it is counted."""

    def __init__(self, source: Source) -> None:
        name = name_of(source.path)
        if name is None or form_of(source.path, source.disk) != "lines":
            raise Unsure
        self.name, self.source = name, source
        self.state = State(Notes(source.shown), Meter(name.rollout, f"{name.rollout}/1"))
        self._said = 0
        """How often words were met that may wait for their twin."""
        self._ages: dict[int, int] = {}

    def take(self, line: LineRecord, raw: bytes | memoryview) -> None:
        """Take a line in that is neither an item nor an event."""
        state = self.state
        match line.type:
            case "turn_context":
                named = None if line.payload.model is UNSET else decode_name(line.payload.model)
                state.model = text_or_none(named) or state.model
            case "compacted":
                settle(state, line.timestamp)
            case "token_usage_record":
                spent = decode_spent(raw).payload
                record(state, msgspec.to_builtins(spent), line.timestamp)
            case "session_meta":
                self._meet(decode_whole(raw).payload)
            case kind if kind not in LINE_TYPES:
                raise Unsure

    def _meet(self, meta: Record) -> None:
        """Take down whose file this is: a thread that nobody copied."""
        if self.state.meta:
            if meta.get("id") != self.state.meta.get("id"):
                raise Unsure
            return
        if meta.get("id") != self.name.thread or "forked_from_id" in meta or "history_base" in meta:
            raise Unsure
        self.state.meta, self.state.is_subagent = meta, is_subagent(meta)

    def item(self, payload: PayloadRecord, at: datetime) -> None:
        """Take an item in."""
        if payload.type in _PIECES:
            self._put_piece(at)
        elif payload.type == "message" and payload.role == "assistant":
            self._say(_text(payload.content, "output_text"), at)
        elif payload.type == "message" and payload.role == "user":
            self._said += 1
            settle(self.state, at)
            self._ask()

    def event(self, payload: PayloadRecord, at: datetime) -> None:
        """Take an event in."""
        kind = payload.type
        if kind == "token_count":
            self._count(payload.info, at)
        elif kind == "agent_message" and payload.message is not UNSET:
            self._tell(decode_text(payload.message), at)
        elif kind in _BOUNDS:
            settle(self.state, at)
        elif kind == "user_message":
            self._ask()
        elif kind == "item_completed":
            self._complete(payload.item, at)

    def _count(self, info: InfoRecord | UnsetType | None, at: datetime) -> None:
        if info is UNSET:
            raise Unsure
        if info is None:
            self.state.meter.is_unset = True
        else:
            count(self.state, info.total_token_usage.figures(), info.last_token_usage.figures, at)

    def _complete(self, item: Raw | UnsetType, at: datetime) -> None:
        if item is UNSET:
            raise Unsure
        completed = decode_item(item)
        if completed.type == "AgentMessage":
            self._tell(_text(completed.content, "Text"), at)
        elif completed.type == "UserMessage":
            self._ask()

    def _ask(self) -> None:
        """Somebody spoke; whether that was a human, and broke a response off, only the words tell."""
        self._said += 1
        if self.state.meter.open or self.state.meter.ahead is not None:
            raise Unsure

    def _put_piece(self, at: datetime) -> int:
        index = self._put(at)
        self.state.meter.open.append(index)
        return index

    def _put(self, at: datetime) -> int:
        return self.state.put(Message(None, "assistant", at, "live", None, self.state.model, None, ()))

    def _say(self, text: str, at: datetime) -> None:
        """Take an answer down, as `items` does: an event may have told it already."""
        state = self.state
        told = taken(state.told, "assistant", text)
        if told is not None:
            self._check_age(told.index)
            state.entries[told.index] = None
        index = self._put_piece(at)
        if told is None:
            self._wait(state.said, text, index)

    def _tell(self, text: str, at: datetime) -> None:
        """Take an answer down that an event tells, as `events` does: an item may hold it already."""
        state = self.state
        held = taken(state.said, "assistant", text)
        if held is not None:
            self._check_age(held.index)
            return
        state.meter.told = index = self._put(at)
        self._wait(state.told, text, index)

    def _wait(self, twins: list[Twin], text: str, index: int) -> None:
        self._said += 1
        self._ages[index] = self._said
        wait(twins, "assistant", text, index)

    def _check_age(self, index: int) -> None:
        """Words that waited long may have been forgotten: those of humans wait in the same line."""
        if self._said - self._ages[index] >= NEAR:
            raise Unsure

    def conversation(self) -> Metered:
        """Return the thread as `sessions` tells it."""
        state, meta = self.state, self.state.meta
        settle(state, state.last_at)
        requests = [request for entry in state.entries if (request := _request(entry)) is not None]
        started_at, ended_at = parse_time(meta.get("timestamp"))[0], state.last_at
        if not requests or started_at is None or ended_at is None:
            raise Unsure
        thread, paths = self.name.thread, (self.source.shown,)
        kind, parent, project = kind_of(meta), parent_of(meta), project_of(meta)
        return Metered(
            thread, thread, f"codex:{thread}", kind, parent, project, started_at, ended_at, paths, requests
        )


def meter(sources: Sequence[Source]) -> Sequence[Metered] | None:
    """Return what the thread of a cluster took; None where only reading all of it tells."""
    if len(sources) > 1:
        return None
    try:
        return [_counted(sources[0])]
    except (Unsure, OSError, ValueError, RecursionError):
        return None


def _counted(source: Source) -> Metered:
    thread = Thread(source)
    item, event = thread.item, thread.event
    for raw in whole_lines(source.path, source.disk):
        line = decode(raw)
        at = line.timestamp
        if at.tzinfo is not UTC:
            raise Unsure
        if line.type == "response_item":
            item(line.payload, at)
        elif line.type == "event_msg":
            event(line.payload, at)
        else:
            thread.take(line, raw)
        if thread.state.last_at is None and not thread.state.meta:
            raise Unsure  # whose file it is stands on its first line
        thread.state.last_at = at
    return thread.conversation()


def _text(content: Raw | UnsetType, kind: str) -> str:
    """Return the words of content that is one piece of text."""
    if content is UNSET:
        raise Unsure
    (piece,) = decode_texts(content)
    if piece.type != kind:
        raise Unsure
    return piece.text


def _request(entry: object) -> Request | None:
    if type(entry) is not Message or entry.usage is None:
        return None
    used = entry.usage
    figures = (
        used.input, used.cached, used.cache_write, used.output, used.reasoning, used.tool, used.total, None
    )  # fmt: skip
    return Request(used.request, entry.model, micros(entry.at), figures)
