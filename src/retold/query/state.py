"""How a session stands now: whoever shows it asks again, and compares."""

from __future__ import annotations

import msgspec

from retold.archive.queries.listing import fates, stamp_of
from retold.archive.store import Store


class SessionState(msgspec.Struct, frozen=True):
    """What can be told without reading it."""

    stamp: str
    """Another when anything in it is."""
    total: int
    """Entries in the full view."""
    fates: dict[str, int]
    """Messages by what became of them."""
    copied: int
    """Messages that another session holds as its own."""


def state(record: Store, key: str) -> SessionState | None:
    """Return how a session stands; None if there is none."""
    stamp = stamp_of(record, key)
    if stamp is None:
        return None
    rows = list(fates(record, key))
    return SessionState(
        stamp.hex(),
        sum(entries for _, entries, *_ in rows),
        {fate: messages for fate, _, messages, _ in rows if messages},
        sum(copied for *_, copied in rows),
    )
