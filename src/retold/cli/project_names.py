"""Projects by names that the archive does not know: their folders are looked for."""

from __future__ import annotations

from retold.archive.queries.conditions import register_functions
from retold.archive.sync_state import hashes_without_roots, is_project_known
from retold.projects.matching import is_meant, is_path

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.filters import FindProject


def project_finder(record: Store, console: Console) -> FindProject:
    """Return what looks for the projects that filters name."""
    return lambda name: find_project(record, name, console)


def find_project(record: Store, name: str, console: Console) -> Mapping[str, str]:
    """Return the roots, by their hashes, of projects that a name means and that only their hashes were known of.

    They are remembered in the archive. Nothing is looked for where the name is known, or where no root is unknown.
    """
    register_functions(record.connection, is_meant)
    if is_path(name) or is_project_known(record, name):
        return {}
    hashes = hashes_without_roots(record)
    if not hashes:
        return {}
    import os
    from pathlib import Path

    from retold.projects import scan

    walk = scan.find_named(Path(os.path.expanduser("~")), name, hashes)
    told = f"found {', '.join(sorted(walk.roots.values())) or 'none'}"
    if not walk.is_done:
        told += "; there were more than can be looked through"
    if walk.roots and not _are_kept(walk.roots):
        told += "; not remembered, because the archive is busy or cannot be written"
    console.tell(f"retold: no known project {name}: looked for its name among {walk.seen:,} folders, {told}")
    return walk.roots


def _are_kept(roots: Mapping[str, str]) -> bool:
    """Remember roots; not where there is no archive, or where another process writes to it."""
    import os

    from retold.archive.database import RetoldError
    from retold.archive.store import exists
    from retold.config import retold_home
    from retold.synchronization.user_changes import learn_roots

    folder = retold_home(os.environ)
    if not exists(folder):
        return True
    try:
        learn_roots(folder, roots, patience=0)
    except (RetoldError, OSError):
        return False
    return True
