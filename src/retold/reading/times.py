"""Times as agents write them, made aware and UTC."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

MILLISECONDS_FROM = 100_000_000_000
"""Numbers from here on are milliseconds since 1970, as JavaScript counts; below, seconds."""


_MICROSECONDS = len("2026-01-27T15:21:04.118000Z")


def _iso(value: str) -> datetime:
    """Return a time as both decoders would: where one is finer or laxer than the other, the typed one decides."""
    if len(value) <= _MICROSECONDS and value[-1:] != "z":
        return datetime.fromisoformat(value)
    try:
        return msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return datetime.fromisoformat(value)


def parse_time(value: Any) -> tuple[datetime | None, str | None]:
    """Return the time in UTC, and the code of the problem with it, if there was one."""
    try:
        if type(value) is str:
            at = _iso(value)
            if at.tzinfo is UTC:
                return at, None
            if at.tzinfo is None:
                return at.replace(tzinfo=UTC), "naive-timestamp"
            return at.astimezone(UTC), None
        if type(value) in (int, float):
            seconds = value / 1000 if abs(value) >= MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, UTC), None
    except (ValueError, OverflowError, OSError):
        return None, "bad-timestamp"
    return None, None if value is None else "bad-timestamp"


_MILLISECOND = timedelta(milliseconds=1)
_LONGEST = timedelta(days=30) // _MILLISECOND


def elapsed_ms(start: datetime | None, end: datetime | None) -> int | None:
    """Return the milliseconds between two times; None where one is unknown, or no call can have run for so long."""
    return None if start is None or end is None else duration_ms((end - start) // _MILLISECOND)


def duration_ms(value: Any) -> int | None:
    """Return whole milliseconds, if these are some and no more than a call can have run for: 30 days."""
    is_number = type(value) is int or type(value) is float
    return round(value) if is_number and 0 <= value <= _LONGEST else None
