"""Sums over many sessions for reports, by day, agent, model, project, tool or session."""

from __future__ import annotations

from retold.archive.queries.listing import NOT_BELOW_OTHERS, Condition, join_conditions, tool_condition
from retold.model import FIGURES

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.store import Store

    Row = tuple[Any, ...]


QUARTER = 900
"""Seconds in a quarter of an hour."""
TIMES = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
CONVERSATION = (
    "iif(sessions.kind = 'subagent' AND sessions.parent IS NOT NULL, sessions.parent, sessions.key)"
)
"""SQL for the conversation that a session counts for: a subagent's is its parent."""
PROJECT = "coalesce(sessions.root, sessions.hash, sessions.native_key)"
"""SQL for what identifies a project."""
_MONEY = "sum(micros), sum(request_sums.picos)"
_GROUPINGS = {
    "all": "''",
    "agent": "sessions.agent",
    "project": PROJECT,
    "session": "sessions.key",
}


class QuarterSpan:
    """A time span, from quarter `since` up to but not including quarter `until` since 1970, and the zone of its days."""

    __slots__ = ("is_utc", "since", "until")

    def __init__(self, since: int | None = None, until: int | None = None, *, is_utc: bool = False) -> None:
        self.since, self.until, self.is_utc = since, until, is_utc

    def conditions(self, quarter: str) -> Iterator[Condition]:
        """Yield the conditions that a quarter is in the span."""
        if self.since is not None:
            yield Condition(f"{quarter} >= ?", self.since)
        if self.until is not None:
            yield Condition(f"{quarter} < ?", self.until)

    def format_sql(self, by: str, quarter: str) -> str:
        """Return SQL for the day, week or month of a quarter."""
        zone = "" if self.is_utc else ", 'localtime'"
        return f"strftime('{TIMES[by]}', {quarter} * {QUARTER}, 'unixepoch'{zone})"


def model_condition(table: str, model: str) -> Condition:
    """Return the condition that the model of a row contains a text."""
    return Condition(f"instr(lower({table}.model), lower(?))", model)


def activity_conditions(span: QuarterSpan) -> list[Condition]:
    """Return the conditions that a session was active in a span, for reports on whole sessions."""
    conditions = []
    if span.since is not None:
        conditions.append(Condition("unixepoch(sessions.ended_at) >= ?", span.since * QUARTER))
    if span.until is not None:
        conditions.append(Condition("unixepoch(sessions.started_at) < ?", span.until * QUARTER))
    return conditions


def load_request_sums(
    store: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition]
) -> Iterator[Row]:
    """Yield sums of requests: group, whether estimated, requests, unpriced, each figure, money in two parts, and conversations."""
    sums = ", ".join(f"sum(request_sums.{figure})" for figure in FIGURES)
    return _load_sums(store, by, span, conditions, f"{sums}, {_MONEY}, count(DISTINCT {CONVERSATION})")


def load_total_sums(
    store: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition]
) -> Iterator[Row]:
    """Yield the same with the total as the only figure, and without conversations."""
    return _load_sums(store, by, span, conditions, f"sum(request_sums.total), {_MONEY}")


def _load_sums(
    store: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition], sums: str
) -> Iterator[Row]:
    which, values = join_conditions([*conditions, *span.conditions("request_sums.quarter")])
    return store.rows(
        f"SELECT {_grouping(by, span, 'request_sums')}, request_sums.estimated, sum(requests), sum(unpriced), {sums}"  # noqa: S608 - values are bound
        f" FROM request_sums JOIN sessions ON sessions.id = request_sums.session WHERE {which} GROUP BY 1, 2",
        values,
    )


def load_activity_sums(
    store: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition]
) -> Iterator[Row]:
    """Yield sums of activity: group, conversations, prompts, milliseconds, compactions, calls, errors, retries.

    While a subagent works, so does the conversation that called it: the time counts there.
    """
    of = _grouping(by, span, "activity_sums")
    active = "sum(active_ms)" if by == "session" else f"sum(iif({CONVERSATION} = sessions.key, active_ms, 0))"
    which, values = join_conditions([*conditions, *span.conditions("activity_sums.quarter")])
    return store.rows(
        f"SELECT {of}, count(DISTINCT {CONVERSATION}), sum(prompts),"  # noqa: S608 - values are bound
        f" {active}, sum(compactions),"
        " sum(calls), sum(errors), sum(retries)"
        f" FROM activity_sums JOIN sessions ON sessions.id = activity_sums.session WHERE {which} GROUP BY 1",
        values,
    )


