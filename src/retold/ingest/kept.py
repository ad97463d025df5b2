"""The archive as a Disk: every file that was ever kept, under the path it had."""

import errno
import os
from collections.abc import Sequence
from typing import Literal, NamedTuple

from retold.archive.database import DamagedError
from retold.archive.queries.lookups import latest_at, paths_below
from retold.archive.store import Originals, Store, as_path
from retold.reading.disk import Disk, DiskEntry, OpenFile


class KeptEntry(NamedTuple):
    """Something that a folder held."""

    name: str
    path: str
    is_kept: bool
    """A file; else a folder in which one is."""

    def is_file(self, *, follow_symlinks: Literal[False]) -> bool:  # noqa: ARG002 - as `os.DirEntry` has it
        """Tell whether it is a file."""
        return self.is_kept

    def is_dir(self, *, follow_symlinks: Literal[False]) -> bool:  # noqa: ARG002 - the same
        """Tell whether it is a folder."""
        return not self.is_kept


class KeptFile:
    """An original, opened: unpacked chunk by chunk as it is read."""

    __slots__ = ("_originals", "_place", "modified_ns", "original", "size")
    identity = ""

    def __init__(self, originals: Originals, original: int, size: int, modified_ns: int) -> None:
        self._originals, self.original, self._place = originals, original, 0
        self.size, self.modified_ns = size, modified_ns

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; raises Damaged where the archive lacks some of them."""
        wanted = max(min(size, self.size - self._place), 0)
        data = self._originals.data(self.original, self._place, wanted)
        if len(data) != wanted:
            why = f"{wanted - len(data):,} bytes are missing"
            raise DamagedError(f"an original is damaged ({why}): bring back a copy of archive.db")
        self._place += len(data)
        return data

    def seek(self, offset: int, /) -> None:
        """Go on at a place."""
        self._place = offset

    def status(self) -> tuple[int, int]:
        """Return size and time: they stay."""
        return self.size, self.modified_ns

    def close(self) -> None:
        """Nothing has to be given back."""


class ArchiveDisk:
    """What an agent's homes held."""

    def __init__(self, record: Store, agent: str) -> None:
        self._record, self._agent = record, agent

    def open(self, path: str) -> OpenFile:
        """Open the latest that was kept of a file."""
        found = latest_at(self._record, self._agent, path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "not in the archive", path)
        return KeptFile(self._record.originals, *found)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder held."""
        below = folder.rstrip(os.sep) + os.sep
        names: dict[str, bool] = {}
        for path in self._below(below):
            name, is_deeper, _ = path[len(below) :].partition(os.sep)
            names[name] = names.get(name, True) and not is_deeper
        if not names:
            raise FileNotFoundError(errno.ENOENT, "not in the archive", folder)
        return [KeptEntry(name, below + name, is_kept) for name, is_kept in sorted(names.items())]

    def _below(self, start: str) -> list[str]:
        return [as_path(path) for path in paths_below(self._record, self._agent, start)]

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder was there."""
        return bool(self._below(path.rstrip(os.sep) + os.sep))

    def is_file(self, path: str) -> bool:
        """Tell whether a file was there."""
        return latest_at(self._record, self._agent, path) is not None

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - as a Disk has it
        """No link is kept."""
        return False


class PinnedDisk:
    """A Disk on which one file is what it was at another time."""

    def __init__(self, disk: Disk, path: str, file: KeptFile) -> None:
        self._disk, self._path, self._file = disk, path, file
        self.original = file.original
        self.entries, self.is_folder = disk.entries, disk.is_folder
        self.is_file, self.is_link = disk.is_file, disk.is_link

    def open(self, path: str) -> OpenFile:
        """Open a file; the one that is pinned at its beginning."""
        if path != self._path:
            return self._disk.open(path)
        self._file.seek(0)
        return self._file
