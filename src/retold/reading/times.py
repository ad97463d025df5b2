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


LONGEST_MS = 30 * 86_400_000
"""No call has run for longer than 30 days."""


def milliseconds(span: timedelta) -> int:
    """Return a span in whole milliseconds, in a third of the time that a division of spans takes."""
    return span.days * 86_400_000 + span.seconds * 1000 + span.microseconds // 1000


def elapsed_ms(start: datetime | None, end: datetime | None) -> int | None:
    """Return the milliseconds between two times; None where one is unknown, or no call can have run for so long."""
    if start is None or end is None:
        return None
    elapsed = milliseconds(end - start)
    return elapsed if 0 <= elapsed <= LONGEST_MS else None


def duration_ms(value: Any) -> int | None:
    """Return whole milliseconds, if these are some and no more than a call can have run for."""
    is_number = type(value) is int or type(value) is float
    return round(value) if is_number and 0 <= value <= LONGEST_MS else None


def shifted(at: datetime, span: timedelta) -> datetime:
    """Return a time before or after another; the ends of the calendar are its bounds."""
    try:
        return at + span
    except OverflowError:
        last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
        return last if span > timedelta() else first
