"""The server: on a port of this machine, for as long as the command runs."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import current_thread, main_thread

import msgspec
import uvicorn

from retold.web.app import application
from retold.web.connection import Connection
from retold.web.entrance import Entrance
from retold.web.guard import ENTER, MOST
from retold.web.looks import address
from retold.web.names import LOOPBACK, Names

_CLOSING = 1
"""Seconds for which open connections are waited for at the end."""


class Place(msgspec.Struct, frozen=True):
    """Where the page is to be."""

    folder: str
    """Of the archive."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 is any that is free."""
    token: str | None = None
    names: tuple[str, ...] = ()
    """Further names under which browsers may call this server."""

    @property
    def is_open(self) -> bool:
        """Whether other machines can reach it."""
        return self.host not in LOOPBACK


class Web:
    """A server that is about to run."""

    def __init__(self, place: Place) -> None:
        """Take a port; raises OSError if that cannot be had."""
        self._place = place
        self._socket = _bound(place)
        self.port: int = self._socket.getsockname()[1]
        self.entrance = Entrance(self.port, place.token)
        app = application(place.folder, self.entrance, Names(self.port, place.names, place.is_open))
        self._server = _Server(
            uvicorn.Config(
                app,
                http=Connection,
                access_log=False,
                log_config=None,
                log_level="critical",  # what strangers send is not worth a line; our own bugs are told by the pages
                server_header=False,
                proxy_headers=False,
                ws="none",
                h11_max_incomplete_event_size=2 * MOST,
                timeout_graceful_shutdown=_CLOSING,
            )
        )

    def link(self) -> str:
        """Return a new link that works once, within a minute."""
        return f"http://{_named(self._place.host)}:{self.port}{address(ENTER, key=self.entrance.link_key())}"

    def front(self) -> str:
        """Return the address without a key, for those who know the token."""
        return f"http://{_named(_reached(self._place.host))}:{self.port}{ENTER}"

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


def _bound(place: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    # Said to be TCP: only then asyncio sends answers at once, where else the last piece waits for 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # on Windows others could else take the same port
        made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((place.host, place.port))
    except OSError:
        made.close()
        raise
    return made


def _reached(host: str) -> str:
    """Return an address under which others reach what listens at all of them."""
    if host not in ("0.0.0.0", "::", ""):  # noqa: S104 - what the person gave
        return host
    with suppress(OSError):
        found = [str(place[0]) for *_, place in socket.getaddrinfo(socket.gethostname(), None)]
        return next((one for one in found if not one.startswith(("127.", "::1", "fe80"))), host)
    return host


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host
