"""The server: on a port of this machine, for as long as the command runs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
import uvicorn

from retold.web.app import application
from retold.web.entrance import Entrance
from retold.web.guard import ENTER
from retold.web.looks import address

LOOPBACK = ("127.0.0.1", "localhost", "::1")
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
        app = application(place.folder, self.entrance, [f"{name}:{self.port}" for name in _names(place)])
        self._server = _Server(
            uvicorn.Config(
                app,
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                ws="none",
                h11_max_incomplete_event_size=32_768,
                timeout_graceful_shutdown=_CLOSING,
            )
        )

    def link(self) -> str:
        """Return a new link that works once, within a minute."""
        return f"http://{_named(self._place.host)}:{self.port}{address(ENTER, key=self.entrance.link_key())}"

    def front(self) -> str:
        """Return the address without a key, for those who know the token."""
        return f"http://{_named(self._place.host)}:{self.port}{ENTER}"

    def run(self, begun: Callable[[], None]) -> None:
        """Serve until the process is told to end; `begun` is called once the port answers."""
        self._server.begun = begun
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
    made = socket.socket(family, socket.SOCK_STREAM)
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


def _names(place: Place) -> Iterator[str]:
    """Yield what browsers may call this server; an address of numbers cannot be made to lead elsewhere."""
    yield from map(_named, LOOPBACK)
    if place.is_open:
        yield _named(place.host)
        yield from map(_named, _addresses())
        yield from (name.lower() for name in (socket.gethostname(), *place.names))


def _addresses() -> Iterator[str]:
    with suppress(OSError):
        for *_, found in socket.getaddrinfo(socket.gethostname(), None):
            yield str(found[0])


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host
