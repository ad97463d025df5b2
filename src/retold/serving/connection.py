"""A connection to the server: it is not kept for those who ask nothing, and there are only so many."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0
"""Seconds within which a whole request must arrive: the first one, and each later one on a connection that is kept."""
MOST_CONNECTIONS = 128
"""Connections at the same time: beyond that, whoever has waited longest without asking goes."""


class ServedConnection(H11Protocol):
    """Speaks HTTP; uvicorn itself gives somebody who never asks all the time in the world."""

    since = 0.0
    """When it began, by the clock of the loop."""
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._wait_for_request()
        if len(self.connections) > MOST_CONNECTIONS:
            idle = [one for one in self.connections if isinstance(one, ServedConnection) and one.is_idle]
            min(idle, key=lambda one: one.since, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request: uvicorn stops its own clock as soon as one byte of it arrives."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(PATIENCE, self._end_if_late)

    @property
    def is_idle(self) -> bool:
        """Whether nothing was asked, or all of it answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _end_if_late(self) -> None:
        if self.is_idle:
            self.transport.abort()
