"""Numbers as lengths and heights, in characters."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence

EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = "▁▂▃▄▅▆▇█"
UNKNOWN_BAR = "?"


def bar(value: int | None, largest: int, width: int) -> str:
    """Return a bar as long as `value` is to `largest`, which fills `width`; whatever is more than nothing is seen."""
    if not value or value < 0 or largest <= 0 or width <= 0:
        return ""
    whole, rest = divmod(max(1, _rounded(min(value, largest) * width * 8, largest)), 8)
    return EIGHTHS[-1] * whole + (EIGHTHS[rest] if rest else "")


def sparkline(values: Sequence[int | None]) -> str:
    """Return a column for each value, the largest the highest; only nothing is as low as nothing."""
    largest = max((value for value in values if value is not None), default=0)
    return "".join([_height(value, largest) for value in values])


def _height(value: int | None, largest: int) -> str:
    if value is None:
        return UNKNOWN_BAR
    if value <= 0:
        return HEIGHTS[0]
    return HEIGHTS[max(1, _rounded(value * (len(HEIGHTS) - 1), largest))]


def _rounded(number: int, divisor: int) -> int:
    """Divide whole numbers of any size, to the nearest."""
    return (2 * number + divisor) // (2 * divisor)
