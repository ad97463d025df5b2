"""The file system as agents see it: they open, list and look for files only through a Disk.

A sync can record what a reading depends on, and files kept elsewhere can be read under their old paths.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from retold.model.problem import Problem, problem
from retold.reading.json_decode import BOM, JsonFailure, JsonValue, decode

# Windows lacks the first, other systems the second.
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


class DiskEntry(Protocol):
    """An entry of a folder, like `os.DirEntry`; links are not followed."""

    @property
    def name(self) -> str:
        """The name in the folder."""

    @property
    def path(self) -> str:
        """The path of the folder as it was given, and the name."""

    def is_file(self, *, follow_symlinks: Literal[False]) -> bool:
        """Return whether it is a regular file."""

    def is_dir(self, *, follow_symlinks: Literal[False]) -> bool:
        """Return whether it is a folder."""


class OpenFile(Protocol):
    """A regular file open for reading; the caller closes it."""

    @property
    def size(self) -> int:
        """The size in bytes when the file was opened."""

    @property
    def modified_ns(self) -> int:
        """The time of the last write when the file was opened, in nanoseconds since 1970."""

    @property
    def identity(self) -> str:
        """The time of the last change and the inode, as `file_identity` returns them; empty if the disk has neither."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` next bytes; none at the end."""

    def seek(self, offset: int, /) -> None:
        """Move to an offset from the beginning."""

    def status(self) -> tuple[int, int]:
        """Return the current size and time of writing."""

    def close(self) -> None:
        """Close the file."""


class Disk(Protocol):
    """The part of a file system that agents use. Wrong paths raise as in `os`: OSError, or ValueError for a NUL."""

    def open(self, path: str) -> OpenFile:
        """Open a regular file; raise IsADirectoryError for anything else, without waiting."""

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return the entries of a folder, sorted by name."""

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder or a link to one; False if access is denied."""

    def is_file(self, path: str) -> bool:
        """Return whether a path is a regular file or a link to one; False if access is denied."""

    def is_link(self, path: str) -> bool:
        """Return whether a path is a link, whatever its target."""


def file_identity(status: os.stat_result) -> str:
    """Return a text that changes when a file is rewritten with the same size and time, or replaced by another file."""
    return f"{status.st_ctime_ns} {status.st_ino}"


class _LocalFile:
    """A descriptor with the status of its file when it was opened."""

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
        """Open a regular file; raise IsADirectoryError for anything else, without waiting."""
        # With this flag, opening a FIFO does not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | _NONBLOCK | _BINARY)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise IsADirectoryError
        return _LocalFile(descriptor, status)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return the entries of a folder, sorted by name."""
        with os.scandir(folder) as found:
            return sorted(found, key=attrgetter("name"))

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder or a link to one."""
        return os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        """Return whether a path is a regular file or a link to one."""
        return os.path.isfile(path)

    def is_link(self, path: str) -> bool:
        """Return whether a path is a link, whatever its target."""
        return os.path.islink(path)


DISK: Disk = LocalDisk()
"""The default disk."""


class EmptyDisk(msgspec.Struct, frozen=True):
    """A file system without files."""

    def open(self, path: str) -> OpenFile:
        """Raise FileNotFoundError."""
        raise FileNotFoundError(path)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Raise FileNotFoundError."""
        raise FileNotFoundError(folder)

    def is_folder(self, path: str) -> bool:  # noqa: ARG002 - as a Disk has it
        """Return False."""
        return False

    def is_file(self, path: str) -> bool:  # noqa: ARG002 - the same
        """Return False."""
        return False

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - the same
        """Return False."""
        return False


EMPTY_DISK = EmptyDisk()
HOLE = 4096
"""The shortest run of NUL bytes that is never text: file systems lose whole blocks."""
LONGEST = 256 << 20
"""The longest line, and the longest document that is decoded as a whole, in bytes; lines with pictures reach tens of megabytes."""
_NULS = b"\0" * HOLE
_RUN = re.compile(rb"\0+")
_LONG_RUN = re.compile(rb"\0{%d,}" % HOLE)


class Gap(NamedTuple):
    """A place in data at which bytes of the file are left out, and their number."""

    place: int
    size: int


class CutLine(bytes):
    """A line without some of its bytes. Long runs of NUL bytes are shortened. A line that is too long is empty."""

    size: int
    """The length of the line in its file."""


class LineBuffer:
    """Collects a line that spans several chunks, in bounded memory."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self.pieces: list[bytes] = []
        self._held = 0
        self.size = 0
        """The length of the line so far."""

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
        content, self.pieces = b"".join(self.pieces), []
        if len(content) == size:
            return content
        line = CutLine(content)
        line.size = size
        return line


