"""The MCP server over stdin and stdout. It ends with the input or by a signal, even if a thread hangs."""

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
"""Bytes of a line; the SDK has the same limit over HTTP."""
_AHEAD = 16
"""Lines that are read ahead."""
_LAST = 0.3
"""Seconds that a write may take after the end of the input, if the client does not read."""
_CHUNK = 1 << 16


class OversizedLine:
    """A line longer than `LONGEST`, whose content was dropped."""


Line = bytes | OversizedLine


class LineSplitter:
    """Splits chunks of bytes into lines."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest, self._line, self._is_skipped = longest, bytearray(), False

    def lines(self, chunk: bytes) -> Iterator[Line]:
        """Yield the lines that a chunk completes."""
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            self._add(end)
            yield OversizedLine() if self._is_skipped else bytes(self._line)
            self._line, self._is_skipped = bytearray(), False
        self._add(rest)

    def last(self) -> Iterator[Line]:
        """Yield the last line, if it has no line end."""
        if self._line:
            yield bytes(self._line)

    def _add(self, piece: bytes) -> None:
        if self._is_skipped or len(self._line) + len(piece) > self._longest:
            self._line, self._is_skipped = bytearray(), True
        else:
            self._line += piece


class StdioStreams:
    """Input and output, each with a daemon thread, since a read or a write may hang for ever."""

    def __init__(self, source: int, sink: int) -> None:
        """Take file descriptors; must be called inside a running loop."""
        self._source, self._sink = source, sink
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[Line] = asyncio.Queue(_AHEAD)
        self._ended = asyncio.Event()
        self._to_write: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        self._is_over = self._is_dead = False
        Thread(target=self._read, name="wire-in", daemon=True).start()
        Thread(target=self._write, name="wire-out", daemon=True).start()

    def end_input(self) -> None:
        """Behave as if the input had ended."""
        self._is_over = True
        self._ended.set()

    async def read_line(self) -> Line | None:
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

    async def write_line(self, line: bytes) -> None:
        """Write a line; it is dropped if the client no longer reads."""
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
        splitter = LineSplitter()
        with suppress(RuntimeError):  # the loop is closed
            with suppress(OSError):
                while chunk := os.read(self._source, _CHUNK):
                    self._pass_on(splitter.lines(chunk))
            self._pass_on(splitter.last())
            self._loop.call_soon_threadsafe(self._ended.set)

    def _pass_on(self, lines: Iterator[Line]) -> None:
        for line in lines:
            putting = asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop)
            putting.result()

    def _write(self) -> None:
        with suppress(RuntimeError):
            while True:
                line, written = self._to_write.get()
                with suppress(OSError):  # the client is gone: the input will end as well
                    while line:
                        line = line[os.write(self._sink, line) :]
                self._loop.call_soon_threadsafe(_done, written)


def _done(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


ReceivedMessage = SessionMessage | Exception
_BROKEN = {"code": types.PARSE_ERROR, "message": "this is no JSON"}
_STRANGE = {"code": types.INVALID_REQUEST, "message": "this is no message of JSON-RPC 2.0, or it is several"}
_LONG = {"code": types.INVALID_REQUEST, "message": "this message is longer than any may be"}


def serve_stdio(server: Server[Any]) -> int:
    """Answer over stdin and stdout until the input ends; return the signal that ended it, or 0."""
    with _redirect_streams() as (source, sink):
        return asyncio.run(_serve(server, source, sink))


@contextmanager
def _redirect_streams() -> Iterator[tuple[int, int]]:
    """Yield copies of stdin and stdout; meanwhile stdout is stderr, so that no print reaches the client."""
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
        os.dup2(sink, 1)  # source and sink stay open, since the threads may still hang in them


async def _serve(server: Server[Any], source: int, sink: int) -> int:
    streams, signals = StdioStreams(source, sink), []

    def on_signal(number: int) -> None:
        signals.append(number)
        streams.end_input()

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # on Windows
            asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    send_message, messages = anyio.create_memory_object_stream[ReceivedMessage](0)
    send_answer, answers = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, streams, send_message)
        tasks.start_soon(_send, streams, answers)
        await server.run(messages, send_answer, server.create_initialization_options())
    return signals[0] if signals else 0


async def _receive(streams: StdioStreams, to: ObjectSendStream[ReceivedMessage]) -> None:
    """Pass messages to the server until the input ends; malformed ones are answered here."""
    async with to:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the server has ended
            while (line := await streams.read_line()) is not None:
                if isinstance(line, bytes) and not line.strip():
                    continue
                message = _parse_message(line)
                if isinstance(message, SessionMessage):
                    await to.send(message)
                else:
                    await streams.write_line(message)


async def _send(streams: StdioStreams, answers: ObjectReceiveStream[SessionMessage]) -> None:
    async with answers:
        async for answer in answers:
            await streams.write_line(
                answer.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            )


def _parse_message(line: Line) -> SessionMessage | bytes:
    """Return a message, or the error that answers a malformed one."""
    if isinstance(line, OversizedLine):
        return _error(None, _LONG)
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        pass
    try:
        tree = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _error(None, _BROKEN)
    number = tree.get("id") if isinstance(tree, dict) else None
    is_known = isinstance(number, int | str) and not isinstance(number, bool)
    return _error(number if is_known else None, _STRANGE)


def _error(number: int | str | None, error: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error})
