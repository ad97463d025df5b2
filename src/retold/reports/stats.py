"""Report queries, and the lines of a report by day, week, month, model, project, agent, tool or session."""

from __future__ import annotations

from retold.archive.ledger import PRICED_BY, PRICED_ON
from retold.archive.queries.listing import IS_LISTED, register_functions, tool_condition
from retold.archive.queries.reports import (
    QUARTER,
    TIMES,
    QuarterSpan,
    activity_conditions,
    count_sessions_with_problem,
    load_activity_sums,
    load_most_changed_files,
    load_request_sums,
    load_requests,
    load_session_titles,
    load_tool_sums,
    load_tools,
    load_total_sums,
    load_unpriced_models,
    model_condition,
)
from retold.model import FIGURES
from retold.model.report import Basis, Line, Overview, ReportRequest, Spend, ToolFigures, TouchedFile
from retold.projects.matching import UNKNOWN, matches_project, path_in_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from retold.archive.queries.listing import Condition
    from retold.archive.store import Store
    from retold.search.filters import Filters


GROUPINGS = (*TIMES, "model", "project", "agent", "tool", "session")
UNDER_RECORDED = "tokens-unrecorded"
"""The problem of sessions that recorded fewer tokens than they used."""
_MOST_FILES, _MOST_FILE_ROWS = 5, 200
"""Files in an overview, and the rows they are summed from: one file may have several paths."""
_PICOS_IN_MICRO = 1_000_000
_ID_LENGTH = 8


class ReportQuery:
    """The sessions, the time, and the models and tools that a report is about."""

    is_exact = False
    """Whether a tool's name means that tool alone, even if a kind of tools has the same name in lower case."""

    def __init__(
        self,
        store: Store,
        filters: Filters,
        span: QuarterSpan,
        model: str | None = None,
        tool: str | None = None,
    ) -> None:
        self.store, self.span = store, span
        register_functions(store.connection, matches_project)
        self.sessions = [*filters.sessions, IS_LISTED]
        """Conditions of sessions. Checkpoints and captures are copies of other sessions, so they cost nothing."""
        self._model, self._tool = model, tool

    @property
    def selects_calls(self) -> bool:
        """Whether the report counts only some of the sessions' tool calls."""
        return self._model is not None or self._tool is not None

    def of_requests(self, table: str) -> list[Condition]:
        """Return the conditions of requests, or of sums of requests."""
        if self._model is None:
            return self.sessions
        return [*self.sessions, model_condition(table, self._model)]

    def of_calls(self) -> list[Condition]:
        """Return the conditions of tool calls."""
        if self._tool is None:
            return self.of_requests("tool_sums")
        tool = tool_condition(
            self._tool, "tool_sums.tool", canonical="tool_sums.canonical", is_exact=self.is_exact
        )
        return [*self.of_requests("tool_sums"), tool]


