"""The time that figures are of: some days up to today, or between two dates; what was before it, and its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta

import msgspec

from retold.archive.queries.conditions import OF_SESSIONS, Condition, of_key
from retold.archive.queries.reports import (
    QuarterSpan,
    agent_rows,
    model_rows,
    named_model,
    of_project,
    project_rows,
    with_model,
)
from retold.archive.store import Store
from retold.search.filters import Filters
from retold.search.listing import ProjectPlace
from retold.search.report_query import UNKNOWN, ReportQuery, span

USUAL = "7d"
NAMES = (USUAL, "30d", "month", "year", "all")
_DAYS = {"7d": 7, "30d": 30, "year": 365}
_FEW, _MANY = 62, 400
"""So many days have a column each; more than those have one for each week, and still more for each month."""
_LOOKED_AT = {"day": 400, "week": 7 * 400, "month": 31 * 1200}
"""So many days can be divided by days, weeks or months, if somebody wants that."""
_FIRST, _LAST = date(1971, 1, 1), date(2199, 12, 31)
"""Other days are nobody's: no zone's clock goes wrong between these."""


class Period(msgspec.Struct, frozen=True):
    """From the beginning of one day to the end of another, both of this machine's zone; None has no limit."""

    since: date | None = None
    until: date | None = None
    name: str = ""
    """Of `NAMES`, where it was chosen by one."""

    @property
    def span(self) -> QuarterSpan:
        """The same as reports take it."""
        return span(_text(self.since), _text(self.until), is_utc=False)

    @property
    def days(self) -> int | None:
        """How many days it has."""
        return None if self.since is None or self.until is None else (self.until - self.since).days + 1

    def before(self) -> Period | None:
        """Return as many days, just before; None where there is no beginning."""
        if self.since is None or self.days is None or self.since - _FIRST < timedelta(days=self.days):
            return None
        return Period(self.since - timedelta(days=self.days), self.since - timedelta(days=1))


def chosen(name: str, since: str, until: str, today: date) -> Period:
    """Return the period that somebody chose: by dates, else by its name; what is neither is the usual one."""
    begin, end = _day(since), _day(until)
    if not begin and not end:
        return by_name(name, today)
    told = Period(begin, end) if not begin or not end else Period(min(begin, end), max(begin, end))
    known = (by_name(one, today) for one in NAMES)
    return next((one for one in known if (one.since, one.until) == (told.since, told.until)), told)


def by_name(name: str, today: date) -> Period:
    """Return the period of a name, of which today is the last day."""
    if name == "all":
        return Period(name=name)
    if name == "month":
        return Period(today.replace(day=1), today, name)
    known = name if name in _DAYS else USUAL
    return Period(today - timedelta(days=_DAYS[known] - 1), today, known)


def unit(period: Period, wanted: str = "") -> str:
    """Return by what a period is divided, `day`, `week` or `month`: as is wanted, where its parts can be looked at."""
    days = period.days
    if days is not None and days <= _LOOKED_AT.get(wanted, 0):
        return wanted
    if days is None or days > _MANY:
        return "month"
    return "day" if days <= _FEW else "week"


def parts(period: Period, by: str) -> Iterator[tuple[str, Period]]:
    """Yield every day, week or month of a period that has both ends, by the name that reports give it."""
    if period.since is None or period.until is None:
        return
    begin = period.since
    while begin <= period.until:
        end = min(_end(begin, by), period.until)
        yield named(begin, by), Period(begin, end)
        begin = end + timedelta(days=1)


def named(day: date, by: str) -> str:
    """Return what a report calls the day, week or month of a day."""
    return f"{day:{ {'day': '%Y-%m-%d', 'week': '%G-W%V', 'month': '%Y-%m'}[by] }}"


def _end(day: date, by: str) -> date:
    if by == "week":
        return day + timedelta(days=6 - day.weekday())
    if by == "month":
        return (day.replace(day=1) + timedelta(days=32)).replace(day=1) - timedelta(days=1)
    return day


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return min(max(day, _FIRST), _LAST)


class Choices(msgspec.Struct, frozen=True):
    """All that can be chosen from."""

    agents: tuple[str, ...]
    models: tuple[str, ...]
    projects: Mapping[str, str | None]
    """What each is known by, by all that it may be asked for: its root, its hash, the agent's own name for it.

    None is the project of sessions of which nothing tells where they were.
    """


class ReportFilters(msgspec.Struct, frozen=True):
    """What was chosen: an empty text is all."""

    agent: str = ""
    project: str = ""
    model: str = ""
    tool: str = ""
    session: str = ""


class _Exact(ReportQuery):
    """A question in which a model is meant by its whole name, so that a figure and what it is made of are the same."""

    is_exact = True

    def of_requests(self, table: str) -> list[Condition]:
        """Return what must hold of requests, or of sums of them."""
        if self._model is None:
            return self.sessions
        return [*self.sessions, named_model(table, None if self._model == UNKNOWN else self._model)]


def choices(record: Store) -> Choices:
    """Return what an archive has to choose from."""
    projects: dict[str, str | None] = {}
    rows = list(project_rows(record))
    for key, *others in rows:
        projects |= {name: key for name in others if name}
    projects |= {key or UNKNOWN: key for key, *_ in rows}  # what one is known by is no other
    agents = tuple(agent for (agent,) in agent_rows(record))
    return Choices(agents, tuple(model for (model,) in model_rows(record)), projects)


def narrowed(record: Store, choice: ReportFilters, known: Choices, span: QuarterSpan) -> ReportQuery:
    """Return the question that a choice makes."""
    wanted = Filters()
    if choice.agent:
        # The address of a page may name an agent that does not exist: no session is of it.
        wanted.sessions.append(Condition(OF_SESSIONS["agent"], choice.agent))
    if choice.project:
        if choice.project in known.projects:
            wanted.sessions.append(of_project(known.projects[choice.project]))
        else:
            wanted.add("project", choice.project)
    if choice.model and choice.model != UNKNOWN:
        wanted.sessions.append(with_model(choice.model))
    if choice.session:
        wanted.sessions.append(of_key(choice.session))
    return _Exact(record, wanted, span, choice.model or None, choice.tool or None)


def key_of(place: ProjectPlace) -> str | None:
    """Return what a project is known by in reports; None for that of sessions of which nothing tells where they were."""
    return place.root or place.hash or next(iter(place.native_keys), None)


def is_called(place: ProjectPlace, key: str | None) -> bool:
    """Tell whether a project is the one that is known by this."""
    names = [name for name in (place.root, place.hash, *place.native_keys) if name]
    return key in names if key else not names
