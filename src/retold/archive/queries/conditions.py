"""What sessions and messages must be like, as SQL: each condition with its values, which are always bound."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    import apsw


TOOL_KINDS = {
    "shell": ("shell_exec",),
    "edit": ("file_edit", "file_write"),
    "read": ("file_read",),
    "search": ("file_search",),
    "web": ("web_access",),
}
"""Short names that people type for a kind of tools, whichever the agent, and the canonical names in it."""
_HERE = "tool_calls.seq = messages.seq AND (docs.place IS NULL OR tool_calls.place = docs.place)"
OF_SESSIONS = {
    "agent": "sessions.agent = ?",
    "kind": "sessions.kind = ?",
    "status": "sessions.status = ?",
    "project": "is_meant(sessions.root, sessions.native_key, sessions.hash, ?)",
    "model": "EXISTS (SELECT 1 FROM models WHERE models.session = sessions.id AND instr(lower(model), lower(?)))",
    "role": "EXISTS (SELECT 1 FROM messages said WHERE said.session = sessions.id"
    " AND iif(said.is_event, 'system', said.role) = ?)",
    "file": "EXISTS (SELECT 1 FROM files WHERE files.session = sessions.id AND instr(path, ?))",
    "tag": "EXISTS (SELECT 1 FROM tags WHERE tags.name = sessions.name AND tag = ? COLLATE NOCASE)",
    "home": "EXISTS (SELECT 1 FROM session_sources JOIN sources ON sources.id = source"
    " WHERE session_sources.session = sessions.id AND ? COLLATE NOCASE IN (label, home))",
    "after": "sessions.ended_at >= ?",
    "before": "sessions.started_at < ?",
}
"""Conditions of a whole session, each on one value."""
OF_MESSAGES = {
    "role": "iif(is_event, 'system', role) = ?",
    "fate": "fate = ?",
}
"""Conditions of the message that a document of the index is of."""
FAILED = (
    "(is_event AND role = 'error' OR EXISTS (SELECT 1 FROM tool_calls WHERE tool_calls.session = sessions.id"  # noqa: S608 - ours
    f" AND {_HERE} AND tool_calls.status = 'error'))"
)
"""That something went wrong there."""


class Condition:
    """A piece of SQL and its values."""

    __slots__ = ("sql", "values")

    def __init__(self, sql: str, *values: Any) -> None:
        self.sql, self.values = sql, values

    def negated(self) -> Condition:
        """Return the opposite."""
        return Condition(f"NOT ({self.sql})", *self.values)


SPOKEN = "sessions.is_spoken"
"""That a session is a conversation: `is_spoken` of the model decides when it is written."""
LISTED = Condition(f"sessions.kind IN ('main', 'fork', 'prompts-only', 'subagent') AND {SPOKEN}")
"""Conversations with their subagents: what reports add up."""
NOT_BELOW_OTHERS = Condition(
    "sessions.kind <> 'subagent' OR sessions.parent IS NULL"
    " OR NOT EXISTS (SELECT 1 FROM sessions above WHERE above.key = sessions.parent)"
)
"""No subagents, which belong to their parent; unless the archive does not have that."""
CONVERSATIONS = (LISTED, NOT_BELOW_OTHERS)
"""The one definition of what every list shows and every count counts; `docs/conversations.md` describes it."""


def of_tool(name: str, *columns: str, canonical: str, is_exact: bool = False) -> Condition:
    """Return the condition that one of the columns is a tool's name in any case, or that the tool is of a kind.

    `Edit` is a tool and `edit` a kind; an exact name means the tool alone.
    """
    kind = TOOL_KINDS.get(name if is_exact else name.lower(), ())
    named = f"? COLLATE NOCASE IN ({', '.join((*columns, canonical))})"
    return Condition(f"{named} OR {canonical} IN ({_marks(kind)})" if kind else named, name, *kind)


def with_call(name: str, *, in_message: bool) -> Condition:
    """Return the condition that a tool was called: in a session, or in the message that a document is of."""
    called = of_tool(name, "tool", "server", canonical="canonical")
    where = f"tool_calls.session = sessions.id AND ({called.sql})" + (f" AND {_HERE}" if in_message else "")
    return Condition(f"EXISTS (SELECT 1 FROM tool_calls WHERE {where})", *called.values)  # noqa: S608 - ours


def below(folder: str) -> Condition:
    """Return the condition that a session took place in a folder, or in one below it."""
    top = folder.rstrip("/\\")
    ways = "sessions.root IN (?, ?) OR substr(sessions.root, 1, length(?) + 1) IN (? || '/', ? || '\\')"
    return Condition(ways, top, folder, top, top, top)


def of_roots(roots: Iterable[str]) -> Condition:
    """Return the condition that a session took place in one of some folders itself."""
    chosen = [root.rstrip("/\\") or root for root in roots]
    return Condition(f"sessions.root IN ({_marks(chosen)})", *chosen)


def of_hashes(hashes: Iterable[str]) -> Condition:
    """Return the condition that of a session's project nothing but the hash is known, and that it is one of some."""
    chosen = list(hashes)
    return Condition(f"sessions.root IS NULL AND sessions.hash IN ({_marks(chosen)})", *chosen)


def or_hashes(condition: Condition, hashes: Iterable[str]) -> Condition:
    """Return a condition that also holds of the sessions of some projects."""
    chosen = list(hashes)
    return Condition(f"{condition.sql} OR sessions.hash IN ({_marks(chosen)})", *condition.values, *chosen)


def of_key(key: str) -> Condition:
    """Return the condition that it is one session."""
    return Condition("sessions.key = ?", key)


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def clause(conditions: Iterable[Condition]) -> tuple[str, list[Any]]:
    """Return conditions as one, with all their values; true if there are none."""
    found = list(conditions)
    return " AND ".join(f"({one.sql})" for one in found) or "1", [
        value for one in found for value in one.values
    ]


def register_functions(connection: apsw.Connection, is_meant: Callable[..., bool]) -> None:
    """Teach SQLite which project a name means."""
    connection.create_scalar_function("is_meant", is_meant, 4, deterministic=True)
