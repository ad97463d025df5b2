"""How a figure came about: every request it is made of, what was multiplied, and the sum."""

from __future__ import annotations

from retold.export.amounts import count, rate
from retold.export.flow import flowed
from retold.export.names import NAMELESS, clean, shortened, width_of
from retold.model.report import FIGURES, Spend, dollars_text

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from retold.export.grid import Pieces
    from retold.model.report import Line, ReportRequest

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
