"""Runs of NUL bytes, which a crash or a sparse file leaves, and lines that are too long to be held in memory."""

import re
from collections.abc import Callable

from retold.reading.decoding import Decoded, decode

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
