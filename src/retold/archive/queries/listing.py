"""Lists of sessions: conditions that select them, and the rows of those that they select.

A condition is SQL and its values, which are always bound.
"""

from __future__ import annotations

from retold.archive.store import unpack_summary

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    import apsw

    from retold.archive.store import Store

    HeadingRow = tuple[str, str | None, str | None, str | None, str | None, str | None]
    """Key, title, root, native key, hash and end of a session."""

    EvidentHeadingRow = tuple[str, str | None, str | None, str | None, str | None, str, str | None]
    """Key, title, root, native key, hash, evidence and end of a session."""

    MessageHead = tuple[str | None, str, str, int | None]
    """Id, role, fate and time of a message."""

    ProjectRow = tuple[str | None, str | None, str | None, str, str | None, int]
    """Root, native key, hash and evidence of a project, recorded end, and whether the session is a conversation."""

    SessionRow = tuple[Any, ...]
    """A session in a list: LIST_COLUMNS, the native id and the day."""

    SummaryRow = tuple[Any, ...]
    """LIST_COLUMNS, _SUMMARY_COLUMNS, the compressed JSON form, and whether a file is left."""


TOOL_KINDS = {
    "shell": ("shell_exec",),
    "edit": ("file_edit", "file_write"),
    "read": ("file_read",),
    "search": ("file_search",),
    "web": ("web_access",),
}
"""Kinds of tools that people type, and the canonical names in each."""
_IN_DOCUMENT = (
    "tool_calls.seq = messages.seq AND (docs.position IS NULL OR tool_calls.position = docs.position)"
)
OF_SESSIONS = {
    "agent": "sessions.agent = ?",
    "kind": "sessions.kind = ?",
    "status": "sessions.status = ?",
    "project": "matches_project(sessions.root, sessions.native_key, sessions.hash, ?)",
    "model": "EXISTS (SELECT 1 FROM models WHERE models.session = sessions.id AND instr(lower(model), lower(?)))",
    "role": "EXISTS (SELECT 1 FROM messages said WHERE said.session = sessions.id"
    " AND iif(said.is_event, 'system', said.role) = ?)",
    "file": "EXISTS (SELECT 1 FROM files WHERE files.session = sessions.id AND instr(path, ?))",
    "tag": "EXISTS (SELECT 1 FROM tags WHERE tags.uid = sessions.uid AND tag = ? COLLATE NOCASE)",
    "home": "EXISTS (SELECT 1 FROM session_sources JOIN sources ON sources.id = source"
    " WHERE session_sources.session = sessions.id AND ? COLLATE NOCASE IN (label, home))",
    "after": "sessions.ended_at >= ?",
    "before": "sessions.started_at < ?",
}
"""Conditions on a session, each with one value."""
OF_MESSAGES = {
    "role": "iif(is_event, 'system', role) = ?",
    "fate": "fate = ?",
}
"""Conditions on the message of a document of the index."""
HAS_FAILURE = (
    "(is_event AND role = 'error' OR EXISTS (SELECT 1 FROM tool_calls WHERE tool_calls.session = sessions.id"  # noqa: S608 - ours
    f" AND {_IN_DOCUMENT} AND tool_calls.status = 'error'))"
)
"""Something failed in the message of a document."""


class Condition:
    """SQL and its values."""

    __slots__ = ("sql", "values")

    def __init__(self, sql: str, *values: Any) -> None:
        self.sql, self.values = sql, values

    def negated(self) -> Condition:
        """Return the opposite condition."""
        return Condition(f"NOT ({self.sql})", *self.values)


IS_SPOKEN = "sessions.is_spoken"
"""A session is a conversation: `is_spoken` of the model decides it when the session is written."""
IS_LISTED = Condition(f"sessions.kind IN ('main', 'fork', 'prompts-only', 'subagent') AND {IS_SPOKEN}")
"""Conversations and subagents, which reports count."""
NOT_BELOW_OTHERS = Condition(
    "sessions.kind <> 'subagent' OR sessions.parent IS NULL"
    " OR NOT EXISTS (SELECT 1 FROM sessions above WHERE above.key = sessions.parent)"
)
"""No subagents, unless their parent is not in the archive."""
CONVERSATIONS = (IS_LISTED, NOT_BELOW_OTHERS)
"""What every list shows and every count counts: see `docs/conversations.md`."""


