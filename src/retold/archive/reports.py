"""Sums over many sessions, by whatever they are asked for."""

from __future__ import annotations

from retold.archive.conditions import Condition, clause
from retold.model.report import FIGURES

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.record import Store

    Row = tuple[Any, ...]

QUARTER = 900
"""Seconds."""
TIMES = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
CONVERSATION = (
    "iif(sessions.kind = 'subagent' AND sessions.parent IS NOT NULL, sessions.parent, sessions.key)"
)
"""Whose work it is: a subagent's belongs to the conversation that called it."""
PROJECT = "coalesce(sessions.root, sessions.hash, sessions.native_key)"
"""What a project is known by."""
_MONEY = "sum(micros), sum(spent.picos)"
_OF_SESSIONS = {
    "all": "''",
    "agent": "sessions.agent",
    "project": PROJECT,
    "session": "sessions.key",
}


class QuarterSpan:
    """A time, in quarters of an hour since 1970, and in whose days it is counted."""

    __slots__ = ("is_utc", "since", "until")

    def __init__(self, since: int | None = None, until: int | None = None, *, is_utc: bool = False) -> None:
        self.since, self.until, self.is_utc = since, until, is_utc
        """The first quarter, and the first that is not meant any more."""

    def conditions(self, quarter: str) -> Iterator[Condition]:
        """Yield what holds of the quarters that are meant."""
        if self.since is not None:
            yield Condition(f"{quarter} >= ?", self.since)
        if self.until is not None:
            yield Condition(f"{quarter} < ?", self.until)

    def named(self, by: str, quarter: str) -> str:
        """Return the day, week or month of a quarter, as SQL."""
        zone = "" if self.is_utc else ", 'localtime'"
        return f"strftime('{TIMES[by]}', {quarter} * {QUARTER}, 'unixepoch'{zone})"


def of_model(table: str, model: str) -> Condition:
    """Return the condition that a request, or a sum, is of a model with this in its name."""
    return Condition(f"instr(lower({table}.model), lower(?))", model)


def at_work_in(span: QuarterSpan) -> list[Condition]:
    """Return the conditions that sessions were at work in a time: for what is told of whole sessions only."""
    told = []
    if span.since is not None:
        told.append(Condition("unixepoch(sessions.ended_at) >= ?", span.since * QUARTER))
    if span.until is not None:
        told.append(Condition("unixepoch(sessions.started_at) < ?", span.until * QUARTER))
    return told


def spent_rows(record: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield what was spent: of what, whether it is estimated, requests, unpriced, each figure, and money in two parts.

    At the end of a row: how many conversations spent it.
    """
    sums = ", ".join(f"sum(spent.{figure})" for figure in FIGURES)
    return _spent(record, by, span, conditions, f"{sums}, {_MONEY}, count(DISTINCT {CONVERSATION})")


def brief_rows(record: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield the same with but one figure, the total, and without conversations: what a picture needs."""
    return _spent(record, by, span, conditions, f"sum(spent.total), {_MONEY}")


def _spent(
    record: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition], sums: str
) -> Iterator[Row]:
    which, values = clause([*conditions, *span.conditions("spent.quarter")])
    return record.rows(
        f"SELECT {_of(by, span, 'spent')}, spent.estimated, sum(requests), sum(unpriced), {sums}"  # noqa: S608 - values are bound
        f" FROM spent JOIN sessions ON sessions.id = spent.session WHERE {which} GROUP BY 1, 2",
        values,
    )


