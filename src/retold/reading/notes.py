"""Where normalising writes down what it could not make sense of, and what it kept as it was."""

from collections import Counter
from datetime import datetime
from typing import Any

from retold.model.depth import shown_value
from retold.model.problem import Problem, problem
from retold.reading.times import parse_time


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
