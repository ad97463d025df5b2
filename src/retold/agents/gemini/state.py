"""What a file's records amount to: the values that replaying makes, and how they grow."""

from typing import Any

import msgspec

from retold.agents.gemini.raw import Record
from retold.agents.gemini.usual import ConversationRecord
from retold.model.problem import Problem
from retold.model.session import Fate

Place = tuple[int, int]
"""Where a record stands: its line, and its place in a list on that line (0 where it is the line)."""
Version = tuple[Any, Place]
"""A record as it was at one time."""


Key = str | tuple[Any, int]
"""A message's id; for what has none, something that tells it apart."""


_COMPARED = 64
"""How many versions of a message a new one is compared with: a file may repeat an id without end."""


class State(msgspec.Struct, frozen=True):
    """What a file's records amount to. A value: the fold copies it before it goes on."""

    path: str
    metadata: Record = {}
    starts: tuple[Any, ...] = ()
    live: dict[str, Record] = {}
    """What the CLI holds: by id, in the place where the id came first."""
    verbatim: tuple[Any, ...] | None = None
    """The list of a whole-file JSON, which the CLI takes as it is, ids or none."""
    ever: dict[Key, tuple[Version, ...]] = {}
    """Every version of every message by id, in order of first appearance; what has no id, by its place."""
    gone: dict[str, Fate] = {}
    """Why an id is no longer live."""
    copies: dict[str, str] = {}
    """Ids that only repeat an earlier message, and that message's id."""
    is_whole: bool = True
    """False for a whole-file JSON that a strict parser rejects, or that has no `sessionId`."""
    seen_by_loader: frozenset[str] = frozenset()
    """Which of `sessionId` and `projectHash` the loader has met: without both it gives the file up."""
    lines: int = 0
    records: int = 0
    problems: tuple[Problem, ...] = ()
    listed: frozenset[Key] | None = None
    """For several files as one: the keys in `ever` that the file holds which the CLI would load."""


class Plain(msgspec.Struct, frozen=True):
    """A whole-file JSON in which everything is usual: its messages once each, in their order."""

    path: str
    record: ConversationRecord


def add_version(versions: list[Version], record: Any, place: Place) -> None:
    """Add a version of a message: in place of those of which it says all, unless one of them says more."""
    recent = versions[-_COMPARED:]
    if any(says_all(known, record) for known, _ in recent if known != record):
        return
    first = versions[0][1] if versions else place
    versions[-_COMPARED:] = [version for version in recent if not says_all(record, version[0])]
    versions.append((record, place if versions else first))


def says_all(whole: Any, part: Any) -> bool:
    """Tell whether a record holds every field of another, unchanged."""
    if type(whole) is dict and type(part) is dict:
        return part.items() <= whole.items()
    return bool(whole == part)


def folded_copies(known: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    """Return copies with others, each by the first of its line."""
    copies = dict(known)
    fold_copies(copies, found)
    return copies


def fold_copies(copies: dict[str, str], found: dict[str, str]) -> None:
    """Add copies, each by the first of its line: that is no copy itself, so no line can close a circle."""
    for copy, original in found.items():
        first = original
        while first in copies:
            first = copies[first]
        if first != copy:
            copies.setdefault(copy, first)
