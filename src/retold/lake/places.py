"""Which folders are homes: patterns of paths and addresses to folders with their labels."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote

import msgspec

from retold.agents.protocol import Source
from retold.lake.remote import RemoteDisk, is_address, shown_path
from retold.model.problem import Problem
from retold.reading.disk import DISK, Disk, list_folder
from retold.sessions.conversations import size_here

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
