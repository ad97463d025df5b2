"""The file system as agents see it: whatever they open, list or look for is asked of a Disk.

So what a reading depends on can be watched, and files that are kept elsewhere can be read under the paths they had.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from retold.model.problem import Problem, problem
from retold.reading.json_decode import BOM, Decoded, Undecodable, decode

# Windows lacks the one, everything else the other.
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


class DiskEntry(Protocol):
    """Something that a folder holds, as `os.DirEntry` tells it; no link is ever followed to find out what it is."""

    @property
    def name(self) -> str:
        """Its name in the folder."""

    @property
    def path(self) -> str:
        """The folder's path, as it was given, and the name."""

    def is_file(self, *, follow_symlinks: Literal[False]) -> bool:
        """Tell whether it is a regular file."""

    def is_dir(self, *, follow_symlinks: Literal[False]) -> bool:
        """Tell whether it is a folder."""


class OpenFile(Protocol):
    """A regular file that was opened to be read, and that whoever opened it closes."""

    @property
    def size(self) -> int:
        """How many bytes it held when it was opened."""

    @property
    def modified_ns(self) -> int:
        """When it had been written to last by then, in nanoseconds since 1970."""

    @property
    def identity(self) -> str:
        """The time of its last change and its inode, as `file_identity` returns them; empty where a disk has neither."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, `size` at most; none at the end."""

    def seek(self, offset: int, /) -> None:
        """Go on at a place, counted from the beginning."""

    def status(self) -> tuple[int, int]:
        """Return size and time of writing as they are by now."""

    def close(self) -> None:
        """Give the file back: nothing is asked of it any more."""


class Disk(Protocol):
    """All that agents ask of a file system. Wrong paths raise as they do in `os`: OSError, or ValueError for a NUL."""

    def open(self, path: str) -> OpenFile:
        """Open a regular file; raises IsADirectoryError for anything else, and waits for none."""

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder holds, by name."""

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there, or a link to one; False where nobody may look."""

    def is_file(self, path: str) -> bool:
        """Tell whether a regular file is there, or a link to one; False where nobody may look."""

    def is_link(self, path: str) -> bool:
        """Tell whether a link is there, wherever it leads."""


def file_identity(status: os.stat_result) -> str:
    """Return what changes when a file is rewritten with the same size and time, or replaced by another file."""
    return f"{status.st_ctime_ns} {status.st_ino}"


class _LocalFile:
    """A descriptor, with what was known of its file at first."""

    __slots__ = ("_descriptor", "identity", "modified_ns", "size")

    def __init__(self, descriptor: int, status: os.stat_result) -> None:
        self._descriptor, self.size, self.modified_ns = descriptor, status.st_size, status.st_mtime_ns
        self.identity = file_identity(status)

    def read(self, size: int, /) -> bytes:
        return os.read(self._descriptor, size)

    def seek(self, offset: int, /) -> None:
        os.lseek(self._descriptor, offset, os.SEEK_SET)

    def status(self) -> tuple[int, int]:
        now = os.fstat(self._descriptor)
        return now.st_size, now.st_mtime_ns

    def close(self) -> None:
        os.close(self._descriptor)


class LocalDisk(msgspec.Struct, frozen=True):
    """The file system of this machine."""

    def open(self, path: str) -> OpenFile:
        """Open a regular file; raises IsADirectoryError for anything else, and waits for none."""
        # Opened so, a FIFO does not wait for a writer that may never come.
        descriptor = os.open(path, os.O_RDONLY | _NONBLOCK | _BINARY)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise IsADirectoryError
        return _LocalFile(descriptor, status)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder holds, by name."""
        with os.scandir(folder) as found:
            return sorted(found, key=attrgetter("name"))

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there, or a link to one."""
        return os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        """Tell whether a regular file is there, or a link to one."""
        return os.path.isfile(path)

    def is_link(self, path: str) -> bool:
        """Tell whether a link is there, wherever it leads."""
        return os.path.islink(path)


DISK: Disk = LocalDisk()
"""What is read where nobody says otherwise."""


class EmptyDisk(msgspec.Struct, frozen=True):
    """A file system on which nothing is."""

    def open(self, path: str) -> OpenFile:
        """There is no file."""
        raise FileNotFoundError(path)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """There is no folder."""
        raise FileNotFoundError(folder)

    def is_folder(self, path: str) -> bool:  # noqa: ARG002 - as a Disk has it
        """There is none."""
        return False

    def is_file(self, path: str) -> bool:  # noqa: ARG002 - the same
        """There is none."""
        return False

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - the same
        """There is none."""
        return False


NOWHERE = EmptyDisk()


HOLE = 4096
"""A run of so many NUL bytes is never text: file systems lose whole blocks."""
LONGEST = 256 << 20
"""Bytes of a line, or of a document that is decoded as a whole; lines with pictures reach tens of megabytes."""
_NULS = b"\0" * HOLE
_RUN = re.compile(rb"\0+")
_LONG_RUN = re.compile(rb"\0{%d,}" % HOLE)


