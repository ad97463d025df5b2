"""Where normalising writes down what it could not make sense of, and what it kept as it was."""

from datetime import datetime
from typing import Any

from retold.model.problem import Problem, problem
from retold.reading.times import parse_time


class Notes:
    """Problems and the count of opaque things, gathered while one file is normalised."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.opaque = 0
        self.line: int | None = None
        self.pointer = ""
        self._last: tuple[str, datetime] | None = None

    def stand_at(self, place: tuple[int, int], *, in_list: bool) -> None:
        """Say where the record that comes next stands: a line, and a place in the list on it."""
        self.line = place[0] or None
        self.pointer = f"/messages/{place[1]}" if in_list else ""

    def add(self, code: str, message: str) -> None:
        """Write a problem down at the place where we stand."""
        self.problems.append(problem(code, message, self.path, self.line, self.pointer))

    def kept(self, code: str, message: str) -> None:
        """Write down that something was kept as it was because nobody understands it."""
        self.opaque += 1
        self.add(code, message)

    def time(self, value: Any) -> datetime | None:
        """Return the time, writing down what is wrong with it."""
        if self._last is not None and self._last[0] == value:
            return self._last[1]  # neighbours often share their time
        at, code = parse_time(value)
        if code is not None:
            self.add(code, f"{value!r:.60}")
        if at is not None and type(value) is str:
            self._last = (value, at)
        return at
