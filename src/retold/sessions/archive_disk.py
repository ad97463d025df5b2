"""Disks over the archive: the files of an agent as they were kept, so that its reader can read them again."""

import errno
import os
from collections.abc import Sequence
from typing import Literal, NamedTuple

from retold.archive.database import DamagedError
from retold.archive.queries.lookups import load_latest_original, load_paths_below
from retold.archive.store import Originals, Store, as_path
from retold.reading.disk import Disk, DiskEntry, OpenFile


class ArchivedEntry(NamedTuple):
    """An entry of an archived folder."""

    name: str
    path: str
    is_archived_file: bool
    """Whether it is a file; else it is a folder with a file in it."""

    def is_file(self, *, follow_symlinks: Literal[False]) -> bool:  # noqa: ARG002 - as `os.DirEntry` has it
        """Return whether it is a file."""
        return self.is_archived_file

    def is_dir(self, *, follow_symlinks: Literal[False]) -> bool:  # noqa: ARG002 - the same
        """Return whether it is a folder."""
        return not self.is_archived_file


class FixedFile:
    """An open file whose content does not change."""

    __slots__ = ("_offset", "identity", "modified_ns", "size")

    def __init__(self, size: int, modified_ns: int, identity: str = "") -> None:
        self.size, self.modified_ns, self.identity, self._offset = size, modified_ns, identity, 0

    def read_part(self, start: int, size: int) -> bytes:
        """Return the bytes from an offset on."""
        raise NotImplementedError

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        data = self.read_part(self._offset, max(min(size, self.size - self._offset), 0))
        self._offset += len(data)
        return data

    def seek(self, offset: int, /) -> None:
        """Continue at an offset."""
        self._offset = offset

    def status(self) -> tuple[int, int]:
        """Return size and time, which do not change."""
        return self.size, self.modified_ns

    def close(self) -> None:
        """Do nothing."""


class MemoryFile(FixedFile):
    """Bytes as an open file."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes, modified_ns: int) -> None:
        super().__init__(len(data), modified_ns)
        self._data = data

    def read_part(self, start: int, size: int) -> bytes:
        """Return the bytes from an offset on; all of them without a copy."""
        return self._data[start : start + size]


class OriginalFile(FixedFile):
    """An original as an open file, decompressed chunk by chunk."""

    __slots__ = ("_originals", "original")

    def __init__(self, originals: Originals, original: int, size: int, modified_ns: int) -> None:
        super().__init__(size, modified_ns)
        self._originals, self.original = originals, original

    def read_part(self, start: int, size: int) -> bytes:
        """Return the bytes from an offset on; raises DamagedError if the archive lacks some of them."""
        data = self._originals.read(self.original, start, size)
        if len(data) != size:
            why = f"{size - len(data):,} bytes are missing"
            raise DamagedError(f"an original is damaged ({why}): bring back a copy of archive.db")
        return data


class ArchiveDisk:
    """The archived files of an agent, each as it was last."""

    def __init__(self, store: Store, agent: str) -> None:
        self._store, self._agent = store, agent

    def open(self, path: str) -> OpenFile:
        """Open the latest original of a file."""
        row = load_latest_original(self._store, self._agent, path)
        if row is None:
            raise FileNotFoundError(errno.ENOENT, "not in the archive", path)
        return OriginalFile(self._store.originals, *row)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return the entries of a folder."""
        below = folder.rstrip(os.sep) + os.sep
        names: dict[str, bool] = {}
        for path in self._paths_below(below):
            name, is_deeper, _ = path[len(below) :].partition(os.sep)
            names[name] = names.get(name, True) and not is_deeper
        if not names:
            raise FileNotFoundError(errno.ENOENT, "not in the archive", folder)
        return [ArchivedEntry(name, below + name, is_file) for name, is_file in sorted(names.items())]

    def _paths_below(self, start: str) -> list[str]:
        return [as_path(path) for path in load_paths_below(self._store, self._agent, start)]

    def is_folder(self, path: str) -> bool:
        """Return whether a folder is in the archive."""
        return bool(self._paths_below(path.rstrip(os.sep) + os.sep))

    def is_file(self, path: str) -> bool:
        """Return whether a file is in the archive."""
        return load_latest_original(self._store, self._agent, path) is not None

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - as a Disk has it
        """Return False: the archive has no links."""
        return False


class PinnedDisk:
    """A disk on which one file is an earlier version of itself."""

    def __init__(self, disk: Disk, path: str, file: OriginalFile) -> None:
        self._disk, self._path, self._file = disk, path, file
        self.original = file.original
        self.entries, self.is_folder = disk.entries, disk.is_folder
        self.is_file, self.is_link = disk.is_file, disk.is_link

    def open(self, path: str) -> OpenFile:
        """Open a file; the pinned one from its start."""
        if path != self._path:
            return self._disk.open(path)
        self._file.seek(0)
        return self._file
