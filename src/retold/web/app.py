"""The web application: requests become `PageRequest` values, pages answer with values, and those become responses."""

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
from retold.search.scan_pool import ScanPool
from retold.web.auth import (
    ENTER,
    STATIC,
    LoginTokens,
    Refusal,
    WebGuard,
    is_other_user,
    read_cookies,
    refusal_response,
)
from retold.web.background import ChangeFeed
from retold.web.pages import PAGES
from retold.web.templating import (
    Answer,
    Download,
    NotFound,
    PageRequest,
    PageRoute,
    Redirect,
    TemplatePage,
    address,
    render,
    static_files,
)

LARGEST = 65_536
"""Bytes of a form."""
PATIENCE = 10.0
"""Seconds within which the whole form must arrive."""
_FIELDS = 64


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; raises ValueError if it is malformed, too large or too slow."""
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


def parse_request(request: Request, form: dict[str, str], form_token: str) -> PageRequest:
    """Return a request as pages get it; raises ValueError for a malformed query."""
    query = parse_qs(
        request.scope["query_string"].decode("latin-1"), errors="replace", max_num_fields=_FIELDS
    )
    return PageRequest(request.scope["path"], query, form, read_cookies(request.headers), form_token)


_WAIT = Refusal(429, "Too many tokens were tried: wait a minute")


async def log_in(request: Request, login_tokens: LoginTokens) -> Response:
    """Log a visitor in by link or token, or show the form."""
    if is_other_user(request.client, request.scope["server"]):
        return refusal_response(Refusal(403, "Another user of this machine asked for this"))
    if request.method == "POST":
        try:
            typed = (await read_form(request)).get("token", "")
        except (ValueError, ClientDisconnect):
            return refusal_response(Refusal(400, "This form cannot be understood"))
        if not login_tokens.take_attempt():
            return refusal_response(_WAIT)
        visitor = login_tokens.log_in_by_token(typed)
        error = "" if visitor else "That is not the token."
    else:
        key = request.query_params.get("key")
        visitor = login_tokens.log_in_by_link(key) if key else None
        error = "This link has been used, or is older than a minute." if key and not visitor else ""
    values = {"has_token": login_tokens.has_token, "told": error, "is_in": visitor is not None}
    response = HTMLResponse(render("enter.html", values), 200 if visitor or not error else 403)
    if visitor is not None:
        # Strict: no other site can make a browser send it. The page itself leads on, so that its origin is ours.
        response.set_cookie(login_tokens.cookie, visitor, httponly=True, samesite="strict", path="/")
    return response


_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}


def application(
    folder: str, login_tokens: LoginTokens, hosts: Container[str], pages: Sequence[PageRoute] = PAGES
) -> ASGIApp:
    """Return the application for the archive in a folder, behind its guard."""
    pool, feed, scans = ArchivePool(folder), ChangeFeed(folder), ScanPool(folder)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        feed.close()
        pool.close()

    routes = [
        Route(STATIC + "{edition}/{name}", _static_file),
        Route(ENTER, partial(log_in, login_tokens=login_tokens), methods=["GET", "POST"]),
        Route("/live", feed.stream),
        *(_route(page, pool, scans, login_tokens) for page in pages),
    ]
    handlers: dict[Any, Any] = {
        404: partial(_not_found, login_tokens),
        405: partial(_not_found, login_tokens),
        Exception: _internal_error,
    }
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return WebGuard(app, login_tokens, hosts)


def _route(page: PageRoute, pool: ArchivePool, scans: ScanPool, login_tokens: LoginTokens) -> Route:
    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        visitor = request.state.visitor
        try:
            form = await read_form(request) if page.is_post else {}
            page_request = parse_request(request, form, login_tokens.form_token(visitor))
        except (ValueError, ClientDisconnect):
            return refusal_response(Refusal(400, "This cannot be understood"))
        if page.is_post and not login_tokens.is_form_token(visitor, form.get("token")):
            return refusal_response(Refusal(403, "This form is of another visit: load the page again"))
        if page.scan is not None and (job := page.scan(page_request)) is not None:
            scan_result = await scans.run(job, request.is_disconnected)
            page_request = msgspec.structs.replace(page_request, scan_result=scan_result)
        answer = await pool.run(partial(_answer, page, page_request))
        answer.headers["server-timing"] = f"all;dur={(time.perf_counter() - began) * 1000:.1f}"
        return answer

    return Route(page.path, endpoint, methods=["POST"] if page.is_post else ["GET"])


def _answer(page: PageRoute, page_request: PageRequest, store: Store) -> Response:
    """Return the response of a page. Runs in a thread of the pool, which has the archive open."""
    try:
        answer = page.answer(page_request, store)
    except NotFound as error:
        answer = TemplatePage("missing.html", {"text": str(error)}, 404)
    except RetoldError as error:
        answer = TemplatePage("missing.html", {"text": str(error)}, 503)
    return _response(answer, page_request)


def _response(answer: Answer, page_request: PageRequest) -> Response:
    match answer:
        case TemplatePage(template, values, status):
            look = page_request.cookies.get("retold-look", "")
            given = {
                "form_token": page_request.form_token,
                "look": look if look in ("light", "dark") else "",
                "here": page_request.path,
            }
            return HTMLResponse(render(template, given | dict(values)), status)
        case Download(name, media_type, pieces):
            encoded = quote(name, safe="", errors="replace")
            headers = {"content-disposition": f"attachment; filename*=UTF-8''{encoded}"}
            return StreamingResponse(iter(pieces), media_type=media_type, headers=headers)
        case Redirect(path, query):
            return RedirectResponse(address(path, **query), 303)


async def _not_found(login_tokens: LoginTokens, request: Request, _: Exception) -> Response:
    """Answer a request for no page; strangers learn no more than that."""
    if not login_tokens.is_logged_in(request.state.visitor):
        return PlainTextResponse("Not found\n", 404)
    page_request = parse_request(request, {}, login_tokens.form_token(request.state.visitor))
    return _response(TemplatePage("missing.html", {"text": "There is no such page."}, 404), page_request)


async def _internal_error(_: Request, error: Exception) -> Response:
    """Report a bug in the terminal of the server, without the message, which may quote a transcript."""
    where = "".join(traceback.format_tb(error.__traceback__))
    sys.stderr.write(f"{where}retold: internal error: {type(error).__name__}\n")
    return PlainTextResponse("Internal error: see the terminal for details\n", 500)


async def _static_file(request: Request) -> Response:
    """Send a static file. The name selects one of the files in memory and never opens a path."""
    file = static_files().files.get(request.path_params["name"])
    if file is None:
        return PlainTextResponse("Not found\n", 404)
    return Response(file.content, media_type=file.media_type, headers=_FOR_EVER)
