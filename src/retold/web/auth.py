"""Access to the local page: links that work once, the token, cookies, and the guard before every request."""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

import msgspec
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retold.server import MOST_HEADER_BYTES, RateLimit

LASTS = 60.0
"""Seconds for which a link works."""
TRIES = (5, 5 / 60)
"""Attempts to type the token, for all visitors together: at once, and per second."""
MOST = 64
"""Links and visitors that are remembered; the oldest are dropped."""


class LoginTokens:
    """Issues links and cookies, and recognises them. They are valid while the process runs."""

    def __init__(
        self, port: int, token: str | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.cookie = f"retold-{port}"
        """The name of the cookie. It has the port, since browsers send cookies to every port of a machine."""
        self._token, self._now, self._lock = token, now, Lock()
        self._secret = secrets.token_bytes(32)
        self._links: OrderedDict[str, float] = OrderedDict()
        self._visitors: OrderedDict[str, None] = OrderedDict()
        self._tries = RateLimit(*TRIES, now)

    @property
    def has_token(self) -> bool:
        """Whether a visitor can log in with a token."""
        return self._token is not None

    def create_link_key(self) -> str:
        """Return the key of a new link."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._links[key] = self._now() + LASTS
            while len(self._links) > MOST:
                self._links.popitem(last=False)
        return key

    def is_valid_link(self, key: str | None) -> bool:
        """Return whether a link works, without using it up."""
        with self._lock:
            return key is not None and self._links.get(key, 0.0) >= self._now()

    def log_in_by_link(self, key: str) -> str | None:
        """Return a new visitor's cookie for a link that works, and use the link up."""
        with self._lock:
            until = self._links.pop(key, None)
        return self._add_visitor() if until is not None and self._now() <= until else None

    def take_attempt(self) -> bool:
        """Take one of the attempts to type the token; return whether one was left."""
        with self._lock:
            return self._tries.take()

    def log_in_by_token(self, typed: str) -> str | None:
        """Return a new visitor's cookie for the token; the time does not depend on the token, not even on its length."""
        given, known = (self._digest(text) for text in (typed, self._token or ""))
        return self._add_visitor() if hmac.compare_digest(given, known) and self._token else None

    def _add_visitor(self) -> str:
        visitor = secrets.token_urlsafe(32)
        with self._lock:
            self._visitors[visitor] = None
            while len(self._visitors) > MOST:
                self._visitors.popitem(last=False)
        return visitor

    def is_logged_in(self, visitor: str | None) -> bool:
        """Return whether a visitor has logged in."""
        with self._lock:
            return visitor is not None and visitor in self._visitors

    def form_token(self, visitor: str) -> str:
        """Return the token of a visitor's forms: another site cannot read it, so it cannot send a form."""
        return self._digest(visitor).hex()

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._secret, text.encode(errors="replace"), "sha256")

    def is_form_token(self, visitor: str, token: str | None) -> bool:
        """Return whether a form comes from a page that this visitor was shown."""
        return token is not None and hmac.compare_digest(
            self.form_token(visitor).encode(), token.encode(errors="replace")
        )


ENTER, STATIC = "/enter", "/static/"
LONGEST = 8_192
"""Bytes of an address."""
KNOWN, STRANGERS = (400, 200.0), (40, 2.0)
"""Requests at once and per second, for logged-in visitors, and for all strangers together."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_OWN = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` for requests of our own pages and of the person."""


class Refusal(NamedTuple):
    """The status and the text of a refused request."""

    status: int
    text: str


def refusal_response(refusal: Refusal) -> PlainTextResponse:
    """Return the response to a refused request; it closes the connection, so that the rest is not waited for."""
    return PlainTextResponse(f"{refusal.text}\n", refusal.status, {"connection": "close"})