def parse_span(since: str | None, until: str | None, *, is_utc: bool) -> QuarterSpan:
    """Return the time between two dates that a person typed; raises ValueError for anything else."""
    if since is None and until is None:
        return QuarterSpan(is_utc=is_utc)
    from retold.search.dates import now, parse_since, parse_until

    at = now()
    begin = None if since is None else int(parse_since(since, at, is_utc=is_utc).timestamp() // QUARTER)
    end = None if until is None else -int(-parse_until(until, at, is_utc=is_utc).timestamp() // QUARTER)
    return QuarterSpan(begin, end, is_utc=is_utc)


def report_lines(query: ReportQuery, by: str) -> list[Line]:
    """Return the lines of a report: times in their order, everything else by cost."""
    if by == "tool":
        return _tool_lines(query)
    lines = _request_lines(query, by)
    if by != "model":
        _add_activity(query, by, lines)
    if by == "model" or query.selects_calls:
        _add_calls(query, by, lines)
    if by in TIMES:
        return sorted(lines.values(), key=lambda line: (line.of == UNKNOWN, line.of))
    return sorted(lines.values(), key=_by_cost)


def report_overview(query: ReportQuery, zone: str) -> Overview:
    """Return the sums of a period by day, model, project, tool and file."""
    return Overview(
        (report_lines(query, "all") or [Line("", Spend(), Spend())])[0],
        report_basis(query, zone),
        days=report_brief_lines(query, "day"),
        models=report_brief_lines(query, "model"),
        projects=report_brief_lines(query, "project"),
        tools=report_tools(query),
        files=_most_changed_files(query),
    )


def report_basis(query: ReportQuery, zone: str) -> Basis:
    """Return the prices behind the figures of a report, and the gaps in them."""
    store = query.store
    unpriced = load_unpriced_models(store, query.span, query.of_requests("request_sums"))
    at_work = [*query.sessions, *activity_conditions(query.span)]
    return Basis(
        zone,
        prices=store.fact(PRICED_BY),
        priced_at=store.fact(PRICED_ON),
        unpriced={model or UNKNOWN: count for model, count in unpriced},
        under_recorded=dict(count_sessions_with_problem(store, UNDER_RECORDED, at_work)),
    )


def session_labels(query: ReportQuery, keys: Iterable[str]) -> dict[str, str]:
    """Return the labels of sessions by key: the start of the id, which `retold show` takes, and the title."""
    rows = load_session_titles(query.store, keys)
    return {key: f"{(native_id or '-')[:_ID_LENGTH]} {title or ''}".strip() for key, native_id, title in rows}


def _request_lines(query: ReportQuery, by: str) -> dict[str | None, Line]:
    lines: dict[str | None, Line] = {}
    for of, estimated, requests, unpriced, *sums in load_request_sums(
        query.store, by, query.span, query.of_requests("request_sums")
    ):
        *figures, micros, picos, sessions = sums
        spend = Spend(requests, dict(zip(FIGURES, figures, strict=True)), join_money(micros, picos), unpriced)
        line = _line(lines, of)
        _set_spend(line, spend, is_estimated=estimated)
        line.sessions = max(line.sessions or 0, sessions)
    return lines


def report_brief_lines(query: ReportQuery, by: str) -> list[Line]:
    """Return lines with requests, total tokens and money only, as charts need them."""
    lines: dict[str | None, Line] = {}
    for of, estimated, requests, unpriced, total, micros, picos in load_total_sums(
        query.store, by, query.span, query.of_requests("request_sums")
    ):
        figures = {**dict.fromkeys(FIGURES), "total": total}
        spend = Spend(requests, figures, join_money(micros, picos), unpriced)
        _set_spend(_line(lines, of), spend, is_estimated=estimated)
    return list(lines.values())


def join_money(micros: int | None, picos: int) -> int | None:
    """Return the picodollars of a sum kept in two parts; None if nothing in it has a price."""
    return None if micros is None else micros * _PICOS_IN_MICRO + picos


def _set_spend(line: Line, spend: Spend, *, is_estimated: int) -> None:
    if is_estimated:
        line.estimated = spend
    else:
        line.measured = spend


def _add_activity(query: ReportQuery, by: str, lines: dict[str | None, Line]) -> None:
    """Add sessions, prompts, time and calls to the lines. Requests that are counted alone have none."""
    for of, sessions, prompts, active_ms, compactions, *calls in load_activity_sums(
        query.store, by, query.span, query.sessions
    ):
        line = _line(lines, of)
        line.sessions, line.prompts, line.compactions = sessions, prompts, compactions
        line.active_seconds = active_ms // 1000
        line.tool_calls, line.tool_errors, line.tool_retries = calls


def _add_calls(query: ReportQuery, by: str, lines: dict[str | None, Line]) -> None:
    """Add only the calls that the query selects, or by the model that made them."""
    for line in lines.values():
        if line.tool_calls is not None:
            line.tool_calls = line.tool_errors = line.tool_retries = 0
    for of, *calls in load_tool_sums(query.store, by, query.span, query.of_calls()):
        line = _line(lines, of)
        line.tool_calls, line.tool_errors, line.tool_retries = calls


def _line(lines: dict[str | None, Line], of: str | None) -> Line:
    if of not in lines:
        lines[of] = Line(UNKNOWN if of is None else of, Spend(), Spend())
    return lines[of]


def _tool_lines(query: ReportQuery) -> list[Line]:
    rows = load_tools(query.store, query.span, query.of_calls(), has_sessions=True)
    lines = [
        Line(
            name, Spend(), Spend(), sessions=sessions, tool_calls=calls, tool_errors=errors, tool_retries=retries
        )
        for name, _, calls, errors, retries, _, _, _, sessions in rows
    ]  # fmt: skip
    return sorted(lines, key=lambda line: (-(line.tool_calls or 0), line.of))


def report_tools(query: ReportQuery) -> list[ToolFigures]:
    """Return the figures of each tool that was used."""
    return [
        ToolFigures(
            name,
            canonical,
            calls,
            errors=errors,
            retries=retries,
            timed=timed,
            seconds=None if took_ms is None else took_ms / 1000,
            slowest_seconds=None if slowest_ms is None else slowest_ms / 1000,
        )
        for name, canonical, calls, errors, retries, timed, took_ms, slowest_ms, _ in load_tools(
            query.store, query.span, query.of_calls()
        )
    ]


def _most_changed_files(query: ReportQuery) -> list[TouchedFile]:
    """Return the files with the most changes, by their paths in their projects."""
    files: dict[str, TouchedFile] = {}
    at_work = [*query.sessions, *activity_conditions(query.span)]
    for path, root, changes, sessions in load_most_changed_files(query.store, at_work, _MOST_FILE_ROWS):
        name = path_in_project(path, root)
        file = files.setdefault(name, TouchedFile(name, 0, 0))
        file.times += changes
        file.sessions = max(file.sessions or 0, sessions)
    return sorted(files.values(), key=lambda file: (-file.times, file.path))[:_MOST_FILES]


def _by_cost(line: Line) -> tuple[int, int, str]:
    spend = line.measured
    return (-(spend.picos or 0), -(spend.figures["total"] or 0), line.of)


def explain_requests(
    query: ReportQuery, by: str, page: tuple[int, int] = (-1, 0)
) -> Iterator[tuple[str, ReportRequest]]:
    """Yield each request behind the lines of a report: the line, the figures, and the products that make its price."""
    from datetime import UTC, datetime, timedelta

    from retold.archive.ledger import load_rates
    from retold.model.rates import decode_rates
    from retold.search.dates import to_local

    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    known = {model: decode_rates(text) for model, text in load_rates(query.store).items() if text}
    for of, session, message, agent, model, at, estimated, picos, *figures in load_requests(
        query.store, by, query.span, query.of_requests("requests"), page
    ):
        rates = None if picos is None else known.get(model)
        moment = None if at is None else epoch + timedelta(microseconds=at)
        request = ReportRequest(
            session,
            agent,
            dict(zip(FIGURES, figures, strict=True)),
            message=message,
            model=model,
            at=moment if moment is None or query.span.is_utc else to_local(moment),
            estimated=bool(estimated),
            picos=picos,
            parts=(None if rates is None else rates.charges(at, figures)) or (),
            over=0 if rates is None else rates.over(at, figures),
        )
        yield of or UNKNOWN, request


def explain_session_requests(store: Store, key: str) -> Iterator[ReportRequest]:
    """Yield the requests that a session itself made, in order, each with the products that make its price."""
    from retold.archive.queries.listing import key_condition
    from retold.search.filters import Filters

    filters = Filters()
    filters.sessions.append(key_condition(key))
    query = ReportQuery(store, filters, QuarterSpan())
    return (request for _, request in explain_requests(query, "session"))
