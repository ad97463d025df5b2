"""What changes in the archive while somebody looks: told to every open page as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from retold.archive.store import Store

OFTEN = 0.5
"""Seconds between two looks at whether anything was written."""
QUIET = 15.0
"""Seconds after which an open page is told that there is nothing new: a connection that is gone shows itself then."""
MOST = 64
"""Pages that are told at the same time."""


class Following:
    """Looks at the archive as long as somebody listens."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._listeners = 0
        self._changes = 0
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def stream(self, request: Request) -> Response:
        """Tell one page, as server-sent events, each time that something was written into the archive."""
        if self._listeners >= MOST:
            return PlainTextResponse("Too many open pages\n", 503)
        return StreamingResponse(self._told(request), media_type="text/event-stream")

    async def _told(self, request: Request) -> AsyncIterator[str]:
        self._listeners += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield "retry: 2000\n\n"
            seen = self._changes
            while not await request.is_disconnected():
                if self._changes != seen:
                    seen = self._changes
                    yield f"event: changed\ndata: {seen}\n\n"
                elif not await self._is_changed():
                    yield ": nothing new\n\n"
        finally:
            self._listeners -= 1
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _is_changed(self) -> bool:
        """Wait until something changes, but not for ever."""
        try:
            async with asyncio.timeout(QUIET):
                return await self._changed.wait()
        except TimeoutError:
            return False

    async def _look(self) -> None:
        """Notice what other processes write; SQLite counts that for a connection that stays open."""
        with Store(self._folder) as record:
            before = record.version()
            while True:
                await asyncio.sleep(OFTEN)
                now = record.version()
                if now != before:
                    before = now
                    self._changes += 1
                    self._changed.set()
                    self._changed = asyncio.Event()

    def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
