"""Spools: temporary files for what is too large for memory, such as the chunks of a large file before they are written."""

import os
from contextlib import suppress
from typing import NamedTuple
from weakref import finalize

_PREFIX = "spool-"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_BUFFER = 1 << 18
"""Bytes that are written together, and that are read together."""


class SpoolError(Exception):
    """The machine does not write or read a spool, as when the disk is full.

    It is no OSError: code that reads a session's file must not take it for a file that cannot be opened.
    """


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
            raise _error(self.path, error.strerror) from error
        if len(data) < self.size:
            raise _error(self.path, "a part of it is missing")
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
        if self.path is None:
            self._descriptor, self.path = _create(self._folder)
            finalize(self, os.close, self._descriptor)
        _write(self._descriptor, data, self.path)
        self._size += len(data)
        return SpooledBytes(self.path, self._size - len(data), len(data))


class PrivateSpool:
    """A spool that only this process reads. Where the system allows it, the file has no name."""

    def __init__(self, folder: str) -> None:
        self._descriptor, self._path = _create(folder)
        finalize(self, os.close, self._descriptor)
        remove_spool(self._path)
        self._waiting = bytearray()
        """Bytes that are not in the file yet."""
        self._size = 0
        """Bytes in the file."""
        self._part, self._part_offset = b"", 0
        """The part that was read last."""

    def append(self, data: bytes) -> int:
        """Append bytes and return their offset."""
        if self._waiting and len(self._waiting) + len(data) > _BUFFER:
            self._flush()
        offset = self._size + len(self._waiting)
        self._waiting += data
        return offset

    def _flush(self) -> None:
        self._seek(self._size)
        _write(self._descriptor, self._waiting, self._path)
        self._size += len(self._waiting)
        self._waiting = bytearray()

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes that were appended together; those behind them are often the next."""
        if offset >= self._size:
            return bytes(self._waiting[offset - self._size :][:size])
        start = offset - self._part_offset
        if not 0 <= start <= len(self._part) - size:
            is_next = 0 <= start - len(self._part) < _BUFFER
            self._part = self._read(offset, max(size, _BUFFER) if is_next else size)
            self._part_offset, start = offset, 0
        return self._part[start : start + size]

    def _read(self, offset: int, size: int) -> bytes:
        self._seek(offset)
        size = min(size, self._size - offset)
        try:
            data = os.read(self._descriptor, size)
            while 0 < len(data) < size and (more := os.read(self._descriptor, size - len(data))):
                data += more
        except OSError as error:
            raise _error(self._path, error.strerror) from error
        if len(data) < size:
            raise _error(self._path, "a part of it is missing")
        return data

    def _seek(self, offset: int) -> None:
        os.lseek(self._descriptor, offset, os.SEEK_SET)


def _error(path: str, why: object) -> SpoolError:
    return SpoolError(f"{path}: {why}; nothing was lost, run the command again when there is room")


def _create(folder: str) -> tuple[int, str]:
    path = os.path.join(folder, f"{_PREFIX}{os.urandom(8).hex()}")
    try:
        return os.open(path, _NEW, 0o600), path
    except OSError as error:
        raise _error(path, error.strerror) from error


def _write(descriptor: int, data: bytes | bytearray, path: str) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise _error(path, error.strerror) from error


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