def tool_condition(name: str, *columns: str, canonical: str, is_exact: bool = False) -> Condition:
    """Return the condition that one of the columns is a tool's name in any case, or that the tool is of a kind.

    `Edit` is a tool and `edit` a kind. An exact name is a tool only.
    """
    kind = TOOL_KINDS.get(name if is_exact else name.lower(), ())
    named = f"? COLLATE NOCASE IN ({', '.join((*columns, canonical))})"
    return Condition(f"{named} OR {canonical} IN ({_placeholders(kind)})" if kind else named, name, *kind)


def call_condition(name: str, *, in_message: bool) -> Condition:
    """Return the condition that a tool was called, in a session or in the message of a document."""
    called = tool_condition(name, "tool", "server", canonical="canonical")
    where = f"tool_calls.session = sessions.id AND ({called.sql})" + (
        f" AND {_IN_DOCUMENT}" if in_message else ""
    )
    return Condition(f"EXISTS (SELECT 1 FROM tool_calls WHERE {where})", *called.values)  # noqa: S608 - ours


def folder_condition(folder: str) -> Condition:
    """Return the condition that a session's root is a folder, or below it."""
    top = folder.rstrip("/\\")
    ways = "sessions.root IN (?, ?) OR substr(sessions.root, 1, length(?) + 1) IN (? || '/', ? || '\\')"
    return Condition(ways, top, folder, top, top, top)


def roots_condition(roots: Iterable[str]) -> Condition:
    """Return the condition that a session's root is one of some folders."""
    chosen = [root.rstrip("/\\") or root for root in roots]
    return Condition(f"sessions.root IN ({_placeholders(chosen)})", *chosen)


def hashes_condition(hashes: Iterable[str]) -> Condition:
    """Return the condition that only the hash of a session's project is known, and that it is one of some."""
    chosen = list(hashes)
    return Condition(f"sessions.root IS NULL AND sessions.hash IN ({_placeholders(chosen)})", *chosen)


def or_hashes_condition(condition: Condition, hashes: Iterable[str]) -> Condition:
    """Return a condition that also selects the sessions of some projects, by their hashes."""
    chosen = list(hashes)
    return Condition(
        f"{condition.sql} OR sessions.hash IN ({_placeholders(chosen)})", *condition.values, *chosen
    )


def key_condition(key: str) -> Condition:
    """Return the condition that a session has a key."""
    return Condition("sessions.key = ?", key)


def key_prefix_condition(text: str) -> Condition:
    """Return the condition that a session's key begins with a text."""
    return Condition("substr(sessions.key, 1, length(?)) = ?", text, text)


def ids_condition(ids: Sequence[int]) -> Condition:
    """Return the condition that a session has one of some ids, which are one bound value."""
    return Condition(
        "sessions.id IN (SELECT value FROM json_each(?))", f"[{','.join([str(one) for one in ids])}]"
    )


def title_condition(text: str) -> Condition:
    """Return the condition that a session's title contains a text in any case."""
    return Condition("instr(lower(sessions.title), lower(?))", text)


