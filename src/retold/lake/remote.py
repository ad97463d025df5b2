"""Files on a file system that Arrow knows, as a Disk: object stores, and others that are reached by an address."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from pyarrow import fs

from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.reading.disk import DISK, Disk, OpenFile, list_folder
from retold.sessions.conversations import size_here
from retold.synchronization.disks import MemoryFile

SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""How Hadoop names what Arrow names otherwise."""
AT_ONCE = 16 << 20
"""Bytes of a file that are fetched by one request."""
LISTERS = 16
"""How many folders are listed at once: most of that time is waiting."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_ASKING = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+((?:[^/]*|[^/:]*:(?!\d*(?:/|$))[^@]*)@)")
"""Who asks, in an address; a secret may hold slashes, and a port is none."""
_CONTAINERS = frozenset(("abfs", "abfss", "wasb", "wasbs"))
"""Schemes whose addresses name there what is asked for."""


def is_address(path: str) -> bool:
    """Tell whether a path is an address of another file system than this machine's."""
    return _ADDRESS.match(path) is not None and not path.startswith("file:")


class RemoteEntry(msgspec.Struct, frozen=True):
    """What a folder holds; object stores have no links."""

    name: str
    path: str
    is_folder: bool
    size: int = 0
    modified_ns: int = 0

    def is_file(self, *, follow_symlinks: bool) -> bool:  # noqa: ARG002 - there are none
        """Tell whether it is a file."""
        return not self.is_folder

    def is_dir(self, *, follow_symlinks: bool) -> bool:  # noqa: ARG002 - there are none
        """Tell whether it is a folder."""
        return self.is_folder


class RemoteFile:
    """An open file; whatever goes wrong with it is an OSError.

    One that is not large is fetched at once: whoever looks at its beginning reads the rest as well, and each request costs.
    """

    __slots__ = ("_file", "_place", "_whole", "modified_ns", "size")
    identity = ""

    def __init__(self, file: Any, size: int, modified_ns: int) -> None:
        self._file, self.size, self.modified_ns = file, size, modified_ns
        self._whole: bytes | None = None
        self._place = 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        if self.size > AT_ONCE:
            data: bytes = _answered(self._file.read, size)
            return data
        if self._whole is None:
            self._whole = _answered(self._file.read)
        data = self._whole[self._place : self._place + size]
        self._place += len(data)
        return data

    def seek(self, offset: int, /) -> None:
        """Go on at a place."""
        self._place = offset
        if self.size > AT_ONCE:
            _answered(self._file.seek, offset)

    def status(self) -> tuple[int, int]:
        """Return size and time as they were: an object that is written anew is another one."""
        return self.size, self.modified_ns

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


