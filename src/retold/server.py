"""HTTP on a port of this machine, for `web` and `mcp --http`: rate limits, deadlines of connections, host names, tokens."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import current_thread, main_thread
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol


class RateLimit:
    """A token bucket: a number of requests at once, and a number per second in the long run."""

    def __init__(self, at_once: float, a_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._full, self._a_second, self._now = at_once, a_second, now
        self._left, self._at = at_once, now()

    def take(self) -> bool:
        """Take a token from the bucket; return whether there was one."""
        now = self._now()
        self._left = min(self._full, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


PATIENCE = 10.0
"""Seconds within which a whole request must arrive: the first of a connection, and each later one."""
MOST_CONNECTIONS = 128
"""Open connections. Beyond that, the one that has been idle longest is closed."""


class ServedConnection(H11Protocol):
    """An HTTP connection with a deadline for each request; uvicorn itself waits for the first without limit."""

    since = 0.0
    """Start of the connection, by the clock of the loop."""
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline, and close an idle connection if there are too many."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._wait_for_request()
        if len(self.connections) > MOST_CONNECTIONS:
            idle = [one for one in self.connections if isinstance(one, ServedConnection) and one.is_idle]
            min(idle, key=lambda one: one.since, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Start the deadline of the next request: uvicorn's own stops at the first byte."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(PATIENCE, self._end_if_late)

    @property
    def is_idle(self) -> bool:
        """Whether there is no request, or it has been answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _end_if_late(self) -> None:
        if self.is_idle:
            self.transport.abort()


LOOPBACK = ("127.0.0.1", "localhost", "::1")
_DEFAULT_PORT = 80
"""Browsers leave this port out of the host name."""


class HostNames(msgspec.Struct, frozen=True):
    """The names by which a server on a port may be called."""

    port: int
    given: tuple[str, ...] = ()
    """Names besides the loopback ones."""
    is_open: bool = False
    """Whether other machines may call it by any IP address; an address, unlike a name, cannot be rebound by DNS."""

    def __contains__(self, host: object) -> bool:
        """Return whether a `Host` header names this server."""
        name = self._without_port(str(host).lower())
        if name is None:
            return False
        known = (*LOOPBACK, *(one.lower() for one in self.given))
        return name in known or (self.is_open and _is_number(name))

    def _without_port(self, host: str) -> str | None:
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host, str(_DEFAULT_PORT)
        if port != str(self.port):
            return None
        if name.startswith("[") and name.endswith("]"):
            return name[1:-1]
        return None if ":" in name else name


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


MOST_HEADER_BYTES = 32_768
"""Bytes of headers; they include the cookies of all servers of this machine."""
_SHUTDOWN_SECONDS = 1
"""Seconds for which the server waits for open connections at its end."""


class LoopbackServer:
    """Serves an application on a socket."""

    def __init__(self, app: ASGIApp, bound: socket.socket) -> None:
        self._socket = bound
        self._server = _Server(
            uvicorn.Config(
                app,
                http=ServedConnection,
                access_log=False,
                log_config=None,
                log_level="critical",  # requests of strangers are not worth a line; answers report our bugs
                server_header=False,
                proxy_headers=False,
                ws="none",
                h11_max_incomplete_event_size=2 * MOST_HEADER_BYTES,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )

    def run(self, on_start: Callable[[], None]) -> None:
        """Serve until the process gets a signal to end; call `on_start` once the port answers."""
        self._server.on_start = on_start
        if current_thread() is main_thread():
            # SIGTERM ends as Ctrl-C does, so that temporary files are removed.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            asyncio.run(self._server.serve(sockets=[self._socket]))

    def end(self) -> None:
        """Stop the server; may be called from another thread."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    on_start: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.on_start is not None:
            self.on_start()


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket at an address; port 0 is any free port. Raises OSError if the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol given, asyncio sets TCP_NODELAY; without it, the last piece of an answer waits for 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if hasattr(
        socket, "SO_EXCLUSIVEADDRUSE"
    ):  # on Windows another process could take the same port otherwise
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError):
        bound.close()
        raise
    return bound


SHORTEST = 16
"""Characters of a token, at least: a shorter one can be guessed."""
FEWEST = 6
"""Different characters of a token, at least: one repeated letter can be guessed."""


def token_weakness(token: str) -> str | None:
    """Return why a token can be guessed; None if it cannot."""
    if len(token) < SHORTEST:
        return f"too short: at least {SHORTEST} characters"
    if len(set(token)) < FEWEST:
        return f"too simple: at least {FEWEST} different characters"
    return None
