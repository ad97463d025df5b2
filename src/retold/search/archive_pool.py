"""A pool of threads with a connection to the archive each, which run queries in the order of their requests."""

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

from retold.archive.database import BUSY_TIMEOUT_MS, MACHINE_ERRORS, as_retold_error
from retold.archive.store import ARCHIVE_NAME, Store


class Cancelled(Exception):  # noqa: N818 - no error
    """Nobody waits for the result any more."""


class PoolSlot:
    """A request for a query, which can be cancelled."""

    def __init__(self) -> None:
        self.requested_at = time.monotonic()
        self._lock, self._is_cancelled = Lock(), False
        self._store: Store | None = None

    @contextmanager
    def running(self, store: Store) -> Iterator[None]:
        """Let the request be cancelled while a `with` block uses the archive; raise Cancelled if it was already."""
        with self._lock:
            if self._is_cancelled:
                raise Cancelled
            self._store = store
        try:
            yield
        finally:
            with self._lock:  # the next query on this connection must not be interrupted
                self._store = None

    def cancel(self) -> None:
        """Interrupt the query, or prevent its start."""
        with self._lock:
            self._is_cancelled = True
            if self._store is not None:
                self._store.interrupt()


T = TypeVar("T")
_ARENAS = -8
"""`M_ARENA_MAX`: the number of memory arenas of the C library."""
SHORTEST_WAIT = 50
"""Milliseconds that a query waits for a lock even if it had to wait for a thread: most locks are shorter."""
THREADS = 3
"""More threads would not help: only SQLite and zstd run in parallel."""
_POLL_SECONDS = 0.01


def _share_memory() -> None:
    """Let threads share an arena of memory: else each keeps the memory of its largest session."""
    with suppress(OSError, TypeError, AttributeError):  # only the GNU C library has it
        ctypes.CDLL(None).mallopt(_ARENAS, 1)


class ArchivePool:
    """The threads of one archive."""

    def __init__(self, folder: str, timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        """Take the folder of the archive, and the milliseconds that a query waits for a lock."""
        self._folder, self._timeout_ms, self._own = folder, timeout_ms, local()
        self._slots: set[PoolSlot] = set()
        _share_memory()
        self._threads = ThreadPoolExecutor(THREADS, "reader")

    async def run(self, query: Callable[[Store], T]) -> T:
        """Return the result of a query; cancel it if the task that waits for it is cancelled."""
        slot = PoolSlot()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, query, slot)
        except asyncio.CancelledError:
            slot.cancel()
            raise

    def prepare(self, query: Callable[[Store], object]) -> None:
        """Start a query that makes later ones fast; if it fails, the later ones fail as well."""
        self._threads.submit(self._run, query, PoolSlot())

    def _run(self, query: Callable[[Store], T], slot: PoolSlot) -> T:
        self._slots.add(slot)
        try:
            return self._run_in_thread(query, slot)
        finally:
            self._slots.discard(slot)

    def _run_in_thread(self, query: Callable[[Store], T], slot: PoolSlot) -> T:
        left = max(self._timeout_ms - int((time.monotonic() - slot.requested_at) * 1000), SHORTEST_WAIT)
        store = self._open(left)
        try:
            store.set_timeout(left)  # so that queries that wait for one lock do not wait one after the other
            with slot.running(store):
                result = query(store)
            store.release_snapshot()
        except BaseException as error:
            # The next query begins with a new connection.
            self._own.store = None
            store.close()
            if isinstance(error, MACHINE_ERRORS):
                raise as_retold_error(error, store.path) from error
            raise
        return result

    def _open(self, timeout_ms: int) -> Store:
        """Return the connection of this thread, a new one if the file was replaced; raise OSError if there is no file."""
        status = os.stat(os.path.join(self._folder, ARCHIVE_NAME))
        identity = (status.st_dev, status.st_ino)
        store: Store | None = getattr(self._own, "store", None)
        if store is not None and self._own.identity != identity:
            store.close()
            store = self._own.store = None
        if store is None:
            store = self._own.store = Store(self._folder, patience=timeout_ms)
            self._own.identity = identity
        return store

    def close(self) -> None:
        """Start no more queries, and let the running ones end."""
        self._threads.shutdown(cancel_futures=True)

    def cancel(self, seconds: float) -> bool:
        """Cancel all queries; return whether none is running after some seconds."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for slot in tuple(self._slots):
            slot.cancel()
        end = time.monotonic() + seconds
        while self._slots and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
        return not self._slots
