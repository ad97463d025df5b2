"""OpenTelemetry GenAI spans, and their OTLP JSON: one export request per line and conversation, as the file exporter writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from retold.export.formats.dialogue import (
    SCHEMA_URL,
    DialogueItem,
    ModelTurn,
    agent_version,
    dialogue_items,
    input_message,
    output_message,
    parts_text,
    provider_name,
    result_message,
    result_text,
    text_message,
    token_attributes,
)
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.transcript import one_line
from retold.model.serialization import encode_tree
from retold.model.session import AgentDisplay, Event, Fate, Message, Session, ToolCall, Totals

Value = str | int | bool
Attributes = dict[str, Value]
ERRORS = {"error": "tool_error", "cancelled": "cancelled"}
"""Values of `error.type` by the status of a call."""
_OUTSIDE = ("mcp", "web_access")
"""Tools that reach a service outside of the agent."""
_WIDEST = 2**63


def session_attributes(session: Session) -> Attributes:
    """Return the attributes of the span of a session."""
    values = {
        "gen_ai.provider.name": provider_name(session.models),
        "gen_ai.agent.id": session.key,
        "gen_ai.agent.version": agent_version(session),
        "gen_ai.request.model": session.models[0] if session.models else None,
        "error.type": "failure" if session.status == "failure" else None,
        "retold.title": session.title,
        "retold.kind": session.kind,
        "retold.status": session.status,
        "retold.parent": session.parent,
        "retold.native_id": session.native_id,
        "retold.project.root": session.project.root,
        "retold.cost_usd": None if session.cost_usd is None else str(session.cost_usd),
        "retold.times_derived": True if session.are_times_derived else None,
    }
    facts: Attributes = {name: value for name, value in values.items() if value is not None}
    if any(isinstance(entry, Message) and entry.usage is not None for entry in session.timeline):
        return facts  # the requests have the tokens, which must not be counted twice
    return facts | _of_usage(session.usage)


def turn_attributes(turn: Sequence[DialogueItem], number: int) -> Attributes:
    """Return the attributes of a turn: its prompts and its last answer in words."""
    prompts = [item for item in turn if isinstance(item, Message)]
    answers = [item for item in turn if isinstance(item, ModelTurn) and parts_text(item.parts)]
    attributes: Attributes = {"retold.turn": number}
    if prompts:
        attributes["gen_ai.input.messages"] = as_json([input_message(message) for message in prompts])
    if answers:
        attributes["gen_ai.output.messages"] = as_json([text_message(parts_text(answers[-1].parts))])
    return attributes


def request_attributes(answer: ModelTurn, given: Sequence[object], models: Iterable[str]) -> Attributes:
    """Return the attributes of a request and its answer."""
    attributes: Attributes = {"gen_ai.provider.name": provider_name([answer.model, *models])}
    if answer.model:
        attributes |= {"gen_ai.request.model": answer.model, "gen_ai.response.model": answer.model}
    if answer.messages[0].response:
        attributes["gen_ai.response.id"] = answer.messages[0].response
    if answer.usage is not None:
        attributes |= _of_usage(answer.usage)
    if given:
        attributes["gen_ai.input.messages"] = as_json(given)
    attributes["gen_ai.output.messages"] = as_json([output_message(answer)])
    return attributes | fate_attributes(answer.fate)


def call_attributes(call: ToolCall, fate: Fate) -> Attributes:
    """Return the attributes of a tool call."""
    attributes: Attributes = {
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "extension" if call.server or call.canonical in _OUTSIDE else "function",
        "retold.tool.canonical": call.canonical,
        "retold.tool.category": call.category,
        "retold.tool.status": call.status,
    }
    if call.arguments:
        attributes["gen_ai.tool.call.arguments"] = as_json(call.arguments)
    if result := result_text(call):
        attributes["gen_ai.tool.call.result"] = result
    if call.exit_code is not None:
        attributes["process.exit.code"] = _number(call.exit_code)
    if call.status in ERRORS:
        attributes["error.type"] = ERRORS[call.status]
    return attributes | fate_attributes(fate)


def event_attributes(event: Event) -> Attributes:
    """Return the attributes of an event."""
    attributes: Attributes = {"retold.text": event.text, **fate_attributes(event.fate)}
    return attributes if event.opaque is None else attributes | {"retold.opaque": as_json(event.opaque.value)}


def fate_attributes(fate: Fate) -> Attributes:
    """Return the fate as an attribute; none for `live`."""
    return {} if fate == "live" else {"retold.fate": fate}


def subagent_name(call: ToolCall, session: Session) -> str:
    """Return the name of a subagent as its call recorded it, else its agent."""
    named = call.display.name if isinstance(call.display, AgentDisplay) else None
    return named or session.agent


def as_json(value: object) -> str:
    """Return a value as JSON text: few receivers take structured attributes."""
    return encode_tree(value).decode()


def _of_usage(usage: Totals) -> Attributes:
    attributes: Attributes = {name: _number(figure) for name, figure in token_attributes(usage)}
    return attributes | {"retold.estimated": True} if usage.estimated else attributes


def _number(figure: int) -> Value:
    """Return a number, as text if it exceeds 64 bits: a transcript may claim anything."""
    return figure if -_WIDEST <= figure < _WIDEST else str(figure)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STEP = 1_000_000
"""Nanoseconds by which an entry without a time follows the one before: a millisecond."""
_LATEST = 2**63 - 1
"""Many receivers keep times as signed 64-bit numbers."""


class Interval(NamedTuple):
    """A start and an end in nanoseconds since 1970."""

    start: int
    end: int

    @classmethod
    def around(cls, others: Iterable[Interval]) -> Interval:
        """Return the shortest interval that contains all others."""
        starts, ends = zip(*others, strict=True)
        return cls(min(starts), max(ends))


class SpanClock:
    """The time in a session: that of its last entry."""

    def __init__(self, session: Session) -> None:
        recorded = (session.started_at, *(entry.at for entry in session.timeline), session.ended_at)
        first = next((at for at in recorded if at is not None), None)
        self.now = nanoseconds(first) if first is not None else 0
        last = self.now if session.ended_at is None else nanoseconds(session.ended_at)
        self.whole = Interval(self.now, max(self.now, last))

    def tick(self, at: datetime | None) -> int:
        """Advance to the time of an entry and return it."""
        self.now = min(self.now + _STEP, _LATEST) if at is None else nanoseconds(at)
        return self.now


def nanoseconds(at: datetime) -> int:
    """Return a time as nanoseconds since 1970, within the limits of the protocol."""
    return min(max((at - _EPOCH) // _MICROSECOND * 1000, 0), _LATEST)


INTERNAL, CLIENT = 1, 3
"""Kinds of spans, as numbers of the protocol."""


class SpanEvent(msgspec.Struct, frozen=True):
    """An event at one moment of a span."""

    name: str
    at: int
    attributes: Attributes


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One span; times are nanoseconds since 1970."""

    trace: bytes
    id: bytes
    parent: bytes | None
    name: str
    kind: int = INTERNAL
    start: int
    end: int
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    error: str | None = None
    """The error message, if it failed."""


