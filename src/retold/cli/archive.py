"""Open the archive for a command, resolve the session that it names, and run searches and changes."""

from __future__ import annotations

import os
import time

from retold.archive.database import IndexDamagedError
from retold.archive.store import ARCHIVE_NAME, Store, archive_exists, is_archive_empty
from retold.config import retold_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterator

    from retold.cli.console import Console
    from retold.search.results import SearchResult


DAY = 24 * 3600


def add_session_argument(parser: ArgumentParser, **more: str) -> None:
    """Add the argument SESSION."""
    text = "a key, a native id, or an unambiguous start of either"
    parser.add_argument("session", metavar="SESSION", help=text, **more)  # type: ignore[arg-type]


def open_archive(console: Console) -> Store:
    """Return the archive; sync first if there is none, and print a notice if it is more than a day old."""
    folder = retold_home(os.environ)
    if not archive_exists(folder):
        from retold.cli.progress import format_coverage, run_sync

        console.notice("retold: no archive yet: reading what your agents have kept")
        console.notice(format_coverage(run_sync(console)))
    record = Store(folder)
    synced_at = record.fact("synced_at")
    if synced_at is None:  # the archive was made by an import
        console.notice("retold: your own homes were never read: `retold sync` reads them")
    age = time.time() - synced_at if synced_at else 0
    if age > DAY:
        days = int(age // DAY)
        console.notice(
            f"retold: the archive is {days} day{'s' if days > 1 else ''} old: `retold sync` brings it up to date"
        )
    return record


def warn_if_emptied(console: Console, folder: str) -> None:
    """Print a notice if the archive's file is empty, because a new archive is going to replace it."""
    if is_archive_empty(folder):
        path = os.path.join(folder, ARCHIVE_NAME)
        console.notice(
            f"retold: {path} was empty: a new archive is begun, without what only the old one held"
        )


def resolve_session(record: Store, text: str, console: Console) -> str | int:
    """Return the key of the session that `text` means, or the exit code if it means none or several."""
    from retold.search.listing import resolve_ids

    found = resolve_ids(record, text)
    return found[0][0] if len(found) == 1 else report_no_match(console, text, found)


def report_no_match(console: Console, text: str, found: list[tuple[str, str | None]]) -> int:
    """Print that `text` means no session, or several; return the exit code."""
    if not found:
        console.notice(f"retold: no session {text}")
        return 1
    console.notice(f"retold: {text} may mean any of {len(found)} sessions:")
    for key, title in found[:10]:
        console.notice(f"  {key}  {title or ''}")
    return 2


def run_search(search: Callable[[], Iterator[SearchResult]], console: Console) -> list[SearchResult]:
    """Return the results of a search; if the text index is damaged, rebuild it and search again."""
    try:
        return list(search())
    except IndexDamagedError as error:
        damage = str(error)
    # Outside of `except`: the error holds connections to the old files.
    from retold.cli.progress import run_sync

    console.notice(f"retold: {damage}: rebuilding the text index from the archive")
    run_sync(console, reindex=True)
    return list(search())


def change_session(session: str, console: Console, change: Callable[[Store, str], object]) -> int:
    """Change the session that `session` means, under the lock of the archive; return the exit code."""
    from retold.synchronization.update import Lock

    folder = retold_home(os.environ)
    if not archive_exists(folder):
        return report_no_match(console, session, [])
    waiting = "retold: waiting for another retold that is bringing the archive up to date"
    with Lock(folder, lambda: console.notice(waiting)), Store(folder, can_write=True) as record:
        key = resolve_session(record, session, console)
        if isinstance(key, int):
            return key
        change(record, key)
    return 0
