"""Spans as OTLP JSON: one export request per line and conversation, as the protocol's file exporter writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from retold.export.formats.dialogue import (
    SCHEMA_URL,
    ModelTurn,
    Said,
    agent_version,
    dialogue,
    input_message,
    outcome,
    output_message,
    provider,
    result_message,
    said_message,
    text_of,
    tokens,
)
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.transcript import one_line
from retold.model.serialization import encoded
from retold.model.session import AgentDisplay, Event, Fate, Message, Session, ToolCall
from retold.model.usage import Totals

Value = str | int | bool
Attributes = dict[str, Value]
ERRORS = {"error": "tool_error", "cancelled": "cancelled"}
"""How `error.type` names what became of a call."""
_OUTSIDE = ("mcp", "web_access")
"""Tools that reach something outside."""
_WIDEST = 2**63


def of_session(session: Session) -> Attributes:
    """Return what is told of a session as a whole."""
    told = {
        "gen_ai.provider.name": provider(session.models),
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
    facts: Attributes = {name: value for name, value in told.items() if value is not None}
    return facts | _of_usage(session.usage) if not _has_usage(session) else facts


def of_turn(turn: Sequence[Said], number: int) -> Attributes:
    """Return what is told of a turn: what the person said, and what was said to them at last."""
    asked = [said for said in turn if isinstance(said, Message)]
    answers = [said for said in turn if isinstance(said, ModelTurn) and text_of(said.parts)]
    told: Attributes = {"retold.turn": number}
    if asked:
        told["gen_ai.input.messages"] = as_json([input_message(message) for message in asked])
    if answers:
        told["gen_ai.output.messages"] = as_json([said_message(text_of(answers[-1].parts))])
    return told


def of_request(answer: ModelTurn, given: Sequence[object], models: Iterable[str]) -> Attributes:
    """Return what is told of a request and its answer."""
    told: Attributes = {"gen_ai.provider.name": provider([answer.model, *models])}
    if answer.model:
        told |= {"gen_ai.request.model": answer.model, "gen_ai.response.model": answer.model}
    if answer.messages[0].response:
        told["gen_ai.response.id"] = answer.messages[0].response
    if answer.usage is not None:
        told |= _of_usage(answer.usage)
    if given:
        told["gen_ai.input.messages"] = as_json(given)
    told["gen_ai.output.messages"] = as_json([output_message(answer)])
    return told | of_fate(answer.fate)


def of_call(call: ToolCall, fate: Fate) -> Attributes:
    """Return what is told of a tool and what it was used for."""
    told: Attributes = {
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "extension" if call.server or call.canonical in _OUTSIDE else "function",
        "retold.tool.canonical": call.canonical,
        "retold.tool.category": call.category,
        "retold.tool.status": call.status,
    }
    if call.arguments:
        told["gen_ai.tool.call.arguments"] = as_json(call.arguments)
    if result := outcome(call):
        told["gen_ai.tool.call.result"] = result
    if call.exit_code is not None:
        told["process.exit.code"] = _number(call.exit_code)
    if call.status in ERRORS:
        told["error.type"] = ERRORS[call.status]
    return told | of_fate(fate)


def of_event(event: Event) -> Attributes:
    """Return what is told of something that happened in between."""
    told: Attributes = {"retold.text": event.text, **of_fate(event.fate)}
    return told if event.opaque is None else told | {"retold.opaque": as_json(event.opaque.value)}


def of_fate(fate: Fate) -> Attributes:
    """Return what became of something, unless it is still there."""
    return {} if fate == "live" else {"retold.fate": fate}


def agent_name(call: ToolCall, session: Session) -> str:
    """Return what a subagent is called."""
    named = call.display.name if isinstance(call.display, AgentDisplay) else None
    return named or session.agent


def as_json(value: object) -> str:
    """Return a value as JSON: few receivers take attributes that are more than text and numbers."""
    return encoded(value).decode()


def _of_usage(usage: Totals) -> Attributes:
    told: Attributes = {name: _number(figure) for name, figure in tokens(usage)}
    return told | {"retold.estimated": True} if usage.estimated else told


def _has_usage(session: Session) -> bool:
    """Tell whether requests have tokens of their own: then the whole has none, or they would be counted twice."""
    return any(isinstance(entry, Message) and entry.usage is not None for entry in session.timeline)


def _number(figure: int) -> Value:
    """Return a figure; one that no attribute has room for, as text: a transcript may claim anything."""
    return figure if -_WIDEST <= figure < _WIDEST else str(figure)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STEP = 1_000_000
"""A millisecond: so far behind the one before is what has no time of its own."""
_LATEST = 2**63 - 1
"""Many receivers keep times in 64 bits with a sign."""


class Interval(NamedTuple):
    """From when to when, in nanoseconds since 1970."""

    start: int
    end: int

    @classmethod
    def around(cls, others: Iterable[Interval]) -> Interval:
        """Return the shortest that encloses all others."""
        starts, ends = zip(*others, strict=True)
        return cls(min(starts), max(ends))


class SpanClock:
    """The time in a session: that of what happened last."""

    def __init__(self, session: Session) -> None:
        recorded = (session.started_at, *(entry.at for entry in session.timeline), session.ended_at)
        first = next((at for at in recorded if at is not None), None)
        self.now = nanoseconds(first) if first is not None else 0
        last = self.now if session.ended_at is None else nanoseconds(session.ended_at)
        self.whole = Interval(self.now, max(self.now, last))

    def tick(self, at: datetime | None) -> int:
        """Return when something happened, which it is now."""
        self.now = min(self.now + _STEP, _LATEST) if at is None else nanoseconds(at)
        return self.now


def nanoseconds(at: datetime) -> int:
    """Return a time as nanoseconds since 1970, as far as the protocol can tell it."""
    return min(max((at - _EPOCH) // _MICROSECOND * 1000, 0), _LATEST)


INTERNAL, CLIENT = 1, 3
"""What kind of span it is, in the numbers of the protocol."""


class SpanEvent(msgspec.Struct, frozen=True):
    """Something that happened at one moment of a span."""

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
    happenings: tuple[SpanEvent, ...] = ()
    error: str | None = None
    """What went wrong; None where nothing did."""


class SpanPlace(NamedTuple):
    """Where spans belong: in which trace, of which conversation, to which agent, below which span."""

    trace: bytes
    conversation: str
    agent: str
    parent: bytes | None = None


Told = Generator[Span, None, Interval]
"""Spans, and at the end how long all of it lasted."""


def conversation_spans(telling: ExportSession, choice: ExportOptions) -> Iterator[Span]:
    """Yield the spans of a conversation and of its subagents, in one trace."""
    key = telling.session.key
    place = SpanPlace(_hash(16, key), key, telling.session.agent)
    yield from _Course(telling, choice, place).spans()


class _Course:
    """How one session goes: what the time is, what waits for the next request, which names are taken."""

    def __init__(self, telling: ExportSession, choice: ExportOptions, place: SpanPlace) -> None:
        self.session, self.choice, self.place = telling.session, choice, place
        self.subagents = dict(telling.subagents)
        self.clock = SpanClock(self.session)
        self.waiting: list[tuple[Fate, dict[str, Any]]] = []
        self.taken: Counter[tuple[str, str]] = Counter()

    def spans(self) -> Told:
        """Yield everything in the session, then the session itself."""
        session_id = self._id("session", None)
        spells = [self.clock.whole]
        for number, turn in enumerate(_turns(dialogue(self.session, self.choice)), start=1):
            spells.append((yield from self._turn(turn, number, session_id)))
        lasted = Interval.around(spells)
        yield self._span(
            lasted,
            id=session_id,
            parent=self.place.parent,
            name=f"invoke_agent {self.place.agent}",
            attributes=self._facts("invoke_agent", of_session(self.session)),
            error="the last tool failed" if self.session.status == "failure" else None,
        )
        return lasted

    def _turn(self, turn: list[Said], number: int, session_id: bytes) -> Told:
        first = _first(turn)
        turn_id = self._id("turn", first.id)
        spells: list[Interval] = []
        happenings: list[SpanEvent] = []
        for said in turn:
            if isinstance(said, ModelTurn):
                spells.append((yield from self._answer(said, turn_id)))
                continue
            at = self.clock.tick(said.at)
            spells.append(Interval(at, at))
            if isinstance(said, Event):
                happenings.append(SpanEvent(f"retold.{said.kind}", at, of_event(said)))
            else:
                self.waiting.append((said.fate, input_message(said)))
        lasted = Interval.around(spells)
        yield self._span(
            lasted,
            id=turn_id,
            parent=session_id,
            name="turn",
            attributes=self._facts("turn", of_turn(turn, number) | of_fate(first.fate)),
            happenings=tuple(happenings),
        )
        return lasted

    def _answer(self, answer: ModelTurn, turn_id: bytes) -> Told:
        """Yield a request and its tools. It began when the last thing was there that it was asked with."""
        asked_at = self.clock.now
        times = [self.clock.tick(message.at) for message in answer.messages]
        lasted = Interval(min(asked_at, *times), max(times))
        yield self._span(
            lasted,
            id=self._id("chat", answer.messages[0].id),
            parent=turn_id,
            name=f"chat {answer.model}" if answer.model else "chat",
            kind=CLIENT,
            attributes=self._facts("chat", of_request(answer, self._given(answer.fate), self.session.models)),
        )
        spells = [lasted]
        for call, at in _calls(answer, times):
            spells.append((yield from self._call(call, at, answer.fate, turn_id)))
        self.clock.now = Interval.around(spells).end
        return Interval.around(spells)

    def _call(self, call: ToolCall, at: int, fate: Fate, turn_id: bytes) -> Told:
        call_id = self._id("tool", call.id)
        spells = [Interval(at, max(at, nanoseconds(call.at)) if call.at else at)]
        child = self.subagents.pop(call.child or "", None)
        if child is not None:
            name = agent_name(call, child.session)
            below = _Course(child, self.choice, self.place._replace(agent=name, parent=call_id))
            spells.append((yield from below.spans()))
        lasted = Interval.around(spells)
        yield self._span(
            lasted,
            id=call_id,
            parent=turn_id,
            name=f"execute_tool {call.name}",
            attributes=self._facts("execute_tool", of_call(call, fate)),
            error=one_line(call.error or call.status) if call.status in ERRORS else None,
        )
        if outcome(call) or call.attachments:
            self.waiting.append((fate, result_message(call)))
        return lasted

    def _given(self, fate: Fate) -> list[dict[str, Any]]:
        """Return what was put to the model since the last request; what was taken back before is not."""
        given = [message for became, message in self.waiting if became == fate]
        self.waiting.clear()
        return given

    def _span(self, lasted: Interval, **told: Any) -> Span:
        return Span(trace=self.place.trace, start=lasted.start, end=lasted.end, **told)

    def _facts(self, operation: str, told: Attributes) -> Attributes:
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self.place.conversation,
            "gen_ai.agent.name": self.place.agent,
            **told,
        }

    def _id(self, kind: str, name: str | None) -> bytes:
        """Return the id of a span, made from that of its record; records that share one are numbered."""
        taken = (kind, name or "")
        self.taken[taken] += 1
        return _hash(8, self.place.conversation, self.session.key, *taken, str(self.taken[taken]))


def _turns(said: Iterable[Said]) -> Iterator[list[Said]]:
    """Yield what belongs to one prompt of the person; what was copied from another session belongs there."""
    turn: list[Said] = []
    for one in said:
        if not one.own:
            continue
        is_prompt = isinstance(one, Message) and one.prompt is not None
        if is_prompt and any(_is_said(before) for before in turn):
            yield turn
            turn = []
        turn.append(one)
    if turn:
        yield turn


def _calls(answer: ModelTurn, times: Iterable[int]) -> Iterator[tuple[ToolCall, int]]:
    """Yield the calls of an answer, and when the piece came in which each stands."""
    for message, at in zip(answer.messages, times, strict=True):
        yield from ((part, at) for part in message.parts if isinstance(part, ToolCall))


def _first(turn: list[Said]) -> Message | Event:
    """Return what a turn begins with, as it does whether or not notices are told: the prompt, else an answer."""
    said = next((one for one in turn if _is_said(one)), turn[0])
    return said.messages[0] if isinstance(said, ModelTurn) else said


def _is_said(said: Said) -> bool:
    return isinstance(said, ModelTurn) or (isinstance(said, Message) and said.prompt is not None)


def _hash(size: int, *names: str) -> bytes:
    return blake2b("\0".join(names).encode(), digest_size=size).digest()


SCOPE = "retold"
"""Who says so."""
ERROR = 2
"""The status of a span in which something went wrong, in the numbers of the protocol."""

Json = dict[str, Any]


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield the spans of each conversation and its subagents as one request."""
    scope, url = encoded({"name": SCOPE}), encoded(SCHEMA_URL)
    for telling in tellings:
        about = encoded({"attributes": _attributes(resource(telling.session, choice))})
        yield b'{"resourceSpans":[{"resource":' + about + b',"scopeSpans":[{"scope":' + scope + b',"spans":['
        for place, span in enumerate(conversation_spans(telling, choice)):
            yield (b"," if place else b"") + encoded(_span(span))
        yield b'],"schemaUrl":' + url + b'}],"schemaUrl":' + url + b"}]}\n"


def resource(session: Session, choice: ExportOptions) -> Attributes:
    """Return what the spans come from: the agent, and whether secrets were taken out."""
    told: Attributes = {"service.name": session.agent, "retold.redacted": choice.is_redacted}
    version = agent_version(session)
    return told if version is None else told | {"service.version": version}


def _span(span: Span) -> Json:
    told: Json = {
        "traceId": span.trace.hex(),
        "spanId": span.id.hex(),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent is not None:
        told["parentSpanId"] = span.parent.hex()
    if span.happenings:
        told["events"] = [_event(happening) for happening in span.happenings]
    if span.error is not None:
        told["status"] = {"code": ERROR, "message": span.error}
    return told


def _event(happening: SpanEvent) -> Json:
    return {
        "timeUnixNano": str(happening.at),
        "name": happening.name,
        "attributes": _attributes(happening.attributes),
    }


def _attributes(told: Mapping[str, Value]) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in told.items()]


def _value(value: Value) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value}
