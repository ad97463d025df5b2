"""The server over stdin and stdout: it ends when the input does, or when it is told to, whatever it is at."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

import anyio
import mcp_types as types
import msgspec
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

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


Given = SessionMessage | Exception
_BROKEN = {"code": types.PARSE_ERROR, "message": "this is no JSON"}
_STRANGE = {"code": types.INVALID_REQUEST, "message": "this is no message of JSON-RPC 2.0, or it is several"}
_LONG = {"code": types.INVALID_REQUEST, "message": "this message is longer than any may be"}


def serve_stdio(server: Server[Any]) -> int:
    """Answer over stdin and stdout until the input ends; returns the signal that ended it instead, or 0."""
    with _diverted() as (source, sink):
        return asyncio.run(_serve(server, source, sink))


@contextmanager
def _diverted() -> Iterator[tuple[int, int]]:
    """Yield what stdin and stdout were, and lead them elsewhere meanwhile: what anybody prints is no answer."""
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    try:
        yield source, sink
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(sink, 1)  # the threads may still hang in the others: they are not closed


async def _serve(server: Server[Any], source: int, sink: int) -> int:
    wire, came = Wire(source, sink), []

    def told(number: int) -> None:
        came.append(number)
        wire.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # on Windows
            asyncio.get_running_loop().add_signal_handler(number, told, number)
    given_to, given = anyio.create_memory_object_stream[Given](0)
    answers, answered = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_hear, wire, given_to)
        tasks.start_soon(_speak, wire, answered)
        await server.run(given, answers, server.create_initialization_options())
    return came[0] if came else 0


async def _hear(wire: Wire, to: ObjectSendStream[Given]) -> None:
    """Pass on what is said until the input ends; what cannot be understood is answered here."""
    async with to:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
            while (line := await wire.line()) is not None:
                if isinstance(line, bytes) and not line.strip():
                    continue
                message = _understood(line)
                if isinstance(message, SessionMessage):
                    await to.send(message)
                else:
                    await wire.tell(message)


async def _speak(wire: Wire, answers: ObjectReceiveStream[SessionMessage]) -> None:
    async with answers:
        async for answer in answers:
            await wire.tell(answer.message.model_dump_json(by_alias=True, exclude_unset=True).encode())


def _understood(line: Line) -> SessionMessage | bytes:
    """Return a message, or the answer to what is none."""
    if isinstance(line, TooLong):
        return _error(None, _LONG)
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        pass
    try:
        said = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _error(None, _BROKEN)
    number = said.get("id") if isinstance(said, dict) else None
    is_known = isinstance(number, int | str) and not isinstance(number, bool)
    return _error(number if is_known else None, _STRANGE)


def _error(number: int | str | None, error: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error})