class RemoteDisk:
    """A file system by its address. What is sent elsewhere is the address: it is reached anew from there.

    Paths are addresses with one slash behind the scheme, as paths have it: `s3:/bucket/homes/ann`.
    """

    def __init__(self, address: str) -> None:
        """Take the address of a folder; raises ValueError where Arrow cannot reach such addresses."""
        self._address = address
        scheme, colon, rest = address.partition(":")
        try:
            self._files, there = fs.FileSystem.from_uri(SCHEMES.get(scheme, scheme) + colon + rest)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{shown_path(address)}: {_anonymous(str(error), address)}") from None
        shown = shown_path(address)
        same = len(
            list(takewhile(lambda pair: pair[0] == pair[1], zip(shown[::-1], there[::-1], strict=False)))
        )
        self._prefix: str = shown[: len(shown) - same]
        self._there: str = there[: len(there) - same]
        self._folders: dict[str, dict[str, RemoteEntry]] = {}
        """What folders hold, by name."""
        self._looked: dict[str, RemoteEntry | None] = {}
        """What single paths were found to be: each is asked for once."""

    def __reduce__(self) -> tuple[type["RemoteDisk"], tuple[str]]:
        return RemoteDisk, (self._address,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteDisk) and other._address == self._address

    def __hash__(self) -> int:
        return hash(self._address)

    def open(self, path: str) -> OpenFile:
        """Open a file."""
        found = self._info(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if found.is_folder:
            raise IsADirectoryError
        return RemoteFile(
            _answered(self._files.open_input_file, self._on(path)), found.size, found.modified_ns
        )

    def entries(self, folder: str) -> Sequence[RemoteEntry]:
        """Return what a folder holds, by name; asked for once."""
        if folder not in self._folders:
            found = _answered(self._files.get_file_info, fs.FileSelector(self._on(folder)))
            self._folders[folder] = _by_name(map(self._entry, found))
        return list(self._folders[folder].values())

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there; False where nobody may look."""
        found = self._looked_up(path)
        return found is not None and found.is_folder

    def is_file(self, path: str) -> bool:
        """Tell whether a file is there; False where nobody may look."""
        found = self._looked_up(path)
        return found is not None and not found.is_folder

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - the question is the same for every path
        """Tell that no link is there."""
        return False

    def size_of(self, source: Source) -> int:
        """Return the bytes of a file; none of one that nobody may look at."""
        found = self._looked_up(str(source.path))
        return 0 if found is None else found.size

    def know(self, folders: Iterable[str]) -> None:
        """List folders with all that is below them, many at once: an object store answers that as fast as for one."""
        with ThreadPoolExecutor(LISTERS) as pool:
            list(pool.map(self._know, folders))

    def _know(self, folder: str) -> None:
        try:
            found = _answered(self._files.get_file_info, fs.FileSelector(self._on(folder), recursive=True))
        except FileNotFoundError:
            return  # some of the homes that a pattern means may not have it
        held: dict[str, list[RemoteEntry]] = {folder: []}
        for one in map(self._entry, found):
            if one.is_folder:
                held.setdefault(one.path, [])
            held.setdefault(one.path.rpartition("/")[0], []).append(one)
        for path, entries in held.items():
            self._folders[path] = _by_name(entries)

    def _looked_up(self, path: str) -> RemoteEntry | None:
        try:
            return self._info(path)
        except (OSError, ValueError):
            return None

    def _info(self, path: str) -> RemoteEntry | None:
        above, _, name = path.rpartition("/")
        if path in self._folders:
            return RemoteEntry(name, path, is_folder=True)
        if above in self._folders:
            return self._folders[above].get(name)
        if path not in self._looked:
            (found,) = _answered(self._files.get_file_info, [self._on(path)])
            self._looked[path] = None if found.type == fs.FileType.NotFound else self._entry(found)
        return self._looked[path]

    def _on(self, path: str) -> str:
        if "\0" in path:
            raise ValueError("embedded null byte")
        return self._there + path.removeprefix(self._prefix)

    def _entry(self, found: Any) -> RemoteEntry:
        path = self._prefix + found.path.rstrip("/").removeprefix(self._there)
        is_folder = found.type == fs.FileType.Directory
        return RemoteEntry(
            path.rpartition("/")[2], path, is_folder, found.size or 0, _nanoseconds(found.mtime_ns)
        )


def _by_name(entries: Iterable[RemoteEntry]) -> dict[str, RemoteEntry]:
    return {one.name: one for one in sorted(entries, key=lambda one: one.name)}


def shown_path(address: str) -> str:
    """Return an address as a path has it: with one slash behind its scheme, none at its end, and no credentials."""
    return re.sub(r"/+", "/", _anonymous(address, address)).rstrip("/")


def _anonymous(text: str, address: str) -> str:
    """Return a text without the credentials of an address."""
    found = _ASKING.match(address)
    if found is None:
        return text
    scheme, asking = found.groups()
    first, colon, _ = asking.partition(":")
    if not colon:  # no secret: a name, which may stand behind it as well
        return text if scheme in _CONTAINERS else text.replace(asking, "", 1)
    return text.replace(asking, f"{first}@" if scheme in _CONTAINERS and first else "")


def _nanoseconds(told: object) -> int:
    return told if isinstance(told, int) else 0


def _answered(ask: Callable[..., Any], *arguments: Any) -> Any:
    """Ask Arrow for something; whatever it says then is an OSError."""
    try:
        return ask(*arguments)
    except (pa.ArrowException, UnicodeError) as error:
        raise OSError(errno.EIO, str(error)) from None


class ListedFile(msgspec.Struct, frozen=True):
    """A file: its size, when it was written, and its content where that is at hand."""

    size: int
    modified_ns: int
    data: bytes | None = None


class ListedDisk:
    """Files by their paths, and the folders that follow from them; it remembers which contents it could not give.

    Nothing of it is sent elsewhere: who reads there is given the files that they need.
    """

    def __init__(self, files: Mapping[str, ListedFile]) -> None:
        """Take all files that there are."""
        self._files = dict(files)
        self._folders: dict[str, dict[str, RemoteEntry]] = {}
        self.wanted: set[str] = set()
        """Files that were to be opened, and whose content is not here."""
        for path, file in self._files.items():
            self._place(path, file)

    def __reduce__(self) -> tuple[type["ListedDisk"], tuple[dict[str, ListedFile]]]:
        return ListedDisk, ({},)

    def open(self, path: str) -> OpenFile:
        """Open a file whose content is here."""
        held = self._files.get(path)
        if held is not None and held.data is not None:
            return MemoryFile(held.data, held.modified_ns)
        if path in self._folders:
            raise IsADirectoryError
        self.wanted.add(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def entries(self, folder: str) -> Sequence[RemoteEntry]:
        """Return what a folder holds, by name."""
        if folder not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        return [entry for _, entry in sorted(self._folders[folder].items())]

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there."""
        return path in self._folders

    def is_file(self, path: str) -> bool:
        """Tell whether a file is there."""
        return path in self._files

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - the question is the same for every path
        """Tell that no link is there."""
        return False

    def size_of(self, source: Source) -> int:
        """Return the bytes of a file."""
        held = self._files.get(str(source.path))
        return 0 if held is None else held.size

    def _place(self, path: str, file: ListedFile) -> None:
        entry = RemoteEntry(path.rpartition("/")[2], path, False, file.size, file.modified_ns)  # noqa: FBT003 - no folder
        while entry.path:
            above = entry.path.rpartition("/")[0]
            is_known = above in self._folders
            self._folders.setdefault(above, {})[entry.name] = entry
            if is_known or not above:
                break
            entry = RemoteEntry(above.rpartition("/")[2], above, is_folder=True)


_MAGIC = frozenset("*?[")
_ENCODED = re.compile("%(?:2A|3F|5B)", re.IGNORECASE)
_FILE = re.compile("file:(?://[^/]*)?")


class Places(msgspec.Struct, frozen=True):
    """Folders that may be homes, each with its label, on one disk."""

    folders: Sequence[tuple[str | None, Path]]
    disk: Disk = DISK

    def size_of(self, source: Source) -> int:
        """Return the bytes of a file in them."""
        return self.disk.size_of(source) if isinstance(self.disk, RemoteDisk) else size_here(source)


def found(patterns: Sequence[str], label: str | None = None) -> Places:
    """Look for the folders that patterns mean; raises ValueError where one means none, or nobody may look."""
    remote = {pattern: _fixed(pattern) for pattern in patterns if is_address(pattern)}
    if not remote:
        return Places(labelled(map(_local, patterns), DISK, label))
    roots = {pattern.split("/")[:3] == patterns[0].split("/")[:3] for pattern in patterns}
    if roots != {True}:
        raise ValueError("paths of several file systems: load each by itself, and join them with union")
    if os.sep != "/":
        raise ValueError("addresses of other file systems can be read on Linux and macOS alone")
    disk = RemoteDisk(remote[patterns[0]])
    try:
        folders = labelled(map(shown_path, patterns), disk, label)
        disk.know(str(folder) for _, folder in folders)
    except OSError as error:
        raise ValueError(f"{', '.join(map(shown_path, patterns))}: {error.strerror or error}") from None
    return Places(folders, disk)


def _local(pattern: str) -> str:
    """Return a pattern of paths; in one that is an address, `?` and `#` are part of names, as in any other."""
    found = _FILE.match(pattern)
    if found is not None:
        # What is encoded means itself, also where it would otherwise stand for something.
        pattern = unquote(_ENCODED.sub(r"[\g<0>]", pattern[found.end() :]))
    # Whoever reads may stand in another folder.
    return os.path.abspath(pattern)


def _fixed(pattern: str) -> str:
    """Return as much of an address as holds for all that it means."""
    parts = pattern.rstrip("/").split("/")
    magic = (place for place, part in enumerate(parts) if _MAGIC & set(part))
    return "/".join(parts[: next(magic, len(parts))])


def labelled(patterns: Iterable[str], disk: Disk, label: str | None) -> list[tuple[str | None, Path]]:
    """Return the folders that patterns mean, each with its label: the one that is given, or its own.

    Raises ValueError for one that means none: a slip in a path must not look like a home in which nothing was said.
    """
    folders: dict[Path, None] = {}
    for pattern in patterns:
        meant = list(_matches(pattern, disk))
        if not any(disk.is_folder(str(folder)) for folder in meant):
            raise ValueError(f"{pattern}: there is no such folder, or nobody may look at it")
        folders |= dict.fromkeys(meant)
    return [(label or label_of(folder), folder) for folder in folders]


def label_of(folder: Path) -> str | None:
    """Return how a home is called: by its folder, or by the one that holds it where that is an agent's own."""
    return next((part for part in reversed(folder.parts) if not part.startswith((".", "/"))), None)


def _matches(pattern: str, disk: Disk) -> Iterator[Path]:
    whole = Path(pattern)
    held = [Path(whole.anchor)]
    for part in whole.parts[1:] if whole.anchor else whole.parts:
        if _MAGIC & set(part):
            held = [inner for folder in held for inner in _inside(folder, part, disk)]
        else:
            held = [folder / part for folder in held]
    return iter(held)


def _inside(folder: Path, part: str, disk: Disk) -> Iterator[Path]:
    for entry in list_folder(folder, disk):
        if isinstance(entry, Problem):
            raise ValueError(f"{entry.path}: {entry.message}")  # noqa: TRY004 - what may not be looked at is no wrong type
        is_meant = fnmatchcase(entry.name, part) and entry.name.startswith(".") == part.startswith(".")
        if is_meant and disk.is_folder(entry.path):
            yield Path(entry.path)
