"""`retold mcp` as a process, with a line client and the SDK's client, over pipes and over HTTP."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from support.person import Person

Json = dict[str, Any]
PATIENCE = 60.0
"""How many seconds a client waits for an answer."""
TOKEN = "quokka-" * 4
VERSION = "2025-06-18"
FULL_PIPE = 32_768
"""Bytes: a pipe that holds as many, and no more a moment later, is full; macOS and Linux differ in its size."""
SLOW_PATTERN = "(a+)+$"
"""A regular expression whose running time doubles with each further letter."""


def answer_text(result: CallToolResult) -> str:
    """Return the text of a tool's answer."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@asynccontextmanager
async def stdio_client(env: Mapping[str, str], *arguments: str, mode: str = "auto") -> AsyncIterator[Client]:
    """Start a server, and connect to it over pipes with the SDK's client."""
    command = ["-m", "retold", "mcp", "--scope", "all", *arguments]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(env))
    async with Client(server, mode=mode, read_timeout_seconds=PATIENCE) as spoken:
        yield spoken


@asynccontextmanager
async def http_client(address: str, token: str = TOKEN, mode: str = "auto") -> AsyncIterator[Client]:
    """Connect to a server over HTTP with the SDK's client."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as web:
        transport = streamable_http_client(address, http_client=web)
        async with Client(transport, mode=mode, read_timeout_seconds=PATIENCE) as spoken:
            yield spoken


class LineClient:
    """A client that starts a server and exchanges JSON lines with it."""

    def __init__(self, person: Person, *arguments: str, code: str = "") -> None:
        pipes = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": False,
        }
        self.process: subprocess.Popen[bytes] = person.start(  # type: ignore[assignment]  # as bytes
            "mcp", "--scope", "all", *arguments, code=code, **pipes
        )
        self._heard = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()
            self.process.stdin.close() if self.process.stdin else None

    def say(self, *messages: Json | bytes) -> None:
        """Send messages; bytes are sent unchanged, so that a test can send invalid ones."""
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self, patience: float = PATIENCE) -> Json:
        """Return the next message; a line that is not JSON-RPC fails the test."""
        assert self.process.stdout is not None
        until = time.monotonic() + patience
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self.process.stdout], [], [], max(until - time.monotonic(), 0))
            assert ready, "no answer"
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            assert piece, (self.process.stderr or sys.stdin.buffer).read()
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        message: Json = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def greet(self, version: str = VERSION) -> Json:
        """Run the `initialize` handshake of older clients, and return the answer."""
        about = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "ann", "version": "1"},
        }
        self.say({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": about})
        answer = self.hear()
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, number: int, tool: str = "search_history", **arguments: Any) -> None:
        """Call a tool without waiting for the answer."""
        params = {"name": tool, "arguments": arguments}
        self.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def called(self, number: int, tool: str = "search_history", **arguments: Any) -> Json:
        """Call a tool and return its result."""
        self.call(number, tool, **arguments)
        answer = self.hear()
        assert answer["id"] == number, answer
        result: Json = answer["result"]
        return result

    def close(self) -> None:
        """Close the server's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self, patience: float = PATIENCE) -> tuple[int, float]:
        """Wait until the server exits; return its exit code and the seconds that this took."""
        began = time.monotonic()
        return self.process.wait(patience), time.monotonic() - began

    def wait_for_stderr(self, mark: bytes, times: int = 1) -> None:
        """Wait until the server has written a mark to stderr `times` times."""
        assert self.process.stderr is not None
        until, told = time.monotonic() + PATIENCE, b""
        while told.count(mark) < times:
            ready, _, _ = select.select([self.process.stderr], [], [], max(until - time.monotonic(), 0))
            assert ready, told
            piece = os.read(self.process.stderr.fileno(), 1 << 16)
            assert piece, told
            told += piece

    def wait_for_full_stdout(self) -> None:
        """Wait until the server can write no more, because nobody reads its answers."""
        assert self.process.stdout is not None
        until, held = time.monotonic() + PATIENCE, -1
        while (now := _bytes_held(self.process.stdout.fileno())) < FULL_PIPE or now != held:
            assert time.monotonic() < until, now
            held = now
            time.sleep(0.05)

    def scanners(self) -> list[str]:
        """Return the scanner processes of this server."""
        return [
            line
            for line in process_commands()
            if line.split()[0] == str(self.process.pid) and "scan_job" in line
        ]

    def wait_for_scanners(self, number: int) -> None:
        """Wait until this server has `number` scanner processes."""
        until = time.monotonic() + PATIENCE
        while len(self.scanners()) != number:
            assert time.monotonic() < until, self.scanners()
            time.sleep(0.02)


def _bytes_held(pipe: int) -> int:
    """Return how many bytes a pipe holds that nobody has read yet."""
    import fcntl  # noqa: PLC0415 - not on Windows, where no test asks
    import termios  # noqa: PLC0415

    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def process_commands() -> list[str]:
    """Return one line per process: its parent's id, its id and its command."""
    told = subprocess.run(["ps", "-eo", "ppid=,pid=,args="], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def is_running(number: int) -> bool:
    """Return whether a process is running."""
    return any(line.split()[1] == str(number) and "defunct" not in line for line in process_commands())


def result_text(result: Json) -> str:
    """Return the text of a tool's result in its JSON form."""
    return str(result["content"][0]["text"])


@contextmanager
def run_http_server(
    env: Mapping[str, str], *arguments: str, token: str | None = TOKEN
) -> Iterator[HttpServer]:
    """Start a server over HTTP, and terminate it when the block ends."""
    told = dict(env) | ({} if token is None else {"RETOLD_MCP_TOKEN": token})
    command = [sys.executable, "-m", "retold", "mcp", "--scope", "all", "--http", *arguments]
    with subprocess.Popen(
        command, env=told, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, process.communicate()
            yield HttpServer(process, address)
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


class HttpServer:
    """A running server over HTTP: its process, address and port."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address
        self.port = int(address.partition("127.0.0.1:")[2].partition("/")[0])


def person_with_slow_text(home: Path) -> Person:
    """Return a person with a text on which `SLOW_PATTERN` does not finish."""
    from support.gemini_home import GeminiHome, gemini, user  # noqa: PLC0415

    made = GeminiHome(home)
    made.lines("den", 1, 1, [user("u1", 1, "a" * 60 + "b"), gemini("g1", 2, "A long word.")], kind="main")
    made.lines("den", 2, 2, [user("u2", 1, "baa"), gemini("g2", 2, "So say sheep.")], kind="main")
    person = Person(made.folder)
    person.sync()
    return person
