"""Measures: a ratio of two costs in each of three runs, its bar, and the costs that it was made from."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

RUNS = 3
"""Runs of every comparison: the spread of their ratios shows the noise of the machine."""
_SHUFFLE = random.Random(23)  # noqa: S311 - any order will do


class Cost(NamedTuple):
    """The time on the clock and the processor time of some work, in seconds."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{format_seconds(self.wall)} (CPU {format_seconds(self.cpu)})"


Work = Callable[[], Cost]
Runs = list[list[Cost]]
"""The cost of each piece of work in each run."""


def take_turns(**works: Sequence[Work]) -> dict[str, Runs]:
    """Return the costs of some works by name. A run does each piece of each work once, all of them in random order."""
    costs: dict[str, Runs] = {name: [] for name in works}
    turns = [(name, number) for name, pieces in works.items() for number in range(len(pieces))]
    for _ in range(RUNS):
        _SHUFFLE.shuffle(turns)
        done = {turn: works[turn[0]][turn[1]]() for turn in turns}
        for name, pieces in works.items():
            costs[name].append([done[name, number] for number in range(len(pieces))])
    return costs


def time_call(work: Callable[[], object]) -> Cost:
    """Return the cost of a call in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile of at least two values."""
    return statistics.quantiles(values, n=20, method="inclusive")[18]


def summarize(runs: Runs, statistic: Callable[[Sequence[float]], float] = statistics.median) -> list[Cost]:
    """Return one cost for each run: the median of its pieces, or another statistic."""
    return [Cost(*(statistic(times) for times in zip(*costs, strict=True))) for costs in runs]


def ratios(one: Sequence[Cost], other: Sequence[Cost]) -> list[float]:
    """Return the ratio of two times on the clock in each run."""
    return [first.wall / second.wall for first, second in zip(one, other, strict=True)]


def describe(**costs: Sequence[Cost]) -> str:
    """Return the median cost of each work as text."""
    return ", ".join(f"{name} {_median(of_runs)}" for name, of_runs in costs.items())


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def format_seconds(seconds: float) -> str:
    """Return a time in seconds or milliseconds."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


class Measure(NamedTuple):
    """A ratio with its bar."""

    what: str
    ratios: Sequence[float]
    """The ratio in each run: one for what no noise changes."""
    bound: float
    is_floor: bool
    detail: str
    goal: float | None = None
    """A better ratio that is aimed at."""

    @property
    def ratio(self) -> float:
        """The median of the runs."""
        return statistics.median(self.ratios)

    @property
    def spread(self) -> str:
        """The lowest and the highest ratio of the runs."""
        return f"{min(self.ratios):.2f} to {max(self.ratios):.2f}" if len(self.ratios) > 1 else "one run"

    @property
    def holds(self) -> bool:
        """Whether the ratio meets its bound."""
        return self.ratio >= self.bound if self.is_floor else self.ratio <= self.bound

    @property
    def bar(self) -> str:
        """The bound with its direction, and the goal."""
        goal = "" if self.goal is None else f" ({self.goal:g})"
        return f"{'≥' if self.is_floor else '≤'} {self.bound:g}{goal}"

    def __str__(self) -> str:
        verdict = "ok" if self.holds else "FALLS SHORT"
        return (
            f"{self.what:<62} {self.ratio:6.2f}  {self.spread:<14} {self.bar:<10} {verdict:<12} {self.detail}"
        )


def at_least(
    what: str, ratios: Sequence[float], bound: float, detail: str, goal: float | None = None
) -> Measure:
    """Return a measure with a lower bound."""
    return Measure(what, ratios, bound, is_floor=True, detail=detail, goal=goal)


def at_most(
    what: str, ratios: Sequence[float], bound: float, detail: str, goal: float | None = None
) -> Measure:
    """Return a measure with an upper bound."""
    return Measure(what, ratios, bound, is_floor=False, detail=detail, goal=goal)
