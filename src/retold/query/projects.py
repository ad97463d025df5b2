"""Projects side by side: what each cost, who worked there, and how it went over the last weeks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta

import msgspec

from retold.archive.queries.conditions import CONVERSATIONS
from retold.archive.queries.reports import QUARTER, newest_rows, project_agent_rows, project_week_rows
from retold.model.report import Line, Spend
from retold.query.dates import moment_of
from retold.query.narrowing import key_of
from retold.query.places import ProjectPlace
from retold.query.question import UNKNOWN, ReportQuery
from retold.query.stats import brief_lines

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
