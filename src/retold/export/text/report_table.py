"""A report as a table: a line for each day, model, project or whatever else work is counted by."""

from __future__ import annotations

from retold.export.text.grid import GridColumn, GridRow, grid
from retold.export.text.numbers import UNKNOWN, count, money, rate, share, span
from retold.export.text.table import (
    JOINT,
    NAMELESS,
    clean,
    flowed,
    project_names,
    short_number,
    shortened,
    width_of,
)
from retold.model.report import FIGURES, Line, Spend, dollars_text, plus, summed

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from retold.export.text.grid import Pieces
    from retold.model.report import Basis, ReportRequest, ToolFigures


MOST_NAMES = 8
_FOOTNOTE_NAME = 32


def price_notes(spend: Spend, basis: Basis | None, columns: int) -> Iterator[Pieces]:
    """Yield how many requests have no price, and of which models; nothing where all have one."""
    if spend.unpriced:
        mark = "+ " if spend.picos is not None else ""
        of = f": {listed(basis.unpriced)}" if basis and basis.unpriced else ""
        yield from note(f"{mark}no price for {_told(spend.unpriced, 'request')}{of}", columns)


def basis_notes(basis: Basis, estimated: Spend, columns: int) -> Iterator[Pieces]:
    """Yield which prices these are, in which zone days begin, what is guessed, and what is known to be missing."""
    at = f" of {clean(basis.priced_at)}" if basis.priced_at else ""
    prices = (
        f"prices: {shortened(clean(basis.prices), _FOOTNOTE_NAME)}{at}"
        if basis.prices
        else "no prices are known"
    )
    for line in flowed((prices, f"days in {shortened(clean(basis.zone), _FOOTNOTE_NAME)}"), columns, JOINT):
        yield [("faint", line)]
    if estimated.requests:
        text = "guessed from the length of the text, for sessions that recorded no tokens; never added to the rest"
        yield from note(f"~ {text}", columns)
    if basis.under_recorded:
        sessions = _told(sum(basis.under_recorded.values()), "session")
        told = f"recorded less than was spent, so that their figures are a lower limit: {listed(basis.under_recorded)}"
        yield from note(f"{sessions} {told}", columns)


def note(text: str, columns: int) -> Iterator[Pieces]:
    """Yield a sentence in lines that fit."""
    for line in flowed(text.split(" "), columns, indent="  "):
        yield [("faint", line)]


def listed(counts: Mapping[str, int]) -> str:
    """Return names with their counts, the most first; only the first of many."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    told = [
        f"{shortened(clean(name), _FOOTNOTE_NAME)} ({count(number)})" for name, number in order[:MOST_NAMES]
    ]
    rest = len(order) - MOST_NAMES
    return ", ".join([*told, f"{rest} more"] if rest > 0 else told)


def _told(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


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


_PLACES = 5
"""How many places a price is written to at least."""
_INDENT, _DEEPER = "  ", "    "
_NAME = 40


def explained(
    line: Line, requests: Iterable[ReportRequest], columns: int, name: str | None = None
) -> Iterator[Pieces]:
    """Yield a heading, each request with its arithmetic, and the sums, beside what the report says.

    Requests are told as they come: there may be many. Guesses are summed apart.
    """
    yield [("title", shortened(clean(name or line.of or NAMELESS), columns))]
    measured, estimated = Spend(), Spend()
    for request in requests:
        yield from _request(request, columns)
        spend = spend_of(request)
        if request.estimated:
            estimated += spend
        else:
            measured += spend
    yield from _sum("sum", measured, line.measured, columns)
    if estimated.requests or line.estimated.requests:
        yield from _sum("estimated", estimated, line.estimated, columns, "~")


def spend_of(request: ReportRequest) -> Spend:
    """Return what one request adds to a sum."""
    figures = {figure: request.figures.get(figure) for figure in FIGURES}
    return Spend(1, figures, request.picos, int(request.picos is None))


def _request(request: ReportRequest, columns: int) -> Iterator[Pieces]:
    at = f"{request.at:%Y-%m-%d %H:%M:%S}" if request.at else "at no known time"
    model = shortened(clean(request.model or ""), _NAME) if request.model else "no model recorded"
    lines = list(flowed((at, model, clean(request.session)), columns - len(_INDENT), "  ", _INDENT))
    message = f"  message {clean(request.message)}" if request.message else ""
    if len(_INDENT) + width_of(lines[-1] + message) <= columns:
        lines[-1] += message
    for line in lines:
        yield [("faint", _INDENT + line)]
    style = "faint" if request.estimated else "plain"
    for line in flowed(terms(request), columns - len(_DEEPER), indent=_INDENT):
        yield [(style, _DEEPER + line)]
    yield from _disagreement(request, columns)


def terms(request: ReportRequest) -> Iterator[str]:
    """Yield a product for each kind of tokens, and what they come to."""
    mark = "~" if request.estimated else ""
    if request.picos is None:
        yield f"{', '.join(_recorded(request)) or 'no tokens recorded'}:"
        yield "no price"
        return
    sign = ""
    for part, tokens, picos in request.parts:
        if tokens:
            yield f"{sign}{mark}{count(tokens)} {part.replace('_', ' ')} x {rate(picos)}"
            sign = "+ "
    yield f"= {mark}${dollars_text(request.picos, _PLACES)}"
    if request.over:
        yield f"(over {count(request.over)} tokens)"


def _recorded(request: ReportRequest) -> Iterator[str]:
    for figure in FIGURES:
        tokens = request.figures.get(figure)
        if tokens and figure != "total":
            yield f"{'~' if request.estimated else ''}{count(tokens)} {figure.replace('_', ' ')}"


def _disagreement(request: ReportRequest, columns: int) -> Iterator[Pieces]:
    """Say so if the products are not the price: then one of them is wrong."""
    product = sum(tokens * picos for _, tokens, picos in request.parts)
    if request.picos is not None and request.parts and product != request.picos:
        text = f"✗ the products come to ${dollars_text(product, _PLACES)}"
        yield [("bad", shortened(_DEEPER + text, columns))]


def _sum(name: str, summed: Spend, reported: Spend, columns: int, mark: str = "") -> Iterator[Pieces]:
    """Yield what all requests come to, and whether the report says the same."""
    room = columns - len(_INDENT)
    for line in flowed((f"{name}:", *_figures(summed, mark)), room, indent=_INDENT):
        yield [("plain", _INDENT + line)]
    if _compared(summed) == _compared(reported):
        yield [("faint", shortened(f"{_INDENT}✓ as in the report", columns))]
        return
    for line in flowed(("✗ the report says:", *_figures(reported, mark)), room, indent=_INDENT):
        yield [("bad", _INDENT + line)]


def _figures(spend: Spend, mark: str) -> Iterator[str]:
    yield f"{count(spend.requests)} request{'' if spend.requests == 1 else 's'},"
    yield (
        "tokens unknown,"
        if spend.figures["total"] is None
        else f"{mark}{count(spend.figures['total'])} tokens,"
    )
    yield "no price" if spend.picos is None else f"{mark}${dollars_text(spend.picos, _PLACES)}"
    if spend.unpriced and spend.picos is not None:
        yield f"and {count(spend.unpriced)} without a price"


def _compared(spend: Spend) -> tuple[object, ...]:
    return spend.requests, spend.picos, spend.unpriced, *[spend.figures[figure] for figure in FIGURES]
