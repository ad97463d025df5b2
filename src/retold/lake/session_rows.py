"""Rows of the tables, made of a session or of a file that could not be read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import get_args

import msgspec

from retold.archive.rows import EDITING_TOOLS, own_requests
from retold.lake.arrow import MONEY_DIGITS, MONEY_SCALE
from retold.model import FIGURES
from retold.model.events import (
    AnyStep,
    AssistantText,
    SessionEnd,
    ToolResult,
    ToolUse,
    UserPrompt,
    steps_with_messages,
)
from retold.model.problem import Problem
from retold.model.serialization import encode_tree
from retold.model.session import (
    COPY_KINDS,
    LARGEST_INTEGER,
    Context,
    Entry,
    Event,
    Message,
    Request,
    Session,
    SourceFile,
    Text,
    Thinking,
    ToolCall,
    clamp_figure,
    touched_paths,
)
from retold.model.tables import TABLES, UNKNOWN
from retold.projects.matching import path_in_project

Row = tuple[object, ...]
"""The values of one row, in the order of the columns of its table."""


class RowSource(msgspec.Struct, frozen=True):
    """A session in its full view, with its uid and the cost of its requests."""

    session: Session
    uid: int
    """The uid of the conversation, as in an archive."""
    picos: Mapping[str, int | None] = {}
    """The cost of each request by its id, in millionths of a millionth of a dollar."""
    requests: Sequence[tuple[int, Request]] | None = None
    """Its requests with their seq, if they are known already."""


class UnreadFile(msgspec.Struct, frozen=True):
    """A file from which no session could be read, and the reason."""

    agent: str
    home: str | None
    problem: Problem


def format_uid(uid: int) -> str:
    """Return the uid of a conversation as the tables have it."""
    return f"{uid & (1 << 64) - 1:016x}"


def month_of(at: datetime | None) -> str:
    """Return the month of a session that began at `at`, which is its partition."""
    return UNKNOWN if at is None else f"{at.year:04}-{at.month:02}"


_MOST_DOLLARS = Decimal(10) ** (MONEY_DIGITS - MONEY_SCALE) - 1
_SMALL = 1 << 31
_STEP = Decimal(1).scaleb(-MONEY_SCALE)


def round_dollars(cost: Decimal | None) -> Decimal | None:
    """Return an amount of money that fits the column."""
    return None if cost is None else min(cost, _MOST_DOLLARS).quantize(_STEP)


def picos_to_dollars(picos: int) -> Decimal:
    """Return the cost of a request as an amount that fits the column."""
    return min(Decimal(picos).scaleb(-MONEY_SCALE), _MOST_DOLLARS)


def fit_int32(number: int | None) -> int | None:
    """Return a number, or None if 32 bits cannot hold it."""
    return number if number is not None and -_SMALL <= number < _SMALL else None


def session_rows(source: RowSource) -> Iterator[Row]:
    """Yield the row of a session."""
    session = source.session
    project, counts, usage = session.project, session.counts, session.usage
    yield (
        session.native_id,
        session.kind,
        session.parent,
        project.native_key,
        project.hash,
        project.evidence,
        sorted({file.home for file in session.sources if file.home is not None}),
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
        *(clamp_figure(getattr(usage, name), LARGEST_INTEGER) for name in FIGURES),
        usage.estimated,
        round_dollars(session.cost_usd),
        [_file(file) for file in session.sources],
        sum(file.bytes for file in session.sources),
        session.coverage.records,
        session.coverage.opaque,
        len(session.problems),
    )


def _file(file: SourceFile) -> dict[str, object]:
    return {
        "home": file.home,
        "path": file.path,
        "format": file.format,
        "bytes": file.bytes,
        "state": file.state,
    }


def message_rows(source: RowSource) -> Iterator[Row]:
    """Yield a row for each entry of the timeline."""
    for seq, entry in enumerate(source.session.timeline):
        yield (seq, entry.id, *_about_entry(entry))


def _about_entry(entry: Entry) -> Row:
    if isinstance(entry, Event):
        text = entry.text or None
        return (None, entry.kind, entry.at, entry.fate, entry.own, False, None, None, 0, text, None, None)
    texts: list[str] = []
    thoughts: list[str] = []
    contexts: list[str] = []
    calls = 0
    for part in entry.parts:
        if isinstance(part, ToolCall):
            calls += 1
        elif isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, Thinking):
            thoughts.append(part.text)
        elif isinstance(part, Context) and part.call is None and part.text:
            contexts.append(part.text)  # the result of a call belongs to that call
    return (
        entry.role,
        None,
        entry.at,
        entry.fate,
        entry.own,
        entry.prompt is not None,
        entry.model,
        entry.usage.request if entry.usage else None,
        calls,
        entry.prompt if entry.prompt is not None else "\n".join(texts) or None,
        "\n".join(thoughts) or None,
        "\n".join(contexts) or None,
    )


def tool_call_rows(source: RowSource) -> Iterator[Row]:
    """Yield a row for each call."""
    for seq, place, message, call in iterate_calls(source):
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
            fit_int32(call.exit_code),
            call.at or message.at,
            clamp_figure(call.took_ms, LARGEST_INTEGER),
            message.fate,
            message.own,
            message.model,
            call.child,
            encode_tree(call.arguments).decode(),
            call.full_result if call.full_result is not None else call.result,
            call.error,
        )


def iterate_calls(source: RowSource) -> Iterator[tuple[int, int, Message, ToolCall]]:
    """Yield every call with the seq of its message, its index among the parts, and the message."""
    for seq, entry in enumerate(source.session.timeline):
        if isinstance(entry, Message):
            for place, part in enumerate(entry.parts):
                if isinstance(part, ToolCall):
                    yield seq, place, entry, part


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def request_rows(source: RowSource) -> Iterator[Row]:
    """Yield a row for each request of the session itself; a copy of a session has none."""
    if source.session.kind in COPY_KINDS:
        return
    began, ended = source.session.started_at, source.session.ended_at
    for seq, request in own_requests(source.session) if source.requests is None else source.requests:
        at = None if request.at is None else _EPOCH + timedelta(microseconds=request.at)
        picos = source.picos.get(request.name)
        cost = None if picos is None else picos_to_dollars(picos)
        yield (seq, request.name, request.model, at, *request.figures, request.estimated, cost, began, ended)


def file_rows(source: RowSource) -> Iterator[Row]:
    """Yield a row for each file that a call names, once for each call."""
    for seq, place, message, call in iterate_calls(source):
        for path in dict.fromkeys(touched_paths(call)):
            yield (
                seq,
                place,
                call.id,
                path,
                path_in_project(path, source.session.project.root),
                call.canonical,
                call.canonical in EDITING_TOOLS,
                call.status,
                call.at or message.at,
                message.fate,
                message.own,
            )


KINDS = {kind: kind.__struct_config__.tag for kind in get_args(AnyStep)}
"""The name of each type of event: looking it up in the type would take longer than everything else."""
_OF_CALLS, _WITH_TEXT = (ToolUse, ToolResult), (UserPrompt, AssistantText)


def event_rows(source: RowSource) -> Iterator[Row]:
    """Yield a row for each event."""
    for message, step in steps_with_messages(source.session, with_text=True):
        said_by = None if message is None else message.id
        yield (step.seq, KINDS[type(step)], step.at, step.at_derived, step.fate, said_by, *_about_event(step))


def _about_event(step: AnyStep) -> Row:
    """Return call, tool, canonical name, category, status and text. Checks calls first: most events are of calls."""
    if isinstance(step, _OF_CALLS):
        tool, status = step.tool, step.status if isinstance(step, ToolResult) else None
        return step.call_id, tool.name, tool.canonical, tool.category, status, None
    ended = step.status if isinstance(step, SessionEnd) else None
    text = step.text if isinstance(step, _WITH_TEXT) else None
    return None, None, None, None, ended, text


def problem_rows(source: RowSource) -> Iterator[Row]:
    """Yield a row for each problem of a session."""
    return map(_problem_row, source.session.problems)


def _problem_row(problem: Problem) -> Row:
    return problem.code, problem.severity, problem.message, problem.path, problem.line, problem.pointer


ROWS: dict[str, Callable[[RowSource], Iterator[Row]]] = {
    "sessions": session_rows,
    "messages": message_rows,
    "tool_calls": tool_call_rows,
    "requests": request_rows,
    "files_touched": file_rows,
    "events": event_rows,
    "problems": problem_rows,
}
"""The function that makes the rows of each table."""
assert ROWS.keys() == TABLES.keys()  # noqa: S101 - a missing table would go unnoticed


def table_rows(table: str, source: RowSource | UnreadFile, first: int = 0) -> Iterator[Row]:
    """Yield the rows of a table, from a column on; an unread file has a row in the table of problems only."""
    if isinstance(source, RowSource):
        rows = ROWS[table](source)
    else:
        rows = iter([_problem_row(source.problem)] if table == "problems" else [])
    common = _common(source)[first:]
    return (common + row for row in rows)


def _common(source: RowSource | UnreadFile) -> Row:
    """Return the columns that all tables begin with."""
    if isinstance(source, UnreadFile):
        return source.agent, UNKNOWN, source.home, None, None, None
    session = source.session
    home = session.sources[0].home if session.sources else None
    uid = format_uid(source.uid)
    return session.agent, month_of(session.started_at), home, session.project.root, session.key, uid
