"""Which conversation an agent means."""

from __future__ import annotations

from retold.archive.queries.listing import is_among
from retold.mcp.cursor import BadCursor
from retold.mcp.passage import head_line
from retold.mcp.tool import ToolContext
from retold.search.listing import rows_meant
from retold.search.pages import SessionSummary, glances_of

_MOST = 10
"""Conversations that are told of where several are meant."""
_LONGEST = 80


def is_seen(asking: ToolContext, key: str) -> bool:
    """Tell whether a conversation is within reach."""
    return is_among(asking.record, key, asking.reach.conditions())


def resolve_session(asking: ToolContext, text: str) -> SessionSummary:
    """Return the conversation that a key, a native id or the start of either means.

    One out of reach is told exactly as one that does not exist.
    """
    found = rows_meant(asking.record, text, asking.reach.conditions()) if text else []
    if len(found) > 1:
        keys = ", ".join(head_line(key) for _, key, _ in found[:_MOST])
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        raise BadCursor(f"{text[:_LONGEST]!r} may be any of {keys}{more}: give a whole key")
    cards = glances_of(asking.record, [number for number, *_ in found])
    if not cards:
        raise BadCursor(f"there is no session {text[:_LONGEST]!r}: search_history and recent_work tell keys")
    return cards[0]
