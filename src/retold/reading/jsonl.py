"""Decodes JSON lines: yields one value or one problem per line, in order, with its number."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from retold.model.problem import Problem, problem
from retold.reading.disk import (
    DISK,
    LONGEST,
    Disk,
    Gap,
    LineBuffer,
    OpenFile,
    line_size,
    open_file,
    split_at_nuls,
    time_from_ns,
)
from retold.reading.json_decode import (
    DECODER,
    JsonFailure,
    decode_json_text,
    mend,
    repair_problems,
    skip_space,
    value_at,
)


class JsonLine(msgspec.Struct, frozen=True):
    """A value with its line number; `strict` as in `json_decode`."""

    number: int
    value: Any
    strict: bool = True


class ReadText(Protocol):
    """Decodes a text that is not plain JSON."""

    def __call__(
        self, data: bytes, error: Exception, path: str, number: int, /, *, whole: bool
    ) -> Iterator[JsonLine | Problem]:
        """Yield its values and problems."""


_get_place = attrgetter("place")


def decode_lines(  # noqa: PLR0913 - a part of a file, and where it stands
    data: bytes, path: str, start: int = 0, number: int = 0, end: int | None = None, gaps: Sequence[Gap] = ()
) -> Iterator[JsonLine | Problem]:
    """Yield one value or problem per non-blank line, from byte `start` to `end`, after line `number`; never raise.

    A line ends with LF, CR LF or CR, as in Node's readline.
    """
    view, size = memoryview(data), len(data) if end is None else end
    has_returns = b"\r" in data
    feed = start, start
    while start < size:
        number += 1
        if start >= feed[1]:  # searched for once, however many lines end with CR before it
            feed = _find_end(data, b"\n", start)
        stop, after = _line_end(data, start, feed) if has_returns else feed
        try:
            yield JsonLine(number, DECODER.decode(view[start:stop]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raw = data[start:stop]
            left_out = _count_left_out(gaps, start, stop)
            if left_out or b"\0" in raw:
                yield from _around_nuls(
                    raw, len(raw) + left_out, path, number, _mend_line, whole=after > stop
                )
            elif raw.strip():
                yield from _mend_line(raw, error, path, number, whole=after > stop)
        start = after


def _count_left_out(gaps: Sequence[Gap], start: int, stop: int) -> int:
    """Return how many bytes are left out between two places; the gaps are in order."""
    first, behind = bisect_left(gaps, start, key=_get_place), bisect_right(gaps, stop, key=_get_place)
    return sum(gap.size for gap in gaps[first:behind])


def decode_line(
    raw: bytes | memoryview, number: int, path: str, *, is_whole: bool = True
) -> Iterator[JsonLine | Problem]:
    """Yield the value on one line, or a problem; several values if lines ran together. Never raise."""
    try:
        yield JsonLine(number, DECODER.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        data, size = bytes(raw), line_size(raw)
        if size > len(data) or b"\0" in data:
            yield from _around_nuls(data, size, path, number, _split_glued, whole=is_whole)
        elif data.strip():
            yield from _split_glued(data, error, path, number, whole=is_whole)


def _around_nuls(  # noqa: PLR0913 - a line, and where it stands
    data: bytes, size: int, path: str, number: int, read_text: ReadText, *, whole: bool
) -> Iterator[JsonLine | Problem]:
    """Yield the values on a line before, between and behind runs of NUL bytes, and a problem with their number.

    `size` is the length of the line in its file. A strict parser accepts no such line.
    """
    if not data:
        yield problem("too-long", f"{size} bytes on one line", path, number)
        return
    texts = split_at_nuls(data)
    skipped = size - sum(map(len, texts))
    if skipped:
        yield problem("nul-bytes", f"{skipped} NUL bytes", path, number)
    for place, text in enumerate(texts, 1):
        try:
            values: Iterable[JsonLine | Problem] = [JsonLine(number, DECODER.decode(text))]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            is_whole = whole or place < len(texts)
            values = read_text(text, error, path, number, whole=is_whole) if text.strip() else ()
        for one in values:
            yield JsonLine(number, one.value, strict=False) if isinstance(one, JsonLine) else one


def _split_glued(
    data: bytes, error: Exception, path: str, number: int, *, whole: bool
) -> Iterator[JsonLine | Problem]:
    """Yield the values of lines that ran together; of another line, its repaired value."""
    text, repairs = decode_json_text(data)
    values, rest = _split_objects(text.strip())
    if not values or (len(values) == 1 and not rest):
        yield from _mend_line(data, error, path, number, whole=whole)
        return
    yield problem("glued-records", f"{len(values)} on this line", path, number)
    yield from repair_problems(repairs, path, number)
    yield from (JsonLine(number, value) for value in values)
    if rest:
        yield from _mend_line(rest.encode(), error, path, number, whole=whole)


def _split_objects(text: str) -> tuple[list[Any], str]:
    """Return the objects that follow each other on a line, and the rest of the line."""
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


def _find_end(data: bytes, mark: bytes, start: int) -> tuple[int, int]:
    """Return the end of the line, and the start of the next."""
    end = data.find(mark, start)
    return (len(data), len(data)) if end < 0 else (end, end + 1)


def _line_end(data: bytes, start: int, feed: tuple[int, int]) -> tuple[int, int]:
    end, after = feed
    early = data.find(b"\r", start, end)
    if early < 0:
        return end, after
    return early, after if early + 1 == end else early + 1


def _mend_line(
    raw: bytes, error: Exception, path: str, number: int, *, whole: bool
) -> Iterator[JsonLine | Problem]:
    match mend(raw, error):
        case JsonFailure(code, message):
            is_torn = code == "malformed-json" and not whole
            yield problem("truncated-tail" if is_torn else code, message, path, number)
        case decoded:
            yield from repair_problems(decoded.repairs, path, number)
            yield JsonLine(number, decoded.value, decoded.strict)


CHUNK = 1 << 20
FIRST_CHUNK = 1 << 16
"""The first chunk is small: often only the first lines are needed."""
Piece = tuple[int, bytes | memoryview, bool]
"""A line's number, its bytes, and whether a line end follows: the last line may be unfinished."""


