"""Threads that ask the archive, each with its own connection: whoever comes first is answered first."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import local
from typing import TypeVar

from retold.archive.record import Record

T = TypeVar("T")
_ARENAS = -8
"""`M_ARENA_MAX`: how many stores of memory there may be."""
THREADS = 3
"""More would only take the interpreter from each other: all but SQLite and zstd runs one at a time."""


def _share_memory() -> None:
    """Let threads take memory from one store: else each keeps as much as its largest session took."""
    with suppress(OSError, TypeError, AttributeError):  # only the C library of GNU has it
        ctypes.CDLL(None).mallopt(_ARENAS, 1)


class Readers:
    """A few threads over one archive."""

    def __init__(self, folder: str) -> None:
        self._folder, self._own = folder, local()
        _share_memory()
        self._threads = ThreadPoolExecutor(THREADS, "reader")

    async def asked(self, ask: Callable[[Record], T]) -> T:
        """Return what somebody asks of the archive, who may take as long as it takes."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, ask)

    def _ask(self, ask: Callable[[Record], T]) -> T:
        record: Record | None = getattr(self._own, "record", None)
        if record is None:
            record = self._own.record = Record(self._folder)
        try:
            return ask(record)
        except BaseException:
            # Whatever it was, the next one begins with a connection that nothing has happened to.
            self._own.record = None
            record.connection.close()
            raise
        finally:
            record.rest()

    def close(self) -> None:
        """Let go; what is being asked is still answered."""
        self._threads.shutdown(cancel_futures=True)