class CutLine(bytes):
    """A line of which not all bytes are held.

    Long runs of NUL bytes are shortened. A line that is too long is empty.
    """

    size: int
    """The bytes of the line in its file."""


class LineStart:
    """Collects a line that spans several chunks, in bounded memory."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self.pieces: list[bytes] = []
        self._held = 0
        self.size = 0
        """The bytes of the line so far."""

    def add(self, data: bytes) -> None:
        """Add the next bytes of the line."""
        self.size += len(data)
        if self._held > self._longest:
            return
        if len(data) >= HOLE and data.startswith(_NULS) and not data.strip(b"\0"):
            data = b"" if self.pieces and self.pieces[-1] is _NULS else _NULS
        if data:
            self.pieces.append(data)
            self._held += len(data)
        if self._held > self._longest:
            self.pieces = []

    def end(self, data: bytes) -> bytes:
        """Add the last bytes, return the line, and begin the next."""
        if not self.size:
            return data
        self.add(data)
        size, self.size, self._held = self.size, 0, 0
        held, self.pieces = b"".join(self.pieces), []
        if len(held) == size:
            return held
        line = CutLine(held)
        line.size = size
        return line


def line_size(raw: bytes | memoryview) -> int:
    """Return the bytes that a line has in its file."""
    return raw.size if isinstance(raw, CutLine) else len(raw)


def join_lines(
    read: Callable[[], bytes], longest: int = LONGEST
) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """Return the content of a stream without long runs of NUL bytes and without lines that are too long.

    The second value says where bytes are left out, and how many. At such a place stand the NUL bytes that are left of a
    run, or an empty line where one was too long.
    """
    pieces: list[bytes] = []
    cuts: list[tuple[int, int]] = []
    held = 0
    begun = LineStart(longest)

    def put(data: bytes) -> None:
        nonlocal held
        if isinstance(data, CutLine):
            size, data = data.size, bytes(data) or b"\n"
            cuts.append((held + max(data.find(_NULS), 0), size - len(data)))
        pieces.append(data)
        held += len(data)

    while chunk := read():
        first, last = chunk.find(b"\n") + 1, chunk.rfind(b"\n") + 1
        if first:
            put(begun.end(chunk[:first]))
            put(chunk[first:last])
        if last < len(chunk):
            begun.add(chunk[last:])
    put(begun.end(b""))
    return b"".join(pieces), tuple(cuts)


def texts_between_nuls(data: bytes) -> list[bytes]:
    """Return the texts of a line between its runs of NUL bytes.

    A short run inside a JSON string is part of the string.
    """
    inner = data.strip(b"\0")
    if b"\0" not in inner or (_NULS not in inner and isinstance(decode(inner), Decoded)):
        return [inner]
    return _RUN.split(inner)


def blank_nuls(data: bytes) -> bytes:
    """Return a document without the NUL bytes around it, and with a blank for each long run inside; mostly as it is."""
    inner = data.strip(b"\0")
    return _LONG_RUN.sub(b" ", inner) if b"\0" in inner else inner


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
    data = blank_nuls(file.data)
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


def list_folder(folder: Path, disk: Disk = DISK) -> Iterator[DiskEntry | Problem]:
    """Yield what a folder holds, in a steady order; nothing, if there is none."""
    try:
        yield from disk.entries(str(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield problem("unreadable-file", error.strerror or str(error), printable(folder))


MOST = 4 << 20
"""Bytes; what is larger is no settings file."""
COMMENT = r"//[^\r\n]*|/\*.*?\*/"
"""A comment in JSON, for patterns in which a dot matches the end of a line."""
# A string or a comment that does not end takes the rest of the text.
_STRING_OR_COMMENT = re.compile(rf'(?P<string>"(?:[^"\\]|\\.)*+"?)|{COMMENT}|/\*.*'.encode(), re.DOTALL)


def read_settings(path: Path, disk: Disk) -> dict[str, Any] | Problem:
    """Return what a settings file says: nothing, where there is none; a Problem, where it cannot be understood."""
    file = read_bytes(path, disk)
    if not isinstance(file, FileBytes):
        return {} if file.code == "missing-file" else file
    if len(file.data) > MOST:
        return problem("unexpected-shape", "too large for a settings file", printable(path))
    found = decode(without_comments(file.data.removeprefix(BOM)) or b"{}")
    if isinstance(found, Undecodable):
        return problem(found.code, found.message, printable(path))
    if type(found.value) is not dict:
        return problem("unexpected-shape", "the settings are no JSON object", printable(path))
    return found.value


def without_comments(text: bytes) -> bytes:
    """Return JSON without `//` and `/* */`; what stands in a string stays."""
    return _STRING_OR_COMMENT.sub(lambda found: found["string"] or b"", text).strip()
