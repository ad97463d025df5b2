"""A request, taken apart: what is too large, or no form of ours, goes no further."""

import asyncio
from urllib.parse import parse_qs, parse_qsl

from starlette.requests import Request

from retold.web.answer import PageRequest
from retold.web.guard import cookies_of

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
