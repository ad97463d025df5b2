"""What rows are made of: a session, and what only those who keep many of them know."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from retold.model.problem import Problem
from retold.model.session import Session
from retold.model.tables import UNKNOWN
from retold.model.usage import Request


class RowSource(msgspec.Struct, frozen=True):
    """A session in its full view, with its name and what its requests cost."""

    session: Session
    name: int
    """What tells the conversation from all others, as an archive names it."""
    picos: Mapping[str, int | None] = {}
    """By the id of a request: millionths of a millionth of a dollar."""
    requests: Sequence[tuple[int, Request]] | None = None
    """Its requests with their places in the timeline, where they were looked for already."""


class UnreadFile(msgspec.Struct, frozen=True):
    """A file of which no session was read, and why."""

    agent: str
    home: str | None
    problem: Problem


_ALL = (1 << 64) - 1


def shown_name(name: int) -> str:
    """Return the name of a conversation as tables have it."""
    return f"{name & _ALL:016x}"


def month_of(at: datetime | None) -> str:
    """Return the month under which a session is kept, by when it began."""
    return UNKNOWN if at is None else f"{at.year:04}-{at.month:02}"
