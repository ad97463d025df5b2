"""The lines of a file that only grows, a piece of it in memory at a time."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from retold.model.problem import Problem
from retold.reading.disk import DISK, Disk, OpenFile
from retold.reading.files import modified_at, open_file
from retold.reading.holes import LONGEST, LineStart, line_size

CHUNK = 1 << 20
FIRST = 1 << 16
"""The first chunk is small: often a look at the first lines is all that is wanted."""
_SEALED = 4096
Piece = tuple[int, bytes | memoryview, bool]
"""A line's number, its bytes, and whether a line end follows: the last line may be still being written."""


class FileMark(msgspec.Struct, frozen=True):
    """How far a file was read: up to here in whole lines."""

    offset: int = 0
    lines: int = 0
    seal: bytes = b""
    """Tells whether the file still begins with what was read."""


START = FileMark()


def open_lines(path: Path, after: FileMark = START, disk: Disk = DISK) -> "LineFile | Problem":
    """Open a file behind a mark; at its beginning, if it does not begin any more with what was read then."""
    file = open_file(path, disk)
    return file if isinstance(file, Problem) else LineFile(file, after)


class LineFile:
    """An open file, as long as it was when it was opened: what is appended meanwhile is for the next time."""

    def __init__(self, file: OpenFile, after: FileMark) -> None:
        """Take an open file; it is closed at the end of the `with` block."""
        self._file, self._left, self._chunk = file, file.size, FIRST
        self.size, self.modified_at = file.size, modified_at(file.modified_ns)
        is_behind = 0 < after.offset <= self.size and self._seal(after.offset) == after.seal
        self.mark = after if is_behind else START
        """How far the file was read in whole lines; moves on when all pieces were taken."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def pieces(self) -> Iterator[Piece]:
        """Yield every line behind the mark, with its number from 1."""
        self._file.seek(self.mark.offset)
        self._left, self._chunk = self.size - self.mark.offset, FIRST
        number, torn = self.mark.lines, 0
        for raw, is_whole in split_lines(self._read):
            yield number + 1, raw, is_whole
            if is_whole:
                number += 1
            else:
                torn = line_size(raw)
        offset = self.size - self._left - torn
        self.mark = FileMark(offset, number, self._seal(offset))

    def _read(self) -> bytes:
        chunk = self._file.read(min(self._left, self._chunk))
        self._left, self._chunk = self._left - len(chunk), CHUNK
        return chunk

    def _seal(self, end: int) -> bytes:
        """Return a digest of how the file begins, and of what stands before `end`."""
        samples = []
        for start in (0, max(end - _SEALED, 0)):
            self._file.seek(start)
            samples.append(self._file.read(min(_SEALED, end - start)))
        return hashlib.blake2b(b"".join(samples), digest_size=16).digest()


def split_lines(
    read: Callable[[], bytes], longest: int = LONGEST
) -> Iterator[tuple[bytes | memoryview, bool]]:
    """Yield each line of a stream without its end, and whether it has one; lines end with LF and nothing else.

    JSON strings may hold U+2028 and U+0085, which other readers of lines take for ends. A line with a long run of NUL
    bytes, and one that is longer than `longest`, is a CutLine.
    """
    begun = LineStart(longest)
    while chunk := read():
        first = chunk.find(b"\n")
        if first < 0:
            begun.add(chunk)
            continue
        yield begun.end(chunk[:first]), True
        start, view = first + 1, memoryview(chunk)
        while (end := chunk.find(b"\n", start)) >= 0:
            yield view[start:end], True
            start = end + 1
        if start < len(chunk):
            begun.add(chunk[start:])
    if begun.size:
        yield begun.end(b""), False
