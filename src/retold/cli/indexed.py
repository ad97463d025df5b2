"""A search that rebuilds the text index if it is missing or damaged."""

from __future__ import annotations

from retold.archive.database import IndexDamagedError

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from retold.cli.console import Console
    from retold.search.results import SearchResult


def searched(search: Callable[[], Iterator[SearchResult]], console: Console) -> list[SearchResult]:
    """Return what a search gives; where the index is damaged, what it gives then."""
    try:
        return list(search())
    except IndexDamagedError as error:
        damage = str(error)
    # Not before the error has gone, and with it every connection to the old files.
    from retold.cli.syncing import run_sync

    console.tell(f"retold: {damage}: rebuilding the text index from the archive")
    run_sync(console, reindex=True)
    return list(search())
