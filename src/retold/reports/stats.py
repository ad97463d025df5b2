"""What it cost and how it went, by day, week, month, model, project, agent, tool or session."""

from __future__ import annotations

from retold.archive.ledger import PRICED_BY, PRICED_ON
from retold.archive.queries.reports import (
    TIMES,
    at_work_in,
    brief_rows,
    file_rows,
    spent_rows,
    title_rows,
    tool_rows,
    troubled_rows,
    unpriced_rows,
    used_rows,
    worked_rows,
)
from retold.model.report import FIGURES, Basis, Line, Overview, Spend, ToolFigures, Touched
from retold.projects.matching import in_project
from retold.search.report_query import UNKNOWN

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable

    from retold.search.report_query import ReportQuery


UNDER_RECORDED = "tokens-unrecorded"
"""The problem of sessions that recorded less than they spent."""
_FILES, _LOOKED_AT = 5, 200
"""How many files are told, and of how many rows: one file may be called by several names."""
_MICROS = 1_000_000
_ID = 8


def lines(question: ReportQuery, by: str) -> list[Line]:
    """Return a line for each thing that is asked by: times in their order, all else by what it cost."""
    if by == "tool":
        return _tool_lines(question)
    found = _spent(question, by)
    if by != "model":
        _add_work(question, by, found)
    if by == "model" or question.chooses_calls:
        _add_calls(question, by, found)
    return _ordered(found.values(), by)


def overview(question: ReportQuery, zone: str) -> Overview:
    """Return all that is told of a period at once."""
    total = (lines(question, "all") or [Line("", Spend(), Spend())])[0]
    return Overview(
        total,
        basis(question, zone),
        days=brief_lines(question, "day"),
        models=brief_lines(question, "model"),
        projects=brief_lines(question, "project"),
        tools=tools(question),
        files=_touched(question),
    )


def basis(question: ReportQuery, zone: str) -> Basis:
    """Return what the figures rest on."""
    record = question.record
    unpriced = unpriced_rows(record, question.span, question.of_requests("spent"))
    troubled = troubled_rows(record, UNDER_RECORDED, [*question.sessions, *at_work_in(question.span)])
    return Basis(
        zone,
        prices=record.fact(PRICED_BY),
        priced_at=record.fact(PRICED_ON),
        unpriced={model or UNKNOWN: count for model, count in unpriced},
        under_recorded=dict(troubled),
    )


def titles(question: ReportQuery, keys: Iterable[str]) -> dict[str, str]:
    """Return what sessions are called: the start of their id, by which they can be shown, and their title."""
    told = title_rows(question.record, keys)
    return {key: f"{(native_id or '-')[:_ID]} {title or ''}".strip() for key, native_id, title in told}


def _spent(question: ReportQuery, by: str) -> dict[str | None, Line]:
    found: dict[str | None, Line] = {}
    for of, estimated, requests, unpriced, *rest in spent_rows(
        question.record, by, question.span, question.of_requests("spent")
    ):
        *figures, micros, picos, sessions = rest
        spend = Spend(requests, dict(zip(FIGURES, figures, strict=True)), money_of(micros, picos), unpriced)
        line = _line(found, of)
        _put(line, spend, is_estimated=estimated)
        line.sessions = max(line.sessions or 0, sessions)
    return found


def brief_lines(question: ReportQuery, by: str) -> list[Line]:
    """Return lines that say what a picture needs."""
    found: dict[str | None, Line] = {}
    for of, estimated, requests, unpriced, total, micros, picos in brief_rows(
        question.record, by, question.span, question.of_requests("spent")
    ):
        figures = {**dict.fromkeys(FIGURES), "total": total}
        _put(
            _line(found, of),
            Spend(requests, figures, money_of(micros, picos), unpriced),
            is_estimated=estimated,
        )
    return list(found.values())


def money_of(micros: int | None, picos: int) -> int | None:
    """Return money that is summed in two parts; None where nothing has a price."""
    return None if micros is None else micros * _MICROS + picos


def _put(line: Line, spend: Spend, *, is_estimated: int) -> None:
    if is_estimated:
        line.estimated = spend
    else:
        line.measured = spend


def _add_work(question: ReportQuery, by: str, found: dict[str | None, Line]) -> None:
    """Add what was done; nothing where only requests were counted."""
    for of, sessions, prompts, active_ms, compactions, *calls in worked_rows(
        question.record, by, question.span, question.sessions
    ):
        line = _line(found, of)
        line.sessions, line.prompts, line.compactions = sessions, prompts, compactions
        line.active_seconds = active_ms // 1000
        line.tool_calls, line.tool_errors, line.tool_retries = calls


def _add_calls(question: ReportQuery, by: str, found: dict[str | None, Line]) -> None:
    """Add the calls that are meant, where not all are, or where the model that made them matters."""
    for line in found.values():
        if line.tool_calls is not None:
            line.tool_calls = line.tool_errors = line.tool_retries = 0
    for of, *calls in used_rows(question.record, by, question.span, question.of_calls()):
        line = _line(found, of)
        line.tool_calls, line.tool_errors, line.tool_retries = calls


def _line(found: dict[str | None, Line], of: str | None) -> Line:
    if of not in found:
        found[of] = Line(UNKNOWN if of is None else of, Spend(), Spend())
    return found[of]


def _tool_lines(question: ReportQuery) -> list[Line]:
    rows = tool_rows(question.record, question.span, question.of_calls())
    found = [
        Line(
            name, Spend(), Spend(), sessions=sessions, tool_calls=calls, tool_errors=errors, tool_retries=retries
        )
        for name, _, calls, errors, retries, _, _, _, sessions in rows
    ]  # fmt: skip
    return sorted(found, key=lambda line: (-(line.tool_calls or 0), line.of))


def tools(question: ReportQuery) -> list[ToolFigures]:
    """Return the tools that were used."""
    rows = tool_rows(question.record, question.span, question.of_calls())
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
        for name, canonical, calls, errors, retries, timed, took_ms, slowest_ms, _ in rows
    ]


def _touched(question: ReportQuery) -> list[Touched]:
    """Return the files that were changed most, by their place in their project."""
    found: dict[str, Touched] = {}
    chosen = [*question.sessions, *at_work_in(question.span)]
    for path, root, changes, sessions in file_rows(question.record, chosen, _LOOKED_AT):
        name = in_project(path, root)
        known = found.setdefault(name, Touched(name, 0, 0))
        known.times += changes
        known.sessions = max(known.sessions or 0, sessions)
    return sorted(found.values(), key=lambda file: (-file.times, file.path))[:_FILES]


def _ordered(found: Iterable[Line], by: str) -> list[Line]:
    if by in TIMES:
        return sorted(found, key=lambda line: (line.of == UNKNOWN, line.of))
    return sorted(found, key=_by_cost)


def _by_cost(line: Line) -> tuple[int, int, str]:
    spend = line.measured
    return (-(spend.picos or 0), -(spend.figures["total"] or 0), line.of)
