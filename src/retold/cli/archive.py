"""The archive as commands that only read open it."""

from __future__ import annotations

import os
import time

from retold.archive.database import IndexDamagedError
from retold.archive.store import NAME, Store, exists, is_emptied
from retold.config import retold_home

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterator

    from retold.cli.console import Console
    from retold.search.results import SearchResult


DAY = 24 * 3600


def session_argument(parser: ArgumentParser, **more: str) -> None:
    """Add the name of a session."""
    told = "a key, a native id, or an unambiguous start of either"
    parser.add_argument("session", metavar="SESSION", help=told, **more)  # type: ignore[arg-type]


def opened(console: Console) -> Store:
    """Return the archive, made first if there is none; if it is old, that is said."""
    folder = retold_home(os.environ)
    if not exists(folder):
        from retold.cli.progress import coverage_line, run_sync

        console.tell("retold: no archive yet: reading what your agents have kept")
        console.tell(coverage_line(run_sync(console)))
    record = Store(folder)
    synced_at = record.fact("synced_at")
    if synced_at is None:  # it began with an import
        console.tell("retold: your own homes were never read: `retold sync` reads them")
    age = time.time() - synced_at if synced_at else 0
    if age > DAY:
        days = int(age // DAY)
        console.tell(
            f"retold: the archive is {days} day{'s' if days > 1 else ''} old: `retold sync` brings it up to date"
        )
    return record


def tell_if_emptied(console: Console, folder: str) -> None:
    """Say that the archive's file is empty, before a new archive is begun in it."""
    if is_emptied(folder):
        path = os.path.join(folder, NAME)
        console.tell(f"retold: {path} was empty: a new archive is begun, without what only the old one held")


def no_such_session(console: Console, text: str, found: list[tuple[str, str | None]]) -> int:
    """Tell that a text means no session, or several; return the exit code."""
    if not found:
        console.tell(f"retold: no session {text}")
        return 1
    console.tell(f"retold: {text} may mean any of {len(found)} sessions:")
    for key, title in found[:10]:
        console.tell(f"  {key}  {title or ''}")
    return 2


def searched(search: Callable[[], Iterator[SearchResult]], console: Console) -> list[SearchResult]:
    """Return what a search gives; where the index is damaged, what it gives then."""
    try:
        return list(search())
    except IndexDamagedError as error:
        damage = str(error)
    # Not before the error has gone, and with it every connection to the old files.
    from retold.cli.progress import run_sync

    console.tell(f"retold: {damage}: rebuilding the text index from the archive")
    run_sync(console, reindex=True)
    return list(search())


def changed(session: str, console: Console, change: Callable[[Store, str], object]) -> int:
    """Change the session that a text means; 1 if none is meant, 2 if several are."""
    from retold.archive.store import Store, exists
    from retold.config import retold_home
    from retold.search.listing import named
    from retold.synchronization.update import Lock

    folder = retold_home(os.environ)
    if not exists(folder):
        return no_such_session(console, session, [])
    waiting = "retold: waiting for another retold that is bringing the archive up to date"
    with Lock(folder, lambda: console.tell(waiting)), Store(folder, can_write=True) as record:
        found = named(record, session)
        if len(found) != 1:
            return no_such_session(console, session, found)
        change(record, found[0][0])
    return 0
