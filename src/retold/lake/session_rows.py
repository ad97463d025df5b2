"""What rows are made of: a session, and what only those who keep many of them know."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import get_args

import msgspec

from retold.archive.rows import CHANGING, requests_of
from retold.lake.arrow import DIGITS, PLACES
from retold.model.events import (
    AnyStep,
    AssistantText,
    SessionEnd,
    ToolResult,
    ToolUse,
    UserPrompt,
    sourced_steps,
)
from retold.model.problem import Problem
from retold.model.report import FIGURES
from retold.model.serialization import encoded
from retold.model.session import (
    COPIES,
    Context,
    Entry,
    Event,
    Message,
    Session,
    SourceFile,
    Text,
    Thinking,
    ToolCall,
    touched,
)
from retold.model.tables import UNKNOWN
from retold.model.usage import LARGEST, Request, stored_figure
from retold.projects.matching import in_project


class RowSource(msgspec.Struct, frozen=True):
    """A session in its full view, with its name and what its requests cost."""

    session: Session
    name: int
    """What tells the conversation from all others, as an archive names it."""
    picos: Mapping[str, int | None] = {}
    """By the id of a request: millionths of a millionth of a dollar."""
    requests: Sequence[tuple[int, Request]] | None = None
    """Its requests with their places in the timeline, where they were looked for already."""


class UnreadFile(msgspec.Struct, frozen=True):
    """A file of which no session was read, and why."""

    agent: str
    home: str | None
    problem: Problem


_ALL = (1 << 64) - 1


def shown_name(name: int) -> str:
    """Return the name of a conversation as tables have it."""
    return f"{name & _ALL:016x}"


def month_of(at: datetime | None) -> str:
    """Return the month under which a session is kept, by when it began."""
    return UNKNOWN if at is None else f"{at.year:04}-{at.month:02}"


TOKENS = FIGURES
"""The tokens of a request or of many, in the order of the columns."""
_MOST_DOLLARS = Decimal(10) ** (DIGITS - PLACES) - 1
_SMALL = 1 << 31
_STEP = Decimal(1).scaleb(-PLACES)


def dollars_of(cost: Decimal | None) -> Decimal | None:
    """Return money as the column takes it."""
    return None if cost is None else min(cost, _MOST_DOLLARS).quantize(_STEP)


def dollars_in(picos: int) -> Decimal:
    """Return what a request cost as the column takes it."""
    return min(Decimal(picos).scaleb(-PLACES), _MOST_DOLLARS)


def small(number: int | None) -> int | None:
    """Return a number that 32 bits hold; None for one that they do not."""
    return number if number is not None and -_SMALL <= number < _SMALL else None


def session_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield it."""
    session = told.session
    project, counts, usage = session.project, session.counts, session.usage
    yield (
        session.native_id,
        session.kind,
        session.parent,
        project.native_key,
        project.hash,
        project.evidence,
        sorted({source.home for source in session.sources if source.home is not None}),
        session.title,
        session.summary,
        session.first_prompt,
        session.last_prompt,
        session.tags,
        session.models,
        session.started_at,
        session.ended_at,
        session.are_times_derived,
        session.status,
        counts.prompts,
        counts.messages,
        counts.tool_calls,
        counts.tool_errors,
        usage.requests,
        *(stored_figure(getattr(usage, name), LARGEST) for name in TOKENS),
        usage.estimated,
        dollars_of(session.cost_usd),
        [_file(source) for source in session.sources],
        sum(source.bytes for source in session.sources),
        session.coverage.records,
        session.coverage.opaque,
        len(session.problems),
    )


def _file(source: SourceFile) -> dict[str, object]:
    return {
        "home": source.home,
        "path": source.path,
        "format": source.format,
        "bytes": source.bytes,
        "state": source.state,
    }


