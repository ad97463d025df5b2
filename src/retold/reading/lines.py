"""JSON lines: one value or one problem per line, in order, with its number."""

from collections.abc import Iterator
from typing import Any

import msgspec

from retold.model.problem import Problem, problem
from retold.reading.decoding import DECODER, Undecodable, as_json_text, mend
from retold.reading.salvage import skip_space, value_at


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


def decode_line(
    raw: bytes | memoryview, number: int, path: str, *, is_whole: bool = True
) -> Iterator[Line | Problem]:
    """Yield the value on one line, or a problem; several where writers ran into each other. Never raise."""
    try:
        yield Line(number, DECODER.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        data = bytes(raw)
        if not data.strip():
            return
        text, mended = as_json_text(data)
        values, rest = _glued(text.strip())
        if not values or (len(values) == 1 and not rest):
            yield from _mended(data, error, path, number, whole=is_whole)
            return
        yield problem("glued-records", f"{len(values)} on this line", path, number)
        yield from (problem(code, message, path, number) for code, message in mended)
        yield from (Line(number, value) for value in values)
        if rest:
            yield from _mended(rest.encode(), error, path, number, whole=is_whole)


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
