"""A connection to the server: it is not kept for those who ask nothing, and there are only so many."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0
"""Seconds within which something must have been asked."""
MOST = 128
"""Connections at the same time: beyond that, whoever has waited longest without asking goes."""


class Connection(H11Protocol):
    """Speaks HTTP; uvicorn itself gives somebody who never asks all the time in the world."""

    since = 0.0
    """When it began, by the clock of the loop."""
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._waiting = self.loop.call_later(PATIENCE, self._end_if_idle)
        if len(self.connections) > MOST:
            idle = [one for one in self.connections if isinstance(one, Connection) and one.is_idle]
            min(idle, key=lambda one: one.since, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Whether nothing was asked, or all of it answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _end_if_idle(self) -> None:
        if self.cycle is None:
            self.transport.abort()
