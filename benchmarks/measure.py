"""A measure: a ratio, the bar it is held to, and the numbers it was made of."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Measure(NamedTuple):
    """One ratio, with the bound it is held to."""

    what: str
    ratio: float
    bound: float
    is_floor: bool
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the goal is met."""
        return self.ratio >= self.bound if self.is_floor else self.ratio <= self.bound

    @property
    def goal(self) -> str:
        """The bound, with its direction."""
        return f"{'>=' if self.is_floor else '<='} {self.bound:g}"

    @property
    def verdict(self) -> str:
        """What to say of it."""
        return "ok" if self.holds else "FALLS SHORT"


def at_least(what: str, ratio: float, bound: float, detail: str) -> Measure:
    """Return a measure that is good when it is large."""
    return Measure(what, ratio, bound, is_floor=True, detail=detail)


def at_most(what: str, ratio: float, bound: float, detail: str) -> Measure:
    """Return a measure that is good when it is small."""
    return Measure(what, ratio, bound, is_floor=False, detail=detail)


def line(measure: Measure) -> str:
    """Return a measure as it is printed."""
    return f"{measure.what:<58} {measure.ratio:6.2f}  goal {measure.goal:<7} {measure.verdict:<12} {measure.detail}"


def told(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


class Spread(NamedTuple):
    """The usual and the unusual of many times."""

    p50: float
    p95: float

    def __str__(self) -> str:
        return f"p50 {told(self.p50)} p95 {told(self.p95)}"


def spread(times: Sequence[float]) -> Spread:
    """Return how times are spread; there are at least two."""
    cuts = statistics.quantiles(times, n=20, method="inclusive")
    return Spread(cuts[9], cuts[18])
