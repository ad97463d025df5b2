"""The pages behind one address: a request becomes values, a page answers with values, and those become a response."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import AsyncIterator, Container, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

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
from retold.web.answer import Answer, Download, NotFound, PageRequest, PageRoute, Redirect, TemplatePage
from retold.web.entrance import LoginTokens
from retold.web.entry import entered
from retold.web.following import Following
from retold.web.guard import ENTER, STATIC, Refusal, WebGuard, refused
from retold.web.looks import address, rendered, static
from retold.web.pages import PAGES
from retold.web.request import asked_of, form_of

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
