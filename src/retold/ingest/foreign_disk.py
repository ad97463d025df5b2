"""Another's archive as a Disk: every file that it has of one agent, under the path that it gets here."""

import errno
import os
from collections.abc import Iterable, Sequence

import msgspec

from retold.archive.foreign import ForeignOriginal, OtherArchive
from retold.ingest.kept import KeptEntry
from retold.reading.disk import DiskEntry, OpenFile


class Version(msgspec.Struct, frozen=True):
    """What a file held at some time."""

    original: ForeignOriginal
    data: bytes | None = None
    """Its content, where something was struck out of it."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.original.size if self.data is None else len(self.data)


class ForeignOpenFile:
    """A version of a file, opened: unpacked chunk by chunk as it is read."""

    __slots__ = ("_foreign", "_place", "modified_ns", "size", "version")
    identity = ""

    def __init__(self, foreign: OtherArchive, version: Version) -> None:
        self._foreign, self.version, self._place = foreign, version, 0
        self.size, self.modified_ns = version.size, version.original.modified_ns

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        wanted = max(min(size, self.size - self._place), 0)
        held = self.version.data
        data = (
            self._foreign.data(self.version.original, self._place, wanted)
            if held is None
            else held[self._place : self._place + wanted]
        )
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


class ForeignDisk:
    """The files of one agent; it remembers which were opened."""

    def __init__(self, foreign: OtherArchive, latest: dict[str, Version]) -> None:
        """Take the latest version of each file, by path."""
        self._foreign, self._latest = foreign, latest
        self._folders = _folders(latest)
        self._pinned: dict[str, Version] = {}
        self.opened: set[str] = set()

    def pin(self, path: str, version: Version) -> None:
        """Let one file be what it was at some time."""
        self._pinned = {path: version}

    def unpin(self) -> None:
        """Let every file be what it was last."""
        self._pinned = {}

    def open(self, path: str) -> OpenFile:
        """Open a file."""
        version = self._pinned.get(path) or self._latest.get(path)
        if version is None:
            raise FileNotFoundError(errno.ENOENT, "not in the other archive", path)
        self.opened.add(path)
        return ForeignOpenFile(self._foreign, version)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder held."""
        found = self._folders.get(folder.rstrip(os.sep))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "not in the other archive", folder)
        return [
            KeptEntry(name, os.path.join(folder, name), is_file) for name, is_file in sorted(found.items())
        ]

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder was there."""
        return path.rstrip(os.sep) in self._folders

    def is_file(self, path: str) -> bool:
        """Tell whether a file was there."""
        return path in self._latest

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - as a Disk has it
        """No link is kept."""
        return False


def _folders(paths: Iterable[str]) -> dict[str, dict[str, bool]]:
    """Return what each folder holds: names, and whether each is a file."""
    folders: dict[str, dict[str, bool]] = {}
    for path in paths:
        above, _, name = path.rpartition(os.sep)
        is_new = above not in folders
        folders.setdefault(above, {})[name] = True
        while above and is_new:
            above, _, name = above.rpartition(os.sep)
            is_new = above not in folders
            folders.setdefault(above, {}).setdefault(name, False)
    return folders
