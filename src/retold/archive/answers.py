"""What a sync asked of the world, and what was answered."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from retold.archive.record import Store

    Answer = tuple[str, str | bytes, object]
    """Of which kind, what about, and what was answered."""


HIDDEN = "forgotten:"
"""Stands before the keyed hash of a path that only forgotten sessions lead to: `archive/hiding.py`."""
BELOW = "below"
"""The kind of an answer that names a folder in which hidden paths are."""


def kept_answers(record: Store, scope: str) -> Iterator[Answer]:
    """Yield the answers of the last sync of a scope."""
    return record.rows("SELECT kind, asked, answer FROM answers WHERE scope = ?", (scope,))


def keep_answers(record: Store, scope: str, answers: Iterable[Answer]) -> None:
    """Keep the answers of a sync in place of those of the one before; what stays the same is not written again."""
    ask = record.connection.execute
    new = {(kind, asked): answer for kind, asked, answer in answers}
    for kind, asked, answer in list(kept_answers(record, scope)):
        if (kind, asked) not in new:
            ask("DELETE FROM answers WHERE scope = ? AND kind = ? AND asked = ?", (scope, kind, asked))
        elif new[kind, asked] == answer:
            del new[kind, asked]
    record.connection.executemany(
        "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
        [(scope, asked, kind, answer) for (kind, asked), answer in new.items()],
    )
