"""Conversations as spans: a conversation, its turns, and in a turn the requests to the model and the tools.

A span comes after those inside it, and lasts as long as they do. Ids are made from keys and ids of records, so that
whoever exports a conversation again sends the same spans.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from retold.export.dialogue import ModelTurn, Said, dialogue
from retold.export.gen_ai import input_message, outcome, result_message
from retold.export.moments import Interval, SpanClock, nanoseconds
from retold.export.span_facts import (
    ERRORS,
    Attributes,
    agent_name,
    of_call,
    of_event,
    of_fate,
    of_request,
    of_session,
    of_turn,
)
from retold.export.telling import ExportOptions, ExportSession
from retold.export.transcript import one_line
from retold.model.session import Event, Fate, Message, ToolCall

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
