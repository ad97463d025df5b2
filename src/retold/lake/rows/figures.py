"""Numbers as columns take them, whatever a file says."""

from decimal import Decimal

from retold.lake.arrow import DIGITS, PLACES
from retold.model.report import FIGURES

TOKENS = FIGURES
"""The tokens of a request or of many, in the order of the columns."""
_MOST_DOLLARS = Decimal(10) ** (DIGITS - PLACES) - 1
_SMALL = 1 << 31
_STEP = Decimal(1).scaleb(-PLACES)


def dollars_of(cost: Decimal | None) -> Decimal | None:
    """Return money as the column takes it."""
    return None if cost is None else min(cost, _MOST_DOLLARS).quantize(_STEP)


def dollars_in(picos: int) -> Decimal:
    """Return what a request cost as the column takes it."""
    return min(Decimal(picos).scaleb(-PLACES), _MOST_DOLLARS)


def small(number: int | None) -> int | None:
    """Return a number that 32 bits hold; None for one that they do not."""
    return number if number is not None and -_SMALL <= number < _SMALL else None