class SpanParent(NamedTuple):
    """The context of spans: their trace, conversation, agent and parent span."""

    trace: bytes
    conversation: str
    agent: str
    parent: bytes | None = None


SpanStream = Generator[Span, None, Interval]
"""Yields spans, and returns the interval of all of them."""


def conversation_spans(export: ExportSession, options: ExportOptions) -> Iterator[Span]:
    """Yield the spans of a conversation and its subagents, in one trace."""
    key = export.session.key
    place = SpanParent(_hash(16, key), key, export.session.agent)
    yield from _SessionSpans(export, options, place).spans()


class _SessionSpans:
    """Makes the spans of one session: keeps the time, the messages for the next request, and the ids in use."""

    def __init__(self, export: ExportSession, options: ExportOptions, place: SpanParent) -> None:
        self.session, self.options, self.place = export.session, options, place
        self.subagents = dict(export.subagents)
        self.clock = SpanClock(self.session)
        self.waiting: list[tuple[Fate, dict[str, Any]]] = []
        self.ids: Counter[tuple[str, str]] = Counter()

    def spans(self) -> SpanStream:
        """Yield the spans of the turns, then that of the session."""
        session_id = self._id("session", None)
        intervals = [self.clock.whole]
        for number, turn in enumerate(_turns(dialogue_items(self.session, self.options)), start=1):
            intervals.append((yield from self._turn(turn, number, session_id)))
        interval = Interval.around(intervals)
        yield self._span(
            interval,
            id=session_id,
            parent=self.place.parent,
            name=f"invoke_agent {self.place.agent}",
            attributes=self._facts("invoke_agent", session_attributes(self.session)),
            error="the last tool failed" if self.session.status == "failure" else None,
        )
        return interval

    def _turn(self, turn: list[DialogueItem], number: int, session_id: bytes) -> SpanStream:
        first = _first(turn)
        turn_id = self._id("turn", first.id)
        intervals: list[Interval] = []
        events: list[SpanEvent] = []
        for item in turn:
            if isinstance(item, ModelTurn):
                intervals.append((yield from self._answer(item, turn_id)))
                continue
            at = self.clock.tick(item.at)
            intervals.append(Interval(at, at))
            if isinstance(item, Event):
                events.append(SpanEvent(f"retold.{item.kind}", at, event_attributes(item)))
            else:
                self.waiting.append((item.fate, input_message(item)))
        interval = Interval.around(intervals)
        yield self._span(
            interval,
            id=turn_id,
            parent=session_id,
            name="turn",
            attributes=self._facts("turn", turn_attributes(turn, number) | fate_attributes(first.fate)),
            events=tuple(events),
        )
        return interval

    def _answer(self, answer: ModelTurn, turn_id: bytes) -> SpanStream:
        """Yield a request and its tool calls. A request begins when its last message was there."""
        asked_at = self.clock.now
        times = [self.clock.tick(message.at) for message in answer.messages]
        interval = Interval(min(asked_at, *times), max(times))
        yield self._span(
            interval,
            id=self._id("chat", answer.messages[0].id),
            parent=turn_id,
            name=f"chat {answer.model}" if answer.model else "chat",
            kind=CLIENT,
            attributes=self._facts(
                "chat", request_attributes(answer, self._given(answer.fate), self.session.models)
            ),
        )
        intervals = [interval]
        for call, at in _calls(answer, times):
            intervals.append((yield from self._call(call, at, answer.fate, turn_id)))
        self.clock.now = Interval.around(intervals).end
        return Interval.around(intervals)

    def _call(self, call: ToolCall, at: int, fate: Fate, turn_id: bytes) -> SpanStream:
        call_id = self._id("tool", call.id)
        intervals = [Interval(at, max(at, nanoseconds(call.at)) if call.at else at)]
        child = self.subagents.pop(call.child or "", None)
        if child is not None:
            name = subagent_name(call, child.session)
            below = _SessionSpans(child, self.options, self.place._replace(agent=name, parent=call_id))
            intervals.append((yield from below.spans()))
        interval = Interval.around(intervals)
        yield self._span(
            interval,
            id=call_id,
            parent=turn_id,
            name=f"execute_tool {call.name}",
            attributes=self._facts("execute_tool", call_attributes(call, fate)),
            error=one_line(call.error or call.status) if call.status in ERRORS else None,
        )
        if result_text(call) or call.attachments:
            self.waiting.append((fate, result_message(call)))
        return interval

    def _given(self, fate: Fate) -> list[dict[str, Any]]:
        """Return the messages since the last request; those of another fate are not part of it."""
        given = [message for message_fate, message in self.waiting if message_fate == fate]
        self.waiting.clear()
        return given

    def _span(self, interval: Interval, **fields: Any) -> Span:
        return Span(trace=self.place.trace, start=interval.start, end=interval.end, **fields)

    def _facts(self, operation: str, attributes: Attributes) -> Attributes:
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self.place.conversation,
            "gen_ai.agent.name": self.place.agent,
            **attributes,
        }

    def _id(self, kind: str, name: str | None) -> bytes:
        """Return the id of a span, hashed from the id of its entry; entries that share one are numbered."""
        key = (kind, name or "")
        self.ids[key] += 1
        return _hash(8, self.place.conversation, self.session.key, *key, str(self.ids[key]))


