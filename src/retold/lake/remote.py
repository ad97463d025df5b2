"""Remote disks: object stores and other file systems of Arrow, and lists of files, as a Disk."""

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
from retold.sessions.archive_disk import MemoryFile
from retold.sessions.conversations import local_size

SCHEMES = {"s3a": "s3", "s3n": "s3"}
"""Arrow's names for schemes of Hadoop."""
WHOLE_FILE = 16 << 20
"""Bytes of a file up to which it is fetched in one request."""
LISTERS = 16
"""Folders that are listed at the same time: most of the time is waiting."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+((?:[^/]*|[^/:]*:(?!\d*(?:/|$))[^@]*)@)")
"""The user and secret in an address. A secret may contain slashes; a port is none."""
_CONTAINERS = frozenset(("abfs", "abfss", "wasb", "wasbs"))
"""Schemes that name a container in the place of the user."""


def is_address(path: str) -> bool:
    """Return whether a path is an address of another file system than the local one."""
    return _ADDRESS.match(path) is not None and not path.startswith("file:")


class RemoteEntry(msgspec.Struct, frozen=True):
    """An entry of a folder. Object stores have no links."""

    name: str
    path: str
    is_folder: bool
    size: int = 0
    modified_ns: int = 0

    def is_file(self, *, follow_symlinks: bool) -> bool:  # noqa: ARG002 - there are none
        """Return whether it is a file."""
        return not self.is_folder

    def is_dir(self, *, follow_symlinks: bool) -> bool:  # noqa: ARG002 - there are none
        """Return whether it is a folder."""
        return self.is_folder


class RemoteFile:
    """An open file; all failures are an OSError.

    A small file is fetched in one request: readers of the beginning read the rest as well, and each request costs time.
    """

    __slots__ = ("_file", "_place", "_whole", "modified_ns", "size")
    identity = ""

    def __init__(self, file: Any, size: int, modified_ns: int) -> None:
        self._file, self.size, self.modified_ns = file, size, modified_ns
        self._whole: bytes | None = None
        self._place = 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        if self.size > WHOLE_FILE:
            data: bytes = _call_arrow(self._file.read, size)
            return data
        if self._whole is None:
            self._whole = _call_arrow(self._file.read)
        data = self._whole[self._place : self._place + size]
        self._place += len(data)
        return data

    def seek(self, offset: int, /) -> None:
        """Continue at an offset."""
        self._place = offset
        if self.size > WHOLE_FILE:
            _call_arrow(self._file.seek, offset)

    def status(self) -> tuple[int, int]:
        """Return size and time as they were: an object never changes, it is replaced."""
        return self.size, self.modified_ns

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class RemoteDisk:
    """A file system by its address. Only the address is pickled: another process connects again.

    Paths are addresses with one slash after the scheme: `s3:/bucket/homes/ann`.
    """

    def __init__(self, address: str) -> None:
        """Take the address of a folder; raise ValueError if Arrow has no such file system."""
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
        """The entries of folders, by name."""
        self._entries: dict[str, RemoteEntry | None] = {}
        """The entries of single paths, so that each is requested once."""

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
            _call_arrow(self._files.open_input_file, self._to_arrow_path(path)), found.size, found.modified_ns
        )

    def entries(self, folder: str) -> Sequence[RemoteEntry]:
        """Return the entries of a folder, sorted by name."""
        if folder not in self._folders:
            found = _call_arrow(self._files.get_file_info, fs.FileSelector(self._to_arrow_path(folder)))
            self._folders[folder] = _by_name(map(self._to_entry, found))
        return list(self._folders[folder].values())

    def is_folder(self, path: str) -> bool:
        """Return whether a folder exists; False without permission."""
        found = self._looked_up(path)
        return found is not None and found.is_folder

    def is_file(self, path: str) -> bool:
        """Return whether a file exists; False without permission."""
        found = self._looked_up(path)
        return found is not None and not found.is_folder

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - the answer is the same for every path
        """Return False: there are no links."""
        return False

    def size_of(self, source: Source) -> int:
        """Return the bytes of a file; 0 without permission."""
        found = self._looked_up(str(source.path))
        return 0 if found is None else found.size

    def preload(self, folders: Iterable[str]) -> None:
        """List folders recursively, many at once: an object store lists a tree as fast as one folder."""
        with ThreadPoolExecutor(LISTERS) as pool:
            list(pool.map(self._preload, folders))

    def _preload(self, folder: str) -> None:
        try:
            found = _call_arrow(
                self._files.get_file_info, fs.FileSelector(self._to_arrow_path(folder), recursive=True)
            )
        except FileNotFoundError:
            return  # a pattern may match homes that lack it
        tree: dict[str, list[RemoteEntry]] = {folder: []}
        for entry in map(self._to_entry, found):
            if entry.is_folder:
                tree.setdefault(entry.path, [])
            tree.setdefault(entry.path.rpartition("/")[0], []).append(entry)
        for path, entries in tree.items():
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
        if path not in self._entries:
            (found,) = _call_arrow(self._files.get_file_info, [self._to_arrow_path(path)])
            self._entries[path] = None if found.type == fs.FileType.NotFound else self._to_entry(found)
        return self._entries[path]

    def _to_arrow_path(self, path: str) -> str:
        if "\0" in path:
            raise ValueError("embedded null byte")
        return self._there + path.removeprefix(self._prefix)

    def _to_entry(self, found: Any) -> RemoteEntry:
        path = self._prefix + found.path.rstrip("/").removeprefix(self._there)
        is_folder = found.type == fs.FileType.Directory
        return RemoteEntry(
            path.rpartition("/")[2], path, is_folder, found.size or 0, _nanoseconds(found.mtime_ns)
        )


def _by_name(entries: Iterable[RemoteEntry]) -> dict[str, RemoteEntry]:
    return {one.name: one for one in sorted(entries, key=lambda one: one.name)}


def shown_path(address: str) -> str:
    """Return the path of an address: with one slash after the scheme, none at the end, and no credentials."""
    return re.sub(r"/+", "/", _anonymous(address, address)).rstrip("/")


def _anonymous(text: str, address: str) -> str:
    """Return a text without the credentials of an address."""
    found = _CREDENTIALS.match(address)
    if found is None:
        return text
    scheme, credentials = found.groups()
    first, colon, _ = credentials.partition(":")
    if not colon:  # a user without a secret, whose name may be part of the path as well
        return text if scheme in _CONTAINERS else text.replace(credentials, "", 1)
    return text.replace(credentials, f"{first}@" if scheme in _CONTAINERS and first else "")


def _nanoseconds(value: object) -> int:
    return value if isinstance(value, int) else 0


def _call_arrow(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of Arrow; raise its errors as OSError."""
    try:
        return function(*arguments)
    except (pa.ArrowException, UnicodeError) as error:
        raise OSError(errno.EIO, str(error)) from None


