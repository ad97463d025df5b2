"""The folder of a dataset: only ours is written and removed in it, for its owner alone, and no link leads out of it."""

import os
import re
import secrets
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from io import BufferedWriter
from types import TracebackType
from typing import Self

from retold.archive.database import RetoldError
from retold.lake import manifest
from retold.lake.manifest import Manifest, NotOurs, Part
from retold.model.tables import TABLES
from retold.synchronization.update import is_taken

LOCK = ".retold.lock"
_DRAFT = re.compile(r"\.(?:part-\d{4,}\.parquet|retold\.json)\.[0-9a-f]{16}$")
_PART = re.compile(r"part-(\d{4,})\.parquet$")
_AGENT, _MONTH = re.compile(r"agent=([\w-]+)$"), re.compile(r"month=([\w-]+)$")
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)  # Windows lacks it
Place = tuple[str, str, str, int]
"""A file: table, agent, month and number."""


class Folder:
    """Held by one at a time."""

    def __init__(self, path: str) -> None:
        """Take a folder that need not be there yet; raises NotOurs where something else is in it."""
        self.path = os.path.realpath(path)
        if os.path.lexists(self.path) and not os.path.isdir(self.path):
            raise NotOurs(f"{path}: a file, and a dataset is a folder")
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        self.manifest = self._manifest(path)

    def __enter__(self) -> Self:
        flags = os.O_RDWR | os.O_CREAT | _NO_LINK
        self._lock = os.open(os.path.join(self.path, LOCK), flags, 0o600)
        if not is_taken(self._lock):
            os.close(self._lock)
            raise RetoldError(
                f"{self.path}: another retold is writing this dataset; try again when it is done"
            )
        try:
            self.manifest = self._manifest(self.path)  # the one before may have written another meanwhile
        except BaseException:  # Ctrl-C too
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def _manifest(self, shown: str) -> Manifest | None:
        try:
            with open(os.path.join(self.path, manifest.NAME), "rb") as file:
                return manifest.decoded(file.read(), os.path.join(shown, manifest.NAME))
        except FileNotFoundError:
            pass
        if any(name != LOCK and not _DRAFT.match(name) for name in os.listdir(self.path)):
            raise NotOurs(f"{shown}: a folder with other things in it, and no dataset: name another")
        return None

    def keep(self, told: Manifest) -> None:
        """Write the manifest anew."""
        if told != self.manifest:
            draft = os.path.join(self.path, f".{manifest.NAME}.{secrets.token_hex(8)}")
            try:
                with self.opened(draft) as file:
                    file.write(manifest.encoded(told))
                    reach_disk(file)
                os.replace(draft, os.path.join(self.path, manifest.NAME))
            except BaseException:
                self.discard(draft)
                raise
            self.manifest = told

    def draft(self, table: str, part: Part) -> str:
        """Return a path to which a part's file is written first, in its folder, which is made."""
        path = self.path
        for name in _way(table, part):
            path = os.path.join(path, name)
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            if not stat.S_ISDIR(os.lstat(path).st_mode):  # a link may lead anywhere
                raise NotOurs(f"{path}: no folder, and one is needed there")
        return os.path.join(path, f".{file_name(part.number)}.{secrets.token_hex(8)}")

    def settle(self, draft: str, part: Part) -> None:
        """Put a file that is whole in its place."""
        os.replace(draft, os.path.join(os.path.dirname(draft), file_name(part.number)))

    @staticmethod
    def opened(draft: str) -> BufferedWriter:
        """Open a new file for its owner alone."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)
        return open(os.open(draft, flags, 0o600), "wb")

    @staticmethod
    def discard(path: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def has(self, part: Part) -> bool:
        """Tell whether all files of a part are there, as large as they were."""
        return all(self._size(table, part) == size for table, size in part.files.items())

    def _size(self, table: str, part: Part) -> int | None:
        try:
            found = os.lstat(os.path.join(self.path, *_way(table, part), file_name(part.number)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def sweep(self, kept: Collection[Place] | None) -> None:
        """Remove what runs that were stopped have left, and files of parts that are not to be kept."""
        for name in os.listdir(self.path):
            if _DRAFT.match(name):
                self.discard(os.path.join(self.path, name))
        for table in TABLES:
            for agent, one in _folders(os.path.join(self.path, table), _AGENT):
                for month, two in _folders(one, _MONTH):
                    self._sweep(two, (table, agent, month), kept)
                _remove_empty(one)
            _remove_empty(os.path.join(self.path, table))

    def _sweep(self, folder: str, place: tuple[str, str, str], kept: Collection[Place] | None) -> None:
        for name in os.listdir(folder):
            found = _PART.match(name)
            is_stray = found is not None and kept is not None and (*place, int(found[1])) not in kept
            if is_stray or _DRAFT.match(name):
                self.discard(os.path.join(folder, name))
        _remove_empty(folder)


def reach_disk(file: BufferedWriter) -> None:
    """Wait until a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def _way(table: str, part: Part) -> tuple[str, str, str]:
    """Return the folders on the way to a part's file."""
    return table, f"agent={part.agent}", f"month={part.month}"


def file_name(number: int) -> str:
    """Return how the files of a part are called."""
    return f"part-{number:04}.parquet"


def _folders(folder: str, name: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the folders in one whose names are ours; links are not followed."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return
    for entry in list(os.scandir(folder)):
        found = name.match(entry.name)
        if found and entry.is_dir(follow_symlinks=False):
            yield found[1], entry.path


def _remove_empty(folder: str) -> None:
    if not os.path.islink(folder):
        with suppress(OSError):  # it is not there, or something is in it
            os.rmdir(folder)
