"""A session as a flat sequence of normalised events, for programs that follow it."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from retold.model.session import (
    Canonical,
    Category,
    Fate,
    Message,
    Project,
    Session,
    SessionStatus,
    Status,
    Text,
    Thinking,
    ToolCall,
)


class Step(msgspec.Struct, frozen=True, tag_field="event"):
    """The fields of every event: its session, its place in it, and its time."""

    session: str
    seq: int
    at: datetime | None
    at_derived: bool
    """Whether the record has no time of its own."""
    fate: Fate


class ToolName(msgspec.Struct, frozen=True):
    """A tool by its own and its canonical name."""

    name: str
    canonical: Canonical
    category: Category


class SessionStart(Step, frozen=True, tag="session_start"):
    """The session begins; no record of its own."""

    agent: str
    project: Project


class UserPrompt(Step, frozen=True, tag="user_prompt"):
    """A person said something."""

    text: str


class AssistantThought(Step, frozen=True, tag="assistant_thought"):
    """The model thought something."""

    subject: str | None
    text: str


class AssistantText(Step, frozen=True, tag="assistant_text"):
    """The model said something."""

    text: str


class ToolUse(Step, frozen=True, tag="tool_use"):
    """The model called a tool."""

    call_id: str
    tool: ToolName
    arguments: dict[str, Any]


class ToolResult(Step, frozen=True, tag="tool_result"):
    """A tool returned its result."""

    call_id: str
    tool: ToolName
    status: Status
    error: str | None
    result: str | None


class SessionEnd(Step, frozen=True, tag="session_end"):
    """The session ends; no record of its own."""

    status: SessionStatus


AnyStep = SessionStart | UserPrompt | AssistantThought | AssistantText | ToolUse | ToolResult | SessionEnd


def steps(session: Session, *, with_text: bool = False, with_thoughts: bool = False) -> Iterator[AnyStep]:
    """Yield the session's events in order, numbered from 0."""
    return (
        step for _, step in steps_with_messages(session, with_text=with_text, with_thoughts=with_thoughts)
    )


def steps_with_messages(
    session: Session, *, with_text: bool = False, with_thoughts: bool = False
) -> Iterator[tuple[Message | None, AnyStep]]:
    """Yield the same events with their messages; start and end have none."""
    clock = _Clock(session)
    start = clock.tick(session.started_at, is_derived=session.are_times_derived)
    yield None, SessionStart(*start, session.agent, session.project)
    for turn in _turns(session):
        for message in turn:
            for step in _word_steps(message, clock, with_text, with_thoughts):
                yield message, step
        yield from _tool_steps(turn, clock)
    end = clock.tick(session.ended_at, is_derived=session.are_times_derived)
    yield None, SessionEnd(*end, session.status)


_MILLISECOND = timedelta(milliseconds=1)
_LATEST = datetime.max.replace(tzinfo=UTC) - _MILLISECOND
"""The last time that a later one can follow."""
_StepFields = tuple[str, int, datetime | None, bool, Fate]


class _Clock:
    """Numbers the events and gives each a time: if none is recorded, a millisecond after the one before."""

    def __init__(self, session: Session) -> None:
        self.session = session.key
        self.seq = -1
        self.last = session.started_at

    def tick(self, at: datetime | None, fate: Fate = "live", *, is_derived: bool = False) -> _StepFields:
        """Return the fields of the next event."""
        self.seq += 1
        derived = is_derived or at is None
        if derived and self.last is not None:
            at = min(self.last, _LATEST) + _MILLISECOND if self.seq else self.last
        self.last = at
        return self.session, self.seq, at, derived, fate


def _turns(session: Session) -> Iterator[list[Message]]:
    """Yield the messages of one time: a single one, or all that hold one response."""
    turn: list[Message] = []
    for entry in session.timeline:
        if not isinstance(entry, Message) or (entry.role == "user" and entry.prompt is None):
            continue  # results come with their calls
        if turn and (entry.response is None or entry.response != turn[-1].response):
            yield turn
            turn = []
        turn.append(entry)
    if turn:
        yield turn


def _word_steps(message: Message, clock: _Clock, with_text: bool, with_thoughts: bool) -> Iterator[AnyStep]:  # noqa: FBT001 - of the caller's, one for one
    if message.prompt is not None:
        yield UserPrompt(*clock.tick(message.at, message.fate), message.prompt)
    for part in message.parts if with_thoughts else ():
        if isinstance(part, Thinking):
            at = clock.tick(part.at or message.at, message.fate)
            yield AssistantThought(*at, part.subject, part.text)
    text = _text(message) if with_text and message.role == "assistant" else ""
    if text:
        yield AssistantText(*clock.tick(message.at, message.fate), text)


def _tool_steps(turn: Sequence[Message], clock: _Clock) -> Iterator[tuple[Message, AnyStep]]:
    """Yield the calls of messages, then all their results."""
    calls = [
        (message, part, ToolName(part.name, part.canonical, part.category))
        for message in turn
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    for message, call, tool in calls:
        yield message, ToolUse(*clock.tick(message.at, message.fate), call.id, tool, call.arguments)
    for message, call, tool in calls:
        if call.result is not None or call.error is not None or call.status != "unknown":
            at = clock.tick(call.at or message.at, message.fate)
            yield message, ToolResult(*at, call.id, tool, call.status, call.error, call.result)


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))