def _turns(items: Iterable[DialogueItem]) -> Iterator[list[DialogueItem]]:
    """Yield the items of each prompt; those copied from another session belong to that session."""
    turn: list[DialogueItem] = []
    for item in items:
        if not item.own:
            continue
        is_prompt = isinstance(item, Message) and item.prompt is not None
        if is_prompt and any(_is_spoken(before) for before in turn):
            yield turn
            turn = []
        turn.append(item)
    if turn:
        yield turn


def _calls(answer: ModelTurn, times: Iterable[int]) -> Iterator[tuple[ToolCall, int]]:
    """Yield the calls of an answer, each with the time of its message."""
    for message, at in zip(answer.messages, times, strict=True):
        yield from ((part, at) for part in message.parts if isinstance(part, ToolCall))


def _first(turn: list[DialogueItem]) -> Message | Event:
    """Return the prompt of a turn, else its first answer, so that notices do not change the turn's id."""
    item = next((one for one in turn if _is_spoken(one)), turn[0])
    return item.messages[0] if isinstance(item, ModelTurn) else item


def _is_spoken(item: DialogueItem) -> bool:
    return isinstance(item, ModelTurn) or (isinstance(item, Message) and item.prompt is not None)


def _hash(size: int, *names: str) -> bytes:
    return blake2b("\0".join(names).encode(), digest_size=size).digest()


