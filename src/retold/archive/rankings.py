"""The few sessions that are told of many: the newest, those that cost most, and those in which tools failed."""

from __future__ import annotations

from retold.archive.conditions import NOT_BELOW_OTHERS, Condition, clause, of_tool
from retold.archive.reports import QUARTER

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.record import Store
    from retold.archive.reports import QuarterSpan

    Row = tuple[Any, ...]

_AT = "coalesce(tool_calls.at, messages.at, unixepoch(sessions.started_at) * 1000000)"


def newest_rows(record: Store, conditions: Iterable[Condition], limit: int) -> Iterator[Row]:
    """Yield the sessions that ended last, without subagents: key, agent, title, end, messages, tokens, estimated."""
    which, values = clause([*conditions, NOT_BELOW_OTHERS])
    return record.rows(
        "SELECT key, agent, title, ended_at, messages, total, estimated FROM sessions"  # noqa: S608 - values are bound
        f" WHERE {which} ORDER BY ended_at DESC, key DESC LIMIT ?",
        [*values, limit],
    )


def dearest_rows(
    record: Store, span: QuarterSpan, conditions: Iterable[Condition], limit: int
) -> Iterator[Row]:
    """Yield the sessions that cost most: key, agent, title, end, requests, tokens, money in two parts."""
    which, values = clause([*conditions, *span.conditions("spent.quarter"), Condition("NOT spent.estimated")])
    return record.rows(
        "SELECT sessions.key, sessions.agent, sessions.title, sessions.ended_at, sum(requests), sum(spent.total),"  # noqa: S608 - values are bound
        " sum(micros), sum(spent.picos)"
        f" FROM spent JOIN sessions ON sessions.id = spent.session WHERE {which}"
        " GROUP BY sessions.id ORDER BY 7 DESC, 8 DESC, 6 DESC, 1 LIMIT ?",
        [*values, limit],
    )


def failing_rows(
    record: Store, span: QuarterSpan, conditions: Iterable[Condition], limit: int
) -> Iterator[Row]:
    """Yield the sessions in which tools failed most: key, agent, title, end, calls, errors."""
    which, values = clause([*conditions, *span.conditions("used.quarter")])
    return record.rows(
        "SELECT sessions.key, sessions.agent, sessions.title, sessions.ended_at, sum(calls), sum(errors)"  # noqa: S608 - values are bound
        f" FROM used JOIN sessions ON sessions.id = used.session WHERE {which}"
        " GROUP BY sessions.id HAVING sum(errors) > 0 ORDER BY 6 DESC, 4 DESC, 1 LIMIT ?",
        [*values, limit],
    )


def failure_rows(
    record: Store, span: QuarterSpan, conditions: Iterable[Condition], limit: int
) -> Iterator[Row]:
    """Yield the latest calls that failed: key, agent, title, place, tool, time, milliseconds."""
    failed = Condition("tool_calls.status = 'error' AND NOT messages.copied")
    quarters = span.conditions(f"{_AT} / {QUARTER * 1_000_000}")
    which, values = clause([*conditions, failed, *quarters])
    return record.rows(
        f"SELECT sessions.key, sessions.agent, sessions.title, seq, tool_calls.tool, {_AT}, took_ms"  # noqa: S608 - values are bound
        " FROM tool_calls JOIN messages USING (session, seq) JOIN sessions ON sessions.id = session"
        f" WHERE {which} ORDER BY 6 DESC, 1, seq DESC, tool_calls.place DESC LIMIT ?",
        [*values, limit],
    )


def called(tool: str) -> Condition:
    """Return the condition that a call is of a tool, by its exact name or by its kind."""
    return of_tool(tool, "tool_calls.tool", canonical="tool_calls.canonical", is_exact=True)
