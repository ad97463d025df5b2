"""Sums over many sessions, by whatever they are asked for."""

from __future__ import annotations

from retold.archive.queries.conditions import NOT_BELOW_OTHERS, Condition, clause, of_tool
from retold.model.report import FIGURES

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.store import Store

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
