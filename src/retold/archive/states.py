"""How a session stands: enough to know whether it has changed, without reading it."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from retold.archive.record import Store


def stamp_of(record: Store, key: str) -> bytes | None:
    """Return a hash of what a session was made from; None if there is no session."""
    row = record.row("SELECT stamp FROM sessions WHERE key = ?", (key,))
    return None if row is None else bytes(row[0])


def fates(record: Store, key: str) -> Iterator[tuple[Any, ...]]:
    """Yield each fate of entries, how many have it, how many of these are messages, and how many are from elsewhere."""
    return record.rows(
        "SELECT fate, count(*), sum(NOT is_event), sum(copied > 0)"
        " FROM messages JOIN sessions ON sessions.id = messages.session WHERE key = ? GROUP BY 1 ORDER BY 1",
        (key,),
    )