def worked_rows(record: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield what was worked: of what, in how many conversations, prompts, milliseconds, compactions, calls, errors, retries.

    While a subagent works, so does the conversation that called it: the time counts there.
    """
    of = _of(by, span, "worked")
    active = "sum(active_ms)" if by == "session" else f"sum(iif({CONVERSATION} = sessions.key, active_ms, 0))"
    which, values = clause([*conditions, *span.conditions("worked.quarter")])
    return record.rows(
        f"SELECT {of}, count(DISTINCT {CONVERSATION}), sum(prompts),"  # noqa: S608 - values are bound
        f" {active}, sum(compactions),"
        " sum(calls), sum(errors), sum(retries)"
        f" FROM worked JOIN sessions ON sessions.id = worked.session WHERE {which} GROUP BY 1",
        values,
    )


def used_rows(record: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield what tools were used: of what, calls, errors, retries."""
    of = _of(by, span, "used")
    which, values = clause([*conditions, *span.conditions("used.quarter")])
    return record.rows(
        f"SELECT {of}, sum(calls), sum(errors), sum(retries)"  # noqa: S608 - values are bound
        f" FROM used JOIN sessions ON sessions.id = used.session WHERE {which} GROUP BY 1",
        values,
    )


def tool_rows(record: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield tools: name, kind, calls, errors, retries, timed calls, milliseconds, the slowest's, conversations."""
    which, values = clause([*conditions, *span.conditions("used.quarter")])
    return record.rows(
        "SELECT used.tool, min(canonical), sum(calls), sum(errors), sum(retries), sum(timed), sum(took_ms), max(slowest_ms),"  # noqa: S608 - values are bound
        f" count(DISTINCT {CONVERSATION})"
        f" FROM used JOIN sessions ON sessions.id = used.session WHERE {which} GROUP BY 1",
        values,
    )


def file_rows(record: Store, conditions: Iterable[Condition], limit: int) -> Iterator[Row]:
    """Yield the files that were changed most: path, the root of the project, calls, conversations."""
    which, values = clause([*conditions, Condition("files.changes > 0")])
    return record.rows(
        f"SELECT path, sessions.root, sum(changes), count(DISTINCT {CONVERSATION})"  # noqa: S608 - values are bound
        f" FROM files JOIN sessions ON sessions.id = files.session WHERE {which}"
        " GROUP BY 1, 2 ORDER BY 3 DESC, 4 DESC, 1 LIMIT ?",
        [*values, limit],
    )


def request_rows(
    record: Store,
    by: str,
    span: QuarterSpan,
    conditions: Iterable[Condition],
    page: tuple[int, int] = (-1, 0),
) -> Iterator[Row]:
    """Yield requests: of what, session, message, agent, model, time, estimated, money, each figure.

    Of many, so many as a page has, from the place at which it begins.
    """
    quarter = f"coalesce(requests.at, unixepoch(started_at) * 1000000) / {QUARTER * 1_000_000}"
    of = _OF_SESSIONS.get(by) or ("requests.model" if by == "model" else span.named(by, f"({quarter})"))
    which, values = clause([*conditions, Condition("requests.own"), *span.conditions(quarter)])
    figures = ", ".join(f"requests.{figure}" for figure in FIGURES)
    return record.rows(
        f"SELECT {of}, sessions.key, messages.id, sessions.agent, requests.model, requests.at, requests.estimated,"  # noqa: S608 - values are bound
        f" requests.picos, {figures}"
        " FROM requests JOIN sessions ON sessions.id = requests.session"
        " LEFT JOIN messages ON messages.session = requests.session AND messages.seq = requests.seq"
        f" WHERE {which} ORDER BY 1, requests.at, sessions.key, requests.seq LIMIT ? OFFSET ?",
        [*values, *page],
    )


def unpriced_rows(record: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield the models of measured requests that have no price, and how many those are."""
    chosen = [*conditions, *span.conditions("spent.quarter"), Condition("unpriced AND NOT spent.estimated")]
    which, values = clause(chosen)
    return record.rows(
        "SELECT spent.model, sum(unpriced) FROM spent JOIN sessions ON sessions.id = spent.session"  # noqa: S608 - values are bound
        f" WHERE {which} GROUP BY 1 ORDER BY 2 DESC, 1",
        values,
    )


def troubled_rows(record: Store, code: str, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield the agents in whose sessions a problem was found, and in how many."""
    which, values = clause([*conditions, Condition("problems.code = ?", code)])
    return record.rows(
        "SELECT sessions.agent, count(DISTINCT sessions.id)"  # noqa: S608 - values are bound
        f" FROM problems JOIN sessions ON sessions.id = problems.session WHERE {which} GROUP BY 1",
        values,
    )


def title_rows(record: Store, keys: Iterable[str]) -> Iterator[Row]:
    """Yield key, native id and title of sessions."""
    for key in keys:
        yield from record.rows("SELECT key, native_id, title FROM sessions WHERE key = ?", (key,))


def _of(by: str, span: QuarterSpan, table: str) -> str:
    if by in TIMES:
        return span.named(by, f"{table}.quarter")
    return _OF_SESSIONS.get(by) or f"{table}.{by}"
