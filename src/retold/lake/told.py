"""What rows are made of: a session, and what only those who keep many of them know."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from retold.model.problem import Problem
from retold.model.session import Session
from retold.model.tables import UNKNOWN


class Told(msgspec.Struct, frozen=True):
    """A session in its full view, with its name and what its requests cost."""

    session: Session
    name: int
    """What tells the conversation from all others, as an archive names it."""
    picos: Mapping[str, int | None] = {}
    """By the id of a request: millionths of a millionth of a dollar."""


class Refused(msgspec.Struct, frozen=True):
    """A file of which no session was read, and why."""

    agent: str
    home: str | None
    problem: Problem


def month_of(at: datetime | None) -> str:
    """Return the month under which a session is kept, by when it began."""
    return UNKNOWN if at is None else f"{at.year:04}-{at.month:02}"