def load_tool_sums(
    store: Store, by: str, span: QuarterSpan, conditions: Iterable[Condition]
) -> Iterator[Row]:
    """Yield sums of calls: group, calls, errors, retries."""
    of = _grouping(by, span, "tool_sums")
    which, values = join_conditions([*conditions, *span.conditions("tool_sums.quarter")])
    return store.rows(
        f"SELECT {of}, sum(calls), sum(errors), sum(retries)"  # noqa: S608 - values are bound
        f" FROM tool_sums JOIN sessions ON sessions.id = tool_sums.session WHERE {which} GROUP BY 1",
        values,
    )


def load_tools(
    store: Store, span: QuarterSpan, conditions: Iterable[Condition], *, has_sessions: bool = False
) -> Iterator[Row]:
    """Yield tools: name, kind, calls, errors, retries, timed calls, milliseconds, the slowest's, and conversations if needed.

    Counting conversations takes longer than all sums.
    """
    sessions = f"count(DISTINCT {CONVERSATION})" if has_sessions else "NULL"
    which, values = join_conditions([*conditions, *span.conditions("tool_sums.quarter")])
    return store.rows(
        "SELECT tool_sums.tool, min(canonical), sum(calls), sum(errors), sum(retries), sum(timed), sum(took_ms), max(slowest_ms),"  # noqa: S608 - values are bound
        f" {sessions} FROM tool_sums JOIN sessions ON sessions.id = tool_sums.session WHERE {which} GROUP BY 1",
        values,
    )


def load_most_changed_files(store: Store, conditions: Iterable[Condition], limit: int) -> Iterator[Row]:
    """Yield the files with most changes: path, root of the project, calls, conversations."""
    which, values = join_conditions([*conditions, Condition("files.changes > 0")])
    return store.rows(
        f"SELECT path, sessions.root, sum(changes), count(DISTINCT {CONVERSATION})"  # noqa: S608 - values are bound
        f" FROM files JOIN sessions ON sessions.id = files.session WHERE {which}"
        " GROUP BY 1, 2 ORDER BY 3 DESC, 4 DESC, 1 LIMIT ?",
        [*values, limit],
    )


def load_requests(
    store: Store,
    by: str,
    span: QuarterSpan,
    conditions: Iterable[Condition],
    page: tuple[int, int] = (-1, 0),
) -> Iterator[Row]:
    """Yield a page of requests: group, session, message, agent, model, time, estimated, money, each figure.

    The page is a limit and an offset.
    """
    quarter = f"coalesce(requests.at, unixepoch(started_at) * 1000000) / {QUARTER * 1_000_000}"
    of = _GROUPINGS.get(by) or ("requests.model" if by == "model" else span.format_sql(by, f"({quarter})"))
    which, values = join_conditions([*conditions, Condition("requests.own"), *span.conditions(quarter)])
    figures = ", ".join(f"requests.{figure}" for figure in FIGURES)
    return store.rows(
        f"SELECT {of}, sessions.key, messages.id, sessions.agent, requests.model, requests.at, requests.estimated,"  # noqa: S608 - values are bound
        f" requests.picos, {figures}"
        " FROM requests JOIN sessions ON sessions.id = requests.session"
        " LEFT JOIN messages ON messages.session = requests.session AND messages.seq = requests.seq"
        f" WHERE {which} ORDER BY 1, requests.at, sessions.key, requests.seq LIMIT ? OFFSET ?",
        [*values, *page],
    )


