"""What the archive holds of each file and session, for whoever looks after them."""

from __future__ import annotations

from retold.archive.database import DamagedError
from retold.archive.record import as_path, summary_of

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from retold.archive.record import Store

_HELD = """
SELECT path, home, size || ' ' || modified_ns || ' ' || identity, refusal,
    EXISTS (SELECT 1 FROM originals WHERE source = sources.id)
FROM sources WHERE agent = ? AND NOT is_beside
"""
_OWNED = """
SELECT key, sessions.agent, native_id, kind, title, is_spoken, path, sources.home, sources.cluster IS NULL
FROM sessions JOIN session_sources ON session = sessions.id JOIN sources ON sources.id = source
WHERE NOT is_beside ORDER BY sessions.ended_at DESC, key, path
"""
_ALONE = """
SELECT key, agent, title FROM sessions WHERE kind = 'subagent'
AND NOT EXISTS (SELECT 1 FROM sessions above WHERE above.key = sessions.parent) ORDER BY key
"""
_DAMAGED = """
SELECT key, agent, problems.code, problems.message, problems.path, problems.line, count(*)
FROM problems JOIN sessions ON sessions.id = session WHERE problems.severity = 'loss'
GROUP BY key, problems.path ORDER BY key
"""


def held_files(record: Store, agent: str) -> Iterator[tuple[Any, ...]]:
    """Yield path, home, status, the refusal as JSON, and whether anything is kept, of each file of an agent.

    The status is size, time and identity as one text.
    """
    for path, home, status, refusal, is_kept in record.rows(_HELD, (agent,)):
        yield as_path(path), as_path(home), status, refusal, bool(is_kept)


def owned_files(record: Store) -> Iterator[tuple[Any, ...]]:
    """Yield key, agent, native id, kind, title and whether it is a conversation, of each session, once with path and home of each file.

    Last is whether the file may hold something of many sessions, as a log of prompts does.
    """
    for *session, path, home, is_of_many in record.rows(_OWNED):
        yield (*session, as_path(path), as_path(home), bool(is_of_many))


def lone_subagents(record: Store) -> Iterator[tuple[str, str, str | None]]:
    """Yield key, agent and title of the subagents whose session is not in the archive."""
    return ((key, agent, title) for key, agent, title in record.rows(_ALONE))


def damages(record: Store) -> Iterator[tuple[Any, ...]]:
    """Yield key, agent, code, words, path, line and number of what was lost while a session's file was read."""
    return record.rows(_DAMAGED)


def summaries(record: Store) -> Iterator[tuple[str, str, str]]:
    """Yield key, agent and JSON form of every session, without damaged ones: an examination names these."""
    asked = "SELECT key, agent, packed FROM sessions JOIN summaries ON session = id ORDER BY key"
    for key, agent, packed in record.rows(asked):
        try:
            summary = summary_of(packed)
        except DamagedError:
            continue
        yield key, agent, summary
