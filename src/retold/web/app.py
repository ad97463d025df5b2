"""The pages behind one address: a request becomes values, a page answers with values, and those become a response."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import AsyncIterator, Container, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.search.archive_pool import ArchivePool
from retold.search.scan_pool import Scans
from retold.web.auth import ENTER, STATIC, LoginTokens, Refusal, WebGuard, cookies_of, is_of_others, refused
from retold.web.background import Following
from retold.web.page import Answer, Download, NotFound, PageRequest, PageRoute, Redirect, TemplatePage
from retold.web.pages import PAGES
from retold.web.templating import address, rendered, static

LARGEST = 65_536
"""Bytes of a form: names and choices."""
PATIENCE = 10.0
"""Seconds within which all of it must have come."""
_FIELDS = 64


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form; raises ValueError for what is none of ours."""
    body = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for piece in request.stream():
                body += piece
                if len(body) > LARGEST:
                    raise ValueError("too large")
    except TimeoutError:
        raise ValueError("too slow") from None
    return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict"))


def asked_of(request: Request, form: dict[str, str], form_token: str) -> PageRequest:
    """Return a request as pages get it; raises ValueError for an address that is none of ours."""
    query = parse_qs(
        request.scope["query_string"].decode("latin-1"), errors="replace", max_num_fields=_FIELDS
    )
    return PageRequest(request.scope["path"], query, form, cookies_of(request.headers), form_token)


_WAIT = Refusal(429, "Too many tokens were tried: wait a minute")


async def entered(request: Request, entrance: LoginTokens) -> Response:
    """Let somebody in, or tell them how to come in."""
    if is_of_others(request.client, request.scope["server"]):
        return refused(Refusal(403, "Another user of this machine asked for this"))
    if request.method == "POST":
        try:
            typed = (await form_of(request)).get("token", "")
        except (ValueError, ClientDisconnect):
            return refused(Refusal(400, "This form cannot be understood"))
        if not entrance.may_try():
            return refused(_WAIT)
        visitor = entrance.by_token(typed)
        told = "" if visitor else "That is not the token."
    else:
        key = request.query_params.get("key")
        visitor = entrance.by_link(key) if key else None
        told = "This link has been used, or is older than a minute." if key and not visitor else ""
    values = {"has_token": entrance.has_token, "told": told, "is_in": visitor is not None}
    response = HTMLResponse(rendered("enter.html", values), 200 if visitor or not told else 403)
    if visitor is not None:
        # Strict: no other site can make a browser send it. The page that this is goes on by itself, as our own.
        response.set_cookie(entrance.cookie, visitor, httponly=True, samesite="strict", path="/")
    return response


_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}


def application(
    folder: str, entrance: LoginTokens, hosts: Container[str], pages: Sequence[PageRoute] = PAGES
) -> ASGIApp:
    """Return pages over the archive in a folder, behind their guard."""
    readers, following, scans = ArchivePool(folder), Following(folder), Scans(folder)

    @asynccontextmanager
    async def open_for_requests(_: Starlette) -> AsyncIterator[None]:
        yield
        following.close()
        readers.close()

    routes = [
        Route(STATIC + "{edition}/{name}", _file),
        Route(ENTER, partial(entered, entrance=entrance), methods=["GET", "POST"]),
        Route("/live", following.stream),
        *(_route(page, readers, scans, entrance) for page in pages),
    ]
    handlers: dict[Any, Any] = {
        404: partial(_lost, entrance),
        405: partial(_lost, entrance),
        Exception: _failed,
    }
    app = Starlette(routes=routes, lifespan=open_for_requests, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return WebGuard(app, entrance, hosts)


def _route(page: PageRoute, readers: ArchivePool, scans: Scans, entrance: LoginTokens) -> Route:
    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        visitor = request.state.visitor
        try:
            form = await form_of(request) if page.is_post else {}
            asked = asked_of(request, form, entrance.form_token(visitor))
        except (ValueError, ClientDisconnect):
            return refused(Refusal(400, "This cannot be understood"))
        if page.is_post and not entrance.is_form_token(visitor, form.get("token")):
            return refused(Refusal(403, "This form is of another visit: load the page again"))
        if page.scan is not None and (job := page.scan(asked)) is not None:
            scanned = await scans.scanned(job, request.is_disconnected)
            asked = msgspec.structs.replace(asked, scanned=scanned)
        answer = await readers.asked(partial(_answered, page, asked))
        answer.headers["server-timing"] = f"all;dur={(time.perf_counter() - began) * 1000:.1f}"
        return answer

    return Route(page.path, endpoint, methods=["POST"] if page.is_post else ["GET"])


def _answered(page: PageRoute, asked: PageRequest, record: Store) -> Response:
    """Return a page's answer as it is sent; it is made where the archive is at hand."""
    try:
        answer = page.answer(asked, record)
    except NotFound as missing:
        answer = TemplatePage("missing.html", {"text": str(missing)}, 404)
    except RetoldError as stopped:
        answer = TemplatePage("missing.html", {"text": str(stopped)}, 503)
    return _response(answer, asked)


def _response(answer: Answer, asked: PageRequest) -> Response:
    match answer:
        case TemplatePage(template, values, status):
            look = asked.cookies.get("retold-look", "")
            given = {
                "form_token": asked.form_token,
                "look": look if look in ("light", "dark") else "",
                "here": asked.path,
            }
            return HTMLResponse(rendered(template, given | dict(values)), status)
        case Download(name, media_type, pieces):
            told = {
                "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
            }
            return StreamingResponse(iter(pieces), media_type=media_type, headers=told)
        case Redirect(path, query):
            return RedirectResponse(address(path, **query), 303)


async def _lost(entrance: LoginTokens, request: Request, _: Exception) -> Response:
    """Answer where there is no page; strangers are told no more than that."""
    if not entrance.knows(request.state.visitor):
        return PlainTextResponse("Not found\n", 404)
    asked = asked_of(request, {}, entrance.form_token(request.state.visitor))
    return _response(TemplatePage("missing.html", {"text": "There is no such page."}, 404), asked)


async def _failed(_: Request, error: Exception) -> Response:
    """Tell of a bug of ours where the server runs; what a transcript put into its words stays out of the terminal."""
    where = "".join(traceback.format_tb(error.__traceback__))
    sys.stderr.write(f"{where}retold: a bug of ours: {type(error).__name__}\n")
    return PlainTextResponse("A bug of ours: the terminal tells where\n", 500)


async def _file(request: Request) -> Response:
    """Send a file of the pages: looked up by its name, never opened by it."""
    found = static().files.get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("Not found\n", 404)
    return Response(found[1], media_type=found[0], headers=_FOR_EVER)
