"""Money, shares and times in few characters; what is unknown is told as such, and never as nothing."""

from __future__ import annotations

from retold.model.report import PICOS, dollars_text

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Sequence


UNKNOWN = "-"
_CENT = PICOS // 100
_TEN_THOUSANDTH = PICOS // 10_000
_MILLION = 10**6
_TENTH, _TEN, _MINUTE, _HOUR = 0.1, 10, 60, 3600


def money(picos: int | None) -> str:
    """Return an amount as a person reads it: to the cent, below a cent to four places."""
    if picos is None:
        return UNKNOWN
    if picos == 0 or picos >= _CENT:
        return "$" + _to_places(picos, 2)
    return "$" + _to_places(picos, 4) if picos >= _TEN_THOUSANDTH else "<$0.0001"


def rate(picos_per_token: int) -> str:
    """Return the price of a million tokens: `$1.25/M`."""
    return f"${dollars_text(picos_per_token * _MILLION)}/M"


def share(part: int | None, whole: int | None) -> str:
    """Return a percentage; 0 % and 100 % mean none and all."""
    if part is None or not whole:
        return UNKNOWN
    if 0 < part * 100 < whole:
        return "<1%"
    return ">99%" if whole * 99 < part * 100 < whole * 100 else f"{round(part * 100 / whole)}%"


def span(seconds: float | None) -> str:
    """Return how long something took: `20ms`, `0.8s`, `45s`, `12m`, `3h 07m`."""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < _TENTH:
        return f"{round(seconds * 1000)}ms" if seconds >= _TENTH / 100 else "<1ms"
    if 0 < seconds < _TEN:
        return f"{seconds:.1f}s"
    if round(seconds) < _MINUTE:
        return f"{round(seconds)}s"
    minutes = round(seconds / _MINUTE)
    if minutes < _HOUR // _MINUTE:
        return f"{minutes}m"
    return f"{minutes // 60:,}h {minutes % 60:02d}m"


def count(number: int | None) -> str:
    """Return a whole number, its thousands set apart."""
    return UNKNOWN if number is None else f"{number:,}"


def _to_places(picos: int, places: int) -> str:
    unit = PICOS // 10**places
    whole, rest = divmod((2 * picos + unit) // (2 * unit), 10**places)
    return f"{whole:,}.{rest:0{places}d}"


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
