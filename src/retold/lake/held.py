"""Files of which others told us, as a Disk: what there is, and the bytes of some."""

import errno
import os
from collections.abc import Mapping, Sequence

import msgspec

from retold.agents.protocol import Source
from retold.lake.remote import RemoteEntry
from retold.reading.disk import OpenFile
from retold.synchronization.disks import MemoryFile


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