class WebGuard:
    """Middleware that checks host, size, origin, login and rate of every request, and adds the security headers."""

    def __init__(self, app: ASGIApp, login_tokens: LoginTokens, hosts: Container[str]) -> None:
        """Take the host names of the server, such as `127.0.0.1:8080`."""
        self._app, self._login_tokens, self._hosts = app, login_tokens, hosts
        self._known, self._strangers = RateLimit(*KNOWN), RateLimit(*STRANGERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            headers = Headers(scope=scope)
            visitor = read_cookies(headers).get(self._login_tokens.cookie)
            refusal = self._refusal(scope, headers, visitor)
            scope.setdefault("state", {})["visitor"] = visitor
            answer = self._app if refusal is None else refusal_response(refusal)
            await answer(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers, visitor: str | None) -> Refusal | None:
        """Return why a request is refused. A faulty request counts against the limit of strangers."""
        wrong = self._wrong(scope, headers)
        is_entering = scope["path"] == ENTER
        is_known = wrong is None and (
            self._login_tokens.is_logged_in(visitor)
            or (
                is_entering
                and self._login_tokens.is_valid_link(QueryParams(scope["query_string"]).get("key"))
            )
        )
        if not (self._known if is_known else self._strangers).take():
            return Refusal(429, "Too many requests: wait a moment")
        if wrong is not None or is_known or is_entering or scope["path"].startswith(STATIC):
            return wrong  # static files are no secret
        return Refusal(403, "Open the link that `retold web` tells: it works once, within a minute")

    def _wrong(self, scope: Scope, headers: Headers) -> Refusal | None:
        if headers.get("host", "") not in self._hosts:
            return Refusal(421, "This is not the name of this server: `retold web --name` gives it one")
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST:
            return Refusal(414, "The address is too long")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADER_BYTES:
            return Refusal(431, "The headers are too long")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return Refusal(405, "Only GET and POST")
        is_link = scope["path"] == ENTER and scope["method"] != "POST"
        if not (_is_opened(scope, headers) if is_link else _is_own(scope, headers)):
            return Refusal(403, "Another site asked for this, or not a person")
        return None


def _is_own(scope: Scope, headers: Headers) -> bool:
    """Return whether a request comes from our own pages or from no page; a POST must name its origin."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin == "null":
        # A form of a page with `referrer-policy: no-referrer` has this origin; only the site header identifies it.
        return site == "same-origin"
    if scope["method"] == "POST" and origin is None:
        return False
    is_same = origin is None or origin == f"{scope['scheme']}://{headers.get('host')}"
    return is_same and ("none" if site is None else site) in _OWN


def _is_opened(scope: Scope, headers: Headers) -> bool:
    """Return whether a person followed a link, and it was not prefetched, framed or fetched by a script."""
    mode, dest = headers.get("sec-fetch-mode", "navigate"), headers.get("sec-fetch-dest", "document")
    is_ahead = any("pre" in headers.get(name, "") for name in ("sec-purpose", "purpose", "x-moz"))
    return scope["method"] == "GET" and mode == "navigate" and dest == "document" and not is_ahead


def read_cookies(headers: Headers) -> dict[str, str]:
    """Return the cookies of a request, without malformed ones, which other servers of this machine may have set."""
    return cookie_parser(headers.get("cookie", ""))


def _with_headers(send: Send) -> Send:
    """Return a `send` that adds the security headers."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
"""Linux lists the sockets of a machine and their owners here."""
_ESTABLISHED, _LISTENS = "01", "0A"
_FIELDS = 8
SocketAddress = tuple[str, int]
"""IP address and port."""


class _Socket(msgspec.Struct, frozen=True):
    here: SocketAddress
    there: SocketAddress
    state: str
    owner: int


def has_socket_owners(port: int, tables: Sequence[str] = TABLES) -> bool:
    """Return whether the system tells the owners of sockets; checked with our own listening socket."""
    return any(
        one.state == _LISTENS and one.here[1] == port and one.owner == os.getuid() for one in _sockets(tables)
    )


def is_other_user(
    client: SocketAddress | None, server: SocketAddress | None, tables: Sequence[str] = TABLES
) -> bool:
    """Return whether a visitor is another user of this machine.

    The user who runs the server may visit, and root, who can read everything anyway. The owner of a closed socket is
    unknown, so it is treated as another user.
    """
    if client is None or server is None:
        return False
    ends = _normal_address(*client), _normal_address(*server)
    for one in _sockets(tables):
        if (one.here, one.there) == ends:
            return one.state != _ESTABLISHED or one.owner not in (0, os.getuid())
    return False


def _sockets(tables: Sequence[str]) -> Iterator[_Socket]:
    for table in tables:
        with suppress(OSError), open(table, encoding="ascii") as rows:
            next(rows, None)  # names of the columns
            for row in rows:
                fields = row.split()
                if len(fields) >= _FIELDS:
                    here, there = _parse_address(fields[1]), _parse_address(fields[2])
                    yield _Socket(here, there, fields[3], int(fields[7]))


def _parse_address(text: str) -> SocketAddress:
    """Return an address of the table, which has it as hexadecimal words in the byte order of the machine."""
    address, _, port = text.partition(":")
    words = (int(address[start : start + 8], 16) for start in range(0, len(address), 8))
    packed = b"".join(struct.pack("=I", word) for word in words)
    return _normal_address(str(ipaddress.ip_address(packed)), int(port, 16))


def _normal_address(address: str, port: int) -> SocketAddress:
    """Return an address with IPv4 written as IPv4, which the table may have as IPv6."""
    with suppress(ValueError):
        ip = ipaddress.ip_address(address)
        mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
        return str(mapped or ip), port
    return address, port
