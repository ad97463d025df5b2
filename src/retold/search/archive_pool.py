"""Threads that ask the archive, each with its own connection: whoever comes first is answered first."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock, local
from typing import TypeVar

from retold.archive.database import MACHINE, PATIENCE, as_retold_error
from retold.archive.store import NAME, Store


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


T = TypeVar("T")
_ARENAS = -8
"""`M_ARENA_MAX`: how many stores of memory there may be."""
LEAST = 50
"""Milliseconds that a question waits for a lock even if it has waited for its turn too long: most last no longer."""
THREADS = 3
"""More would only take the interpreter from each other: all but SQLite and zstd runs one at a time."""
_OFTEN = 0.01
"""Seconds after which it is looked again whether all are done."""


def _share_memory() -> None:
    """Let threads take memory from one store: else each keeps as much as its largest session took."""
    with suppress(OSError, TypeError, AttributeError):  # only the C library of GNU has it
        ctypes.CDLL(None).mallopt(_ARENAS, 1)


class ArchivePool:
    """A few threads over one archive."""

    def __init__(self, folder: str, patience: int = PATIENCE) -> None:
        """Take the archive's folder, and for how many milliseconds a question waits for others who have locked it."""
        self._folder, self._patience, self._own = folder, patience, local()
        self._turns: set[PoolSlot] = set()
        _share_memory()
        self._threads = ThreadPoolExecutor(THREADS, "reader")

    async def asked(self, ask: Callable[[Store], T]) -> T:
        """Return what somebody asks of the archive, who may take as long as it takes; or until nobody waits any more."""
        turn = PoolSlot()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, ask, turn)
        except asyncio.CancelledError:
            turn.leave()
            raise

    def prepare(self, ask: Callable[[Store], object]) -> None:
        """Have a thread ask something that makes later questions quick; what goes wrong is told to whoever asks then."""
        self._threads.submit(self._ask, ask, PoolSlot())

    def _ask(self, ask: Callable[[Store], T], turn: PoolSlot) -> T:
        self._turns.add(turn)
        try:
            return self._answer(ask, turn)
        finally:
            self._turns.discard(turn)

    def _answer(self, ask: Callable[[Store], T], turn: PoolSlot) -> T:
        left = max(self._patience - int((time.monotonic() - turn.since) * 1000), LEAST)
        record = self._record(left)
        try:
            record.wait(left)  # many who wait for the same lock do not wait one after the other
            with turn.of(record):
                answer = ask(record)
            record.rest()
        except BaseException as error:
            # Whatever it was, the next one begins with a connection that nothing has happened to.
            self._own.record = None
            record.let_go()
            if isinstance(error, MACHINE):
                raise as_retold_error(error, record.path) from error
            raise
        return answer

    def _record(self, patience: int) -> Store:
        """Return this thread's connection; a new one if another file lies there now: raises OSError if none does."""
        there = os.stat(os.path.join(self._folder, NAME))
        number = (there.st_dev, there.st_ino)
        record: Store | None = getattr(self._own, "record", None)
        if record is not None and self._own.number != number:
            record.let_go()
            record = self._own.record = None
        if record is None:
            record = self._own.record = Store(self._folder, patience=patience)
            self._own.number = number
        return record

    def close(self) -> None:
        """Let go; what is being asked is still answered."""
        self._threads.shutdown(cancel_futures=True)

    def leave(self, seconds: float) -> bool:
        """Let go of what is being asked, too; tell whether all have heard it within some seconds."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for turn in tuple(self._turns):
            turn.leave()
        until = time.monotonic() + seconds
        while self._turns and time.monotonic() < until:
            time.sleep(_OFTEN)
        return not self._turns
