"""A file's bytes, taken once and whole, or the Problem that stood in the way."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retold.model.problem import Problem, problem
from retold.reading.disk import DISK, Disk, OpenFile

ATTEMPTS = 3
_CHUNK = 1 << 20


class FileBytes(msgspec.Struct, frozen=True):
    """What a file held at one moment."""

    path: Path
    data: bytes
    modified_at: datetime
    problems: tuple[Problem, ...] = ()


def printable(path: str | Path) -> str:
    """Return a path as text that can be shown and encoded, whatever bytes its name is made of."""
    return str(path).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def read_bytes(path: Path, disk: Disk = DISK) -> FileBytes | Problem:
    """Return the file's content; read again when it changed meanwhile, a few times at most."""
    try:
        return _read_settled(path, disk)
    except (OSError, ValueError) as error:
        return refusal(path, error)


def open_file(path: Path, disk: Disk) -> OpenFile | Problem:
    """Open a regular file, or return why it cannot be."""
    try:
        return disk.open(str(path))
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


def _read_settled(path: Path, disk: Disk) -> FileBytes:
    for _ in range(ATTEMPTS):
        file = disk.open(str(path))
        try:
            data = _all(file, file.size)
            size, modified_ns = file.status()
        finally:
            file.close()
        if (size, modified_ns) == (file.size, file.modified_ns) and len(data) == size:
            return FileBytes(path, data, modified_at(modified_ns))
    changed = problem("changed-while-read", f"still changing after {ATTEMPTS} attempts", printable(path))
    return FileBytes(path, data, modified_at(modified_ns), (changed,))


def _all(file: OpenFile, size: int) -> bytes:
    """Return the whole content; more than `size`, if it grows meanwhile."""
    data = file.read(size + 1)
    if len(data) == size:
        return data
    chunks = [data]
    while chunks[-1]:
        chunks.append(file.read(max(size, _CHUNK)))
    return b"".join(chunks)


def modified_at(modified_ns: int) -> datetime:
    """Return when the file was changed, to the millisecond: finer than that, no agent tells times."""
    try:
        return datetime.fromtimestamp(modified_ns // 1_000_000 / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a clock far outside the calendar
        return datetime.fromtimestamp(0, UTC)
