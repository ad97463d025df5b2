"""Conversations out of the archive, with the subagents that their calls started."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from retold.archive.store import Store
from retold.export.telling import ExportSession
from retold.model.session import Session, View
from retold.sessions.load import load_session

DEEPEST = 16
"""Subagents of subagents: no agent calls more, and a circle must end somewhere."""


Fail = Callable[[str, Exception], None]
"""Hears of the key of a session that cannot be read, and why."""


def gathered(
    record: Store, key: str, view: View, depth: int = 0, fail: Fail | None = None
) -> ExportSession | None:
    """Return a conversation with all that belongs to it; None if there is none.

    A session that cannot be read is given to `fail` and left out.
    """
    try:
        session = load_session(record, key, view)
    except Exception as error:
        if fail is None:
            raise
        fail(key, error)
        return None
    if session is None:
        return None
    below = session.children if depth < DEEPEST else ()
    found = {child: gathered(record, child, view, depth + 1, fail) for child in below}
    return ExportSession(session, {child: telling for child, telling in found.items() if telling is not None})


def sessions_of(telling: ExportSession) -> Iterator[Session]:
    """Yield a conversation and all that belongs to it."""
    yield telling.session
    for subagent in telling.subagents.values():
        yield from sessions_of(subagent)


def changed(telling: ExportSession, change: Callable[[Session], Session]) -> ExportSession:
    """Return a conversation with each of its sessions changed; they keep their keys."""
    subagents = {key: changed(subagent, change) for key, subagent in telling.subagents.items()}
    return ExportSession(change(telling.session), subagents)


def cut_session(telling: ExportSession, first: int, last: int | None) -> ExportSession:
    """Return a conversation with only some of its own entries, counted from 1."""
    session = telling.session
    part = msgspec.structs.replace(session, timeline=session.timeline[first - 1 : last])
    return msgspec.structs.replace(telling, session=part)
