"""A question's turn at the archive: whoever asked may go, and it is broken off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from retold.archive.store import Store


class Cancelled(Exception):  # noqa: N818 - it says what happened
    """Nobody waits for the answer any more; nobody hears of this either."""


class PoolSlot:
    """One question, from when it was asked."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self._lock, self._is_left = Lock(), False
        self._record: Store | None = None

    @contextmanager
    def of(self, record: Store) -> Iterator[None]:
        """Be at it, in the thread whose archive this is."""
        with self._lock:
            if self._is_left:
                raise Cancelled
            self._record = record
        try:
            yield
        finally:
            with self._lock:  # what is asked next of the same archive is not broken off
                self._record = None

    def leave(self) -> None:
        """Break it off, or do not let it begin."""
        with self._lock:
            self._is_left = True
            if self._record is not None:
                self._record.interrupt()
