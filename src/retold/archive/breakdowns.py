"""Sums by two things at once: hours of the week, tools of agents, projects over weeks."""

from __future__ import annotations

from retold.archive.conditions import Condition, clause
from retold.archive.reports import PROJECT, QUARTER

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.record import Store
    from retold.archive.reports import QuarterSpan

    Row = tuple[Any, ...]


def of_project(key: str | None) -> Condition:
    """Return the condition that a session is of one project, by what it is known by; None is that of none."""
    return Condition(f"{PROJECT} IS ?", key)


def named_model(table: str, model: str | None) -> Condition:
    """Return the condition that a request, or a sum, is of one model, by its whole name."""
    return Condition(f"{table}.model IS ?", model)


def with_model(model: str) -> Condition:
    """Return the condition that a session was held with a model, by its whole name."""
    asked = "EXISTS (SELECT 1 FROM models WHERE models.session = sessions.id AND models.model = ?)"
    return Condition(asked, model)


def hour_rows(record: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield weekday, from 0 for Monday, hour of the day, and requests: where nothing tells the time, nothing."""
    zone = "" if span.is_utc else ", 'localtime'"
    known = Condition("spent.quarter IS NOT NULL AND NOT spent.estimated")
    which, values = clause([*conditions, known, *span.conditions("spent.quarter")])
    return record.rows(
        "SELECT (substr(moment, 1, 1) + 6) % 7, substr(moment, 2) + 0, sum(requests) FROM ("  # noqa: S608 - values are bound
        f"SELECT strftime('%w%H', spent.quarter * {QUARTER}, 'unixepoch'{zone}) AS moment, sum(requests) AS requests"
        f" FROM spent JOIN sessions ON sessions.id = spent.session WHERE {which} GROUP BY spent.quarter"
        ") WHERE moment IS NOT NULL GROUP BY 1, 2",
        values,
    )


def tool_agent_rows(record: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield tools by agent: name, agent, kind, calls, errors, retries, timed calls, milliseconds, the slowest's."""
    which, values = clause([*conditions, *span.conditions("used.quarter")])
    return record.rows(
        "SELECT used.tool, sessions.agent, min(canonical), sum(calls), sum(errors), sum(retries), sum(timed),"  # noqa: S608 - values are bound
        " sum(took_ms), max(slowest_ms)"
        f" FROM used JOIN sessions ON sessions.id = used.session WHERE {which} GROUP BY 1, 2",
        values,
    )


def project_agent_rows(record: Store, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield how many sessions which agent had in which project."""
    which, values = clause(conditions)
    return record.rows(
        f"SELECT {PROJECT}, sessions.agent, count(*) FROM sessions WHERE {which} GROUP BY 1, 2 ORDER BY 3 DESC",  # noqa: S608 - values are bound
        values,
    )


def project_week_rows(record: Store, end: int, weeks: int, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield project, weeks before a quarter of an hour, and active milliseconds then."""
    quarters = 7 * 86_400 // QUARTER
    recent = Condition("worked.quarter < ? AND worked.quarter >= ?", end, end - weeks * quarters)
    which, values = clause([*conditions, recent])
    return record.rows(
        f"SELECT {PROJECT}, (? - 1 - worked.quarter) / {quarters}, sum(active_ms)"  # noqa: S608 - values are bound
        f" FROM worked JOIN sessions ON sessions.id = worked.session WHERE {which} GROUP BY 1, 2",
        [end, *values],
    )


def end_row(record: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Row:
    """Return the day of the first request of a time, and that of the last; None where nothing tells it."""
    zone = "" if span.is_utc else ", 'localtime'"
    which, values = clause([*conditions, *span.conditions("spent.quarter")])
    day = f"date({{}} * {QUARTER}, 'unixepoch'" + zone + ")"
    found = record.row(
        f"SELECT {day.format('min(spent.quarter)')}, {day.format('max(spent.quarter)')}"  # noqa: S608 - values are bound
        f" FROM spent JOIN sessions ON sessions.id = spent.session WHERE {which}",
        values,
    )
    return found or (None, None)


def project_rows(record: Store) -> Iterator[Row]:
    """Yield what each project is known by, its hash and the agent's own name for it; several rows of some."""
    return record.rows(
        f"SELECT {PROJECT}, hash, native_key FROM sessions WHERE kind <> 'subagent' GROUP BY 1, 2, 3"  # noqa: S608 - ours
    )


def model_rows(record: Store) -> Iterator[Row]:
    """Yield every model that was asked, the one that was asked most first."""
    return record.rows(
        "SELECT model FROM spent WHERE model IS NOT NULL GROUP BY 1 ORDER BY sum(requests) DESC, 1"
    )


def agent_rows(record: Store) -> Iterator[Row]:
    """Yield every agent that has a session."""
    return record.rows("SELECT DISTINCT agent FROM sessions ORDER BY 1")
