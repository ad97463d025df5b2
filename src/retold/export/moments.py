"""When spans begin and end: recorded times, and what is derived where none is recorded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from retold.model.session import Session

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STEP = 1_000_000
"""A millisecond: so far behind the one before is what has no time of its own."""
_LATEST = 2**63 - 1
"""Many receivers keep times in 64 bits with a sign."""


class Interval(NamedTuple):
    """From when to when, in nanoseconds since 1970."""

    start: int
    end: int

    @classmethod
    def around(cls, others: Iterable[Interval]) -> Interval:
        """Return the shortest that encloses all others."""
        starts, ends = zip(*others, strict=True)
        return cls(min(starts), max(ends))


class SpanClock:
    """The time in a session: that of what happened last."""

    def __init__(self, session: Session) -> None:
        recorded = (session.started_at, *(entry.at for entry in session.timeline), session.ended_at)
        first = next((at for at in recorded if at is not None), None)
        self.now = nanoseconds(first) if first is not None else 0
        last = self.now if session.ended_at is None else nanoseconds(session.ended_at)
        self.whole = Interval(self.now, max(self.now, last))

    def tick(self, at: datetime | None) -> int:
        """Return when something happened, which it is now."""
        self.now = min(self.now + _STEP, _LATEST) if at is None else nanoseconds(at)
        return self.now


def nanoseconds(at: datetime) -> int:
    """Return a time as nanoseconds since 1970, as far as the protocol can tell it."""
    return min(max((at - _EPOCH) // _MICROSECOND * 1000, 0), _LATEST)
