"""Conversations that hold what was asked for, as values that one process can tell another."""

from __future__ import annotations

import msgspec

from retold.archive.store import as_text
from retold.query.hits import MessageHit, SearchResult


class ResultPlace(msgspec.Struct, frozen=True):
    """A place in a conversation where it stands."""

    seq: int
    """In the timeline of the full view."""
    role: str | None
    tool: str | None
    fate: str
    snippet: str
    matches: tuple[tuple[int, int], ...]


class ResultItem(msgspec.Struct, frozen=True, tag=True):
    """A conversation, and where in it it stands."""

    session: int
    """Its id in this archive."""
    places: tuple[ResultPlace, ...] = ()


def holding_of(conversation: SearchResult) -> ResultItem:
    """Return what a search found as a value."""
    return ResultItem(conversation.session, tuple(map(_place_of, conversation.hits)))


def _place_of(hit: MessageHit) -> ResultPlace:
    matches = tuple((start, end) for start, end in hit.matches)
    return ResultPlace(hit.seq, hit.role, hit.tool, hit.fate, as_text(hit.snippet), matches)
