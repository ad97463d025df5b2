"""Spools: temporary files for what is too large for memory, such as the chunks of a large file before they are written."""

import os
from contextlib import suppress
from typing import NamedTuple
from weakref import finalize

_PREFIX = "spool-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class SpoolError(Exception):
    """The machine does not write or read a spool, as when the disk is full.

    It is no OSError: code that reads a session's file must not take it for a file that cannot be opened.
    """

    def __init__(self, path: str, error: object) -> None:
        super().__init__(f"{path}: {error}; nothing was lost, run the command again when there is room")


class SpooledBytes(NamedTuple):
    """Bytes in a spool; they can be sent to another process."""

    path: str
    offset: int
    size: int

    def read(self) -> bytes:
        """Return the bytes."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                data = file.read(self.size)
        except OSError as error:
            raise SpoolError(self.path, error.strerror) from error
        if len(data) < self.size:
            raise SpoolError(self.path, "a part of it is missing")
        return data


class Spool:
    """A file in the folder of the archive that only its owner can read, made when the first bytes are written.

    It outlives this object, for another process that reads it, until `remove_spool`.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._descriptor, self._size = folder, -1, 0
        self.path: str | None = None

    def write(self, data: bytes) -> SpooledBytes:
        """Append bytes."""
        self.path = self.path or os.path.join(self._folder, f"{_PREFIX}{os.urandom(8).hex()}")
        view = memoryview(data)
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self.path, _NEW, 0o600)
                finalize(self, os.close, self._descriptor)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise SpoolError(self.path, error.strerror) from error
        self._size += len(data)
        return SpooledBytes(self.path, self._size - len(data), len(data))


def remove_spool(path: str) -> None:
    """Remove a spool; if that fails, the next sync tries again."""
    with suppress(OSError):
        os.remove(path)


def remove_spools(folder: str) -> None:
    """Remove the spools that processes left behind which were killed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                remove_spool(entry.path)