def load_unpriced_models(store: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield the models of measured requests without a price, and the number of these requests."""
    chosen = [
        *conditions,
        *span.conditions("request_sums.quarter"),
        Condition("unpriced AND NOT request_sums.estimated"),
    ]
    which, values = join_conditions(chosen)
    return store.rows(
        "SELECT request_sums.model, sum(unpriced) FROM request_sums JOIN sessions ON sessions.id = request_sums.session"  # noqa: S608 - values are bound
        f" WHERE {which} GROUP BY 1 ORDER BY 2 DESC, 1",
        values,
    )


def count_sessions_with_problem(store: Store, code: str, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield agents, and in how many of their sessions a problem was found."""
    which, values = join_conditions([*conditions, Condition("problems.code = ?", code)])
    return store.rows(
        "SELECT sessions.agent, count(DISTINCT sessions.id)"  # noqa: S608 - values are bound
        f" FROM problems JOIN sessions ON sessions.id = problems.session WHERE {which} GROUP BY 1",
        values,
    )


def load_session_titles(store: Store, keys: Iterable[str]) -> Iterator[Row]:
    """Yield key, native id and title of sessions."""
    for key in keys:
        yield from store.rows("SELECT key, native_id, title FROM sessions WHERE key = ?", (key,))


def _grouping(by: str, span: QuarterSpan, table: str) -> str:
    if by in TIMES:
        return span.format_sql(by, f"{table}.quarter")
    return _GROUPINGS.get(by) or f"{table}.{by}"


def project_condition(key: str | None) -> Condition:
    """Return the condition that a session is of a project; None selects sessions without one."""
    return Condition(f"{PROJECT} IS ?", key)


def exact_model_condition(table: str, model: str | None) -> Condition:
    """Return the condition that the model of a row is exactly this one."""
    return Condition(f"{table}.model IS ?", model)


def session_model_condition(model: str) -> Condition:
    """Return the condition that a session used a model."""
    sql = "EXISTS (SELECT 1 FROM models WHERE models.session = sessions.id AND models.model = ?)"
    return Condition(sql, model)


def load_hours(store: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield weekday, 0 for Monday, hour of the day, and requests, of requests with a time."""
    zone = "" if span.is_utc else ", 'localtime'"
    known = Condition("request_sums.quarter IS NOT NULL AND NOT request_sums.estimated")
    which, values = join_conditions([*conditions, known, *span.conditions("request_sums.quarter")])
    return store.rows(
        "SELECT (substr(moment, 1, 1) + 6) % 7, substr(moment, 2) + 0, sum(requests) FROM ("  # noqa: S608 - values are bound
        f"SELECT strftime('%w%H', request_sums.quarter * {QUARTER}, 'unixepoch'{zone}) AS moment, sum(requests) AS requests"
        f" FROM request_sums JOIN sessions ON sessions.id = request_sums.session WHERE {which} GROUP BY request_sums.quarter"
        ") WHERE moment IS NOT NULL GROUP BY 1, 2",
        values,
    )


def load_tools_by_agent(store: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield tools by agent: name, agent, kind, calls, errors, retries, timed calls, milliseconds, the slowest's."""
    which, values = join_conditions([*conditions, *span.conditions("tool_sums.quarter")])
    return store.rows(
        "SELECT tool_sums.tool, sessions.agent, min(canonical), sum(calls), sum(errors), sum(retries), sum(timed),"  # noqa: S608 - values are bound
        " sum(took_ms), max(slowest_ms)"
        f" FROM tool_sums JOIN sessions ON sessions.id = tool_sums.session WHERE {which} GROUP BY 1, 2",
        values,
    )


def count_by_project_and_agent(store: Store, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield project, agent, and the number of sessions."""
    which, values = join_conditions(conditions)
    return store.rows(
        f"SELECT {PROJECT}, sessions.agent, count(*) FROM sessions WHERE {which} GROUP BY 1, 2 ORDER BY 3 DESC",  # noqa: S608 - values are bound
        values,
    )


def load_project_weeks(store: Store, end: int, weeks: int, conditions: Iterable[Condition]) -> Iterator[Row]:
    """Yield project, weeks before a quarter, and active milliseconds in that week."""
    quarters = 7 * 86_400 // QUARTER
    recent = Condition(
        "activity_sums.quarter < ? AND activity_sums.quarter >= ?", end, end - weeks * quarters
    )
    which, values = join_conditions([*conditions, recent])
    return store.rows(
        f"SELECT {PROJECT}, (? - 1 - activity_sums.quarter) / {quarters}, sum(active_ms)"  # noqa: S608 - values are bound
        f" FROM activity_sums JOIN sessions ON sessions.id = activity_sums.session WHERE {which} GROUP BY 1, 2",
        [end, *values],
    )


def load_first_and_last_day(store: Store, span: QuarterSpan, conditions: Iterable[Condition]) -> Row:
    """Return the days of the first and the last request in a span; None if there is none with a time."""
    zone = "" if span.is_utc else ", 'localtime'"
    which, values = join_conditions([*conditions, *span.conditions("request_sums.quarter")])
    day = f"date({{}} * {QUARTER}, 'unixepoch'" + zone + ")"
    found = store.row(
        f"SELECT {day.format('min(request_sums.quarter)')}, {day.format('max(request_sums.quarter)')}"  # noqa: S608 - values are bound
        f" FROM request_sums JOIN sessions ON sessions.id = request_sums.session WHERE {which}",
        values,
    )
    return found or (None, None)


def load_projects(store: Store) -> Iterator[Row]:
    """Yield identity, hash and native key of projects; some have several rows."""
    return store.rows(
        f"SELECT {PROJECT}, hash, native_key FROM sessions WHERE kind <> 'subagent' GROUP BY 1, 2, 3"  # noqa: S608 - ours
    )


def load_models(store: Store) -> Iterator[Row]:
    """Yield all models, the one with most requests first."""
    return store.rows(
        "SELECT model FROM request_sums WHERE model IS NOT NULL GROUP BY 1 ORDER BY sum(requests) DESC, 1"
    )


def load_agents(store: Store) -> Iterator[Row]:
    """Yield all agents with a session."""
    return store.rows("SELECT DISTINCT agent FROM sessions ORDER BY 1")


_AT = "coalesce(tool_calls.at, messages.at, unixepoch(sessions.started_at) * 1000000)"


def load_newest_sessions(store: Store, conditions: Iterable[Condition], limit: int) -> Iterator[Row]:
    """Yield the sessions that ended last, without subagents: key, agent, title, end, messages, tokens, estimated."""
    which, values = join_conditions([*conditions, NOT_BELOW_OTHERS])
    return store.rows(
        "SELECT key, agent, title, ended_at, messages, total, estimated FROM sessions"  # noqa: S608 - values are bound
        f" WHERE {which} ORDER BY ended_at DESC, key DESC LIMIT ?",
        [*values, limit],
    )


def load_costliest_sessions(
    store: Store, span: QuarterSpan, conditions: Iterable[Condition], limit: int
) -> Iterator[Row]:
    """Yield the sessions that cost most: key, agent, title, end, requests, tokens, money in two parts."""
    which, values = join_conditions(
        [*conditions, *span.conditions("request_sums.quarter"), Condition("NOT request_sums.estimated")]
    )
    return store.rows(
        "SELECT sessions.key, sessions.agent, sessions.title, sessions.ended_at, sum(requests), sum(request_sums.total),"  # noqa: S608 - values are bound
        " sum(micros), sum(request_sums.picos)"
        f" FROM request_sums JOIN sessions ON sessions.id = request_sums.session WHERE {which}"
        " GROUP BY sessions.id ORDER BY 7 DESC, 8 DESC, 6 DESC, 1 LIMIT ?",
        [*values, limit],
    )


def load_failing_sessions(
    store: Store, span: QuarterSpan, conditions: Iterable[Condition], limit: int
) -> Iterator[Row]:
    """Yield the sessions with most failed calls: key, agent, title, end, calls, errors."""
    which, values = join_conditions([*conditions, *span.conditions("tool_sums.quarter")])
    return store.rows(
        "SELECT sessions.key, sessions.agent, sessions.title, sessions.ended_at, sum(calls), sum(errors)"  # noqa: S608 - values are bound
        f" FROM tool_sums JOIN sessions ON sessions.id = tool_sums.session WHERE {which}"
        " GROUP BY sessions.id HAVING sum(errors) > 0 ORDER BY 6 DESC, 4 DESC, 1 LIMIT ?",
        [*values, limit],
    )


def load_failed_calls(
    store: Store, span: QuarterSpan, conditions: Iterable[Condition], limit: int
) -> Iterator[Row]:
    """Yield the latest failed calls: key, agent, title, seq, tool, time, milliseconds."""
    failed = Condition("tool_calls.status = 'error' AND NOT messages.copied")
    quarters = span.conditions(f"{_AT} / {QUARTER * 1_000_000}")
    which, values = join_conditions([*conditions, failed, *quarters])
    return store.rows(
        f"SELECT sessions.key, sessions.agent, sessions.title, seq, tool_calls.tool, {_AT}, took_ms"  # noqa: S608 - values are bound
        " FROM tool_calls JOIN messages USING (session, seq) JOIN sessions ON sessions.id = session"
        f" WHERE {which} ORDER BY 6 DESC, 1, seq DESC, tool_calls.position DESC LIMIT ?",
        [*values, limit],
    )


def exact_tool_condition(tool: str) -> Condition:
    """Return the condition that a call is of a tool, by its exact name, or of a kind of tools."""
    return tool_condition(tool, "tool_calls.tool", canonical="tool_calls.canonical", is_exact=True)
