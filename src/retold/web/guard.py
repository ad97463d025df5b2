"""What every request must get past before a page hears of it, and what every answer tells the browser."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retold.server import MOST_HEADER_BYTES, Allowance
from retold.web.entrance import LoginTokens

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
