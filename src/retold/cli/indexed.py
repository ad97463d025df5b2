"""A search that makes the text index anew where it is missing or damaged."""

from __future__ import annotations

from retold.archive.database import IndexDamaged

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.record import Record
    from retold.cli.console import Console
    from retold.query.hits import Conversation
    from retold.query.language import Query
    from retold.query.wanted import Wanted


def searched(
    record: Record, query: Query, wanted: Wanted, limit: int, console: Console
) -> Iterator[Conversation]:
    """Yield the best conversations."""
    from retold.query.search import Search

    try:
        found = list(Search(record, query, wanted).conversations(limit))
    except IndexDamaged as damage:
        from retold.cli.syncing import run_sync

        console.tell(f"retold: {damage}: making the text index anew, from the archive")
        run_sync(console, reindex=True)
        found = list(Search(record, query, wanted).conversations(limit))
    yield from found
