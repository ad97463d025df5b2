"""A file's bytes, taken once and whole, or the Problem that stood in the way."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retold.model.problem import Problem, problem

ATTEMPTS = 3
_CHUNK = 1 << 20
# Windows lacks the one, everything else the other.
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


class FileBytes(msgspec.Struct, frozen=True):
    """What a file held at one moment."""

    path: Path
    data: bytes
    modified_at: datetime
    problems: tuple[Problem, ...] = ()


def printable(path: str | Path) -> str:
    """Return a path as text that can be shown and encoded, whatever bytes its name is made of."""
    return str(path).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def read_bytes(path: Path) -> FileBytes | Problem:
    """Return the file's content; read again when it changed meanwhile, a few times at most."""
    try:
        return _read_regular(path)
    except (OSError, ValueError) as error:
        return refusal(path, error)


def refusal(path: Path, error: OSError | ValueError) -> Problem:
    """Return why the system did not give a file's content."""
    match error:
        case FileNotFoundError():
            return problem("missing-file", "no such file", printable(path))
        case IsADirectoryError():
            return problem("not-a-file", "a folder, a pipe or a device, not a file", printable(path))
        case OSError():
            return problem("unreadable-file", error.strerror or str(error), printable(path))
        case _:  # a NUL in the path
            return problem("missing-file", str(error), printable(path))


def open_regular(path: Path) -> int:
    """Return a descriptor of a regular file; raises IsADirectoryError for anything else."""
    # Opened so, a FIFO does not wait for a writer that may never come.
    descriptor = os.open(path, os.O_RDONLY | _NONBLOCK | _BINARY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError
    return descriptor


def _read_regular(path: Path) -> FileBytes:
    for _ in range(ATTEMPTS):
        descriptor = open_regular(path)
        try:
            before = os.fstat(descriptor)
            data = _all(descriptor, before.st_size)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        settled = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        if settled and len(data) == after.st_size:
            return FileBytes(path, data, modified_at(after))
    changed = problem("changed-while-read", f"still changing after {ATTEMPTS} attempts", printable(path))
    return FileBytes(path, data, modified_at(after), (changed,))


def _all(descriptor: int, size: int) -> bytes:
    """Return the whole content; more than `size`, if it grows meanwhile."""
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    chunks = [data]
    while chunks[-1]:
        chunks.append(os.read(descriptor, max(size, _CHUNK)))
    return b"".join(chunks)


def modified_at(status: os.stat_result) -> datetime:
    """Return when the file was changed, to the millisecond: finer than that, no agent tells times."""
    try:
        at = datetime.fromtimestamp(status.st_mtime, UTC)
        return at.replace(microsecond=at.microsecond // 1000 * 1000)
    except (OverflowError, ValueError, OSError):  # a clock far outside the calendar
        return datetime.fromtimestamp(0, UTC)
