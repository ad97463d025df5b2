"""Files of another archive: their paths on this machine, their versions, and a disk over them."""

import errno
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from retold.archive.foreign import OtherArchive
from retold.archive.queries.lookups import OriginalVersion
from retold.reading.disk import DiskEntry, OpenFile
from retold.sessions.archive_disk import ArchivedEntry, FixedFile

PATH_PREFIX = "import:"
DEFAULT_LABEL = "imported"
"""The label of homes that have none."""
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\")
_LONGEST, _LONGEST_LABEL = 4096, 64
T = TypeVar("T")


def is_label(label: str) -> bool:
    """Return whether a text can be the label of a home."""
    return (
        0 < len(label) <= _LONGEST_LABEL
        and label.isprintable()
        and label.strip(" .") == label
        and not set(label) & set("/\\:=")
    )


def localize_path(path: str, label: str) -> str | None:
    """Return the path on this machine for a file of another machine; None for a path that no agent can have made."""
    is_windows = _WINDOWS.match(path) is not None
    if "\0" in path or len(path) > _LONGEST or not (is_windows or path.startswith("/")):
        return None
    parts = [part for part in re.split(r"[\\/]" if is_windows else "/", path) if part]
    if not parts or any(part in (".", "..") for part in parts):
        return None
    if label_of_path(path) is None:
        parts.insert(0, PATH_PREFIX + label)
    return os.sep + os.sep.join(parts)


def label_of_path(path: str) -> str | None:
    """Return the label in the path of a file that the other archive has itself imported."""
    match = re.match(rf"[\\/]{PATH_PREFIX}([^\\/]+)[\\/]", path)
    return match[1] if match and is_label(match[1]) else None


class FileVersion(msgspec.Struct, frozen=True):
    """A version of a file in the other archive."""

    original: OriginalVersion
    data: bytes | None = None
    """Its content without the records of forgotten conversations, if it had some."""

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.original.size if self.data is None else len(self.data)


class OfferedFile(msgspec.Struct):
    """A file of the other archive, with its paths on this machine."""

    path: str
    home: str
    folder: str
    label: str
    cluster: str | None
    """The cluster in the other archive, as a hint."""
    is_companion: bool
    versions: list[FileVersion]
    """The latest first."""
    uids: set[int]
    """The other archive's sessions that were read from it."""


class ImportOffer(NamedTuple):
    """Everything that the other archive has."""

    files: Mapping[str, dict[str, OfferedFile]]
    """By agent and path."""
    homes: Mapping[str, set[str]]
    """The paths on this machine for each home."""
    strays: Sequence[str]
    """The paths of files that get none."""


def load_offer(foreign: OtherArchive, label: str, agents: Iterable[str]) -> ImportOffer:
    """Return the files of another archive; those without a label get this one."""
    originals, uids = _by_file(foreign.originals()), _by_file(foreign.session_sources())
    files: dict[str, dict[str, OfferedFile]] = {agent: {} for agent in agents}
    homes: defaultdict[str, set[str]] = defaultdict(set)
    strays: list[str] = []
    for file in foreign.files():
        own = file.label if file.label and is_label(file.label) else label
        own = label_of_path(file.path) or own
        path, home, folder = (localize_path(path, own) for path in (file.path, file.home, file.folder))
        if path is None or home is None or folder is None or file.agent not in files:
            strays.append(file.path)
            continue
        homes[file.home].add(home)
        versions = [FileVersion(original) for original in originals.get(file.id, ())]
        new = OfferedFile(
            path, home, folder, own, file.cluster, file.is_companion, versions, set(uids.get(file.id, ()))
        )
        # Two files of the other archive may be one here: one that it reads itself, and one that it has imported.
        known = files[file.agent].setdefault(path, new)
        if known is not new:
            known.versions += new.versions
            known.uids |= new.uids
        known.versions.sort(
            key=lambda one: (one.original.modified_ns, one.size, one.original.id), reverse=True
        )
    return ImportOffer(files, homes, strays)


def _by_file(rows: Iterable[tuple[int, T]]) -> Mapping[int, list[T]]:
    grouped: defaultdict[int, list[T]] = defaultdict(list)
    for number, one in rows:
        grouped[number].append(one)
    return grouped


class OfferedOpenFile(FixedFile):
    """A version of an offered file as an open file, decompressed chunk by chunk."""

    __slots__ = ("_foreign", "version")

    def __init__(self, foreign: OtherArchive, version: FileVersion) -> None:
        super().__init__(version.size, version.original.modified_ns)
        self._foreign, self.version = foreign, version

    def read_part(self, start: int, size: int) -> bytes:
        """Return the bytes from an offset on."""
        if self.version.data is not None:
            return self.version.data[start : start + size]
        return self._foreign.read(self.version.original, start, size)


class OfferedDisk:
    """The offered files of one agent as a disk, with a record of those that were opened."""

    def __init__(self, foreign: OtherArchive, files: Mapping[str, OfferedFile]) -> None:
        self._foreign, self._files, self._folders = foreign, files, _folders(files)
        self._pinned: dict[str, FileVersion] = {}
        self.opened: set[str] = set()

    def pin(self, path: str, version: FileVersion) -> None:
        """Show one file as it was in a version."""
        self._pinned = {path: version}

    def unpin(self) -> None:
        """Show every file as it was last."""
        self._pinned = {}

    def open(self, path: str) -> OpenFile:
        """Open a file."""
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, "not in the other archive", path)
        self.opened.add(path)
        return OfferedOpenFile(self._foreign, self._pinned.get(path) or self._files[path].versions[0])

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return the entries of a folder."""
        names = self._folders.get(folder.rstrip(os.sep))
        if names is None:
            raise FileNotFoundError(errno.ENOENT, "not in the other archive", folder)
        return [
            ArchivedEntry(name, os.path.join(folder, name), is_file)
            for name, is_file in sorted(names.items())
        ]

    def is_folder(self, path: str) -> bool:
        """Return whether a folder is offered."""
        return path.rstrip(os.sep) in self._folders

    def is_file(self, path: str) -> bool:
        """Return whether a file is offered."""
        return path in self._files

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - as a Disk has it
        """Return False: archives have no links."""
        return False


def _folders(paths: Iterable[str]) -> dict[str, dict[str, bool]]:
    """Return the entries of each folder: names, and whether each is a file."""
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
