"""The server over HTTP: on a port of this machine, for those who know the token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Container
from typing import Any

from mcp.server.lowlevel import Server as Protocol
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from retold.server import LOOPBACK, MOST_HEADER_BYTES, Allowance, HostNames, LoopbackServer, bound

STRANGERS = (40, 2.0)
"""How many requests at once, and a second, by all together who do not know the token."""
LONGEST = 1_024
"""Bytes of an address: there is only one."""
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "connection": "close"}


class HttpGuard:
    """Stands before the server: lets only those pass who know the token, and no page of a browser."""

    def __init__(self, app: ASGIApp, token: str, hosts: Container[str]) -> None:
        """Take what a client may call this server, as `127.0.0.1:8080`."""
        self._app, self._hosts = app, hosts
        self._secret = secrets.token_bytes(32)
        self._known = self._digest(token.encode())
        self._strangers = Allowance(*STRANGERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        answer: ASGIApp = self._app
        if scope["type"] == "http":
            answer = self._refusal(scope, Headers(scope=scope)) or self._app
        await answer(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        if self._is_known(scope):
            return self._wrong(scope, headers)
        if not self._strangers.take():
            return _refused(429, "Too many requests: wait a moment")
        told = {"www-authenticate": "Bearer"}
        return self._wrong(scope, headers) or _refused(401, "Authorization: Bearer TOKEN is needed", told)

    def _wrong(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        """Return what is wrong with a request, whoever makes it. DNS can make any name lead here, and then a page asks."""
        if headers.get("host", "") not in self._hosts:
            return _refused(421, "This is not the name of this server")
        is_ours = headers.get("origin") in (None, f"http://{headers.get('host')}")
        if not is_ours or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refused(403, "This is not for pages of a browser")
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST:
            return _refused(414, "The address is too long")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADER_BYTES:
            return _refused(431, "The headers are too long")
        return None

    def _is_known(self, scope: Scope) -> bool:
        """Tell whether the token is given; not even its length can be told from the time that takes."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
        return hmac.compare_digest(self._digest(token), self._known) and scheme.lower() == b"bearer"

    def _digest(self, token: bytes) -> bytes:
        return hmac.digest(self._secret, token.strip(), "sha256")


def _refused(status: int, text: str, more: dict[str, str] | None = None) -> PlainTextResponse:
    """Return the answer to a request that goes no further; what else it may hold is not waited for."""
    return PlainTextResponse(f"{text}\n", status, _HEADERS | (more or {}))


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
