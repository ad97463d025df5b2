"""Who may come in: whoever has a link that works once within a minute, or knows the token, gets a cookie."""

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

from retold.server import MOST_HEADER_BYTES, Allowance

LASTS = 60.0
"""Seconds for which a link works."""
TRIES = (5, 5 / 60)
"""How often a token may be typed, by all together: at once, and a second."""
MOST = 64
"""As many links and visitors are remembered: the oldest are let go."""


class LoginTokens:
    """Hands out links and cookies, and knows them again; all of it is forgotten with the process."""

    def __init__(
        self, port: int, token: str | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.cookie = f"retold-{port}"
        """The cookie's name: browsers send cookies to every port of a machine, and several pages may be open."""
        self._token, self._now, self._lock = token, now, Lock()
        self._secret = secrets.token_bytes(32)
        self._links: OrderedDict[str, float] = OrderedDict()
        self._visitors: OrderedDict[str, None] = OrderedDict()
        self._tries = Allowance(*TRIES, now)

    @property
    def has_token(self) -> bool:
        """Whether a token can be typed."""
        return self._token is not None

    def link_key(self) -> str:
        """Return what a new link carries."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._links[key] = self._now() + LASTS
            while len(self._links) > MOST:
                self._links.popitem(last=False)
        return key

    def is_link(self, key: str | None) -> bool:
        """Tell whether a link works; it still does afterwards."""
        with self._lock:
            return key is not None and self._links.get(key, 0.0) >= self._now()

    def by_link(self, key: str) -> str | None:
        """Return a visitor's cookie for a link that still works; it does not work again."""
        with self._lock:
            until = self._links.pop(key, None)
        return self._admitted() if until is not None and self._now() <= until else None

    def may_try(self) -> bool:
        """Take one of the few tries that there are."""
        with self._lock:
            return self._tries.take()

    def by_token(self, typed: str) -> str | None:
        """Return a visitor's cookie for the token; not even its length can be told from the time that takes."""
        given, known = (self._digest(text) for text in (typed, self._token or ""))
        return self._admitted() if hmac.compare_digest(given, known) and self._token else None

    def _admitted(self) -> str:
        visitor = secrets.token_urlsafe(32)
        with self._lock:
            self._visitors[visitor] = None
            while len(self._visitors) > MOST:
                self._visitors.popitem(last=False)
        return visitor

    def knows(self, visitor: str | None) -> bool:
        """Tell whether somebody was let in."""
        with self._lock:
            return visitor is not None and visitor in self._visitors

    def form_token(self, visitor: str) -> str:
        """Return what a visitor's forms carry: whoever cannot read a page cannot send one of its forms."""
        return self._digest(visitor).hex()

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._secret, text.encode(errors="replace"), "sha256")

    def is_form_token(self, visitor: str, token: str | None) -> bool:
        """Tell whether a form is from a page that this visitor was shown."""
        return token is not None and hmac.compare_digest(
            self.form_token(visitor).encode(), token.encode(errors="replace")
        )


ENTER, STATIC = "/enter", "/static/"
LONGEST = 8_192
"""Bytes of an address."""
KNOWN, STRANGERS = (400, 200.0), (40, 2.0)
"""How many requests at once, and a second, by those who were let in, and by all others together."""
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
"""What a browser says of a request that our own page made, or the person themselves."""


class Refusal(NamedTuple):
    """Why a request goes no further."""

    status: int
    text: str


def refused(refusal: Refusal) -> PlainTextResponse:
    """Return the answer to a request that goes no further; what else it may hold is not waited for."""
    return PlainTextResponse(f"{refusal.text}\n", refusal.status, {"connection": "close"})


