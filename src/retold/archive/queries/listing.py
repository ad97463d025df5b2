"""Sessions as rows: all that a list needs, and what is told of one with a hit."""

from __future__ import annotations

from retold.archive.queries.conditions import CONVERSATIONS, SPOKEN, Condition, clause
from retold.archive.store import summary_of

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from retold.archive.store import Store

    SessionRow = tuple[Any, ...]
    """A session, as a list shows it: the columns of `LISTED`, the native id and the day."""

    CardRow = tuple[Any, ...]
    """The columns of `LISTED` and `_MORE`, the packed JSON form, and whether a file is left."""


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


def stamp_of(record: Store, key: str) -> bytes | None:
    """Return a hash of what a session was made from; None if there is no session."""
    row = record.row("SELECT stamp FROM sessions WHERE key = ?", (key,))
    return None if row is None else bytes(row[0])


def fates(record: Store, key: str) -> Iterator[tuple[Any, ...]]:
    """Yield each fate of entries, how many have it, how many of these are messages, and how many are from elsewhere."""
    return record.rows(
        "SELECT fate, count(*), sum(NOT is_event), sum(copied > 0)"
        " FROM messages JOIN sessions ON sessions.id = messages.session WHERE key = ? GROUP BY 1 ORDER BY 1",
        (key,),
    )


def prompt_places(record: Store, session: int) -> list[int]:
    """Return where in the timeline somebody said something that was not copied as a mere message."""
    asked = "SELECT seq FROM messages WHERE session = ? AND is_prompt ORDER BY seq"
    return [seq for (seq,) in record.rows(asked, (session,))]


def has_copied_words(record: Store, session: int) -> bool:
    """Tell whether there may be words of a person in it that count as prompts in another session alone."""
    asked = "SELECT 1 FROM messages WHERE session = ? AND copied AND role = 'user' AND NOT is_event AND NOT is_prompt"
    return record.row(asked, (session,)) is not None


def answer_places(record: Store, session: int) -> Iterator[int]:
    """Yield where an agent says something that was not taken back, the last first."""
    asked = (
        "SELECT seq FROM messages WHERE session = ? AND role = 'assistant' AND NOT is_event AND fate = 'live'"
    )
    return (seq for (seq,) in record.rows(f"{asked} ORDER BY seq DESC", (session,)))
