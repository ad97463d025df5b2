"""A period at a glance: what was spent, when, on what, and how it went."""

from __future__ import annotations

from datetime import date

from retold.export.amounts import count, money, share, span
from retold.export.flow import JOINT, flowed
from retold.export.footnotes import basis_notes, note, price_notes
from retold.export.grid import GridColumn, GridRow, grid
from retold.export.heatmap import heat_map
from retold.export.names import clean, shortened
from retold.export.report import cost, errors, names_of, weighs_cost, weight
from retold.export.table import short_number
from retold.export.weeks import week_line
from retold.model.report import Line, Spend, summed

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from retold.export.grid import Pieces
    from retold.model.report import Overview, ToolFigures, Touched

MODELS, PROJECTS, TOOLS, FILES = 8, 5, 8, 5
"""How many of each are shown."""
FEW_DAYS = 14
"""So many days are shown as bars: a calendar of them would be next to empty."""
_NAME = 24
_SHARES = (GridColumn("requests", 3), GridColumn("tokens", 1), GridColumn("cost", 0))
_USED = (GridColumn("calls", 0), GridColumn("errors", 1), GridColumn("retries", 4), GridColumn("slowest", 3))
_TOUCHED = (GridColumn("times", 0), GridColumn("sessions", 3))


def overview(told: Overview, columns: int) -> Iterator[Pieces]:
    """Yield all of it line by line, in pieces with their styles; no line is wider than `columns`."""
    of_cost = weighs_cost([told.total.measured])
    days = dict(_dated(told.days))
    yield from _head(told, days, columns)
    for block in (
        _days(told, days, columns, of_cost=of_cost),
        _shares("model", told.models, MODELS, columns, of_cost=of_cost),
        _shares("project", told.projects, PROJECTS, columns, of_cost=of_cost),
        _tools(told.tools, columns),
        _files(told.files, columns),
        _health(told.total, told.tools, columns),
        _footnotes(told, columns),
    ):
        lines = list(block)
        if lines:
            yield []
            yield from lines


def _head(told: Overview, days: dict[date, Line], columns: int) -> Iterator[Pieces]:
    total, spend = told.total, told.total.measured
    since = told.since or (min(days).isoformat() if days else None)
    until = told.until or (max(days).isoformat() if days else None)
    period = since if since == until else f"{since or 'the beginning'} to {until or 'today'}"
    for line in flowed((period or "no day is known",), columns):
        yield [("title", line)]
    known = [
        cost(spend) if spend.picos is not None else "no price",
        f"{short_number(spend.figures['total'])} tokens" if spend.requests else "no tokens",
        _counted(spend.requests, "request"),
        *([_counted(total.sessions, "session")] if total.sessions is not None else []),
        *([_counted(total.prompts, "prompt")] if total.prompts is not None else []),
        *([f"{span(total.active_seconds)} active"] if total.active_seconds is not None else []),
    ]
    for line in flowed(known, columns, JOINT):
        yield [("plain", line)]
    for line in flowed(_parts(spend), columns, JOINT):
        yield [("faint", line)]
    for line in flowed(_guessed(total.estimated), columns, JOINT):
        yield [("faint", line)]


def _parts(spend: Spend) -> Iterator[str]:
    """Yield what the tokens consist of, as far as it was recorded."""
    for name, told in (
        ("input", "input"),
        ("cached", "of it cached"),
        ("cache_write", "written to the cache"),
        ("output", "output"),
        ("reasoning", "reasoning"),
        ("tool", "for tools"),
    ):
        figure = spend.figures[name]
        if figure is not None and (figure or name in ("input", "output")):
            yield f"{told} {short_number(figure)}"


def _guessed(spend: Spend) -> Iterator[str]:
    if spend.requests:
        yield f"estimated besides: ~{short_number(spend.figures['total'])} tokens"
        if spend.picos is not None:
            yield f"~{cost(spend)}"
        yield _counted(spend.requests, "request")