class WebGuard:
    """Stands before the pages."""

    def __init__(self, app: ASGIApp, entrance: LoginTokens, hosts: Container[str]) -> None:
        """Take what a browser may call this server, as `127.0.0.1:8080`."""
        self._app, self._entrance, self._hosts = app, entrance, hosts
        self._known, self._strangers = Allowance(*KNOWN), Allowance(*STRANGERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            headers = Headers(scope=scope)
            visitor = cookies_of(headers).get(self._entrance.cookie)
            refusal = self._refusal(scope, headers, visitor)
            scope.setdefault("state", {})["visitor"] = visitor
            answer = self._app if refusal is None else refused(refusal)
            await answer(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers, visitor: str | None) -> Refusal | None:
        """Return why a request goes no further; what is wrong with it is at the expense of strangers."""
        wrong = self._wrong(scope, headers)
        is_entering = scope["path"] == ENTER
        is_known = wrong is None and (
            self._entrance.knows(visitor) or (is_entering and self._entrance.is_link(_key(scope)))
        )
        if not (self._known if is_known else self._strangers).take():
            return Refusal(429, "Too many requests: wait a moment")
        if wrong is not None or is_known or is_entering or scope["path"].startswith(STATIC):
            return wrong  # what pages are made with is no secret
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


def _key(scope: Scope) -> str | None:
    return QueryParams(scope["query_string"]).get("key")


def _is_own(scope: Scope, headers: Headers) -> bool:
    """Tell whether a request comes from one of our pages, or from no page at all; one that changes something must say so."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin == "null":
        # What a browser says of a form of a page that is not to be told as its referrer; only the site tells then.
        return site == "same-origin"
    if scope["method"] == "POST" and origin is None:
        return False
    is_same = origin is None or origin == f"{scope['scheme']}://{headers.get('host')}"
    return is_same and ("none" if site is None else site) in _OWN


def _is_opened(scope: Scope, headers: Headers) -> bool:
    """Tell whether a link was followed by a person, and not loaded in advance, in a frame or by a script."""
    mode, dest = headers.get("sec-fetch-mode", "navigate"), headers.get("sec-fetch-dest", "document")
    is_ahead = any("pre" in headers.get(name, "") for name in ("sec-purpose", "purpose", "x-moz"))
    return scope["method"] == "GET" and mode == "navigate" and dest == "document" and not is_ahead


def cookies_of(headers: Headers) -> dict[str, str]:
    """Return the cookies of a request; other servers of this machine may have set some that are none."""
    return cookie_parser(headers.get("cookie", ""))


def _with_headers(send: Send) -> Send:
    """Return what sends an answer with everything that a browser must be told."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
"""Where Linux lists the sockets of a machine, with their owners."""
_ESTABLISHED, _LISTENS = "01", "0A"
_FIELDS = 8
Place = tuple[str, int]
"""Address and port."""


class _Socket(msgspec.Struct, frozen=True):
    here: Place
    there: Place
    state: str
    owner: int


def is_told(port: int, tables: Sequence[str] = TABLES) -> bool:
    """Tell whether the system says whose a socket is, as it does of ours that listens on a port."""
    return any(
        one.state == _LISTENS and one.here[1] == port and one.owner == os.getuid() for one in _sockets(tables)
    )


def is_of_others(client: Place | None, server: Place | None, tables: Sequence[str] = TABLES) -> bool:
    """Tell whether a visitor is another user of this machine.

    Whoever runs the server may come, and root, who can see everything anyway. Of a socket that was closed
    nobody can tell any more whose it was.
    """
    if client is None or server is None:
        return False
    ends = _plain(*client), _plain(*server)
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
                    yield _Socket(_place(fields[1]), _place(fields[2]), fields[3], int(fields[7]))


def _place(told: str) -> Place:
    """Return an address as it is usually written; here it is in words of the machine's own order."""
    address, _, port = told.partition(":")
    words = (int(address[start : start + 8], 16) for start in range(0, len(address), 8))
    return _plain(
        str(ipaddress.ip_address(b"".join(struct.pack("=I", word) for word in words))), int(port, 16)
    )


def _plain(address: str, port: int) -> Place:
    """Return an address in one of its forms: one of IPv4 may be told as one of IPv6."""
    with suppress(ValueError):
        found = ipaddress.ip_address(address)
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return str(mapped or found), port
    return address, port
