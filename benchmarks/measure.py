"""Measures: a ratio, its bound, and the figures that it was made from."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Measure(NamedTuple):
    """A ratio with its bound."""

    what: str
    ratio: float
    bound: float
    is_floor: bool
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the ratio meets its bound."""
        return self.ratio >= self.bound if self.is_floor else self.ratio <= self.bound

    @property
    def goal(self) -> str:
        """The bound with its direction."""
        return f"{'>=' if self.is_floor else '<='} {self.bound:g}"

    @property
    def verdict(self) -> str:
        """The result as text."""
        return "ok" if self.holds else "FALLS SHORT"


def at_least(what: str, ratio: float, bound: float, detail: str) -> Measure:
    """Return a measure with a lower bound."""
    return Measure(what, ratio, bound, is_floor=True, detail=detail)


def at_most(what: str, ratio: float, bound: float, detail: str) -> Measure:
    """Return a measure with an upper bound."""
    return Measure(what, ratio, bound, is_floor=False, detail=detail)


def format_measure(measure: Measure) -> str:
    """Return a measure as one line."""
    return f"{measure.what:<58} {measure.ratio:6.2f}  goal {measure.goal:<7} {measure.verdict:<12} {measure.detail}"


def format_seconds(seconds: float) -> str:
    """Return a time in seconds or milliseconds."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


class Percentiles(NamedTuple):
    """The median and the 95th percentile of many times."""

    p50: float
    p95: float

    def __str__(self) -> str:
        return f"p50 {format_seconds(self.p50)} p95 {format_seconds(self.p95)}"


def percentiles(times: Sequence[float]) -> Percentiles:
    """Return the percentiles of at least two times."""
    cuts = statistics.quantiles(times, n=20, method="inclusive")
    return Percentiles(cuts[9], cuts[18])
