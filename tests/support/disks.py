"""Disks for tests: one in memory, one that records its calls, and a watch over the real one."""

import errno
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from retold.reading.disk import Disk, DiskEntry, OpenFile

WATCHED_CALLS = ("access", "listdir", "lstat", "open", "readlink", "scandir", "stat")
"""The functions of `os` through which pathlib and all other code access paths."""


class MemoryEntry(msgspec.Struct, frozen=True):
    """An entry of a folder in memory."""

    name: str
    path: str
    is_regular: bool
    is_folder: bool

    def is_file(self, *, follow_symlinks: bool) -> bool:
        assert not follow_symlinks
        return self.is_regular

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        assert not follow_symlinks
        return self.is_folder


class MemoryFile:
    """An open file in memory."""

    identity = ""

    def __init__(self, data: bytes, modified_ns: int) -> None:
        self._stream = io.BytesIO(data)
        self.size, self.modified_ns = len(data), modified_ns

    def read(self, size: int, /) -> bytes:
        return self._stream.read(size)

    def seek(self, offset: int, /) -> None:
        self._stream.seek(offset)

    def status(self) -> tuple[int, int]:
        return self.size, self.modified_ns

    def close(self) -> None:
        self._stream.close()


class MemoryDisk(msgspec.Struct, frozen=True):
    """A snapshot of a folder in memory, under the same paths; links are listed but cannot be followed."""

    files: dict[str, tuple[bytes, int]]
    folders: dict[str, list[MemoryEntry]]
    links: frozenset[str]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Load a folder from the real disk."""
        below = sorted(folder.rglob("*"))
        files = [path for path in below if path.is_file() and not path.is_symlink()]
        return cls(
            {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files},
            {str(path): list(_held(path)) for path in (folder, *below) if path.is_dir()},
            frozenset(str(path) for path in below if path.is_symlink()),
        )

    def open(self, path: str) -> OpenFile:
        if path in self.folders:
            raise IsADirectoryError
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return MemoryFile(*self.files[path])

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        if folder not in self.folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        return self.folders[folder]

    def is_folder(self, path: str) -> bool:
        return path in self.folders

    def is_file(self, path: str) -> bool:
        return path in self.files

    def is_link(self, path: str) -> bool:
        return path in self.links


def _held(folder: Path) -> Iterator[MemoryEntry]:
    for path in sorted(folder.iterdir()):
        is_link = path.is_symlink()
        yield MemoryEntry(path.name, str(path), path.is_file() and not is_link, path.is_dir() and not is_link)


class RecordingDisk:
    """A disk that records every call and its path."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.asked: set[tuple[str, str]] = set()

    @property
    def paths(self) -> set[str]:
        return {path for _, path in self.asked}

    def open(self, path: str) -> OpenFile:
        self.asked.add(("open", path))
        return self._disk.open(path)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        self.asked.add(("entries", folder))
        return self._disk.entries(folder)

    def is_folder(self, path: str) -> bool:
        self.asked.add(("is_folder", path))
        return self._disk.is_folder(path)

    def is_file(self, path: str) -> bool:
        self.asked.add(("is_file", path))
        return self._disk.is_file(path)

    def is_link(self, path: str) -> bool:
        self.asked.add(("is_link", path))
        return self._disk.is_link(path)


@contextmanager
def watch_paths(folder: Path) -> Iterator[set[str]]:
    """Collect every path below a folder that any code in this process passes to the system."""
    touched: set[str] = set()

    def spied(look: Callable[..., Any]) -> Callable[..., Any]:
        def spy(path: Any = ".", *others: Any, **more: Any) -> Any:
            if not isinstance(path, int) and os.fspath(path).startswith(str(folder)):
                touched.add(os.fspath(path))
            return look(path, *others, **more)

        return spy

    with pytest.MonkeyPatch.context() as patch:
        for name in WATCHED_CALLS:
            patch.setattr(os, name, spied(getattr(os, name)))
        for opener in ("io.open", "builtins.open"):
            patch.setattr(opener, spied(io.open))
        yield touched
