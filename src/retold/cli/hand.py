"""Changes that a person makes to a session."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable

    from retold.archive.store import Store
    from retold.cli.console import Console


def changed(session: str, console: Console, change: Callable[[Store, str], object]) -> int:
    """Change the session that a text means; 1 if none is meant, 2 if several are."""
    from retold.archive.store import Store, exists
    from retold.cli.archive import no_such_session
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
