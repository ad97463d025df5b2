"""A server on a port: it is there for as long as the command runs."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import current_thread, main_thread

import uvicorn
from starlette.types import ASGIApp

from retold.serving.connection import ServedConnection

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
