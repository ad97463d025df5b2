"""Room for deep values: what a decoder could just take in must not overflow whoever walks through it afterwards."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 20_000
"""Several frames for every level that a decoder accepts; in this Python, frames of Python take no C stack."""


@contextmanager
def room_for_depth() -> Iterator[None]:
    """Raise the recursion limit for a while. Decoding stays outside, so that its own limit bounds every value."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
