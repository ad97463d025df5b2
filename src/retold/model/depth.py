"""Room for deep values: what a decoder could just take in must not overflow whoever walks through it afterwards."""

import sys
from _thread import allocate_lock
from types import TracebackType

FRAMES = 20_000
"""Several frames for every level that a decoder accepts; in this Python, frames of Python take no C stack."""


class _Room:
    """The recursion limit, raised while anybody needs it: it is one for all threads."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._guests = self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._guests:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, FRAMES))
            self._guests += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._guests -= 1
            if not self._guests:
                sys.setrecursionlimit(self._before)


_ROOM = _Room()


def room_for_depth() -> _Room:
    """Raise the recursion limit for a while. Decoding stays outside, so that its own limit bounds every value."""
    return _ROOM


def shown_value(value: object, most: int = 60) -> str:
    """Return how a value begins, for a message; it may be nested as deep as can be decoded."""
    return whole_value(value)[:most]


def whole_value(value: object) -> str:
    """Return what `repr` returns of a value, which may be nested as deep as can be decoded."""
    with _ROOM:
        return repr(value)
