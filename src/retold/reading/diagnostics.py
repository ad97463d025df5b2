"""Where normalising writes down what it could not make sense of, and what it kept as it was."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from retold.model.problem import Problem, problem
from retold.model.serialization import shown_value

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


class ReaderNotes:
    """Problems and the count of opaque things, gathered while one file is normalised."""

    def __init__(self, path: str, pointer: str = "") -> None:
        """Take the file's path, and the pointer to the list of its records where that is one document."""
        self.path = path
        self.pointer = pointer
        self.problems: list[Problem] = []
        self.opaque = 0
        self.place: tuple[int, int] | None = None
        """Where the record stands that is being read: its line, and its place in the list on it."""
        self.unnamed: Counter[str] = Counter()
        """How many calls of each tool had no id of their own."""
        self._stamp: str | None = None
        self._at: datetime | None = None

    def add(self, code: str, message: str) -> None:
        """Write a problem down at the place where we stand."""
        line, index = self.place or (0, -1)
        pointer = f"{self.pointer}/{index}" if index >= 0 and not line else ""
        self.problems.append(problem(code, message, self.path, line or None, pointer))

    def call_id(self, name: str) -> str:
        """Return an id for a call that has none: the name and a number."""
        self.unnamed[name] += 1
        return f"{name}-{self.unnamed[name]}"

    def kept(self, code: str, message: str) -> None:
        """Write down that something was kept as it was because nobody understands it."""
        self.opaque += 1
        self.add(code, message)

    def time(self, value: Any) -> datetime | None:
        """Return the time, writing down what is wrong with it."""
        if value == self._stamp:  # neighbours often share their time
            return self._at
        at, code = parse_time(value)
        if code is not None:
            self.add(code, shown_value(value))
        if type(value) is str:
            self._stamp, self._at = value, at
        return at
