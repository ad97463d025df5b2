"""A Disk on which files stand still: each as it was when it was opened first, and at hand to be kept."""

import errno
import os
import time
from collections.abc import Iterable, Sequence
from weakref import finalize

import msgspec

from retold.archive.annotations import remove_forgotten
from retold.archive.foreign import ForeignOriginal, OtherArchive
from retold.archive.keyed_hashes import NOBODY, KeyedSet
from retold.model.problem import problem
from retold.reading.disk import DISK, Disk, DiskEntry, OpenFile, printable
from retold.sessions.load import KeptEntry
from retold.synchronization.fingerprints import TAIL, tail_digest

LARGEST = 64 << 20
"""Files up to this size are held in memory while they are read; larger ones are held open."""
ATTEMPTS = 3


class MemoryFile:
    """Bytes, as an open file."""

    __slots__ = ("_data", "_place", "modified_ns", "size")
    identity = ""

    def __init__(self, data: bytes, modified_ns: int) -> None:
        self._data, self._place = data, 0
        self.size, self.modified_ns = len(data), modified_ns

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; all of them as they are, if that is what is wanted."""
        start, self._place = self._place, min(self._place + size, self.size)
        return self._data if start == 0 and size >= self.size else self._data[start : self._place]

    def seek(self, offset: int, /) -> None:
        """Go on at a place."""
        self._place = offset

    def status(self) -> tuple[int, int]:
        """Return size and time: they stay."""
        return self.size, self.modified_ns

    def close(self) -> None:
        """Nothing has to be given back."""


class _SharedFile:
    """A large file for one reader: several read through the same descriptor, up to where the file ended at first."""

    __slots__ = ("_file", "_place", "identity", "modified_ns", "size")

    def __init__(self, file: OpenFile, size: int) -> None:
        self._file, self._place = file, 0
        self.size, self.modified_ns, self.identity = size, file.modified_ns, file.identity

    def read(self, size: int, /) -> bytes:
        self._file.seek(self._place)
        data = self._file.read(max(min(size, self.size - self._place), 0))
        self._place += len(data)
        return data

    def seek(self, offset: int, /) -> None:
        self._place = offset

    def status(self) -> tuple[int, int]:
        return self.size, self.modified_ns

    def close(self) -> None:
        """Leave the descriptor to the other readers."""


class FileChangedError(Exception):
    """A file was rewritten in place while it was read."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.problem = problem("changed-while-read", "rewritten while it was read", printable(path))
        self.path = path


class FrozenFile:
    """What a file held when it was opened first."""

    def __init__(self, path: str, file: OpenFile) -> None:
        self.path, self.read_ns = path, time.time_ns()
        self.size = self.file_size = file.size
        self.modified_ns, self.identity = file.modified_ns, file.identity
        self.data: bytes | None = None
        """The content, where it is not too large to be held."""
        self._file: OpenFile | None = None

    def hold_open(self, file: OpenFile) -> None:
        """Read a large file through this descriptor alone, so that a file put in its place changes nothing."""
        self._file = file
        finalize(self, file.close)

    def open(self) -> OpenFile:
        """Open the content."""
        if self.data is not None:
            return MemoryFile(self.data, self.modified_ns)
        assert self._file is not None  # noqa: S101 - one of the two is there once a file is still
        return _SharedFile(self._file, self.size)

    def part(self, start: int, size: int) -> bytes:
        """Return a part of the content."""
        if self.data is not None:
            return self.data[start : start + size]
        file, pieces = self.open(), []
        file.seek(start)
        while size and (data := file.read(size)):
            pieces.append(data)
            size -= len(data)
        return b"".join(pieces)

    def is_untouched(self) -> bool:
        """Tell whether nobody has written to the file since it was opened."""
        return self._file is None or self._file.status() == (self.file_size, self.modified_ns)

    def end(self) -> None:
        """Take the end of the file down, when all of it is known."""
        self.size = self.file_size = self.size if self.data is None else len(self.data)
        self.tail = tail_digest(self.part(max(self.size - TAIL, 0), TAIL))
        """To know the file again where size and time may lie."""

    def strike(self, forgotten: KeyedSet) -> None:
        """Leave out what is to be forgotten."""
        if forgotten and self.data is not None:
            self.data = remove_forgotten(self.data, forgotten)
            self.size = len(self.data)


class Snapshot:
    """The disk of this machine with files that stand still; what has gone from it is where it is kept."""

    def __init__(self, kept: Disk, forgotten: KeyedSet = NOBODY, here: Disk = DISK) -> None:
        """Take where that is, ids that are struck out, and what stands for the disk of this machine."""
        self.files: dict[str, FrozenFile] = {}
        """The files of this machine that were opened."""
        self._kept, self._forgotten, self._here = kept, forgotten, here

    def open(self, path: str) -> OpenFile:
        """Open a file as it was when it was opened first."""
        still = self.files.get(path)
        if still is None:
            try:
                still = self.files[path] = _stilled(path, self._here)
                still.strike(self._forgotten)
            except FileNotFoundError:
                return self._kept.open(path)
        return still.open()

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder holds, and what it held."""
        try:
            here = self._here.entries(folder)
        except FileNotFoundError:
            return self._kept.entries(folder)
        names = {entry.name for entry in here}
        gone = [entry for entry in _entries(self._kept, folder) if entry.name not in names]
        return sorted([*here, *gone], key=lambda entry: entry.name) if gone else here

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there, or was."""
        return self._here.is_folder(path) or self._kept.is_folder(path)

    def is_file(self, path: str) -> bool:
        """Tell whether a file is there, or was."""
        return self._here.is_file(path) or self._kept.is_file(path)

    def is_link(self, path: str) -> bool:
        """Tell whether a link is there."""
        return self._here.is_link(path)


def _entries(disk: Disk, folder: str) -> Sequence[DiskEntry]:
    try:
        return disk.entries(folder)
    except OSError:
        return ()


def _stilled(path: str, here: Disk) -> FrozenFile:
    """Read a file; again when it changed meanwhile, a few times at most."""
    for _ in range(ATTEMPTS):
        file = here.open(path)
        still = FrozenFile(path, file)
        if still.size > LARGEST:
            still.hold_open(file)
            break
        try:
            still.data = _all(file)
            is_settled = file.status() == (still.size, still.modified_ns) and len(still.data) == still.size
        finally:
            file.close()
        if is_settled:
            break
    else:
        _see_that_it_only_grew(still, here)
    still.end()
    return still


def _see_that_it_only_grew(still: FrozenFile, here: Disk) -> None:
    """Compare what was read of a file with what it holds now; raises FileChangedError where it does not begin so."""
    file = here.open(still.path)
    try:
        is_beginning = _all(file).startswith(still.data or b"")
    finally:
        file.close()
    if not is_beginning:
        raise FileChangedError(still.path)


def _all(file: OpenFile) -> bytes:
    pieces = [file.read(file.size + 1)]
    while pieces[-1] and sum(map(len, pieces)) < LARGEST:
        pieces.append(file.read(file.size + 1))
    return pieces[0] if len(pieces) == 2 and not pieces[1] else b"".join(pieces)  # noqa: PLR2004 - all at once


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
