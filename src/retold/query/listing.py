"""Sessions in the order in which people look for them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from retold.model.session import Session
from retold.query.filters import LISTED, Filter

_BEGINNING = datetime.min.replace(tzinfo=UTC)


def without_timeline(session: Session) -> Session:
    """Return a session without what was said in it: thousands of these fit in memory."""
    return msgspec.structs.replace(session, timeline=())


def listing(sessions: Iterable[Session], wanted: Filter, *, every_kind: bool = False) -> list[Session]:
    """Return the meant sessions without their timelines, the newest first."""
    kinds = None if every_kind else LISTED
    rows = [
        without_timeline(session)
        for session in sessions
        if _is_listed(session, kinds) and wanted.accepts(session)
    ]
    return sorted(rows, key=lambda session: (session.ended_at or _BEGINNING, session.key), reverse=True)


def _is_listed(session: Session, kinds: Sequence[str] | None) -> bool:
    return kinds is None or session.kind in kinds or session.kind == "subagent"


def named(sessions: Iterable[Session], text: str) -> list[Session]:
    """Return the sessions that a text may mean: a key, a native id (of the main session), or the start of either."""
    possible = [session for session in sessions if _starts_with(session, text)]
    found = [session for session in possible if _is_exactly(session, text)] or possible
    return [session for session in found if session.kind != "subagent"] or found


def _is_exactly(session: Session, text: str) -> bool:
    return text in (session.key, session.key.partition(":")[2], session.native_id)


def _starts_with(session: Session, text: str) -> bool:
    names = (session.key, session.key.partition(":")[2], session.native_id or "")
    return any(name.startswith(text) for name in names)
