"""A report as a table: a line for each day, model, project or whatever else work is counted by."""

from __future__ import annotations

from retold.export.amounts import UNKNOWN, count, money, share, span
from retold.export.footnotes import basis_notes, price_notes
from retold.export.grid import GridColumn, GridRow, grid
from retold.export.names import NAMELESS, project_names
from retold.export.table import short_number
from retold.model.report import Line, Spend, plus, summed

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from retold.export.grid import Pieces
    from retold.model.report import Basis, ToolFigures

TOTAL = "total"
ESTIMATED = "estimated, and not in the figures above"
_PROJECT, _SESSION, _TOOL = "project", "session", "tool"
SPENT = (
    GridColumn("requests", 3),
    GridColumn("sessions", 6),
    GridColumn("input", 5),
    GridColumn("cached", 7, is_rare=True),
    GridColumn("written", 12, is_rare=True),
    GridColumn("output", 4),
    GridColumn("reasoning", 8, is_rare=True),
    GridColumn("tokens", 1),
    GridColumn("active", 9),
    GridColumn("calls", 10),
    GridColumn("errors", 11),
    GridColumn("cost", 0),
)
USED = (
    GridColumn("calls", 0),
    GridColumn("errors", 1),
    GridColumn("retries", 3),
    GridColumn("average", 5),
    GridColumn("slowest", 4),
    GridColumn("in all", 6),
)


def table(  # noqa: PLR0913 - what a line does not hold itself
    lines: Sequence[Line],
    by: str,
    columns: int,
    *,
    total: Line | None = None,
    basis: Basis | None = None,
    titles: Mapping[str, str] | None = None,
    tools: Mapping[str, ToolFigures] | None = None,
) -> Iterator[Pieces]:
    """Yield a report line by line, in pieces with their styles, and under it what it rests on.

    Sessions and times can only be summed by whoever counted them: `total` has them, and without it they are unknown.
    `titles` are those of sessions, `tools` the times of tools, both by what a line is `of`.
    """
    total = total or total_of(lines)
    names = names_of(lines, by, titles or {})
    if by == _TOOL:
        yield from grid(by, USED, list(_used(lines, names, total, tools or {})), columns)
        return
    yield from grid(by, SPENT, list(_spent(lines, names, total)), columns)
    notes = [
        *price_notes(total.measured, basis, columns),
        *(basis_notes(basis, total.estimated, columns) if basis else ()),
    ]
    if notes:
        yield []
        yield from notes


def total_of(lines: Sequence[Line]) -> Line:
    """Return the sum of what can be summed: a session may stand in several lines."""
    total = Line(TOTAL, summed(line.measured for line in lines), summed(line.estimated for line in lines))
    for line in lines:
        total.tool_calls = plus(total.tool_calls, line.tool_calls)
        total.tool_errors = plus(total.tool_errors, line.tool_errors)
        total.tool_retries = plus(total.tool_retries, line.tool_retries)
    return total


def names_of(lines: Sequence[Line], by: str, titles: Mapping[str, str]) -> dict[str, str]:
    """Return what a line is called, by what it is of."""
    if by == _PROJECT:
        return project_names(line.of for line in lines)
    return {line.of: titles.get(line.of, "") or line.of or NAMELESS for line in lines}


def weighs_cost(spends: Sequence[Spend]) -> bool:
    """Tell whether bars are of money; of tokens, where nothing has a price."""
    return any(spend.picos for spend in spends)


def weight(spend: Spend, *, of_cost: bool) -> int | None:
    """Return what a bar is as long as."""
    return spend.picos if of_cost else spend.figures["total"]


def cost(spend: Spend) -> str:
    """Return what it cost, with a + where that is not all."""
    return money(spend.picos) + ("+" if spend.unpriced and spend.picos is not None else "")


def _spent(lines: Sequence[Line], names: Mapping[str, str], total: Line) -> Iterator[GridRow]:
    of_cost = weighs_cost([line.measured for line in lines])
    for line in lines:
        yield GridRow(names[line.of], _cells(line), weight(line.measured, of_cost=of_cost))
    yield GridRow(TOTAL, _cells(total), style="title")
    if total.estimated.requests:
        yield GridRow(ESTIMATED, (), style="faint")
        for line in lines:
            if line.estimated.requests:
                yield GridRow(names[line.of], _guesses(line.estimated), style="faint")
        yield GridRow(TOTAL, _guesses(total.estimated), style="faint")


def _cells(line: Line) -> list[str]:
    return [
        count(line.measured.requests),
        count(line.sessions),
        *_tokens(line.measured),
        span(line.active_seconds),
        count(line.tool_calls),
        errors(line.tool_errors, line.tool_calls),
        cost(line.measured),
    ]


def _tokens(spend: Spend) -> list[str]:
    named = ("input", "cached", "cache_write", "output", "reasoning", "total")
    return [short_number(spend.figures[name]) for name in named]


def _guesses(spend: Spend) -> list[str]:
    tokens = map(_guess, _tokens(spend))
    return [count(spend.requests), "", *tokens, "", "", "", _guess(cost(spend))]


def _guess(told: str) -> str:
    return told if told == UNKNOWN else f"~{told}"


def _used(
    lines: Sequence[Line], names: Mapping[str, str], total: Line, tools: Mapping[str, ToolFigures]
) -> Iterator[GridRow]:
    for line in lines:
        tool = tools.get(line.of)
        seconds, timed = (tool.seconds, tool.timed) if tool else (None, 0)
        slowest = tool.slowest_seconds if tool else None
        yield GridRow(names[line.of], [*_calls(line), *_took(seconds, timed, slowest)], line.tool_calls)
    yield GridRow(TOTAL, [*_calls(total), *_took_in_all(list(tools.values()))], style="title")


def _calls(line: Line) -> tuple[str, str, str]:
    return count(line.tool_calls), errors(line.tool_errors, line.tool_calls), count(line.tool_retries)


def _took(seconds: float | None, timed: int, slowest: float | None) -> tuple[str, str, str]:
    average = seconds / timed if seconds is not None and timed else None
    return span(average), span(slowest), span(seconds)


def _took_in_all(tools: Sequence[ToolFigures]) -> tuple[str, str, str]:
    known = [tool.seconds for tool in tools if tool.seconds is not None]
    slowest = [tool.slowest_seconds for tool in tools if tool.slowest_seconds is not None]
    return _took(sum(known) if known else None, sum(tool.timed for tool in tools), max(slowest, default=None))


def errors(failed: int | None, calls: int | None) -> str:
    """Return how many calls failed, and how many of a hundred."""
    return f"{count(failed)} ({share(failed, calls)})" if failed and calls else count(failed)
