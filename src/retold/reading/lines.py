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


def split_lines(data: bytes, start: int = 0) -> Iterator[tuple[memoryview, bool]]:
    """Yield each line without its end, and whether it had one: LF, CR LF or CR, as Node's readline splits."""
    view = memoryview(data)
    if b"\r" in data:
        for line in data[start:].splitlines(keepends=True):
            whole = line.endswith((b"\n", b"\r"))
            yield memoryview(line.rstrip(b"\r\n") if whole else line), whole
        return
    size = len(data)
    while start < size:
        end = data.find(b"\n", start)
        if end < 0:
            yield view[start:], False
            return
        yield view[start:end], True
        start = end + 1


def decode_lines(data: bytes, path: str, start: int = 0, number: int = 0) -> Iterator[Line | Problem]:
    """Yield one value or problem per non-blank line, from byte `start` on, after line `number`; never raise."""
    for number, (line, whole) in enumerate(split_lines(data, start), number + 1):  # noqa: PLR1704, B020
        try:
            yield Line(number, DECODER.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raw = bytes(line)
            if raw.strip():
                yield from _mended(raw, error, path, number, whole=whole)


def _mended(raw: bytes, error: Exception, path: str, number: int, *, whole: bool) -> Iterator[Line | Problem]:
    match mend(raw, error):
        case Undecodable(code, message):
            torn = code == "malformed-json" and not whole
            yield problem("truncated-tail" if torn else code, message, path, number)
        case decoded:
            yield from (problem(code, message, path, number) for code, message in decoded.mended)
            yield Line(number, decoded.value, decoded.strict)
