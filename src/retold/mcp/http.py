"""The MCP server over HTTP on a port of this machine, for clients that have the token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Container
from typing import Any

from mcp.server.lowlevel import Server as Protocol
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from retold.server import LOOPBACK, MOST_HEADER_BYTES, HostNames, LoopbackServer, RateLimit, bind_socket

STRANGERS = (40, 2.0)
"""Requests at once and per second, for all clients without the token together."""
LONGEST = 1_024
"""Bytes of an address."""
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "connection": "close"}


class HttpGuard:
    """Middleware that lets requests with the token pass, and none of a browser's page."""

    def __init__(self, app: ASGIApp, token: str, hosts: Container[str]) -> None:
        """Take the host names of the server, such as `127.0.0.1:8080`."""
        self._app, self._hosts = app, hosts
        self._secret = secrets.token_bytes(32)
        self._known = self._digest(token.encode())
        self._strangers = RateLimit(*STRANGERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        answer: ASGIApp = self._app
        if scope["type"] == "http":
            answer = self._refusal(scope, Headers(scope=scope)) or self._app
        await answer(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        if self._is_known(scope):
            return self._fault(scope, headers)
        if not self._strangers.take():
            return _refusal_response(429, "Too many requests: wait a moment")
        needs_token = {"www-authenticate": "Bearer"}
        fault = self._fault(scope, headers)
        return fault or _refusal_response(401, "Authorization: Bearer TOKEN is needed", needs_token)

    def _fault(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        """Return the refusal of a faulty request. The host is checked because DNS can make any name lead here."""
        if headers.get("host", "") not in self._hosts:
            return _refusal_response(421, "This is not the name of this server")
        is_ours = headers.get("origin") in (None, f"http://{headers.get('host')}")
        if not is_ours or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refusal_response(403, "This is not for pages of a browser")
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST:
            return _refusal_response(414, "The address is too long")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADER_BYTES:
            return _refusal_response(431, "The headers are too long")
        return None

    def _is_known(self, scope: Scope) -> bool:
        """Return whether the token is given; the time does not depend on it, not even on its length."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
        return hmac.compare_digest(self._digest(token), self._known) and scheme.lower() == b"bearer"

    def _digest(self, token: bytes) -> bytes:
        return hmac.digest(self._secret, token.strip(), "sha256")


def _refusal_response(status: int, text: str, headers: dict[str, str] | None = None) -> PlainTextResponse:
    """Return the response to a refused request; it closes the connection, so that the rest is not waited for."""
    return PlainTextResponse(f"{text}\n", status, _HEADERS | (headers or {}))


HOST, PATH = "127.0.0.1", "/mcp"
LARGEST = 1 << 20
"""Bytes of a request."""
SESSIONS = 128
"""Open sessions of clients; the SDK drops one that is silent for half an hour."""


class McpHttpServer(LoopbackServer):
    """The MCP server on a port. The socket is bound at once, and `run` serves it."""

    def __init__(self, protocol: Protocol[Any], port: int, token: str) -> None:
        """Bind a port, 0 for any free one; raises OSError if it cannot be had."""
        bound = bind_socket(HOST, port)
        self.port: int = bound.getsockname()[1]
        hosts = [f"{name}:{self.port}" for name in (*LOOPBACK, "[::1]")]
        app = protocol.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=LARGEST,
            max_sessions=SESSIONS,
            transport_security=TransportSecuritySettings(
                allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
            ),
        )
        super().__init__(HttpGuard(app, token, HostNames(self.port)), bound)

    @property
    def address(self) -> str:
        """The URL of the server."""
        return f"http://{HOST}:{self.port}{PATH}"