def _placeholders(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def join_conditions(conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """Return conditions joined by AND, with all their values; true if there are none."""
    found = list(conditions)
    return " AND ".join(f"({one.sql})" for one in found) or "1", [
        value for one in found for value in one.values
    ]


def register_functions(connection: apsw.Connection, matches_project: Callable[..., bool]) -> None:
    """Register the SQL function `matches_project`, which the condition on projects calls."""
    connection.create_scalar_function("matches_project", matches_project, 4, deterministic=True)


_SUBAGENTS = (
    "(SELECT count(*) FROM sessions child WHERE child.parent = sessions.key AND child.kind = 'subagent')"
)
LIST_COLUMNS = (
    "sessions.agent, sessions.kind, sessions.root, sessions.native_key, sessions.hash, sessions.title,"
    f" sessions.messages, sessions.total, sessions.estimated, {_SUBAGENTS}"
)
"""The columns that every list of sessions shows; the last is the number of subagents."""
NEWEST_FIRST = "ORDER BY ended_at DESC, key DESC"
_DAY = "coalesce(date(sessions.ended_at, 'localtime'), substr(sessions.ended_at, 1, 10))"
"""The day on which it ended, in the local zone; at the end of the calendar a zone may have none."""
_ORDER = f"{NEWEST_FIRST} LIMIT ?"
_ALL = -1
_TYPED_KEYS = "WITH typed (text) AS (SELECT ?1 UNION SELECT DISTINCT agent || ':' || ?1 FROM sessions)"
_SELECT = "SELECT id, key, title, kind FROM"
_BY_NAME = "key = text", "native_id = ?1"
# No text sorts after the last code point.
_BY_PREFIX = (
    "key >= text AND key < text || char(1114111)",
    "native_id >= ?1 AND native_id < ?1 || char(1114111)",
)


def load_session_rows(store: Store, conditions: Iterable[Condition], limit: int | None) -> list[SessionRow]:
    """Return sessions, the newest first."""
    which, values = join_conditions(conditions)
    sql = f"SELECT {LIST_COLUMNS}, native_id, {_DAY} FROM sessions WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return list(store.rows(sql, [*values, _ALL if limit is None else limit]))


def load_titles(store: Store, conditions: Iterable[Condition]) -> list[tuple[str, str | None]]:
    """Return key and title of sessions, the newest first."""
    which, values = join_conditions(conditions)
    sql = f"SELECT key, title FROM sessions WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return [(key, title) for key, title in store.rows(sql, [*values, _ALL])]


def load_heading_rows(store: Store, conditions: Iterable[Condition]) -> Iterator[HeadingRow]:
    """Yield headings of sessions, the newest first."""
    which, values = join_conditions(conditions)
    sql = f"SELECT key, title, root, native_key, hash, ended_at FROM sessions WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return store.rows(sql, [*values, _ALL])


def load_summaries(store: Store, conditions: Iterable[Condition], limit: int | None) -> Iterator[str]:
    """Yield the JSON form of sessions, the newest first."""
    which, values = join_conditions(conditions)
    sql = f"SELECT packed FROM sessions JOIN summaries ON session = id WHERE {which} {_ORDER}"  # noqa: S608 - values are bound
    return (unpack_summary(row[0]) for row in store.rows(sql, [*values, _ALL if limit is None else limit]))


def load_named_sessions(
    store: Store, text: str, conditions: Iterable[Condition] = ()
) -> list[tuple[int, str, str | None]]:
    """Return id, key and title of the sessions with a key or native id, or else of those whose key or native id begins with it.

    A native id means the main session if there is one. Sessions that conditions do not select are ignored: not even an exact name of theirs precedes others.
    """
    which, values = join_conditions(conditions)
    for by_key, by_id in (_BY_NAME, _BY_PREFIX):
        sql = (
            f"{_TYPED_KEYS} {_SELECT} typed CROSS JOIN sessions ON {by_key} WHERE {which}"
            f" UNION {_SELECT} sessions WHERE {by_id} AND ({which}) ORDER BY key"
        )
        rows = list(store.rows(sql, (text, *values, *values)))
        if rows:
            return [row[:3] for row in rows if row[3] != "subagent"] or [row[:3] for row in rows]
    return []


def load_project_rows(store: Store) -> Iterator[ProjectRow]:
    """Yield project, recorded end, and whether it is a conversation, of every session except subagents."""
    counted, values = join_conditions(CONVERSATIONS)
    sql = (
        f"SELECT root, native_key, hash, evidence, iif(are_times_derived, NULL, ended_at), {counted} AS counted"  # noqa: S608 - ours
        f" FROM sessions WHERE {IS_SPOKEN} AND (kind <> 'subagent' OR counted) ORDER BY id"
    )
    return store.rows(sql, values)


def count_sessions(store: Store) -> int:
    """Return how many conversations there are."""
    return count_selected(store, CONVERSATIONS)


def load_conversation_ids(store: Store) -> list[int]:
    """Return the ids of all conversations."""
    return load_session_ids(store, CONVERSATIONS)


def is_selected(store: Store, key: str, conditions: Iterable[Condition]) -> bool:
    """Return whether conditions select the session with a key."""
    which, values = join_conditions(conditions)
    sql = f"SELECT 1 FROM sessions WHERE key = ? AND ({which})"  # noqa: S608 - values are bound
    return store.row(sql, [key, *values]) is not None


def load_heading_row(store: Store, session: int) -> EvidentHeadingRow | None:
    """Return key, title, project and end of a session; None if it is gone."""
    sql = "SELECT key, title, root, native_key, hash, evidence, ended_at FROM sessions WHERE id = ?"
    return store.row(sql, (session,))


def load_message_row(store: Store, session: int, seq: int) -> MessageHead | None:
    """Return id, role, fate and time of a message; the role of an event is `system`."""
    sql = "SELECT id, iif(is_event, 'system', role), fate, at FROM messages WHERE session = ? AND seq = ?"
    return store.row(sql, (session, seq))


def load_tool_name(store: Store, session: int, seq: int, position: int) -> str | None:
    """Return the name of the tool that was called at a position."""
    sql = "SELECT tool FROM tool_calls WHERE session = ? AND seq = ? AND position = ?"
    row = store.row(sql, (session, seq, position))
    return None if row is None else str(row[0])


_SUMMARY_COLUMNS = "sessions.id, sessions.key, sessions.parent, sessions.ended_at, sessions.status"
_HAS_FILE = (
    "EXISTS (SELECT 1 FROM session_sources JOIN sources ON sources.id = source"
    " WHERE session_sources.session = sessions.id AND is_present AND NOT is_companion AND sources.cluster IS NOT NULL)"
)
"""Whether a file of its own is left; a log of prompts is shared."""
_SUMMARIES = f"SELECT {LIST_COLUMNS}, {_SUMMARY_COLUMNS}, packed, {_HAS_FILE} FROM sessions JOIN summaries ON session = id"  # noqa: S608 - ours
_PAGE_ORDER = f"{NEWEST_FIRST} LIMIT ? OFFSET ?"


def load_summary_rows(
    store: Store, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> Iterator[SummaryRow]:
    """Yield a page of sessions, the newest first."""
    which, values = join_conditions(conditions)
    return store.rows(f"{_SUMMARIES} WHERE {which} {_PAGE_ORDER}", [*values, limit, offset])


def load_session_ids(store: Store, conditions: Iterable[Condition]) -> list[int]:
    """Return the ids of sessions, in no order."""
    which, values = join_conditions(conditions)
    return [number for (number,) in store.rows(f"SELECT sessions.id FROM sessions WHERE {which}", values)]  # noqa: S608 - values are bound


def count_selected(store: Store, conditions: Iterable[Condition]) -> int:
    """Return how many sessions conditions select."""
    which, values = join_conditions(conditions)
    return int(next(store.rows(f"SELECT count(*) FROM sessions WHERE {which}", values))[0])  # noqa: S608 - values are bound


def load_stamp(store: Store, key: str) -> bytes | None:
    """Return the stamp of a session, a hash of what it was made from; None if there is no session."""
    row = store.row("SELECT stamp FROM sessions WHERE key = ?", (key,))
    return None if row is None else bytes(row[0])


def count_fates(store: Store, key: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield each fate of a session's entries, the number of entries, of messages among them, and of copies."""
    return store.rows(
        "SELECT fate, count(*), sum(NOT is_event), sum(copied > 0)"
        " FROM messages JOIN sessions ON sessions.id = messages.session WHERE key = ? GROUP BY 1 ORDER BY 1",
        (key,),
    )


def load_prompt_seqs(store: Store, session: int) -> list[int]:
    """Return the seqs of prompts in a session."""
    sql = "SELECT seq FROM messages WHERE session = ? AND is_prompt ORDER BY seq"
    return [seq for (seq,) in store.rows(sql, (session,))]


def has_copied_prompts(store: Store, session: int) -> bool:
    """Return whether a session may have prompts that count in another session only."""
    sql = "SELECT 1 FROM messages WHERE session = ? AND copied AND role = 'user' AND NOT is_event AND NOT is_prompt"
    return store.row(sql, (session,)) is not None


def load_answer_seqs(store: Store, session: int) -> Iterator[int]:
    """Yield the seqs of an agent's live messages, the last first."""
    sql = (
        "SELECT seq FROM messages WHERE session = ? AND role = 'assistant' AND NOT is_event AND fate = 'live'"
    )
    return (seq for (seq,) in store.rows(f"{sql} ORDER BY seq DESC", (session,)))


def is_project_known(store: Store, name: str) -> bool:
    """Return whether a filter selects the project of some session; needs `register_functions`."""
    sql = f"SELECT 1 FROM sessions WHERE {OF_SESSIONS['project']} LIMIT 1"  # noqa: S608 - ours
    return store.row(sql, (name,)) is not None


def load_unresolved_hashes(store: Store) -> set[str]:
    """Return the hashes of projects whose roots are unknown or guessed."""
    sql = "SELECT DISTINCT hash FROM sessions WHERE hash IS NOT NULL AND evidence IN ('none', 'guessed')"
    return {found for (found,) in store.rows(sql)}