def _days(told: Overview, days: dict[date, Line], columns: int, *, of_cost: bool) -> Iterator[Pieces]:
    if not days:
        return
    since = _date(told.since) or min(days)
    until = _date(told.until) or max(days)
    if (until - since).days < FEW_DAYS:
        rows = [_share_row(line.of, line.measured, of_cost=of_cost) for _, line in sorted(days.items())]
        yield from grid("day", _SHARES, rows, columns)
        return
    weights = {day: _day_weight(line.measured, of_cost=of_cost) for day, line in days.items()}
    yield from heat_map(weights, since, until, columns, _teller(of_cost=of_cost))
    yield from week_line(weights, since, until, columns, _teller(of_cost=of_cost))


def _shares(by: str, lines: Sequence[Line], most: int, columns: int, *, of_cost: bool) -> Iterator[Pieces]:
    """Yield the largest with their bars, and the others as one."""
    names = names_of(lines, by, {})
    order = sorted(lines, key=lambda line: -(weight(line.measured, of_cost=of_cost) or 0))
    shown = [line for line in order if line.measured.requests]
    rows = [_share_row(names[line.of], line.measured, of_cost=of_cost) for line in shown[:most]]
    if shown[most:]:
        rest = summed(line.measured for line in shown[most:])
        rows.append(_share_row(f"{len(shown) - most} others", rest, of_cost=of_cost))
    if rows:
        yield from grid(by, _SHARES, rows, columns)


def _share_row(name: str, spend: Spend, *, of_cost: bool) -> GridRow:
    cells = (count(spend.requests), short_number(spend.figures["total"]), cost(spend))
    return GridRow(name, cells, weight(spend, of_cost=of_cost))


def _tools(tools: Sequence[ToolFigures], columns: int) -> Iterator[Pieces]:
    order = sorted(tools, key=lambda tool: -tool.calls)[:TOOLS]
    rows = [
        GridRow(
            tool.name,
            (
                count(tool.calls),
                errors(tool.errors, tool.calls),
                count(tool.retries),
                span(tool.slowest_seconds),
            ),
            tool.calls,
        )
        for tool in order
    ]
    if rows:
        yield from grid("tool", _USED, rows, columns)


def _files(files: Sequence[Touched], columns: int) -> Iterator[Pieces]:
    order = sorted(files, key=lambda file: -file.times)[:FILES]
    rows = [
        GridRow(file.path, (count(file.times), count(file.sessions)), file.times, is_path=True)
        for file in order
    ]
    if rows:
        yield from grid("file", _TOUCHED, rows, columns)


def _health(total: Line, tools: Sequence[ToolFigures], columns: int) -> Iterator[Pieces]:
    words = []
    if total.tool_calls:
        words.append(_counted(total.tool_calls, "tool call"))
        if total.tool_errors is not None:
            words.append(f"{share(total.tool_errors, total.tool_calls)} failed")
        if total.tool_retries is not None:
            words.append(f"{share(total.tool_retries, total.tool_calls)} tried again")
    if total.compactions is not None:
        words.append(_counted(total.compactions, "compaction"))
    slowest = max(tools, key=lambda tool: tool.slowest_seconds or 0, default=None)
    if slowest and slowest.slowest_seconds:
        words.append(
            f"the slowest took {span(slowest.slowest_seconds)} ({shortened(clean(slowest.name), _NAME)})"
        )
    for line in flowed(words, columns, JOINT):
        yield [("plain", line)]


def _footnotes(told: Overview, columns: int) -> Iterator[Pieces]:
    yield from price_notes(told.total.measured, told.basis, columns)
    undated = [line.measured for line in told.days if _date(line.of) is None]
    if undated:
        yield from note(
            f"on no day, for want of a time: {_counted(summed(undated).requests, 'request')}", columns
        )
    yield from basis_notes(told.basis, told.total.estimated, columns)


def _dated(lines: Sequence[Line]) -> Iterator[tuple[date, Line]]:
    for line in lines:
        day = _date(line.of)
        if day is not None:
            yield day, line


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def _day_weight(spend: Spend, *, of_cost: bool) -> int | None:
    """Return what a day weighs; 0 where nothing was asked, None where it is not known what that was worth."""
    return weight(spend, of_cost=of_cost) if spend.requests else 0


def _teller(*, of_cost: bool) -> Callable[[int], str]:
    return money if of_cost else short_number


def _counted(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
