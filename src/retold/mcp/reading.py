"""A conversation as passages: what is known of it, then entry by entry what was said."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from retold.export.load import Quoting
from retold.export.transcript import TranscriptOptions, about, entry_lines, fate_of, plural, speaker
from retold.mcp.citing import moment
from retold.mcp.meaning import is_seen
from retold.mcp.passage import Passage
from retold.mcp.tool import ToolContext
from retold.model.session import Entry, Message, Session, ToolCall

_MOST_CHILDREN = 20
"""Subagents that are told of at the top; each is told of where it was called as well."""


def top(asking: ToolContext, quoting: Quoting, turns: int) -> Iterator[Passage]:
    """Yield what is known of a conversation before any of it is read."""
    session = quoting.session
    if session is not None:
        title, *facts = [line.text for line in about(session, is_utc=True)]
        lines = [f"{title}", *facts, *_further(asking, session, turns)]
        yield Passage(f"session {session.key}", "\n".join(lines), is_clean=True)


def _further(asking: ToolContext, session: Session, turns: int) -> Iterator[str]:
    ended = f" · ended {moment(session.ended_at)}" if session.ended_at else ""
    yield f"{session.agent} · {plural(turns, 'turn')} · {session.status}{ended}"
    if session.parent and is_seen(asking, session.parent):
        yield f"part of {session.parent}"
    children = [key for key in session.children if is_seen(asking, key)]
    shown, left = children[:_MOST_CHILDREN], len(children) - _MOST_CHILDREN
    if shown:
        yield "subagents: " + ", ".join(shown) + (f" and {left} more" if left > 0 else "")


def told(  # noqa: PLR0913 - a conversation, who asks for it, and which part of it
    asking: ToolContext,
    quoting: Quoting,
    begins: Sequence[int],
    wanted: TranscriptOptions,
    first: int,
    end: int | None,
) -> Iterator[Passage]:
    """Yield a passage for every entry of which something is told; those before it that tell nothing go with it."""
    session = quoting.session
    if session is None:
        return
    skipped = 0
    for seq, entry in quoting.entries(first, end):
        lines = [line.text for line in entry_lines(entry, wanted)]
        lines += [f"  → subagent {key}" for key in _children(entry) if is_seen(asking, key)]
        if not lines:
            skipped += 1
            continue
        head = f"turn {max(bisect_right(begins, seq), 1)} · {_who(entry, session.agent)}"
        yield Passage(head, "\n".join(lines), is_clean=True, numbers=skipped + 1)
        skipped = 0


def _children(entry: Entry) -> Iterator[str]:
    parts = entry.parts if isinstance(entry, Message) else ()
    return (part.child for part in parts if isinstance(part, ToolCall) and part.child)


def _who(entry: Entry, agent: str) -> str:
    name = speaker(entry, agent) if isinstance(entry, Message) else entry.kind
    became = fate_of(entry)
    at = moment(entry.at)
    return f"{name}{f' ({became})' if became else ''}{f' · {at}' if at else ''}"
