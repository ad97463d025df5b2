"""Conversations out of the archive, with the subagents that their calls started."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from retold.archive.record import Record
from retold.export.telling import Telling
from retold.ingest.retell import retold
from retold.model.session import Session, View

DEEPEST = 16
"""Subagents of subagents: no agent calls more, and a circle must end somewhere."""
Change = Callable[[Session], Session]


def gathered(record: Record, key: str, view: View, change: Change, depth: int = 0) -> Telling | None:
    """Return a conversation with all that belongs to it, each session changed on its way; None if there is none."""
    session = retold(record, key, view)
    if session is None:
        return None
    below = session.children if depth < DEEPEST else ()
    found = {child: gathered(record, child, view, change, depth + 1) for child in below}
    subagents = {child: telling for child, telling in found.items() if telling is not None}
    return Telling(change(session), subagents)


def cut(session: Session, first: int, last: int | None) -> Session:
    """Return a session with only some of its entries, counted from 1."""
    return msgspec.structs.replace(session, timeline=session.timeline[first - 1 : last])
