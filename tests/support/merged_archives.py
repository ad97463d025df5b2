"""Archives of several machines, and imports of one archive into another."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from retold.archive.store import Store
from retold.model.serialization import to_builtins
from retold.model.session import Session
from retold.synchronization.importer import ImportCallbacks, ImportReport, ImportRequest, import_archive
from support.synced_archive import SyncedArchive, sync_archive

CALLBACKS = ImportCallbacks(lambda: None, lambda _done, _size: None, lambda _damage: None)
KEPT_TABLES = (
    "sources",
    "originals",
    "pieces",
    "chunks",
    "clues",
    "titles",
    "tags",
    "tombstones",
    "sessions",
    "messages",
    "requests",
)
"""The tables that a second import must not change."""


def import_into(into: Path, other: Path, label: str = "other", **more: Any) -> ImportReport:
    """Import the archive `other` into the archive `into`."""
    return import_archive(ImportRequest(str(other), str(into), label, **more), CALLBACKS)


class Machine:
    """A machine and its archive; all machines have the same home path."""

    def __init__(self, folder: Path, name: str) -> None:
        self.home, self.archive = folder / "home", folder / name
        self._steps = 0

    def sync(self, write: Callable[[Path], object]) -> SyncedArchive:
        """Write into the home and sync the archive; every sync gives the files a later mtime."""
        self._steps += 1
        self.home.mkdir(exist_ok=True)
        write(self.home)
        for path in sorted(self.home.rglob("*")):
            os.utime(path, (1_770_000_000 + self._steps,) * 2)
        return sync_archive(self.archive, {"HOME": str(self.home)})

    def leave(self) -> None:
        """Delete the home, so that another machine can use its path."""
        shutil.rmtree(self.home)


def merge_archives(folder: Path, first: Path, *others: Path, labels: Sequence[str] = ()) -> Path:
    """Return a copy of the first archive into which the others are imported."""
    shutil.copytree(first, folder)
    for place, other in enumerate(others):
        import_into(folder, other, labels[place] if labels else "other")
    return folder


def load_sessions(archive: Path) -> list[Session]:
    """Return every session of an archive."""
    return SyncedArchive(str(archive), None, ()).sessions()  # type: ignore[arg-type]


def load_everything(archive: Path) -> list[Any]:
    """Return every session of an archive as JSON, without its sources, problems and coverage."""
    left_out = {"sources", "problems", "coverage"}
    sessions = [to_builtins(session) for session in load_sessions(archive)]
    return [{name: value for name, value in one.items() if name not in left_out} for one in sessions]


def load_tables(archive: Path) -> dict[str, list[Any]]:
    """Return the rows of `KEPT_TABLES`."""
    with Store(str(archive)) as record:
        return {name: sorted(record.rows(f"SELECT * FROM {name}"), key=repr) for name in KEPT_TABLES}  # noqa: S608 - fixed SQL
