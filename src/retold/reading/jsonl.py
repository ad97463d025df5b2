"""JSON lines: one value or one problem per line, in order, with its number."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from retold.model.problem import Problem, problem
from retold.reading.disk import (
    DISK,
    LONGEST,
    Disk,
    LineStart,
    OpenFile,
    line_size,
    modified_at,
    open_file,
    texts_between_nuls,
)
from retold.reading.json_decode import DECODER, Undecodable, as_json_text, mend, skip_space, value_at


class JsonLine(msgspec.Struct, frozen=True):
    """One value with its line number; `strict` as in `decoding`."""

    number: int
    value: Any
    strict: bool = True


class ReadText(Protocol):
    """Reads a text that is not plain JSON."""

    def __call__(
        self, data: bytes, error: Exception, path: str, number: int, /, *, whole: bool
    ) -> Iterator[JsonLine | Problem]:
        """Yield its values and problems."""


Cuts = Sequence[tuple[int, int]]
"""Where bytes of a file are left out of its data, and how many; as `join_lines` returns them."""
_PLACE = itemgetter(0)


def decode_lines(  # noqa: PLR0913 - a part of a file, and where it stands
    data: bytes, path: str, start: int = 0, number: int = 0, end: int | None = None, cuts: Cuts = ()
) -> Iterator[JsonLine | Problem]:
    """Yield one value or problem per non-blank line, from byte `start` to `end`, after line `number`; never raise.

    A line ends with LF, CR LF or CR, as Node's readline has it.
    """
    view, size = memoryview(data), len(data) if end is None else end
    has_returns = b"\r" in data
    feed = start, start
    while start < size:
        number += 1
        if start >= feed[1]:  # looked for once, however many lines end with CR before it
            feed = _next(data, b"\n", start)
        stop, after = _line_end(data, start, feed) if has_returns else feed
        try:
            yield JsonLine(number, DECODER.decode(view[start:stop]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raw = data[start:stop]
            left_out = _left_out(cuts, start, stop)
            if left_out or b"\0" in raw:
                yield from _around_nuls(raw, len(raw) + left_out, path, number, _mended, whole=after > stop)
            elif raw.strip():
                yield from _mended(raw, error, path, number, whole=after > stop)
        start = after


def _left_out(cuts: Cuts, start: int, stop: int) -> int:
    """Return how many bytes are left out between two places; the cuts are in order."""
    first, behind = bisect_left(cuts, start, key=_PLACE), bisect_right(cuts, stop, key=_PLACE)
    return sum(count for _, count in cuts[first:behind])


def decode_line(
    raw: bytes | memoryview, number: int, path: str, *, is_whole: bool = True
) -> Iterator[JsonLine | Problem]:
    """Yield the value on one line, or a problem; several where writers ran into each other. Never raise."""
    try:
        yield JsonLine(number, DECODER.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        data, size = bytes(raw), line_size(raw)
        if size > len(data) or b"\0" in data:
            yield from _around_nuls(data, size, path, number, _taken_apart, whole=is_whole)
        elif data.strip():
            yield from _taken_apart(data, error, path, number, whole=is_whole)


def _around_nuls(  # noqa: PLR0913 - a line, and where it stands
    data: bytes, size: int, path: str, number: int, read_text: ReadText, *, whole: bool
) -> Iterator[JsonLine | Problem]:
    """Yield what stands on a line before, between and behind runs of NUL bytes, and how many of them there are.

    `size` is that of the line in its file. A strict parser takes no such line.
    """
    if not data:
        yield problem("too-long", f"{size} bytes on one line", path, number)
        return
    texts = texts_between_nuls(data)
    skipped = size - sum(map(len, texts))
    if skipped:
        yield problem("nul-bytes", f"{skipped} NUL bytes", path, number)
    for place, text in enumerate(texts, 1):
        try:
            found: Iterable[JsonLine | Problem] = [JsonLine(number, DECODER.decode(text))]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            is_whole = whole or place < len(texts)
            found = read_text(text, error, path, number, whole=is_whole) if text.strip() else ()
        for one in found:
            yield JsonLine(number, one.value, strict=False) if isinstance(one, JsonLine) else one


def _taken_apart(
    data: bytes, error: Exception, path: str, number: int, *, whole: bool
) -> Iterator[JsonLine | Problem]:
    """Yield the values of a line on which writers ran into each other; of any other line, what can be mended."""
    text, mended = as_json_text(data)
    values, rest = _glued(text.strip())
    if not values or (len(values) == 1 and not rest):
        yield from _mended(data, error, path, number, whole=whole)
        return
    yield problem("glued-records", f"{len(values)} on this line", path, number)
    yield from (problem(code, message, path, number) for code, message in mended)
    yield from (JsonLine(number, value) for value in values)
    if rest:
        yield from _mended(rest.encode(), error, path, number, whole=whole)


def _glued(text: str) -> tuple[list[Any], str]:
    """Return the objects that stand on a line one behind the other, and what is left behind them."""
    values: list[Any] = []
    position = 0
    while text.startswith("{", position) and (found := value_at(text, position)) is not None:
        values.append(found[0])
        position = skip_space(text, found[1])
    return values, text[position:]


def count_lines(data: bytes, start: int, end: int) -> int:
    """Return how many lines end between two places."""
    if data.find(b"\r", start, end) < 0:
        return data.count(b"\n", start, end)
    return len(data[start:end].splitlines())


def _next(data: bytes, mark: bytes, start: int) -> tuple[int, int]:
    """Return where the line ends, and where the next begins."""
    end = data.find(mark, start)
    return (len(data), len(data)) if end < 0 else (end, end + 1)


def _line_end(data: bytes, start: int, feed: tuple[int, int]) -> tuple[int, int]:
    end, after = feed
    early = data.find(b"\r", start, end)
    if early < 0:
        return end, after
    return early, after if early + 1 == end else early + 1


def _mended(
    raw: bytes, error: Exception, path: str, number: int, *, whole: bool
) -> Iterator[JsonLine | Problem]:
    match mend(raw, error):
        case Undecodable(code, message):
            torn = code == "malformed-json" and not whole
            yield problem("truncated-tail" if torn else code, message, path, number)
        case decoded:
            yield from (problem(code, message, path, number) for code, message in decoded.mended)
            yield JsonLine(number, decoded.value, decoded.strict)


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
