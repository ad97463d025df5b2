"""The period and the filters of a report, as a page's address has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

import msgspec

from retold.archive.queries.listing import OF_SESSIONS, Condition, key_condition
from retold.archive.queries.reports import (
    QuarterSpan,
    exact_model_condition,
    load_agents,
    load_models,
    load_projects,
    project_condition,
    session_model_condition,
)
from retold.archive.store import Store
from retold.projects.matching import UNKNOWN
from retold.reports.stats import ReportQuery, parse_span
from retold.search.filters import Filters
from retold.search.listing import ProjectSummary

DEFAULT_PERIOD = "7d"
PERIODS = (DEFAULT_PERIOD, "30d", "month", "year", "all")
_DAYS = {"7d": 7, "30d": 30, "year": 365}
_MOST_BY_DAY, _MOST_BY_WEEK = 62, 400
"""Days of the longest period that is split by day, and by week, if nobody chose a unit."""
_MOST_DAYS = {"day": 400, "week": 7 * 400, "month": 31 * 1200}
"""Days of the longest period that can be split by a unit."""
_FIRST, _LAST = date(1971, 1, 1), date(2199, 12, 31)
"""The days that can be chosen. Clocks of every zone work between them."""


class Period(msgspec.Struct, frozen=True):
    """From the start of one day to the end of another, in this machine's zone; None is no limit."""

    since: date | None = None
    until: date | None = None
    name: str = ""
    """One of `PERIODS`, or empty."""

    @property
    def span(self) -> QuarterSpan:
        """The period as a report query takes it."""
        since, until = (None if day is None else day.isoformat() for day in (self.since, self.until))
        return parse_span(since, until, is_utc=False)

    @property
    def days(self) -> int | None:
        """The number of days."""
        return None if self.since is None or self.until is None else (self.until - self.since).days + 1

    def before(self) -> Period | None:
        """Return the period of the same length just before; None if this one has no start."""
        if self.since is None or self.days is None or self.since - _FIRST < timedelta(days=self.days):
            return None
        return Period(self.since - timedelta(days=self.days), self.since - timedelta(days=1))


def parse_period(name: str, since: str, until: str, today: date) -> Period:
    """Return the period between two dates, else the one with the name, else the default."""
    begin, end = _parse_day(since), _parse_day(until)
    if not begin and not end:
        return named_period(name, today)
    period = Period(begin, end) if not begin or not end else Period(min(begin, end), max(begin, end))
    named = (named_period(one, today) for one in PERIODS)
    return next((one for one in named if (one.since, one.until) == (period.since, period.until)), period)


def named_period(name: str, today: date) -> Period:
    """Return the period with a name that ends today; the default for a name that is unknown."""
    if name == "all":
        return Period(name=name)
    if name == "month":
        return Period(today.replace(day=1), today, name)
    known = name if name in _DAYS else DEFAULT_PERIOD
    return Period(today - timedelta(days=_DAYS[known] - 1), today, known)


def choose_unit(period: Period, preferred: str = "") -> str:
    """Return `day`, `week` or `month`: the preferred unit if the period is short enough for it, else one that fits."""
    days = period.days
    if days is not None and days <= _MOST_DAYS.get(preferred, 0):
        return preferred
    if days is None or days > _MOST_BY_WEEK:
        return "month"
    return "day" if days <= _MOST_BY_DAY else "week"


def split_period(period: Period, by: str) -> Iterator[tuple[str, Period]]:
    """Yield every day, week or month of a period that has both ends, with the name of its report line."""
    if period.since is None or period.until is None:
        return
    begin = period.since
    while begin <= period.until:
        end = min(_end(begin, by), period.until)
        yield f"{begin:{ {'day': '%Y-%m-%d', 'week': '%G-W%V', 'month': '%Y-%m'}[by] }}", Period(begin, end)
        begin = end + timedelta(days=1)


def _end(day: date, by: str) -> date:
    if by == "week":
        return day + timedelta(days=6 - day.weekday())
    if by == "month":
        return (day.replace(day=1) + timedelta(days=32)).replace(day=1) - timedelta(days=1)
    return day


def _parse_day(text: str) -> date | None:
    try:
        return min(max(date.fromisoformat(text), _FIRST), _LAST)
    except ValueError:
        return None


class ReportChoices(msgspec.Struct, frozen=True):
    """The agents, models and projects that a report can be filtered by."""

    agents: tuple[str, ...]
    models: tuple[str, ...]
    projects: Mapping[str, str | None]
    """The key of each project by every value that means it: its root, its hash, the agent's own name for it.

    None is the key of sessions without a known project.
    """


class ReportFilters(msgspec.Struct, frozen=True):
    """The filters of a report; an empty text filters nothing."""

    agent: str = ""
    project: str = ""
    model: str = ""
    tool: str = ""
    session: str = ""


class _ExactQuery(ReportQuery):
    """A query by the whole name of a model, so that a figure and the page behind it agree."""

    is_exact = True

    def of_requests(self, table: str) -> list[Condition]:
        """Return the conditions of requests, or of sums of requests."""
        if self._model is None:
            return self.sessions
        return [*self.sessions, exact_model_condition(table, None if self._model == UNKNOWN else self._model)]


def load_choices(store: Store) -> ReportChoices:
    """Return the filter values that an archive has."""
    projects: dict[str, str | None] = {}
    rows = list(load_projects(store))
    for key, *others in rows:
        projects |= {name: key for name in others if name}
    projects |= {key or UNKNOWN: key for key, *_ in rows}  # a key wins over another project's hash or name
    agents = tuple(agent for (agent,) in load_agents(store))
    return ReportChoices(agents, tuple(model for (model,) in load_models(store)), projects)


def make_query(
    store: Store, filters: ReportFilters, choices: ReportChoices, span: QuarterSpan
) -> ReportQuery:
    """Return the query for filters and a time."""
    chosen = Filters()
    if filters.agent:
        # A page's address may name an agent that does not exist: no session matches.
        chosen.sessions.append(Condition(OF_SESSIONS["agent"], filters.agent))
    if filters.project:
        if filters.project in choices.projects:
            chosen.sessions.append(project_condition(choices.projects[filters.project]))
        else:
            chosen.add("project", filters.project)
    if filters.model and filters.model != UNKNOWN:
        chosen.sessions.append(session_model_condition(filters.model))
    if filters.session:
        chosen.sessions.append(key_condition(filters.session))
    return _ExactQuery(store, chosen, span, filters.model or None, filters.tool or None)


def project_key(project: ProjectSummary) -> str | None:
    """Return the key of a project in reports; None for sessions without a known project."""
    return project.root or project.hash or next(iter(project.native_keys), None)


def has_key(project: ProjectSummary, key: str | None) -> bool:
    """Return whether a value means a project: its root, its hash or the agent's own name for it."""
    names = [name for name in (project.root, project.hash, *project.native_keys) if name]
    return key in names if key else not names
