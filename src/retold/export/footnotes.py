"""What stands under a report: what its figures rest on, and what is not in them."""

from __future__ import annotations

from retold.export.amounts import count
from retold.export.flow import JOINT, flowed
from retold.export.names import clean, shortened

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from retold.export.grid import Pieces
    from retold.model.report import Basis, Spend

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
