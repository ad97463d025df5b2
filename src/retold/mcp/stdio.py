"""The server over stdin and stdout: it ends when the input does, or when it is told to, whatever it is at."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
import msgspec
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from retold.mcp.wire import Line, TooLong, Wire

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