class FileMark(msgspec.Struct, frozen=True):
    """The extent to which a file was read in whole lines."""

    offset: int = 0
    lines: int = 0


FILE_START = FileMark()


def open_lines(path: Path, after: FileMark = FILE_START, disk: Disk = DISK) -> "LineFile | Problem":
    """Open a file at a mark."""
    file = open_file(path, disk)
    return file if isinstance(file, Problem) else LineFile(file, after)


class LineFile:
    """An open file with the length it had when it was opened; what is appended later is left to the next reading."""

    def __init__(self, file: OpenFile, after: FileMark) -> None:
        """Take an open file, which is closed at the end of the `with` block."""
        self._file, self._left, self._chunk = file, file.size, FIRST_CHUNK
        self.size, self.modified_at = file.size, time_from_ns(file.modified_ns)
        self.mark = after
        """The extent to which the file was read in whole lines; moves after the last piece."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def pieces(self, end: int | None = None) -> Iterator[Piece]:
        """Yield every line behind the mark, with its number from 1; up to an offset, if one is given."""
        size = self.size if end is None else end
        self._file.seek(self.mark.offset)
        self._left, self._chunk = size - self.mark.offset, FIRST_CHUNK
        number, torn = self.mark.lines, 0
        for raw, is_whole in split_lines(self._read):
            yield number + 1, raw, is_whole
            if is_whole:
                number += 1
            else:
                torn = line_size(raw)
        self.mark = FileMark(size - self._left - torn, number)

    def read_part(self, start: int, size: int) -> bytes:
        """Return a part of the file."""
        self._file.seek(start)
        pieces: list[bytes] = []
        while size and (piece := self._file.read(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _read(self) -> bytes:
        chunk = self._file.read(min(self._left, self._chunk))
        self._left, self._chunk = self._left - len(chunk), CHUNK
        return chunk


def split_lines(
    read: Callable[[], bytes], longest: int = LONGEST
) -> Iterator[tuple[bytes | memoryview, bool]]:
    """Yield each line of a stream without its end, and whether it has one; only LF ends a line.

    JSON strings may hold U+2028 and U+0085, which other readers take for line ends. A line with a long run of NUL bytes, or
    longer than `longest`, is a CutLine.
    """
    begun = LineBuffer(longest)
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