SCOPE = "retold"
"""The name of the instrumentation scope."""
ERROR = 2
"""The status of a failed span, as a number of the protocol."""

Json = dict[str, Any]


def encode_sessions(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield the spans of each conversation and its subagents as one export request."""
    scope, url = encode_tree({"name": SCOPE}), encode_tree(SCHEMA_URL)
    for export in exports:
        about = encode_tree({"attributes": _attributes(resource_attributes(export.session, options))})
        yield b'{"resourceSpans":[{"resource":' + about + b',"scopeSpans":[{"scope":' + scope + b',"spans":['
        for place, span in enumerate(conversation_spans(export, options)):
            yield (b"," if place else b"") + encode_tree(_span(span))
        yield b'],"schemaUrl":' + url + b'}],"schemaUrl":' + url + b"}]}\n"


def resource_attributes(session: Session, options: ExportOptions) -> Attributes:
    """Return the source of the spans: the agent, its version, and whether secrets were removed."""
    attributes: Attributes = {"service.name": session.agent, "retold.redacted": options.is_redacted}
    version = agent_version(session)
    return attributes if version is None else attributes | {"service.version": version}


def _span(span: Span) -> Json:
    fields: Json = {
        "traceId": span.trace.hex(),
        "spanId": span.id.hex(),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent is not None:
        fields["parentSpanId"] = span.parent.hex()
    if span.events:
        fields["events"] = [_event(event) for event in span.events]
    if span.error is not None:
        fields["status"] = {"code": ERROR, "message": span.error}
    return fields


def _event(event: SpanEvent) -> Json:
    return {"timeUnixNano": str(event.at), "name": event.name, "attributes": _attributes(event.attributes)}


def _attributes(attributes: Mapping[str, Value]) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Value) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value}