def line_size(raw: bytes | memoryview) -> int:
    """Return the length of a line in its file."""
    return raw.size if isinstance(raw, CutLine) else len(raw)


def join_lines(read: Callable[[], bytes], longest: int = LONGEST) -> tuple[bytes, tuple[Gap, ...]]:
    """Return the content of a stream without long runs of NUL bytes and without lines that are too long.

    At a gap some NUL bytes of a run remain, or an empty line in place of one that was too long.
    """
    pieces: list[bytes] = []
    gaps: list[Gap] = []
    length = 0
    begun = LineBuffer(longest)

    def put(data: bytes) -> None:
        nonlocal length
        if isinstance(data, CutLine):
            size, data = data.size, bytes(data) or b"\n"
            gaps.append(Gap(length + max(data.find(_NULS), 0), size - len(data)))
        pieces.append(data)
        length += len(data)

    while chunk := read():
        first, last = chunk.find(b"\n") + 1, chunk.rfind(b"\n") + 1
        if first:
            put(begun.end(chunk[:first]))
            put(chunk[first:last])
        if last < len(chunk):
            begun.add(chunk[last:])
    put(begun.end(b""))
    return b"".join(pieces), tuple(gaps)


def split_at_nuls(data: bytes) -> list[bytes]:
    """Return the texts of a line between its runs of NUL bytes. A short run inside a JSON string is part of the string."""
    inner = data.strip(b"\0")
    if b"\0" not in inner or (_NULS not in inner and isinstance(decode(inner), JsonValue)):
        return [inner]
    return _RUN.split(inner)


def blank_nuls(data: bytes) -> bytes:
    """Return a document without the NUL bytes around it, and with a blank for each long run inside."""
    inner = data.strip(b"\0")
    return _LONG_RUN.sub(b" ", inner) if b"\0" in inner else inner


ATTEMPTS = 3
_CHUNK = 1 << 20
_LARGE = 64 << 20
"""Files beyond this size are read in chunks: most of their bytes may be NULs."""


class FileBytes(msgspec.Struct, frozen=True):
    """The content of a file at one moment."""

    path: Path
    data: bytes
    modified_at: datetime
    size: int
    """The size of the file in bytes."""
    problems: tuple[Problem, ...] = ()
    gaps: tuple[Gap, ...] = ()
    """Left-out bytes, as `join_lines` returns them."""


def printable_path(path: str | Path) -> str:
    """Return a path as text that can be encoded, whatever bytes its name has."""
    return str(path).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def read_bytes(path: Path, disk: Disk = DISK, longest: int = LONGEST) -> FileBytes | Problem:
    """Return the content of a file that is decoded as a whole; a Problem if it is longer than `longest`.

    A file that changed while it was read is read again, a few times at most.
    """
    file = read_lines(path, disk, longest)
    if isinstance(file, Problem) or (len(file.data) <= longest and not _has_long_line(file)):
        return file
    return too_long_problem(file)


def read_lines(path: Path, disk: Disk = DISK, longest: int = LONGEST) -> FileBytes | Problem:
    """Return the content of a file of lines without lines longer than `longest`."""
    try:
        return _read_settled(path, disk, longest)
    except (OSError, ValueError) as error:
        return refusal_problem(path, error)


def too_long_problem(file: FileBytes) -> Problem:
    """Return the Problem of a document that is too long to be decoded."""
    return problem("too-long", f"a document of {file.size} bytes", printable_path(file.path))


def remove_nuls(file: FileBytes) -> tuple[bytes, tuple[Problem, ...]]:
    """Return the content of a document without runs of NUL bytes, and a Problem with their number."""
    data = blank_nuls(file.data)
    if data is file.data:
        return data, ()
    count = file.data.count(b"\0") - data.count(b"\0") + sum(gap.size for gap in file.gaps)
    return data, (problem("nul-bytes", f"{count} NUL bytes", printable_path(file.path)),)


def _has_long_line(file: FileBytes) -> bool:
    return any(not file.data.startswith(b"\0", gap.place) for gap in file.gaps)


def open_file(path: Path, disk: Disk) -> OpenFile | Problem:
    """Open a regular file; return a Problem if that fails."""
    try:
        return disk.open(str(path))
    except (OSError, ValueError) as error:
        return refusal_problem(path, error)


