"""Figures for pages: spend over time, costly sessions, tools, projects and changed files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec

from retold.archive.queries.listing import CONVERSATIONS, Condition
from retold.archive.queries.related import (
    load_changed_files,
    load_changed_paths,
    load_changers,
    path_end_condition,
    path_part_condition,
)
from retold.archive.queries.reports import (
    QUARTER,
    count_by_project_and_agent,
    exact_tool_condition,
    load_costliest_sessions,
    load_failed_calls,
    load_failing_sessions,
    load_first_and_last_day,
    load_hours,
    load_newest_sessions,
    load_project_weeks,
    load_tool_sums,
    load_tools_by_agent,
)
from retold.archive.store import Store
from retold.model.report import Line, Spend, ToolFigures
from retold.projects.matching import UNKNOWN, absolute_path, path_in_project
from retold.reports.selection import Period, choose_unit, project_key, split_period
from retold.reports.stats import ReportQuery, join_money, report_brief_lines, report_lines
from retold.search.dates import to_datetime
from retold.search.listing import ProjectSummary

_MOST_DAYS = 36_525
"""Days of the longest period. The time in a file may be wrong, and a chart cannot show more columns."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WEEKS = 26


class ReportSession(msgspec.Struct, frozen=True):
    """A session in a report."""

    key: str
    agent: str
    title: str | None
    ended_at: datetime | None


class CostlySession(ReportSession, frozen=True):
    """A session and its cost."""

    requests: int
    tokens: int | None
    picos: int | None


def report_total(query: ReportQuery) -> Line:
    """Return the sum of everything in one line."""
    return next(iter(report_lines(query, "all")), Line("", Spend(), Spend()))


def report_costly_sessions(query: ReportQuery, limit: int) -> list[CostlySession]:
    """Return the sessions that cost most."""
    return [
        CostlySession(key, agent, title, to_datetime(ended), requests, tokens, join_money(micros, picos))
        for key, agent, title, ended, requests, tokens, micros, picos in load_costliest_sessions(
            query.store, query.span, query.of_requests("request_sums"), limit
        )
    ]


def report_busy_hours(query: ReportQuery) -> dict[tuple[int, int], int]:
    """Return the number of requests by weekday, Monday being 0, and hour of the day."""
    rows = load_hours(query.store, query.span, query.of_requests("request_sums"))
    return {(weekday, hour): requests for weekday, hour, requests in rows}


def report_over_time(
    query: ReportQuery, period: Period, by: str = ""
) -> tuple[str, list[tuple[Period, Line]]]:
    """Return the unit that a period is split by, and a line for each part, also for those without requests."""
    bounded = bounded_period(query, period)
    by = choose_unit(bounded, by)
    lines = {line.of: line for line in report_brief_lines(query, by)}
    parts = split_period(bounded, by)
    return by, [(part, lines.get(name) or Line(name, Spend(), Spend())) for name, part in parts]


def bounded_period(query: ReportQuery, period: Period) -> Period:
    """Return a period with both ends, at most a lifetime long; a missing end is the first or last day with requests."""
    if period.since and period.until:
        return _at_most_a_lifetime(period.since, period.until)
    first, last = map(
        _parse_day, load_first_and_last_day(query.store, query.span, query.of_requests("request_sums"))
    )
    if first is None or last is None:
        return period
    last = min(last, max(date.today(), first))  # noqa: DTZ011 - the local day; a day to come is a wrong time in a file
    since = period.since or first
    return _at_most_a_lifetime(since, max(since, period.until or last))


def _at_most_a_lifetime(since: date, until: date) -> Period:
    return Period(max(since, until - timedelta(days=min(_MOST_DAYS, until.toordinal() - 1))), until)


def _parse_day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        return None


class UsedTool(msgspec.Struct, frozen=True):
    """A tool, and the number of its calls by agent."""

    tool: ToolFigures
    agents: dict[str, int]


class FailingSession(ReportSession, frozen=True):
    """A session in which tool calls failed."""

    calls: int
    errors: int


class FailedCall(msgspec.Struct, frozen=True):
    """A failed tool call, with its place in the timeline of its session."""

    key: str
    agent: str
    title: str | None
    seq: int
    tool: str
    at: datetime | None
    seconds: float | None


def report_used_tools(query: ReportQuery) -> list[UsedTool]:
    """Return the tools by number of calls, the most used first."""
    tools: dict[str, UsedTool] = {}
    for name, agent, canonical, calls, errors, retries, timed, took_ms, slowest_ms in load_tools_by_agent(
        query.store, query.span, query.of_calls()
    ):
        used = tools.setdefault(name, UsedTool(ToolFigures(name, canonical, 0, errors=0, retries=0), {}))
        used.agents[agent] = calls
        tool = used.tool
        tool.canonical = min(tool.canonical, canonical)
        tool.calls += calls
        tool.errors = (tool.errors or 0) + errors
        tool.retries = (tool.retries or 0) + retries
        tool.timed += timed
        if took_ms is not None:
            tool.seconds = (tool.seconds or 0) + took_ms / 1000
        if slowest_ms is not None:
            tool.slowest_seconds = max(tool.slowest_seconds or 0, slowest_ms / 1000)
    return sorted(tools.values(), key=lambda used: (-used.tool.calls, used.tool.name))


def report_calls_by(query: ReportQuery, by: str) -> dict[str, tuple[int, int]]:
    """Return the numbers of calls and of failed calls by day, week or month."""
    rows = load_tool_sums(query.store, by, query.span, query.of_calls())
    return {of: (calls, errors) for of, calls, errors, _ in rows if of is not None}


