"""Sessions as rows: all that a list needs, and what is told of one with a hit."""

from __future__ import annotations

from retold.archive.conditions import CONVERSATIONS, SPOKEN, Condition, clause
from retold.archive.record import summary_of

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.record import Store

    SessionRow = tuple[Any, ...]
    """A session, as a list shows it: the columns of `LISTED`, the native id and the day."""

_SUBAGENTS = (
    "(SELECT count(*) FROM sessions child WHERE child.parent = sessions.key AND child.kind = 'subagent')"
)
LISTED = (
    "sessions.agent, sessions.kind, sessions.root, sessions.native_key, sessions.hash, sessions.title,"
    f" sessions.messages, sessions.total, sessions.estimated, {_SUBAGENTS}"
)
"""The columns that every list of sessions shows; the last is the number of subagents."""
NEWEST_FIRST = "ORDER BY ended_at DESC, key DESC"
_DAY = "coalesce(date(sessions.ended_at, 'localtime'), substr(sessions.ended_at, 1, 10))"
"""The day on which it ended, in this machine's zone; at the end of the calendar a zone may have none."""
_ORDER = f"{NEWEST_FIRST} LIMIT ?"
_ALL = -1
_TYPED = "WITH typed (text) AS (SELECT ?1 UNION SELECT DISTINCT agent || ':' || ?1 FROM sessions)"
_SELECT = "SELECT id, key, title, kind FROM"
_NAMED = "key = text", "native_id = ?1"
# No text sorts behind the last character that there is.
_BEGUN = (
    "key >= text AND key < text || char(1114111)",
    "native_id >= ?1 AND native_id < ?1 || char(1114111)",
)


def session_rows(record: Store, conditions: Iterable[Condition], limit: int | None) -> list[SessionRow]:
    """Return sessions, the newest first."""
    which, values = clause(conditions)
    asked = f"SELECT {LISTED}, native_id, {_DAY} FROM sessions WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return list(record.rows(asked, [*values, _ALL if limit is None else limit]))


def titles(record: Store, conditions: Iterable[Condition]) -> list[tuple[str, str | None]]:
    """Return key and title of sessions, the newest first."""
    which, values = clause(conditions)
    asked = f"SELECT key, title FROM sessions WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return [(key, title) for key, title in record.rows(asked, [*values, _ALL])]


def heading_rows(record: Store, conditions: Iterable[Condition]) -> Iterator[tuple[Any, ...]]:
    """Yield key, title, root, native key, hash and end of sessions, the newest first."""
    which, values = clause(conditions)
    asked = f"SELECT key, title, root, native_key, hash, ended_at FROM sessions WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return record.rows(asked, [*values, _ALL])


def summary_texts(record: Store, conditions: Iterable[Condition], limit: int | None) -> Iterator[str]:
    """Yield the JSON form of sessions, the newest first."""
    which, values = clause(conditions)
    asked = f"SELECT packed FROM sessions JOIN summaries ON session = id WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return (summary_of(row[0]) for row in record.rows(asked, [*values, _ALL if limit is None else limit]))


def rows_named(record: Store, text: str, conditions: Iterable[Condition] = ()) -> list[tuple[Any, ...]]:
    """Return id, key, title and kind of the sessions that a text names, or else begins the names of.

    Where conditions do not hold of a session, it is as if there were none: not even its name stands before others.
    """
    which, values = clause(conditions)
    for by_key, by_id in (_NAMED, _BEGUN):
        asked = (
            f"{_TYPED} {_SELECT} typed CROSS JOIN sessions ON {by_key} WHERE {which}"
            f" UNION {_SELECT} sessions WHERE {by_id} AND ({which}) ORDER BY key"
        )
        if found := list(record.rows(asked, (text, *values, *values))):
            return found
    return []


def begun(text: str) -> Condition:
    """Return the condition that a session's key begins with a text."""
    return Condition("substr(sessions.key, 1, length(?)) = ?", text, text)


def project_rows(record: Store) -> Iterator[tuple[Any, ...]]:
    """Yield the project of every session that is no subagent's, its end if recorded, and whether it is a conversation."""
    counted, values = clause(CONVERSATIONS)
    asked = (
        f"SELECT root, native_key, hash, evidence, iif(are_times_derived, NULL, ended_at), {counted} AS counted"  # noqa: S608 - ours
        f" FROM sessions WHERE {SPOKEN} AND (kind <> 'subagent' OR counted) ORDER BY id"
    )
    return record.rows(asked, values)


def count_sessions(record: Store) -> int:
    """Return how many conversations there are."""
    return len(conversation_ids(record))


def conversation_ids(record: Store) -> list[int]:
    """Return the ids of all conversations."""
    which, values = clause(CONVERSATIONS)
    asked = f"SELECT id FROM sessions WHERE {which}"  # noqa: S608 - values are bound
    return [number for (number,) in record.rows(asked, values)]


def is_among(record: Store, key: str, conditions: Iterable[Condition]) -> bool:
    """Tell whether there is a session of a key of which conditions hold."""
    which, values = clause(conditions)
    asked = f"SELECT 1 FROM sessions WHERE key = ? AND ({which})"  # noqa: S608 - values are bound
    return record.row(asked, [key, *values]) is not None


def heading_row(record: Store, session: int) -> tuple[Any, ...] | None:
    """Return key, title, project and end of a session; None if it has gone meanwhile."""
    asked = "SELECT key, title, root, native_key, hash, evidence, ended_at FROM sessions WHERE id = ?"
    return record.row(asked, (session,))


def message_row(record: Store, session: int, seq: int) -> tuple[Any, ...] | None:
    """Return id, role, fate and time of a message; an event is the system's."""
    asked = "SELECT id, iif(is_event, 'system', role), fate, at FROM messages WHERE session = ? AND seq = ?"
    return record.row(asked, (session, seq))


def tool_of(record: Store, session: int, seq: int, place: int) -> str | None:
    """Return the name of the tool that was called at a place."""
    asked = "SELECT tool FROM tool_calls WHERE session = ? AND seq = ? AND place = ?"
    row = record.row(asked, (session, seq, place))
    return None if row is None else str(row[0])
