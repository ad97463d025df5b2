"""Syncs homes into an archive and loads every session from it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from retold.archive.store import Store
from retold.model.problem import Problem
from retold.model.serialization import decode_summary, to_builtins
from retold.model.session import Session, View
from retold.search.filters import Filters
from retold.search.listing import list_json
from retold.sessions.load import load_session
from retold.synchronization.fingerprints import CoverageCount
from retold.synchronization.update import SyncOptions, update

Given = Sequence[tuple[str | None, Path]]
"""Additional homes, with their labels."""


class SyncedArchive(NamedTuple):
    """An archive right after a sync."""

    folder: str
    coverage: CoverageCount
    problems: Sequence[Any]
    """Problems that occurred during the search for files."""

    def sessions(self, view: View = "full") -> list[Session]:
        """Return every session with its timeline, oldest first; in the full view, check it against the listing."""
        with Store(self.folder) as record:
            keys = [key for (key,) in record.rows("SELECT key FROM sessions")]
            found = [session for key in keys if (session := load_session(record, key, view)) is not None]
        assert len(found) == len(keys)
        if view == "full":
            listed = {one.key: one for one in self.summaries()}
            for one in found:
                assert to_builtins(listed[one.key]) == to_builtins(msgspec.structs.replace(one, timeline=()))
        return sorted(found, key=lambda one: (one.started_at is None, one.started_at, one.key))

    def summaries(self) -> list[Session]:
        """Return every session as it is listed, without its timeline, newest first."""
        with Store(self.folder) as record:
            return [decode_summary(told) for told in list_json(record, Filters(), every_kind=True)]

    def refusals(self) -> list[Problem]:
        """Return the problem of every file that holds no conversation."""
        with Store(self.folder) as record:
            asked = "SELECT refusal FROM sources WHERE refusal IS NOT NULL ORDER BY path"
            return [msgspec.json.decode(told, type=Problem) for (told,) in record.rows(asked)]


def sync_archive(
    folder: Path | str, env: Mapping[str, str], given: Given = (), agents: Sequence[str] = ()
) -> SyncedArchive:
    """Sync an archive with the homes of an environment and with additional homes."""
    task = SyncOptions(str(folder), env, [(label, str(home)) for label, home in given], agents)
    return SyncedArchive(task.folder, *update(task, lambda: None, lambda _done, _size: None))


def sync_conversations(*homes: Path, agent: str, view: View = "full") -> list[Session]:
    """Return every conversation of an agent in some homes from a temporary archive, oldest first."""
    with TemporaryDirectory() as folder:
        given = [(None, home) for home in homes[1:]]
        return sync_archive(folder, {"HOME": str(homes[0])}, given, (agent,)).sessions(view)
