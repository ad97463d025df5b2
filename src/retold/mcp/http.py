"""The server over HTTP: on a port of this machine, for those who know the token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server as Protocol
from mcp.server.transport_security import TransportSecuritySettings

from retold.mcp.guard import HttpGuard
from retold.server import LOOPBACK, HostNames, LoopbackServer, bound

HOST, PATH = "127.0.0.1", "/mcp"
LARGEST = 1 << 20
"""Bytes of a request."""
SESSIONS = 128
"""Clients that have not said goodbye, at the same time; each is forgotten when it says nothing for half an hour."""


class Http:
    """A server that is about to run."""

    def __init__(self, protocol: Protocol[Any], port: int, token: str) -> None:
        """Take a port, 0 is any that is free; raises OSError if that cannot be had."""
        taken = bound(HOST, port)
        self.port: int = taken.getsockname()[1]
        hosts = [f"{name}:{self.port}" for name in (*LOOPBACK, "[::1]")]
        app = protocol.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=LARGEST,
            max_sessions=SESSIONS,
            transport_security=TransportSecuritySettings(
                allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
            ),
        )
        self._server = LoopbackServer(HttpGuard(app, token, HostNames(self.port)), taken)

    @property
    def address(self) -> str:
        """Where it can be asked."""
        return f"http://{HOST}:{self.port}{PATH}"

    def run(self, begun: Callable[[], None]) -> None:
        """Serve until the process is told to end; `begun` is called once the port answers."""
        self._server.run(begun)

    def end(self) -> None:
        """End it from another thread."""
        self._server.end()
