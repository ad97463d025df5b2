"""JSON lines: one value or one problem per line, in order, with its number."""

from collections.abc import Iterator
from typing import Any

import msgspec

from retold.model.problem import Problem, problem
from retold.reading.decoding import DECODER, Undecodable, mend


class Line(msgspec.Struct, frozen=True):
    """One value with its line number; `strict` as in `decoding`."""

    number: int
    value: Any
    strict: bool = True


def decode_lines(data: bytes, path: str, start: int = 0, number: int = 0) -> Iterator[Line | Problem]:
    """Yield one value or problem per non-blank line, from byte `start` on, after line `number`; never raise.

    A line ends with LF, CR LF or CR, as Node's readline has it.
    """
    view, size = memoryview(data), len(data)
    has_returns = b"\r" in data
    while start < size:
        number += 1
        end, after = _line_end(data, start) if has_returns else _next(data, b"\n", start)
        try:
            yield Line(number, DECODER.decode(view[start:end]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raw = data[start:end]
            if raw.strip():
                yield from _mended(raw, error, path, number, whole=after > end)
        start = after


def count_lines(data: bytes, start: int, end: int) -> int:
    """Return how many lines end between two places."""
    if data.find(b"\r", start, end) < 0:
        return data.count(b"\n", start, end)
    return len(data[start:end].splitlines())


def _next(data: bytes, mark: bytes, start: int) -> tuple[int, int]:
    """Return where the line ends, and where the next begins."""
    end = data.find(mark, start)
    return (len(data), len(data)) if end < 0 else (end, end + 1)


def _line_end(data: bytes, start: int) -> tuple[int, int]:
    end, after = _next(data, b"\n", start)
    early = data.find(b"\r", start, end)
    if early < 0:
        return end, after
    return early, after if early + 1 == end else early + 1


def _mended(raw: bytes, error: Exception, path: str, number: int, *, whole: bool) -> Iterator[Line | Problem]:
    match mend(raw, error):
        case Undecodable(code, message):
            torn = code == "malformed-json" and not whole
            yield problem("truncated-tail" if torn else code, message, path, number)
        case decoded:
            yield from (problem(code, message, path, number) for code, message in decoded.mended)
            yield Line(number, decoded.value, decoded.strict)
