"""Sessions as rows: all that a list needs, and what is told of one with a hit."""

from __future__ import annotations

from collections import namedtuple

from retold.archive.conditions import Condition, clause
from retold.archive.record import summary_of

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.record import Record

SessionRow = namedtuple(  # noqa: PYI024 - typing's own costs half a start of Python to import
    "SessionRow",
    "key agent native_id kind parent root native_key hash title ended_at messages total estimated agents",
)
"""A session, as a list shows it; `agents` counts its subagents."""
_COLUMNS = ", ".join(f"sessions.{name}" for name in SessionRow._fields[:-1])
_AGENTS = (
    "(SELECT count(*) FROM sessions child WHERE child.parent = sessions.key AND child.kind = 'subagent')"
)
_ORDER = "ORDER BY ended_at DESC, key DESC LIMIT ?"
_ALL = -1
NOT_BELOW_OTHERS = Condition(
    "sessions.kind <> 'subagent' OR sessions.parent IS NULL"
    " OR NOT EXISTS (SELECT 1 FROM sessions above WHERE above.key = sessions.parent)"
)
"""No subagents, which are counted in their parent's row; unless that is lost."""
_EXACT = "key = ?1 OR native_id = ?1 OR substr(key, instr(key, ':') + 1) = ?1"
_START = (
    "substr(key, 1, length(?1)) = ?1 OR substr(native_id, 1, length(?1)) = ?1"
    " OR substr(substr(key, instr(key, ':') + 1), 1, length(?1)) = ?1 ORDER BY key"
)


def session_rows(record: Record, conditions: Iterable[Condition], limit: int | None) -> list[SessionRow]:
    """Return sessions, the newest first."""
    which, values = clause(conditions)
    asked = f"SELECT {_COLUMNS}, {_AGENTS} FROM sessions WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return list(map(SessionRow._make, record.rows(asked, [*values, _ALL if limit is None else limit])))


def summary_texts(record: Record, conditions: Iterable[Condition], limit: int | None) -> Iterator[str]:
    """Yield the JSON form of sessions, the newest first."""
    which, values = clause(conditions)
    asked = f"SELECT packed FROM sessions JOIN summaries ON session = id WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return (summary_of(row[0]) for row in record.rows(asked, [*values, _ALL if limit is None else limit]))


def rows_named(record: Record, text: str) -> list[tuple[Any, ...]]:
    """Return id, key, title and kind of the sessions that a text names, or else begins the names of."""
    columns = "SELECT id, key, title, kind FROM sessions WHERE "
    return list(record.rows(columns + _EXACT, (text,))) or list(record.rows(columns + _START, (text,)))


def project_rows(record: Record) -> Iterator[tuple[Any, ...]]:
    """Yield the project of every session that is no subagent's, with when it ended as far as that was recorded."""
    return record.rows(
        "SELECT root, native_key, hash, evidence, iif(are_times_derived, NULL, ended_at) FROM sessions"
        " WHERE kind <> 'subagent' ORDER BY id"
    )


def count_sessions(record: Record) -> int:
    """Return how many conversations there are, subagents not counted."""
    return int(next(record.rows("SELECT count(*) FROM sessions WHERE kind <> 'subagent'"))[0])


def heading_row(record: Record, session: int) -> tuple[Any, ...] | None:
    """Return key, title, project and end of a session; None if it has gone meanwhile."""
    asked = "SELECT key, title, root, native_key, hash, evidence, ended_at FROM sessions WHERE id = ?"
    return record.row(asked, (session,))


def message_row(record: Record, session: int, seq: int) -> tuple[Any, ...] | None:
    """Return id, role, fate and time of a message; an event is the system's."""
    asked = "SELECT id, iif(is_event, 'system', role), fate, at FROM messages WHERE session = ? AND seq = ?"
    return record.row(asked, (session, seq))


def tool_of(record: Record, session: int, seq: int, place: int) -> str | None:
    """Return the name of the tool that was called at a place."""
    asked = "SELECT tool FROM tool_calls WHERE session = ? AND seq = ? AND place = ?"
    row = record.row(asked, (session, seq, place))
    return None if row is None else str(row[0])
