"""A limit on the time that a piece of work takes in this process."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Thread, get_ident
from types import TracebackType
from typing import Self


class TooSlow(Exception):  # noqa: N818 - it says what happened
    """Work took longer than it may."""

    def __str__(self) -> str:
        return super().__str__() or "it took longer than it may"


class TimeLimit:
    """A thread that raises TooSlow in the thread that made it, where work takes too long.

    Work inside one call to C is not interrupted before the call returns.
    """

    def __init__(self) -> None:
        self._watched = get_ident()
        self._changed = Condition()
        self._deadline: float | None = None
        self._seconds = 0.0
        self._is_over = False
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join()

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Give the work of a `with` block so many seconds; again as many for its clean-up each time they are over."""
        self._set(seconds)
        try:
            yield
        finally:
            self._set(None)

    def _set(self, seconds: float | None) -> None:
        with self._changed:
            self._seconds = seconds or 0.0
            self._deadline = None if seconds is None else time.monotonic() + seconds
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._is_over:
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                self._deadline = time.monotonic() + self._seconds
                _raise_too_slow(self._watched)


def _raise_too_slow(thread: int) -> None:
    from ctypes import c_ulong, py_object, pythonapi

    pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread), py_object(TooSlow))
