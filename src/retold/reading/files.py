"""A file's bytes, taken once and whole, or the Problem that stood in the way."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retold.model.problem import Problem, problem
from retold.reading import holes
from retold.reading.disk import DISK, Disk, OpenFile
from retold.reading.holes import LONGEST, join_lines

ATTEMPTS = 3
_CHUNK = 1 << 20
_LARGE = 64 << 20
"""Files beyond this size are read in chunks: most of their bytes may be NULs."""


class FileBytes(msgspec.Struct, frozen=True):
    """What a file held at one moment."""

    path: Path
    data: bytes
    modified_at: datetime
    size: int
    """The bytes of the file."""
    problems: tuple[Problem, ...] = ()
    cuts: tuple[tuple[int, int], ...] = ()
    """Where bytes of the file are left out of the data, and how many; as `join_lines` returns them."""


def printable(path: str | Path) -> str:
    """Return a path as text that can be shown and encoded, whatever bytes its name is made of."""
    return str(path).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def read_bytes(path: Path, disk: Disk = DISK, longest: int = LONGEST) -> FileBytes | Problem:
    """Return the content of a file that is decoded as a whole; a Problem where it is longer than `longest`.

    It is read again when it changed meanwhile, a few times at most.
    """
    file = read_lines(path, disk, longest)
    if isinstance(file, Problem) or (len(file.data) <= longest and not _has_long_line(file)):
        return file
    return too_long(file)


def read_lines(path: Path, disk: Disk = DISK, longest: int = LONGEST) -> FileBytes | Problem:
    """Return the content of a file of lines; lines longer than `longest` are left out of it."""
    try:
        return _read_settled(path, disk, longest)
    except (OSError, ValueError) as error:
        return refusal(path, error)


def too_long(file: FileBytes) -> Problem:
    """Return the Problem of a document that is too long to be decoded."""
    return problem("too-long", f"a document of {file.size} bytes", printable(file.path))


def remove_nuls(file: FileBytes) -> tuple[bytes, tuple[Problem, ...]]:
    """Return the content of a document without runs of NUL bytes, and a Problem that says how many there were."""
    data = holes.blank_nuls(file.data)
    if data is file.data:
        return data, ()
    count = file.data.count(b"\0") - data.count(b"\0") + sum(size for _, size in file.cuts)
    return data, (problem("nul-bytes", f"{count} NUL bytes", printable(file.path)),)


def _has_long_line(file: FileBytes) -> bool:
    return any(not file.data.startswith(b"\0", place) for place, _ in file.cuts)


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


def _read_settled(path: Path, disk: Disk, longest: int) -> FileBytes:
    for _ in range(ATTEMPTS):
        file = disk.open(str(path))
        try:
            data, cuts = _content(file, longest)
            size, modified_ns = file.status()
        finally:
            file.close()
        held = len(data) + sum(count for _, count in cuts)
        if (size, modified_ns) == (file.size, file.modified_ns) and held == size:
            return FileBytes(path, data, modified_at(modified_ns), size, (), cuts)
    changed = problem("changed-while-read", f"still changing after {ATTEMPTS} attempts", printable(path))
    return FileBytes(path, data, modified_at(modified_ns), held, (changed,), cuts)


def _content(file: OpenFile, longest: int) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    if file.size > min(_LARGE, longest):
        return join_lines(lambda: file.read(_CHUNK), longest)
    return _all(file, file.size), ()


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
