"""Reports as tables, with a line for each day, model, project, session or tool, and the requests behind a line."""

from __future__ import annotations

from retold.export.text.amounts import (
    UNKNOWN,
    GridColumn,
    GridRow,
    format_count,
    format_duration,
    format_grid,
    format_money,
    format_rate,
    format_share,
)
from retold.export.text.formatting import (
    SEPARATOR,
    UNNAMED,
    clean_name,
    format_short_number,
    plural,
    project_names,
    shorten,
    text_width,
    wrap_words,
)
from retold.model import FIGURES
from retold.model.report import Line, Spend, add_known, format_dollars, sum_spends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from retold.export.text.formatting import StyledLine
    from retold.model.report import Basis, ReportRequest, ToolFigures


MOST_NAMES = 8
_FOOTNOTE_NAME = 32


def format_price_notes(spend: Spend, basis: Basis | None, columns: int) -> Iterator[StyledLine]:
    """Yield how many requests have no price, and their models; nothing if all have one."""
    if spend.unpriced:
        mark = "+ " if spend.picos is not None else ""
        of = f": {list_counts(basis.unpriced)}" if basis and basis.unpriced else ""
        yield from format_note(f"{mark}no price for {plural(spend.unpriced, 'request')}{of}", columns)


def format_basis_notes(basis: Basis, estimated: Spend, columns: int) -> Iterator[StyledLine]:
    """Yield the date of the prices, the zone of the days, what is estimated, and what is known to be missing."""
    at = f" of {clean_name(basis.priced_at)}" if basis.priced_at else ""
    prices = (
        f"prices: {shorten(clean_name(basis.prices), _FOOTNOTE_NAME)}{at}"
        if basis.prices
        else "no prices are known"
    )
    for line in wrap_words(
        (prices, f"days in {shorten(clean_name(basis.zone), _FOOTNOTE_NAME)}"), columns, SEPARATOR
    ):
        yield [("faint", line)]
    if estimated.requests:
        text = "guessed from the length of the text, for sessions that recorded no tokens; never added to the rest"
        yield from format_note(f"~ {text}", columns)
    if basis.under_recorded:
        sessions = plural(sum(basis.under_recorded.values()), "session")
        text = f"recorded less than was spent, so that their figures are a lower limit: {list_counts(basis.under_recorded)}"
        yield from format_note(f"{sessions} {text}", columns)


def format_note(text: str, columns: int) -> Iterator[StyledLine]:
    """Yield a sentence in lines that fit; all but the first are indented."""
    for line in wrap_words(text.split(" "), columns, indent="  "):
        yield [("faint", line)]


def list_counts(counts: Mapping[str, int]) -> str:
    """Return names with their counts, the most frequent first, at most `MOST_NAMES`."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    names = [
        f"{shorten(clean_name(name), _FOOTNOTE_NAME)} ({format_count(number)})"
        for name, number in order[:MOST_NAMES]
    ]
    rest = len(order) - MOST_NAMES
    return ", ".join([*names, f"{rest} more"] if rest > 0 else names)


TOTAL = "total"
ESTIMATED = "estimated, and not in the figures above"
_PROJECT, _SESSION, _TOOL = "project", "session", "tool"
SPENDING_COLUMNS = (
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
TOOL_COLUMNS = (
    GridColumn("calls", 0),
    GridColumn("errors", 1),
    GridColumn("retries", 3),
    GridColumn("average", 5),
    GridColumn("slowest", 4),
    GridColumn("in all", 6),
)


def format_report(  # noqa: PLR0913 - facts that lines do not have
    lines: Sequence[Line],
    by: str,
    columns: int,
    *,
    total: Line | None = None,
    basis: Basis | None = None,
    titles: Mapping[str, str] | None = None,
    tools: Mapping[str, ToolFigures] | None = None,
) -> Iterator[StyledLine]:
    """Yield a report line by line, with its notes below.

    `total` has the sums of sessions and times, which cannot be computed from the lines; without it they are unknown.
    `titles` of sessions and times of `tools` are given by what a line is `of`.
    """
    total = total or sum_lines(lines)
    names = line_names(lines, by, titles or {})
    if by == _TOOL:
        yield from format_grid(by, TOOL_COLUMNS, list(_tool_rows(lines, names, total, tools or {})), columns)
        return
    yield from format_grid(by, SPENDING_COLUMNS, list(_spending_rows(lines, names, total)), columns)
    notes = [
        *format_price_notes(total.measured, basis, columns),
        *(format_basis_notes(basis, total.estimated, columns) if basis else ()),
    ]
    if notes:
        yield []
        yield from notes


def sum_lines(lines: Sequence[Line]) -> Line:
    """Return the sum of the figures that can be summed: a session may stand in several lines."""
    total = Line(
        TOTAL, sum_spends(line.measured for line in lines), sum_spends(line.estimated for line in lines)
    )
    for line in lines:
        total.tool_calls = add_known(total.tool_calls, line.tool_calls)
        total.tool_errors = add_known(total.tool_errors, line.tool_errors)
        total.tool_retries = add_known(total.tool_retries, line.tool_retries)
    return total


def line_names(lines: Sequence[Line], by: str, titles: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each line, by what it is `of`."""
    if by == _PROJECT:
        return project_names(line.of for line in lines)
    return {line.of: titles.get(line.of, "") or line.of or UNNAMED for line in lines}


