"""A session told as a flat sequence: the normalised events that programs follow."""

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


class Step(msgspec.Struct, frozen=True, tag_field="event", kw_only=True):
    """What every event says: which session, its place in it, and when."""

    session: str
    seq: int
    at: datetime | None
    at_derived: bool
    """True where the record has no time of its own."""
    fate: Fate


class ToolName(msgspec.Struct, frozen=True):
    """A tool, under its own name and ours."""

    name: str
    canonical: Canonical
    category: Category


class SessionStart(Step, frozen=True, tag="session_start", kw_only=True):
    """Synthesised: the session begins."""

    agent: str
    project: Project


class UserPrompt(Step, frozen=True, tag="user_prompt", kw_only=True):
    """A person said something."""

    text: str


class AssistantThought(Step, frozen=True, tag="assistant_thought", kw_only=True):
    """The model thought something."""

    subject: str | None
    text: str


class AssistantText(Step, frozen=True, tag="assistant_text", kw_only=True):
    """The model said something."""

    text: str


class ToolUse(Step, frozen=True, tag="tool_use", kw_only=True):
    """The model called a tool."""

    call_id: str
    tool: ToolName
    arguments: dict[str, Any]


class ToolResult(Step, frozen=True, tag="tool_result", kw_only=True):
    """A tool gave something back."""

    call_id: str
    tool: ToolName
    status: Status
    error: str | None
    result: str | None


class SessionEnd(Step, frozen=True, tag="session_end", kw_only=True):
    """Synthesised: the session ends."""

    status: SessionStatus


AnyStep = SessionStart | UserPrompt | AssistantThought | AssistantText | ToolUse | ToolResult | SessionEnd


def steps(session: Session, *, with_text: bool = False, with_thoughts: bool = False) -> Iterator[AnyStep]:
    """Yield the session's events in order, numbered from 0."""
    return (step for _, step in sourced_steps(session, with_text=with_text, with_thoughts=with_thoughts))


def sourced_steps(
    session: Session, *, with_text: bool = False, with_thoughts: bool = False
) -> Iterator[tuple[Message | None, AnyStep]]:
    """Yield the same with the message that each is told by; start and end are told by none."""
    clock = _Clock(session)
    start = clock.tick(session.started_at, is_derived=session.are_times_derived)
    yield None, SessionStart(**start, agent=session.agent, project=session.project)
    for turn in _turns(session):
        for message in turn:
            yield from ((message, step) for step in _words(message, clock, with_text, with_thoughts))
        yield from _uses(turn, clock)
    end = clock.tick(session.ended_at, is_derived=session.are_times_derived)
    yield None, SessionEnd(**end, status=session.status)


_MILLISECOND = timedelta(milliseconds=1)
_LATEST = datetime.max.replace(tzinfo=UTC) - _MILLISECOND
"""The last time that has another one behind it."""


class _Clock:
    """Numbers the events and gives each a time; where none is recorded, a millisecond after the one before."""

    def __init__(self, session: Session) -> None:
        self.session = session.key
        self.seq = -1
        self.last = session.started_at

    def tick(self, at: datetime | None, fate: Fate = "live", *, is_derived: bool = False) -> dict[str, Any]:
        """Return the fields that every event has."""
        self.seq += 1
        derived = is_derived or at is None
        if derived and self.last is not None:
            at = min(self.last, _LATEST) + _MILLISECOND if self.seq else self.last
        self.last = at
        return {"session": self.session, "seq": self.seq, "at": at, "at_derived": derived, "fate": fate}


def _turns(session: Session) -> Iterator[list[Message]]:
    """Yield what was said at a time: one message, or all the messages in which one response was recorded."""
    turn: list[Message] = []
    for entry in session.timeline:
        if not isinstance(entry, Message) or (entry.role == "user" and entry.prompt is None):
            continue  # results are told with their calls
        if turn and (entry.response is None or entry.response != turn[-1].response):
            yield turn
            turn = []
        turn.append(entry)
    if turn:
        yield turn


def _words(message: Message, clock: _Clock, with_text: bool, with_thoughts: bool) -> Iterator[AnyStep]:  # noqa: FBT001 - of the caller's, one for one
    """Yield what a message says in words."""
    if message.prompt is not None:
        yield UserPrompt(**clock.tick(message.at, message.fate), text=message.prompt)
    for part in message.parts if with_thoughts else ():
        if isinstance(part, Thinking):
            at = clock.tick(part.at or message.at, message.fate)
            yield AssistantThought(**at, subject=part.subject, text=part.text)
    text = _text(message) if with_text and message.role == "assistant" else ""
    if text:
        yield AssistantText(**clock.tick(message.at, message.fate), text=text)


def _uses(turn: Sequence[Message], clock: _Clock) -> Iterator[tuple[Message, AnyStep]]:
    """Yield the calls of what was said at a time, then all their results."""
    calls = [(message, part) for message in turn for part in message.parts if isinstance(part, ToolCall)]
    for message, call in calls:
        at = clock.tick(message.at, message.fate)
        yield message, ToolUse(**at, call_id=call.id, tool=_tool(call), arguments=call.arguments)
    for message, call in calls:
        if call.result is not None or call.error is not None or call.status != "unknown":
            yield (
                message,
                ToolResult(
                    **clock.tick(call.at or message.at, message.fate),
                    call_id=call.id,
                    tool=_tool(call),
                    status=call.status,
                    error=call.error,
                    result=call.result,
                ),
            )


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _tool(call: ToolCall) -> ToolName:
    return ToolName(call.name, call.canonical, call.category)
