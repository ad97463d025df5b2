"""Sessions as cards: what a page of them shows, a few at a time."""

from __future__ import annotations

from retold.archive.conditions import Condition, clause
from retold.archive.listing import LISTED, NEWEST_FIRST

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from retold.archive.record import Store

    CardRow = tuple[Any, ...]
    """The columns of `LISTED` and `_MORE`, the packed JSON form, and whether a file is left."""

_MORE = "sessions.id, sessions.key, sessions.parent, sessions.ended_at, sessions.status"
_IS_THERE = (
    "EXISTS (SELECT 1 FROM session_sources JOIN sources ON sources.id = source"
    " WHERE session_sources.session = sessions.id AND is_there AND NOT is_beside AND sources.cluster IS NOT NULL)"
)
"""Whether a file of its own is left: a log of the prompts of many sessions is none."""
_CARDS = f"SELECT {LISTED}, {_MORE}, packed, {_IS_THERE} FROM sessions JOIN summaries ON session = id"  # noqa: S608 - ours
_PAGE_ORDER = f"{NEWEST_FIRST} LIMIT ? OFFSET ?"


def card_rows(
    record: Store, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> Iterator[CardRow]:
    """Yield sessions, the newest first."""
    which, values = clause(conditions)
    return record.rows(f"{_CARDS} WHERE {which} {_PAGE_ORDER}", [*values, limit, offset])


def session_ids(record: Store, conditions: Iterable[Condition]) -> list[int]:
    """Return the ids of sessions, in no order."""
    which, values = clause(conditions)
    return [number for (number,) in record.rows(f"SELECT sessions.id FROM sessions WHERE {which}", values)]  # noqa: S608 - values are bound


def count_of(record: Store, conditions: Iterable[Condition]) -> int:
    """Return how many sessions there are."""
    which, values = clause(conditions)
    return int(next(record.rows(f"SELECT count(*) FROM sessions WHERE {which}", values))[0])  # noqa: S608 - values are bound


def among(ids: Sequence[int]) -> Condition:
    """Return the condition that a session is one of these: as one value, however many they are."""
    return Condition(
        "sessions.id IN (SELECT value FROM json_each(?))", f"[{','.join([str(one) for one in ids])}]"
    )


def titled_like(text: str) -> Condition:
    """Return the condition that a session's title has some letters in it."""
    return Condition("instr(lower(sessions.title), lower(?))", text)
