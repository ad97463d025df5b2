"""Lines from and to whoever started us. Nothing but answers goes there, and neither side can keep us from ending."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

LONGEST = 4 << 20
"""Bytes of a line; as many as the SDK takes over HTTP."""
_AHEAD = 16
"""Lines that are read before they are asked for."""
_LAST = 0.3
"""Seconds for which, once the input has ended, somebody is waited for who does not read."""
_CHUNK = 1 << 16


class TooLong:
    """A line that was longer than any may be; it was not kept."""


Line = bytes | TooLong


class Cutter:
    """Cuts bytes, as they come, into lines."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest, self._begun, self._is_skipped = longest, bytearray(), False

    def lines(self, chunk: bytes) -> Iterator[Line]:
        """Yield the lines that a further piece completes."""
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            self._add(end)
            yield TooLong() if self._is_skipped else bytes(self._begun)
            self._begun, self._is_skipped = bytearray(), False
        self._add(rest)

    def last(self) -> Iterator[Line]:
        """Yield what is left at the end, where nobody ended the line."""
        if self._begun:
            yield bytes(self._begun)

    def _add(self, piece: bytes) -> None:
        if self._is_skipped or len(self._begun) + len(piece) > self._longest:
            self._begun, self._is_skipped = bytearray(), True
        else:
            self._begun += piece


class Wire:
    """The two ends, each with a thread that nobody waits for: it may hang in a read or a write for ever."""

    def __init__(self, source: int, sink: int) -> None:
        """Take file descriptors; inside a running loop."""
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[Line] = asyncio.Queue(_AHEAD)
        self._ended = asyncio.Event()
        self._to_write: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        self._is_over = self._is_dead = False
        Thread(target=self._read, name="wire-in", daemon=True).start()
        Thread(target=self._write, name="wire-out", daemon=True).start()

    def end(self) -> None:
        """Read no further: go on as if the input had ended."""
        self._is_over = True
        self._ended.set()

    async def line(self) -> Line | None:
        """Return the next line; None at the end."""
        if self._is_over or (self._ended.is_set() and self._lines.empty()):
            return None
        if not self._lines.empty():
            return self._lines.get_nowait()
        taking = asyncio.ensure_future(self._lines.get())
        ending = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((taking, ending), return_when=asyncio.FIRST_COMPLETED)
            return taking.result() if taking.done() and not self._is_over else None
        finally:
            taking.cancel()
            ending.cancel()

    async def tell(self, line: bytes) -> None:
        """Write a line; where nobody reads any more it goes nowhere."""
        if self._is_dead:
            return
        written = self._loop.create_future()
        self._to_write.put((line + b"\n", written))
        ending = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((written, ending), return_when=asyncio.FIRST_COMPLETED)
            if not written.done():
                await asyncio.wait((written,), timeout=_LAST)
                self._is_dead = not written.done()
        finally:
            ending.cancel()

    # In the threads ----------------------------------------------------------------------------------------------

    def _read(self) -> None:
        cutter = Cutter()
        with suppress(RuntimeError):  # the loop is closed: nobody listens
            with suppress(OSError):
                while chunk := os.read(self._source, _CHUNK):
                    self._pass_on(cutter.lines(chunk))
            self._pass_on(cutter.last())
            self._loop.call_soon_threadsafe(self._ended.set)

    def _pass_on(self, lines: Iterator[Line]) -> None:
        for line in lines:
            putting = asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop)
            putting.result()

    def _write(self) -> None:
        with suppress(RuntimeError):
            while True:
                line, written = self._to_write.get()
                with suppress(OSError):  # whoever read is gone: the input will end, too
                    while line:
                        line = line[os.write(self._sink, line) :]
                self._loop.call_soon_threadsafe(_done, written)


def _done(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)