def message_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each entry of the timeline."""
    for seq, entry in enumerate(told.session.timeline):
        yield (seq, entry.id, *_about_entry(entry))


def _about_entry(entry: Entry) -> tuple[object, ...]:
    if isinstance(entry, Event):
        text = entry.text or None
        return (None, entry.kind, entry.at, entry.fate, entry.own, False, None, None, 0, text, None, None)
    return (
        entry.role,
        None,
        entry.at,
        entry.fate,
        entry.own,
        entry.prompt is not None,
        entry.model,
        entry.usage.request if entry.usage else None,
        sum(isinstance(part, ToolCall) for part in entry.parts),
        entry.prompt if entry.prompt is not None else _joined(entry, Text),
        _joined(entry, Thinking),
        _context(entry),
    )


def _joined(message: Message, kind: type[Text | Thinking]) -> str | None:
    return "\n".join(part.text for part in message.parts if isinstance(part, kind)) or None


def _context(message: Message) -> str | None:
    """Return what the agent put into a message; a result that belongs to a call is told with it."""
    texts = (part.text for part in message.parts if isinstance(part, Context) and part.call is None)
    return "\n".join(filter(None, texts)) or None


def tool_call_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each call."""
    for seq, place, message, call in calls_in(told):
        yield (
            seq,
            place,
            call.id,
            call.name,
            call.canonical,
            call.category,
            call.server,
            call.status,
            call.native_status,
            small(call.exit_code),
            call.at or message.at,
            stored_figure(call.took_ms, LARGEST),
            message.fate,
            message.own,
            message.model,
            call.child,
            encoded(call.arguments).decode(),
            call.full_result if call.full_result is not None else call.result,
            call.error,
        )


def calls_in(told: RowSource) -> Iterator[tuple[int, int, Message, ToolCall]]:
    """Yield every call with its place in the timeline and among the parts of its message."""
    for seq, entry in enumerate(told.session.timeline):
        if isinstance(entry, Message):
            for place, part in enumerate(entry.parts):
                if isinstance(part, ToolCall):
                    yield seq, place, entry, part


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def request_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each request that is the session's own; a copy of one has none."""
    if told.session.kind in COPIES:
        return
    began, ended = told.session.started_at, told.session.ended_at
    for seq, request in requests_of(told.session) if told.requests is None else told.requests:
        at = None if request.at is None else _EPOCH + timedelta(microseconds=request.at)
        picos = told.picos.get(request.name)
        cost = None if picos is None else dollars_in(picos)
        yield (seq, request.name, request.model, at, *request.figures, request.estimated, cost, began, ended)


def file_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each file that a call names, however often it does."""
    for seq, place, message, call in calls_in(told):
        for path in dict.fromkeys(touched(call)):
            yield (
                seq,
                place,
                call.id,
                path,
                in_project(path, told.session.project.root),
                call.canonical,
                call.canonical in CHANGING,
                call.status,
                call.at or message.at,
                message.fate,
                message.own,
            )


KINDS = {kind: kind.__struct_config__.tag for kind in get_args(AnyStep)}
"""What events are called: to ask each of them takes longer than all else."""


def event_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each event."""
    for message, step in sourced_steps(told.session, with_text=True):
        said_by = None if message is None else message.id
        yield (step.seq, KINDS[type(step)], step.at, step.at_derived, step.fate, said_by, *_about_event(step))


def _about_event(step: AnyStep) -> tuple[object, ...]:
    """Return call, tool, canonical, category, status and text; most events are of calls."""
    if isinstance(step, ToolUse | ToolResult):
        tool, went = step.tool, step.status if isinstance(step, ToolResult) else None
        return step.call_id, tool.name, tool.canonical, tool.category, went, None
    ended = step.status if isinstance(step, SessionEnd) else None
    text = step.text if isinstance(step, UserPrompt | AssistantText) else None
    return None, None, None, None, ended, text


def problem_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each problem of a session."""
    return map(_row, told.session.problems)


def refused(told: UnreadFile) -> Iterator[tuple[object, ...]]:
    """Yield why a file is no session."""
    yield _row(told.problem)


def _row(problem: Problem) -> tuple[object, ...]:
    return problem.code, problem.severity, problem.message, problem.path, problem.line, problem.pointer
