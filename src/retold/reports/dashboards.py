"""What a period cost at a glance: its sums beside those of the time before, the dearest sessions, the hours of the week."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec

from retold.archive.queries.conditions import CONVERSATIONS, Condition
from retold.archive.queries.related import changed_rows, changer_rows, paths_changed, with_end, with_part
from retold.archive.queries.reports import (
    QUARTER,
    called,
    dearest_rows,
    end_row,
    failing_rows,
    failure_rows,
    hour_rows,
    newest_rows,
    project_agent_rows,
    project_week_rows,
    tool_agent_rows,
    used_rows,
)
from retold.archive.store import Store
from retold.model.report import Line, Spend, ToolFigures
from retold.projects.matching import in_project, whole_path
from retold.reports.selection import Period, key_of, parts, unit
from retold.reports.stats import brief_lines, lines, money_of
from retold.search.dates import moment_of
from retold.search.listing import ProjectPlace
from retold.search.report_query import UNKNOWN, ReportQuery

_LONGEST = 36_525
"""Days: more columns nobody can look at, whatever a file says when it was written."""


class Costly(msgspec.Struct, frozen=True):
    """A session by what it cost."""

    key: str
    agent: str
    title: str | None
    ended_at: datetime | None
    requests: int
    tokens: int | None
    picos: int | None


def total(question: ReportQuery) -> Line:
    """Return all of it in one line."""
    return next(iter(lines(question, "all")), Line("", Spend(), Spend()))


def dearest(question: ReportQuery, limit: int) -> list[Costly]:
    """Return the sessions that cost most."""
    rows = dearest_rows(question.record, question.span, question.of_requests("spent"), limit)
    return [
        Costly(
            key,
            agent,
            title,
            moment_of(ended),
            requests,
            tokens,
            money_of(micros, picos),
        )
        for key, agent, title, ended, requests, tokens, micros, picos in rows
    ]


def busy_hours(question: ReportQuery) -> dict[tuple[int, int], int]:
    """Return how many requests were made, by weekday, from 0 for Monday, and hour of the day."""
    rows = hour_rows(question.record, question.span, question.of_requests("spent"))
    return {(weekday, hour): requests for weekday, hour, requests in rows}


def over_time(question: ReportQuery, period: Period, by: str = "") -> tuple[str, list[tuple[Period, Line]]]:
    """Return by what a period is divided, and a line for each of its parts, also for those without work."""
    ends = with_ends(question, period)
    by = unit(ends, by)
    found = {line.of: line for line in brief_lines(question, by)}
    return by, [(part, found.get(of) or Line(of, Spend(), Spend())) for of, part in parts(ends, by)]


def with_ends(question: ReportQuery, period: Period) -> Period:
    """Return a period with both its ends: where it has none, the first day of work, and the last; a lifetime at most."""
    if period.since and period.until:
        return _lifetime(period.since, period.until)
    told = end_row(question.record, question.span, question.of_requests("spent"))
    first, last = map(_day, told)
    if first is None or last is None:
        return period
    # What a file says of days to come says nothing of them.
    last = min(last, max(date.today(), first))  # noqa: DTZ011 - the day here
    since = period.since or first
    return _lifetime(since, max(since, period.until or last))


def _lifetime(since: date, until: date) -> Period:
    return Period(max(since, until - timedelta(days=min(_LONGEST, until.toordinal() - 1))), until)


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        return None


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


WEEKS = 26


class Portrait(msgspec.Struct, frozen=True):
    """A project with what there is to compare."""

    place: ProjectPlace
    key: str
    """By which it can be asked for."""
    line: Line
    agents: dict[str, int]
    """How many sessions were whose, the most first."""
    weeks: tuple[int, ...]
    """Seconds of work in each of the last weeks, the oldest first."""


class Recent(msgspec.Struct, frozen=True):
    """A session of a project."""

    key: str
    agent: str
    title: str | None
    ended_at: datetime | None
    messages: int
    tokens: int | None
    estimated: bool


def newest(question: ReportQuery, limit: int) -> list[Recent]:
    """Return the sessions that ended last."""
    return [
        Recent(key, agent, title, moment_of(ended), messages, tokens, bool(estimated))
        for key, agent, title, ended, messages, tokens, estimated in newest_rows(
            question.record, question.sessions, limit
        )
    ]


def portraits(question: ReportQuery, found: Iterable[ProjectPlace], today: date) -> list[Portrait]:
    """Return projects in the order in which they come."""
    lines = {line.of: line for line in brief_lines(question, "project")}
    agents: dict[str | None, dict[str, int]] = defaultdict(dict)
    for key, agent, sessions in project_agent_rows(question.record, CONVERSATIONS):
        agents[key][agent] = sessions
    weeks = _weeks(question, today)
    nothing = (0,) * WEEKS
    return [
        Portrait(
            place,
            key_of(place) or UNKNOWN,
            lines.get(key_of(place) or UNKNOWN) or Line("", Spend(), Spend()),
            agents.get(key_of(place), {}),
            weeks.get(key_of(place), nothing),
        )
        for place in found
    ]


def _weeks(question: ReportQuery, today: date) -> dict[str | None, tuple[int, ...]]:
    """Return the seconds of work in each of the weeks up to the end of today, by project."""
    end = int(datetime.combine(today + timedelta(days=1), time()).timestamp()) // QUARTER
    found: dict[str | None, list[int]] = defaultdict(lambda: [0] * WEEKS)
    for key, before, active_ms in project_week_rows(question.record, end, WEEKS, question.sessions):
        found[key][WEEKS - 1 - before] = active_ms // 1000
    return {key: tuple(seconds) for key, seconds in found.items()}


class Changed(msgspec.Struct, frozen=True):
    """A file, and how often it was changed."""

    path: str
    """From the root of all."""
    name: str
    """By the name of its project and its place there, where it lies in one."""
    changes: int
    """Calls that were to change it."""
    sessions: int
    last_at: datetime | None


class Changer(msgspec.Struct, frozen=True):
    """A session that changed a file."""

    key: str
    agent: str
    title: str | None
    kind: str
    ended_at: datetime | None
    root: str | None
    changes: int


def changed(question: ReportQuery, part: str, limit: int, offset: int = 0) -> list[Changed]:
    """Return the files that were changed most, of those with a text in their paths."""
    conditions: list[Condition] = [*question.sessions, *([with_part(part)] if part else [])]
    rows = changed_rows(question.record, conditions, limit, offset)
    return [_changed(row) for row in rows]


def _changed(row: Sequence[Any]) -> Changed:
    path, root, changes, sessions, last_at = row
    return Changed(path, in_project(path, root), changes, sessions, moment_of(last_at))


def files_meant(question: ReportQuery, typed: str, limit: int) -> list[Changed]:
    """Return the changed files that a path may mean: itself, else the one at that place in its project, else by its end."""
    end = typed.strip().replace("\\", "/").removeprefix("./").rstrip("/")
    rows = list(
        changed_rows(question.record, [*question.sessions, with_end(end.lstrip("/"))], limit) if end else ()
    )
    itself = [row for row in rows if row[0] == end]
    there = [row for row in rows if row[1] is not None and row[0] == whole_path(end, row[1])]
    return [_changed(row) for row in itself or there or rows]


def names_changed(record: Store, key: str) -> list[str]:
    """Return the files that a session and its subagents changed, by their places in its project; the most changed first."""
    return [in_project(path, root) for path, root, _ in paths_changed(record, key)]


def changers(question: ReportQuery, path: str, limit: int, offset: int = 0) -> list[Changer]:
    """Return the sessions that changed a file, the newest first."""
    rows = changer_rows(question.record, path, question.sessions, limit, offset)
    return [
        Changer(key, agent, title, kind, moment_of(ended), root, changes)
        for key, agent, title, kind, ended, root, changes in rows
    ]
