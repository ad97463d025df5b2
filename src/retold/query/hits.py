"""What a search gives: conversations, and the places in them where it is said."""

from __future__ import annotations

import time

from retold.archive.queries.listing import heading_row, message_row, tool_of

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from retold.archive.index.reader import IndexHit
    from retold.archive.store import Store

    Shown = tuple[str, list[tuple[int, int]]]
    """A snippet, and where in it the words stand."""

HITS = 3
"""How many places of a conversation are shown."""


class MessageHit:
    """A place where it is said."""

    __slots__ = ("at", "fate", "matches", "message", "role", "seq", "snippet", "tool")

    def __init__(self, message: Sequence[Any], tool: str | None, shown: Shown, seq: int) -> None:
        self.message, self.role, self.fate, self.at = message
        self.tool = tool
        self.seq = seq
        """The place in the timeline of the full view."""
        self.snippet, self.matches = shown


class SearchResult:
    """A session with its hits."""

    __slots__ = ("ended_at", "hits", "key", "project", "score", "session", "title")

    def __init__(self, session: int, row: Sequence[Any], score: float, hits: list[MessageHit]) -> None:
        self.session, self.score, self.hits = session, score, hits
        self.key, self.title, root, native_key, project_hash, evidence, self.ended_at = row
        self.project = {"root": root, "native_key": native_key, "hash": project_hash, "evidence": evidence}


def conversation_of(record: Store, session: int, score: float, hits: list[MessageHit]) -> SearchResult | None:
    """Return a session with its hits; None if it has gone meanwhile."""
    row = heading_row(record, session)
    return None if row is None else SearchResult(session, row, score, hits)


def hit_of(record: Store, found: IndexHit, shown: Shown) -> MessageHit:
    """Return a place where it is said, with who said it and what became of it."""
    row = message_row(record, found.session, found.seq)
    message = (None, None, "live", None) if row is None else (*row[:3], as_time(row[3]))
    tool = None if found.place is None else tool_of(record, found.session, found.seq, found.place)
    return MessageHit(message, tool, shown, found.seq)


def as_time(micros: int | None) -> str | None:
    """Return a time as ISO 8601 in UTC, from microseconds since 1970."""
    if micros is None:
        return None
    seconds, rest = divmod(micros, 1_000_000)
    told = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{told}.{rest // 1000:03}Z" if rest % 1000 == 0 else f"{told}.{rest:06}Z"