def has_cost(spends: Sequence[Spend]) -> bool:
    """Return whether bars show money; they show tokens if nothing has a price."""
    return any(spend.picos for spend in spends)


def bar_weight(spend: Spend, *, of_cost: bool) -> int | None:
    """Return the amount that a bar shows."""
    return spend.picos if of_cost else spend.figures["total"]


def format_cost(spend: Spend) -> str:
    """Return the cost, with a + if some requests have no price."""
    return format_money(spend.picos) + ("+" if spend.unpriced and spend.picos is not None else "")


def _spending_rows(lines: Sequence[Line], names: Mapping[str, str], total: Line) -> Iterator[GridRow]:
    of_cost = has_cost([line.measured for line in lines])
    for line in lines:
        yield GridRow(names[line.of], _cells(line), bar_weight(line.measured, of_cost=of_cost))
    yield GridRow(TOTAL, _cells(total), style="title")
    if total.estimated.requests:
        yield GridRow(ESTIMATED, (), style="faint")
        for line in lines:
            if line.estimated.requests:
                yield GridRow(names[line.of], _estimate_cells(line.estimated), style="faint")
        yield GridRow(TOTAL, _estimate_cells(total.estimated), style="faint")


def _cells(line: Line) -> list[str]:
    return [
        format_count(line.measured.requests),
        format_count(line.sessions),
        *_tokens(line.measured),
        format_duration(line.active_seconds),
        format_count(line.tool_calls),
        format_errors(line.tool_errors, line.tool_calls),
        format_cost(line.measured),
    ]


def _tokens(spend: Spend) -> list[str]:
    kinds = ("input", "cached", "cache_write", "output", "reasoning", "total")
    return [format_short_number(spend.figures[kind]) for kind in kinds]


def _estimate_cells(spend: Spend) -> list[str]:
    tokens = map(_mark_estimate, _tokens(spend))
    return [format_count(spend.requests), "", *tokens, "", "", "", _mark_estimate(format_cost(spend))]


def _mark_estimate(text: str) -> str:
    return text if text == UNKNOWN else f"~{text}"


def _tool_rows(
    lines: Sequence[Line], names: Mapping[str, str], total: Line, tools: Mapping[str, ToolFigures]
) -> Iterator[GridRow]:
    for line in lines:
        tool = tools.get(line.of)
        seconds, timed = (tool.seconds, tool.timed) if tool else (None, 0)
        slowest = tool.slowest_seconds if tool else None
        yield GridRow(
            names[line.of], [*_call_cells(line), *_time_cells(seconds, timed, slowest)], line.tool_calls
        )
    known = [tool.seconds for tool in tools.values() if tool.seconds is not None]
    maxima = [tool.slowest_seconds for tool in tools.values() if tool.slowest_seconds is not None]
    times = _time_cells(
        sum(known) if known else None, sum(tool.timed for tool in tools.values()), max(maxima, default=None)
    )
    yield GridRow(TOTAL, [*_call_cells(total), *times], style="title")


def _call_cells(line: Line) -> tuple[str, str, str]:
    return (
        format_count(line.tool_calls),
        format_errors(line.tool_errors, line.tool_calls),
        format_count(line.tool_retries),
    )


def _time_cells(seconds: float | None, timed: int, slowest: float | None) -> tuple[str, str, str]:
    average = seconds / timed if seconds is not None and timed else None
    return format_duration(average), format_duration(slowest), format_duration(seconds)


def format_errors(failed: int | None, calls: int | None) -> str:
    """Return how many calls failed, with their share."""
    number = format_count(failed)
    return f"{number} ({format_share(failed, calls)})" if failed and calls else number


_PLACES = 5
"""Decimal places of a price, at least."""
_INDENT, _DEEPER = "  ", "    "
_NAME = 40


