"""How tools did: each over all its calls and by agent, and where it failed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from retold.archive.queries.reports import called, failing_rows, failure_rows, tool_agent_rows, used_rows
from retold.model.report import ToolFigures
from retold.query.dates import moment_of
from retold.query.question import ReportQuery

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


class Used(msgspec.Struct, frozen=True):
    """A tool, and how many of its calls were whose."""

    tool: ToolFigures
    agents: dict[str, int]


class Failing(msgspec.Struct, frozen=True):
    """A session in which a tool failed."""

    key: str
    agent: str
    title: str | None
    ended_at: datetime | None
    calls: int
    errors: int


class FailedCall(msgspec.Struct, frozen=True):
    """A call that failed, and its place in the session's timeline."""

    key: str
    agent: str
    title: str | None
    seq: int
    tool: str
    at: datetime | None
    seconds: float | None


def used(question: ReportQuery) -> list[Used]:
    """Return the tools that were used, the one that was used most first."""
    found: dict[str, Used] = {}
    for name, agent, canonical, calls, errors, retries, timed, took_ms, slowest_ms in tool_agent_rows(
        question.record, question.span, question.of_calls()
    ):
        one = found.setdefault(name, Used(ToolFigures(name, canonical, 0, errors=0, retries=0), {}))
        one.agents[agent] = calls
        _add(one.tool, (calls, errors, retries, timed), took_ms, slowest_ms)
        one.tool.canonical = min(one.tool.canonical, canonical)
    return sorted(found.values(), key=lambda one: (-one.tool.calls, one.tool.name))


def _add(
    tool: ToolFigures, counts: tuple[int, int, int, int], took_ms: int | None, slowest_ms: int | None
) -> None:
    calls, errors, retries, timed = counts
    tool.calls += calls
    tool.errors = (tool.errors or 0) + errors
    tool.retries = (tool.retries or 0) + retries
    tool.timed += timed
    if took_ms is not None:
        tool.seconds = (tool.seconds or 0) + took_ms / 1000
    if slowest_ms is not None:
        tool.slowest_seconds = max(tool.slowest_seconds or 0, slowest_ms / 1000)


def calls_by(question: ReportQuery, by: str) -> dict[str, tuple[int, int]]:
    """Return how many calls there were, and how many of them failed, by day, week or month."""
    rows = used_rows(question.record, by, question.span, question.of_calls())
    return {of: (calls, errors) for of, calls, errors, _ in rows if of is not None}


def failing(question: ReportQuery, limit: int) -> list[Failing]:
    """Return the sessions in which tools failed most."""
    rows = failing_rows(question.record, question.span, question.of_calls(), limit)
    return [
        Failing(key, agent, title, moment_of(ended), *counts) for key, agent, title, ended, *counts in rows
    ]


def failures(question: ReportQuery, tool: str, limit: int) -> list[FailedCall]:
    """Return the latest calls of a tool that failed; of all tools, if it has no name."""
    conditions = [*question.of_requests("messages"), *([called(tool)] if tool else [])]
    rows = failure_rows(question.record, question.span, conditions, limit)
    return [
        FailedCall(key, agent, title, seq, name, _moment(at), None if took_ms is None else took_ms / 1000)
        for key, agent, title, seq, name, at, took_ms in rows
    ]


def _moment(at: int | None) -> datetime | None:
    try:
        return None if at is None else moment_of((_BEGIN + timedelta(microseconds=at)).isoformat())
    except OverflowError:
        return None
