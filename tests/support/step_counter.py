"""Counts the steps of retold's own code: lines and calls, the same on every machine. Work inside C is not seen."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import retold

_SOURCE = str(Path(retold.__file__).parent)
MOST_GROWTH = 2.25
"""How many times as many steps the second doubling of an input may add as the first; a square adds four times as many."""


def count_steps(work: Callable[[], object]) -> int:
    """Return how many lines and calls of the package a piece of work takes."""
    steps = 0

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal steps
        if not frame.f_code.co_filename.startswith(_SOURCE):
            return None
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def assert_linear(work: Callable[[int], Callable[[], object]], size: int) -> None:
    """Assert that the steps of some work grow with its input, at sizes 1, 2 and 4; `work` prepares it for a size."""
    work(size)()  # what is made at the first time only does not count
    small, middle, large = (count_steps(work(times * size)) for times in (1, 2, 4))
    assert middle - small > size, f"{small} and {middle} steps: this counts something else"
    assert large - middle <= MOST_GROWTH * (middle - small), (
        f"{small}, {middle}, {large} steps from {size} on"
    )