def format_explanation(
    line: Line, requests: Iterable[ReportRequest], columns: int, name: str | None = None
) -> Iterator[StyledLine]:
    """Yield a heading, each request with its arithmetic, and the sums compared with the report.

    Requests are formatted one by one, since there may be many. Estimates are summed separately.
    """
    yield [("title", shorten(clean_name(name or line.of or UNNAMED), columns))]
    measured, estimated = Spend(), Spend()
    for request in requests:
        yield from _request(request, columns)
        spend = request_spend(request)
        if request.estimated:
            estimated += spend
        else:
            measured += spend
    yield from _sum("sum", measured, line.measured, columns)
    if estimated.requests or line.estimated.requests:
        yield from _sum("estimated", estimated, line.estimated, columns, "~")


def request_spend(request: ReportRequest) -> Spend:
    """Return the tokens and the price of one request."""
    figures = {figure: request.figures.get(figure) for figure in FIGURES}
    return Spend(1, figures, request.picos, int(request.picos is None))


def _request(request: ReportRequest, columns: int) -> Iterator[StyledLine]:
    at = f"{request.at:%Y-%m-%d %H:%M:%S}" if request.at else "at no known time"
    model = shorten(clean_name(request.model or ""), _NAME) if request.model else "no model recorded"
    lines = list(wrap_words((at, model, clean_name(request.session)), columns - len(_INDENT), "  ", _INDENT))
    message = f"  message {clean_name(request.message)}" if request.message else ""
    if len(_INDENT) + text_width(lines[-1] + message) <= columns:
        lines[-1] += message
    for line in lines:
        yield [("faint", _INDENT + line)]
    style = "faint" if request.estimated else "plain"
    for line in wrap_words(price_terms(request), columns - len(_DEEPER), indent=_INDENT):
        yield [(style, _DEEPER + line)]
    yield from _disagreement(request, columns)


def price_terms(request: ReportRequest) -> Iterator[str]:
    """Yield tokens times price for each kind of tokens, and their sum."""
    mark = "~" if request.estimated else ""
    if request.picos is None:
        yield f"{', '.join(_recorded(request)) or 'no tokens recorded'}:"
        yield "no price"
        return
    sign = ""
    for part, tokens, picos in request.parts:
        if tokens:
            yield f"{sign}{mark}{format_count(tokens)} {part.replace('_', ' ')} x {format_rate(picos)}"
            sign = "+ "
    yield f"= {mark}${format_dollars(request.picos, _PLACES)}"
    if request.over:
        yield f"(over {format_count(request.over)} tokens)"


def _recorded(request: ReportRequest) -> Iterator[str]:
    for figure in FIGURES:
        tokens = request.figures.get(figure)
        if tokens and figure != "total":
            yield f"{'~' if request.estimated else ''}{format_count(tokens)} {figure.replace('_', ' ')}"


def _disagreement(request: ReportRequest, columns: int) -> Iterator[StyledLine]:
    """Yield a line if the products do not add up to the price."""
    product = sum(tokens * picos for _, tokens, picos in request.parts)
    if request.picos is not None and request.parts and product != request.picos:
        text = f"✗ the products come to ${format_dollars(product, _PLACES)}"
        yield [("bad", shorten(_DEEPER + text, columns))]


def _sum(name: str, summed: Spend, reported: Spend, columns: int, mark: str = "") -> Iterator[StyledLine]:
    """Yield the sum of all requests, and whether the report has the same."""
    room = columns - len(_INDENT)
    for line in wrap_words((f"{name}:", *_figures(summed, mark)), room, indent=_INDENT):
        yield [("plain", _INDENT + line)]
    if _comparable(summed) == _comparable(reported):
        yield [("faint", shorten(f"{_INDENT}✓ as in the report", columns))]
        return
    for line in wrap_words(("✗ the report says:", *_figures(reported, mark)), room, indent=_INDENT):
        yield [("bad", _INDENT + line)]


def _figures(spend: Spend, mark: str) -> Iterator[str]:
    yield f"{plural(spend.requests, 'request')},"
    yield (
        "tokens unknown,"
        if spend.figures["total"] is None
        else f"{mark}{format_count(spend.figures['total'])} tokens,"
    )
    yield "no price" if spend.picos is None else f"{mark}${format_dollars(spend.picos, _PLACES)}"
    if spend.unpriced and spend.picos is not None:
        yield f"and {format_count(spend.unpriced)} without a price"


def _comparable(spend: Spend) -> tuple[object, ...]:
    return spend.requests, spend.picos, spend.unpriced, *[spend.figures[figure] for figure in FIGURES]
