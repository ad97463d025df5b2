"""How often something may be asked for: a store that empties with each time and fills by itself."""

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


class Allowance:
    """So many at once, and so many a second in the long run."""

    def __init__(self, at_once: float, a_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._full, self._a_second, self._now = at_once, a_second, now
        self._left, self._at = at_once, now()

    def take(self) -> bool:
        """Take one; tell whether there was one."""
        now = self._now()
        self._left = min(self._full, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


PATIENCE = 10.0
"""Seconds within which a whole request must arrive: the first one, and each later one on a connection that is kept."""
MOST_CONNECTIONS = 128
"""Connections at the same time: beyond that, whoever has waited longest without asking goes."""


class ServedConnection(H11Protocol):
    """Speaks HTTP; uvicorn itself gives somebody who never asks all the time in the world."""

    since = 0.0
    """When it began, by the clock of the loop."""
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._wait_for_request()
        if len(self.connections) > MOST_CONNECTIONS:
            idle = [one for one in self.connections if isinstance(one, ServedConnection) and one.is_idle]
            min(idle, key=lambda one: one.since, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request: uvicorn stops its own clock as soon as one byte of it arrives."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(PATIENCE, self._end_if_late)

    @property
    def is_idle(self) -> bool:
        """Whether nothing was asked, or all of it answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _end_if_late(self) -> None:
        if self.is_idle:
            self.transport.abort()


LOOPBACK = ("127.0.0.1", "localhost", "::1")
_USUAL = 80
"""The port that browsers do not name."""


class HostNames(msgspec.Struct, frozen=True):
    """The names of a server on a port."""

    port: int
    given: tuple[str, ...] = ()
    """Names beside those of every machine for itself."""
    is_open: bool = False
    """Whether other machines may come, by any address: one of numbers cannot be made to lead elsewhere."""

    def __contains__(self, host: object) -> bool:
        """Tell whether this is the host that a browser names where it means this server."""
        name = self._without_port(str(host).lower())
        if name is None:
            return False
        known = (*LOOPBACK, *(one.lower() for one in self.given))
        return name in known or (self.is_open and _is_number(name))

    def _without_port(self, host: str) -> str | None:
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host, str(_USUAL)
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
"""Bytes of headers: cookies of all servers of this machine are among them."""
_CLOSING = 1
"""Seconds for which open connections are waited for at the end."""


class LoopbackServer:
    """An application that is about to be served."""

    def __init__(self, app: ASGIApp, bound: socket.socket) -> None:
        self._socket = bound
        self._server = _Server(
            uvicorn.Config(
                app,
                http=ServedConnection,
                access_log=False,
                log_config=None,
                log_level="critical",  # what strangers send is not worth a line; our own bugs are told by the answers
                server_header=False,
                proxy_headers=False,
                ws="none",
                h11_max_incomplete_event_size=2 * MOST_HEADER_BYTES,
                timeout_graceful_shutdown=_CLOSING,
            )
        )

    def run(self, begun: Callable[[], None]) -> None:
        """Serve until the process is told to end; `begun` is called once the port answers."""
        self._server.begun = begun
        if current_thread() is main_thread():
            # To be terminated is to end as with Ctrl-C: what has to be cleared away is.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            asyncio.run(self._server.serve(sockets=[self._socket]))

    def end(self) -> None:
        """End it from another thread."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    begun: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.begun is not None:
            self.begun()


def bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address, 0 is any free port; raises OSError if that cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said to be TCP: only then asyncio sends answers at once, where else the last piece waits for 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # on Windows others could else take the same port
        made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError):
        made.close()
        raise
    return made


SHORTEST = 16
"""Characters of such a token: a shorter one can be guessed."""
FEWEST = 6
"""How many of these differ: a row of one letter can be guessed, too."""


def weakness(token: str) -> str | None:
    """Return why others could guess a token; None if they could not."""
    if len(token) < SHORTEST:
        return f"too short: at least {SHORTEST} characters"
    if len(set(token)) < FEWEST:
        return f"too simple: at least {FEWEST} different characters"
    return None