def report_failing_sessions(query: ReportQuery, limit: int) -> list[FailingSession]:
    """Return the sessions with the most failed calls."""
    rows = load_failing_sessions(query.store, query.span, query.of_calls(), limit)
    return [
        FailingSession(key, agent, title, to_datetime(ended), *counts)
        for key, agent, title, ended, *counts in rows
    ]


def report_failed_calls(query: ReportQuery, tool: str, limit: int) -> list[FailedCall]:
    """Return the latest failed calls of a tool; of all tools if the name is empty."""
    conditions = [*query.of_requests("messages"), *([exact_tool_condition(tool)] if tool else [])]
    rows = load_failed_calls(query.store, query.span, conditions, limit)
    return [
        FailedCall(key, agent, title, seq, name, _moment(at), None if took_ms is None else took_ms / 1000)
        for key, agent, title, seq, name, at, took_ms in rows
    ]


def _moment(at: int | None) -> datetime | None:
    try:
        return None if at is None else to_datetime((_EPOCH + timedelta(microseconds=at)).isoformat())
    except OverflowError:
        return None


class ProjectReport(msgspec.Struct, frozen=True):
    """A project with the figures by which projects are compared."""

    project: ProjectSummary
    key: str
    """The value that filters take for the project."""
    line: Line
    agents: dict[str, int]
    """The number of sessions by agent, the most first."""
    weeks: tuple[int, ...]
    """Seconds of work in each of the last weeks, the oldest first."""


class RecentSession(ReportSession, frozen=True):
    """A session of a project."""

    messages: int
    tokens: int | None
    estimated: bool


def report_newest_sessions(query: ReportQuery, limit: int) -> list[RecentSession]:
    """Return the sessions that ended last."""
    return [
        RecentSession(key, agent, title, to_datetime(ended), messages, tokens, bool(estimated))
        for key, agent, title, ended, messages, tokens, estimated in load_newest_sessions(
            query.store, query.sessions, limit
        )
    ]


def report_projects(
    query: ReportQuery, projects: Iterable[ProjectSummary], today: date
) -> list[ProjectReport]:
    """Return projects with their figures, in the order given."""
    lines = {line.of: line for line in report_brief_lines(query, "project")}
    agents: dict[str | None, dict[str, int]] = defaultdict(dict)
    for key, agent, sessions in count_by_project_and_agent(query.store, CONVERSATIONS):
        agents[key][agent] = sessions
    weeks = _weeks(query, today)
    return [
        ProjectReport(
            project,
            key or UNKNOWN,
            lines.get(key or UNKNOWN) or Line("", Spend(), Spend()),
            agents.get(key, {}),
            tuple(weeks[key]) if key in weeks else (0,) * WEEKS,
        )
        for project in projects
        for key in (project_key(project),)
    ]


def _weeks(query: ReportQuery, today: date) -> dict[str | None, list[int]]:
    """Return the seconds of work by project, in each of the weeks up to the end of today."""
    end = int(datetime.combine(today + timedelta(days=1), time()).timestamp()) // QUARTER
    weeks: dict[str | None, list[int]] = defaultdict(lambda: [0] * WEEKS)
    for key, weeks_ago, active_ms in load_project_weeks(query.store, end, WEEKS, query.sessions):
        weeks[key][WEEKS - 1 - weeks_ago] = active_ms // 1000
    return weeks


class FileActivity(msgspec.Struct, frozen=True):
    """A file, and the number of its changes."""

    path: str
    """The absolute path."""
    name: str
    """The project's name and the path in the project; the absolute path of a file outside."""
    changes: int
    """Calls that tried to change it."""
    sessions: int
    last_at: datetime | None


class ChangingSession(ReportSession, frozen=True):
    """A session that changed a file."""

    kind: str
    root: str | None
    changes: int


def report_changed_files(query: ReportQuery, part: str, limit: int, offset: int = 0) -> list[FileActivity]:
    """Return the files with a text in their paths, those with the most changes first."""
    conditions: list[Condition] = [*query.sessions, *([path_part_condition(part)] if part else [])]
    return [_file_activity(row) for row in load_changed_files(query.store, conditions, limit, offset)]


def _file_activity(row: Sequence[Any]) -> FileActivity:
    path, root, changes, sessions, last_at = row
    return FileActivity(path, path_in_project(path, root), changes, sessions, to_datetime(last_at))


def find_files(query: ReportQuery, typed: str, limit: int) -> list[FileActivity]:
    """Return the changed files that a typed path means: the path itself, else the path in a project, else its end."""
    end = typed.strip().replace("\\", "/").removeprefix("./").rstrip("/")
    if not end:
        return []
    conditions = [*query.sessions, path_end_condition(end.lstrip("/"))]
    rows = list(load_changed_files(query.store, conditions, limit))
    same = [row for row in rows if row[0] == end]
    in_project = [row for row in rows if row[1] is not None and row[0] == absolute_path(end, row[1])]
    return [_file_activity(row) for row in same or in_project or rows]


def report_changed_names(store: Store, key: str) -> list[str]:
    """Return the files that a session and its subagents changed, by their paths in its project, the most changed first."""
    return [path_in_project(path, root) for path, root, _ in load_changed_paths(store, key)]


def report_changing_sessions(
    query: ReportQuery, path: str, limit: int, offset: int = 0
) -> list[ChangingSession]:
    """Return the sessions that changed a file, the newest first."""
    rows = load_changers(query.store, path, query.sessions, limit, offset)
    return [
        ChangingSession(key, agent, title, to_datetime(ended), kind, root, changes)
        for key, agent, title, kind, ended, root, changes in rows
    ]
