"""The file system as agents see it: whatever they open, list or look for is asked of a Disk.

So what a reading depends on can be watched, and files that are kept elsewhere can be read under the paths they had.
"""

import os
import stat
from collections.abc import Sequence
from operator import attrgetter
from typing import Literal, Protocol

import msgspec

# Windows lacks the one, everything else the other.
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


class DiskEntry(Protocol):
    """Something that a folder holds, as `os.DirEntry` tells it; no link is ever followed to find out what it is."""

    @property
    def name(self) -> str:
        """Its name in the folder."""

    @property
    def path(self) -> str:
        """The folder's path, as it was given, and the name."""

    def is_file(self, *, follow_symlinks: Literal[False]) -> bool:
        """Tell whether it is a regular file."""

    def is_dir(self, *, follow_symlinks: Literal[False]) -> bool:
        """Tell whether it is a folder."""


class OpenFile(Protocol):
    """A regular file that was opened to be read, and that whoever opened it closes."""

    @property
    def size(self) -> int:
        """How many bytes it held when it was opened."""

    @property
    def modified_ns(self) -> int:
        """When it had been written to last by then, in nanoseconds since 1970."""

    @property
    def identity(self) -> str:
        """The time of its last change and its inode, as `file_identity` returns them; empty where a disk has neither."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, `size` at most; none at the end."""

    def seek(self, offset: int, /) -> None:
        """Go on at a place, counted from the beginning."""

    def status(self) -> tuple[int, int]:
        """Return size and time of writing as they are by now."""

    def close(self) -> None:
        """Give the file back: nothing is asked of it any more."""


class Disk(Protocol):
    """All that agents ask of a file system. Wrong paths raise as they do in `os`: OSError, or ValueError for a NUL."""

    def open(self, path: str) -> OpenFile:
        """Open a regular file; raises IsADirectoryError for anything else, and waits for none."""

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder holds, by name."""

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there, or a link to one; False where nobody may look."""

    def is_file(self, path: str) -> bool:
        """Tell whether a regular file is there, or a link to one; False where nobody may look."""

    def is_link(self, path: str) -> bool:
        """Tell whether a link is there, wherever it leads."""


def file_identity(status: os.stat_result) -> str:
    """Return what changes when a file is rewritten with the same size and time, or replaced by another file."""
    return f"{status.st_ctime_ns} {status.st_ino}"


class _LocalFile:
    """A descriptor, with what was known of its file at first."""

    __slots__ = ("_descriptor", "identity", "modified_ns", "size")

    def __init__(self, descriptor: int, status: os.stat_result) -> None:
        self._descriptor, self.size, self.modified_ns = descriptor, status.st_size, status.st_mtime_ns
        self.identity = file_identity(status)

    def read(self, size: int, /) -> bytes:
        return os.read(self._descriptor, size)

    def seek(self, offset: int, /) -> None:
        os.lseek(self._descriptor, offset, os.SEEK_SET)

    def status(self) -> tuple[int, int]:
        now = os.fstat(self._descriptor)
        return now.st_size, now.st_mtime_ns

    def close(self) -> None:
        os.close(self._descriptor)


class LocalDisk(msgspec.Struct, frozen=True):
    """The file system of this machine."""

    def open(self, path: str) -> OpenFile:
        """Open a regular file; raises IsADirectoryError for anything else, and waits for none."""
        # Opened so, a FIFO does not wait for a writer that may never come.
        descriptor = os.open(path, os.O_RDONLY | _NONBLOCK | _BINARY)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise IsADirectoryError
        return _LocalFile(descriptor, status)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder holds, by name."""
        with os.scandir(folder) as found:
            return sorted(found, key=attrgetter("name"))

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there, or a link to one."""
        return os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        """Tell whether a regular file is there, or a link to one."""
        return os.path.isfile(path)

    def is_link(self, path: str) -> bool:
        """Tell whether a link is there, wherever it leads."""
        return os.path.islink(path)


DISK: Disk = LocalDisk()
"""What is read where nobody says otherwise."""


class EmptyDisk(msgspec.Struct, frozen=True):
    """A file system on which nothing is."""

    def open(self, path: str) -> OpenFile:
        """There is no file."""
        raise FileNotFoundError(path)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """There is no folder."""
        raise FileNotFoundError(folder)

    def is_folder(self, path: str) -> bool:  # noqa: ARG002 - as a Disk has it
        """There is none."""
        return False

    def is_file(self, path: str) -> bool:  # noqa: ARG002 - the same
        """There is none."""
        return False

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - the same
        """There is none."""
        return False


NOWHERE = EmptyDisk()
