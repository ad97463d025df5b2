"""What a period cost at a glance: its sums beside those of the time before, the dearest sessions, the hours of the week."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import msgspec

from retold.archive.queries.reports import dearest_rows, end_row, hour_rows
from retold.model.report import Line, Spend
from retold.query.dates import moment_of
from retold.query.period import Period, parts, unit
from retold.query.question import ReportQuery
from retold.query.stats import brief_lines, lines, money_of

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
