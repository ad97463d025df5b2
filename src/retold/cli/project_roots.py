"""Folders of projects of which the archive has only a hash: found by name or by a scan of the disk, and remembered."""

from __future__ import annotations

import os
import sys

from retold.archive.database import RetoldError
from retold.archive.queries.listing import is_project_known, load_unresolved_hashes, register_functions
from retold.archive.store import archive_exists
from retold.config import retold_home
from retold.projects.matching import is_path, matches_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from retold.archive.store import Store
    from retold.cli.console import Console


def find_project(record: Store, name: str, console: Console) -> Mapping[str, str]:
    """Return the roots, by hash, of the projects called `name` of which the archive has only the hash.

    The roots are remembered in the archive. Nothing is searched if the archive knows the name, or knows every root.
    """
    register_functions(record.connection, matches_project)
    if is_path(name) or is_project_known(record, name):
        return {}
    hashes = load_unresolved_hashes(record)
    if not hashes:
        return {}
    from pathlib import Path

    from retold.projects.scan import find_roots_named

    walk = find_roots_named(Path(os.path.expanduser("~")), name, hashes)
    result = f"found {', '.join(sorted(walk.roots.values())) or 'none'}"
    if not walk.is_done:
        result += "; there were more than can be looked through"
    if walk.roots and not _remember(walk.roots):
        result += "; not remembered, because the archive is busy or cannot be written"
    console.notice(
        f"retold: no known project {name}: looked for its name among {walk.seen:,} folders, {result}"
    )
    return walk.roots


def _remember(roots: Mapping[str, str]) -> bool:
    """Write roots into the archive; return False if another process writes to it or it cannot be written."""
    from retold.synchronization.user_changes import save_roots

    folder = retold_home(os.environ)
    try:
        if archive_exists(folder):
            save_roots(folder, roots, patience=0)
    except (RetoldError, OSError):
        return False
    return True


def scan_for_roots(hashes: Collection[str], console: Console) -> dict[str, str]:
    """Scan the disk for the folders with these hashes; return them by hash, and remember them."""
    from pathlib import Path

    from retold.projects.scan import DEPTH, SECONDS, find_roots

    if not hashes:
        console.notice("retold: every project's root is known")
        return {}
    console.notice(
        f"retold: looking for {len(hashes)} roots, {DEPTH} folders deep, for {SECONDS:.0f} seconds at most"
    )
    is_terminal = sys.stderr.isatty()

    def show_progress(seen: int) -> None:
        if is_terminal:
            console.err.write(f"\r{seen:,} folders")

    found, is_done = find_roots(Path(os.path.expanduser("~")), hashes, show_progress)
    start = "\r\x1b[K" if is_terminal else ""
    end = "" if is_done else "; the time ran out before the walk was done"
    console.err.write(f"{start}retold: found {len(found)} of {len(hashes)}{end}\n")
    if found:
        from retold.synchronization.user_changes import save_roots

        save_roots(retold_home(os.environ), found)
    return found
