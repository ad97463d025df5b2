"""Collects the problems of a file while it is normalised, and parses times and durations."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from retold.model.problem import Problem, problem
from retold.model.serialization import short_repr

MILLISECONDS_FROM = 100_000_000_000
"""Numbers from here on are milliseconds since 1970, as in JavaScript; smaller ones are seconds."""
_MICROSECONDS = len("2026-01-27T15:21:04.118000Z")


def _parse_iso(value: str) -> datetime:
    """Return the time that both msgspec and Python read; if one accepts more than the other, msgspec decides."""
    if len(value) <= _MICROSECONDS and value[-1:] != "z":
        return datetime.fromisoformat(value)
    try:
        return msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return datetime.fromisoformat(value)


def parse_time(value: Any) -> tuple[datetime | None, str | None]:
    """Return the time in UTC, and the code of its problem if it has one."""
    try:
        if type(value) is str:
            at = _parse_iso(value)
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
"""The longest duration of a call: 30 days."""


def to_milliseconds(span: timedelta) -> int:
    """Return a span in whole milliseconds, in a third of the time of a division of spans."""
    return span.days * 86_400_000 + span.seconds * 1000 + span.microseconds // 1000


def elapsed_ms(start: datetime | None, end: datetime | None) -> int | None:
    """Return the milliseconds between two times; None if one is unknown, or if no call can have run for so long."""
    if start is None or end is None:
        return None
    elapsed = to_milliseconds(end - start)
    return elapsed if 0 <= elapsed <= LONGEST_MS else None


def duration_ms(value: Any) -> int | None:
    """Return whole milliseconds; None if the value is no duration of a call."""
    is_number = type(value) is int or type(value) is float
    return round(value) if is_number and 0 <= value <= LONGEST_MS else None


def shift_time(at: datetime, span: timedelta) -> datetime:
    """Return a time moved by a span, at most to the ends of the calendar."""
    try:
        return at + span
    except OverflowError:
        last, first = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)
        return last if span > timedelta() else first


class ReaderNotes:
    """The problems and the number of opaque things of one file."""

    def __init__(self, path: str, pointer: str = "") -> None:
        """Take the file's path, and the pointer to its list of records if it is one document."""
        self.path = path
        self.pointer = pointer
        self.problems: list[Problem] = []
        self.opaque = 0
        self.place: tuple[int, int] | None = None
        """The place of the current record: its line, and its index in a list on that line."""
        self.unnamed: Counter[str] = Counter()
        """The number of calls of each tool without an id."""
        self._stamp: str | None = None
        self._at: datetime | None = None

    def add(self, code: str, message: str) -> None:
        """Add a problem at the place of the current record."""
        line, index = self.place or (0, -1)
        pointer = f"{self.pointer}/{index}" if index >= 0 and not line else ""
        self.problems.append(problem(code, message, self.path, line or None, pointer))

    def make_call_id(self, name: str) -> str:
        """Return an id for a call without one: the name and a number."""
        self.unnamed[name] += 1
        return f"{name}-{self.unnamed[name]}"

    def add_opaque(self, code: str, message: str) -> None:
        """Add a problem of a value that is kept as it was."""
        self.opaque += 1
        self.add(code, message)

    def parse_time(self, value: Any) -> datetime | None:
        """Return the time, and add a problem if there is one."""
        if value == self._stamp:  # neighbours often share their time
            return self._at
        at, code = parse_time(value)
        if code is not None:
            self.add(code, short_repr(value))
        if type(value) is str:
            self._stamp, self._at = value, at
        return at