def refusal_problem(path: Path, error: OSError | ValueError) -> Problem:
    """Return the Problem of a file that the system does not open."""
    match error:
        case FileNotFoundError():
            return problem("missing-file", "no such file", printable_path(path))
        case IsADirectoryError():
            return problem("not-a-file", "a folder, a pipe or a device, not a file", printable_path(path))
        case OSError():
            return problem("unreadable-file", error.strerror or str(error), printable_path(path))
        case _:  # a NUL in the path
            return problem("missing-file", str(error), printable_path(path))


def _read_settled(path: Path, disk: Disk, longest: int) -> FileBytes:
    for _ in range(ATTEMPTS):
        file = disk.open(str(path))
        try:
            data, gaps = _content(file, longest)
            size, modified_ns = file.status()
        finally:
            file.close()
        length = len(data) + sum(gap.size for gap in gaps)
        if (size, modified_ns) == (file.size, file.modified_ns) and length == size:
            return FileBytes(path, data, time_from_ns(modified_ns), size, (), gaps)
    changed = problem("changed-while-read", f"still changing after {ATTEMPTS} attempts", printable_path(path))
    return FileBytes(path, data, time_from_ns(modified_ns), length, (changed,), gaps)


def _content(file: OpenFile, longest: int) -> tuple[bytes, tuple[Gap, ...]]:
    if file.size > min(_LARGE, longest):
        return join_lines(lambda: file.read(_CHUNK), longest)
    return _read_whole(file, file.size), ()


def _read_whole(file: OpenFile, size: int) -> bytes:
    """Return the whole content: more than `size` if the file grows."""
    data = file.read(size + 1)
    if len(data) == size:
        return data
    chunks = [data]
    while chunks[-1]:
        chunks.append(file.read(max(size, _CHUNK)))
    return b"".join(chunks)


def time_from_ns(modified_ns: int) -> datetime:
    """Return the time of a change, to the millisecond: no agent records finer times."""
    try:
        return datetime.fromtimestamp(modified_ns // 1_000_000 / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a clock far outside the calendar
        return datetime.fromtimestamp(0, UTC)


def list_folder(folder: Path, disk: Disk = DISK) -> Iterator[DiskEntry | Problem]:
    """Yield the entries of a folder in a steady order; none if there is no folder."""
    try:
        yield from disk.entries(str(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield problem("unreadable-file", error.strerror or str(error), printable_path(folder))


def list_unlinked(folder: Path, disk: Disk = DISK) -> list[DiskEntry]:
    """Return the entries of a folder; none if it is a link or cannot be listed."""
    entries = () if disk.is_link(str(folder)) else list_folder(folder, disk)
    return [entry for entry in entries if not isinstance(entry, Problem)]


def files_in(folder: Path, disk: Disk = DISK) -> list[DiskEntry]:
    """Return the regular files in a folder; none if it cannot be listed."""
    return [
        one
        for one in list_folder(folder, disk)
        if not isinstance(one, Problem) and one.is_file(follow_symlinks=False)
    ]


def folders_in(folder: Path, disk: Disk = DISK) -> list[DiskEntry]:
    """Return the folders in a folder; none if it cannot be listed."""
    return [
        one
        for one in list_folder(folder, disk)
        if not isinstance(one, Problem) and one.is_dir(follow_symlinks=False)
    ]


LARGEST_SETTINGS = 4 << 20
"""The largest settings file in bytes."""
COMMENT = r"//[^\r\n]*|/\*.*?\*/"
"""A comment in JSON, for patterns in which a dot matches the end of a line."""
# A string or a comment without an end extends to the end of the text.
_STRING_OR_COMMENT = re.compile(rf'(?P<string>"(?:[^"\\]|\\.)*+"?)|{COMMENT}|/\*.*'.encode(), re.DOTALL)


def read_settings(path: Path, disk: Disk) -> dict[str, Any] | Problem:
    """Return the content of a settings file: empty if it is missing, a Problem if it cannot be understood."""
    file = read_bytes(path, disk)
    if not isinstance(file, FileBytes):
        return {} if file.code == "missing-file" else file
    if len(file.data) > LARGEST_SETTINGS:
        return problem("unexpected-shape", "too large for a settings file", printable_path(path))
    decoded = decode(strip_comments(file.data.removeprefix(BOM)) or b"{}")
    if isinstance(decoded, JsonFailure):
        return problem(decoded.code, decoded.message, printable_path(path))
    if type(decoded.value) is not dict:
        return problem("unexpected-shape", "the settings are no JSON object", printable_path(path))
    return decoded.value


def strip_comments(text: bytes) -> bytes:
    """Return JSON without `//` and `/* */` outside of strings."""
    return _STRING_OR_COMMENT.sub(lambda found: found["string"] or b"", text).strip()