class ListedFile(msgspec.Struct, frozen=True):
    """A file: its size, the time it was written, and its content if that is known."""

    size: int
    modified_ns: int
    data: bytes | None = None


class ListedDisk:
    """A disk made of a list of files. It records the files that were opened and whose content is unknown.

    It is pickled without its files: each job gets the files that it needs.
    """

    def __init__(self, files: Mapping[str, ListedFile]) -> None:
        """Take all files, by path."""
        self._files = dict(files)
        self._folders: dict[str, dict[str, RemoteEntry]] = {}
        self.missing: set[str] = set()
        """The files that were opened and whose content is unknown."""
        for path, file in self._files.items():
            self._add(path, file)

    def __reduce__(self) -> tuple[type["ListedDisk"], tuple[dict[str, ListedFile]]]:
        return ListedDisk, ({},)

    def open(self, path: str) -> OpenFile:
        """Open a file whose content is known."""
        file = self._files.get(path)
        if file is not None and file.data is not None:
            return MemoryFile(file.data, file.modified_ns)
        if path in self._folders:
            raise IsADirectoryError
        self.missing.add(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def entries(self, folder: str) -> Sequence[RemoteEntry]:
        """Return the entries of a folder, sorted by name."""
        if folder not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        return [entry for _, entry in sorted(self._folders[folder].items())]

    def is_folder(self, path: str) -> bool:
        """Return whether a folder exists."""
        return path in self._folders

    def is_file(self, path: str) -> bool:
        """Return whether a file exists."""
        return path in self._files

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - the answer is the same for every path
        """Return False: there are no links."""
        return False

    def size_of(self, source: Source) -> int:
        """Return the bytes of a file."""
        file = self._files.get(str(source.path))
        return 0 if file is None else file.size

    def _add(self, path: str, file: ListedFile) -> None:
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


class HomeFolders(msgspec.Struct, frozen=True):
    """Folders that may be homes, each with its label, on one disk."""

    folders: Sequence[tuple[str | None, Path]]
    disk: Disk = DISK

    def size_of(self, source: Source) -> int:
        """Return the bytes of a file in them."""
        return self.disk.size_of(source) if isinstance(self.disk, RemoteDisk) else local_size(source)


def find_folders(patterns: Sequence[str], label: str | None = None) -> HomeFolders:
    """Return the folders that patterns match; raise ValueError for a pattern without a match or without permission."""
    remote = {pattern: _fixed_prefix(pattern) for pattern in patterns if is_address(pattern)}
    if not remote:
        return HomeFolders(find_labelled(map(_local, patterns), DISK, label))
    roots = {pattern.split("/")[:3] == patterns[0].split("/")[:3] for pattern in patterns}
    if roots != {True}:
        raise ValueError("paths of several file systems: load each by itself, and join them with union")
    if os.sep != "/":
        raise ValueError("addresses of other file systems can be read on Linux and macOS alone")
    disk = RemoteDisk(remote[patterns[0]])
    try:
        folders = find_labelled(map(shown_path, patterns), disk, label)
        disk.preload(str(folder) for _, folder in folders)
    except OSError as error:
        raise ValueError(f"{', '.join(map(shown_path, patterns))}: {error.strerror or error}") from None
    return HomeFolders(folders, disk)


def _local(pattern: str) -> str:
    """Return a pattern of local paths; in a `file:` address, `?` and `#` are part of names, as in any other pattern."""
    found = _FILE.match(pattern)
    if found is not None:
        # Encoded wildcards stay literal.
        pattern = unquote(_ENCODED.sub(r"[\g<0>]", pattern[found.end() :]))
    # The process that reads may have another working folder.
    return os.path.abspath(pattern)


def _fixed_prefix(pattern: str) -> str:
    """Return the part of an address before its first wildcard."""
    parts = pattern.rstrip("/").split("/")
    magic = (place for place, part in enumerate(parts) if _MAGIC & set(part))
    return "/".join(parts[: next(magic, len(parts))])


def find_labelled(patterns: Iterable[str], disk: Disk, label: str | None) -> list[tuple[str | None, Path]]:
    """Return the folders that patterns match, each with `label` or, without one, its own label.

    Raise ValueError for a pattern without a match: a mistyped path must not look like a home without sessions.
    """
    folders: dict[Path, None] = {}
    for pattern in patterns:
        matches = _matches(pattern, disk)
        if not any(disk.is_folder(str(folder)) for folder in matches):
            raise ValueError(f"{pattern}: there is no such folder, or nobody may look at it")
        folders |= dict.fromkeys(matches)
    return [(label or label_of(folder), folder) for folder in folders]


def label_of(folder: Path) -> str | None:
    """Return the label of a home: the name of its folder or, if that is hidden, of the one above."""
    return next((part for part in reversed(folder.parts) if not part.startswith((".", "/"))), None)


def _matches(pattern: str, disk: Disk) -> list[Path]:
    whole = Path(pattern)
    matches = [Path(whole.anchor)]
    for part in whole.parts[1:] if whole.anchor else whole.parts:
        if _MAGIC & set(part):
            matches = [inner for folder in matches for inner in _inside(folder, part, disk)]
        else:
            matches = [folder / part for folder in matches]
    return matches


def _inside(folder: Path, part: str, disk: Disk) -> Iterator[Path]:
    for entry in list_folder(folder, disk):
        if isinstance(entry, Problem):
            raise ValueError(f"{entry.path}: {entry.message}")  # noqa: TRY004 - a folder without permission is no wrong type
        is_match = fnmatchcase(entry.name, part) and entry.name.startswith(".") == part.startswith(".")
        if is_match and disk.is_folder(entry.path):
            yield Path(entry.path)
