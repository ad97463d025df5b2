"""Runs of NUL bytes and lines that are too long: told with their size, held in no more memory than is allowed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retold.model.problem import Problem
from retold.reading.disk import (
    HOLE,
    CutLine,
    FileBytes,
    LineBuffer,
    join_lines,
    line_size,
    read_bytes,
    read_lines,
    remove_nuls,
)
from retold.reading.jsonl import (
    FILE_START,
    JsonLine,
    LineFile,
    decode_line,
    decode_lines,
    open_lines,
    split_lines,
)

LONGEST = 64 * 1024


def in_chunks(data: bytes, size: int) -> Callable[[], bytes]:
    chunks = iter([data[place : place + size] for place in range(0, len(data), size)])
    return lambda: next(chunks, b"")


def told(found: Any) -> list[Any]:
    return [
        (one.value, one.strict) if isinstance(one, JsonLine) else (one.code, one.message, one.line)
        for one in found
    ]


def told_lines(data: bytes, chunk: int) -> list[Any]:
    lines = enumerate(split_lines(in_chunks(data, chunk), LONGEST), 1)
    return [
        one
        for number, (raw, is_whole) in lines
        for one in told(decode_line(raw, number, "file", is_whole=is_whole))
    ]


def told_joined(data: bytes, chunk: int) -> list[Any]:
    held, gaps = join_lines(in_chunks(data, chunk), LONGEST)
    return told(decode_lines(held, "file", gaps=gaps))


EXAMPLES: dict[str, tuple[bytes, list[Any]]] = {
    "behind a hole": (b'1\n%b{"a": 2}\n3\n', [(1, True), "2 NULs", ({"a": 2}, False), (3, True)]),
    "at the end": (b"1\n2\n%b", [(1, True), (2, True), "3 NULs"]),
    "after a whole record": (b"1\n[2]%b\n", [(1, True), "2 NULs", ([2], False)]),
    "in a record": (b'1\n{"a": "b%bc"}\n3\n', [(1, True), "2 NULs", "malformed-json", "malformed-json", (3, True)]),
    "at the beginning": (b"%b1\n2\n", ["1 NULs", (1, False), (2, True)]),
}  # fmt: skip


@pytest.mark.parametrize("read", [told_lines, told_joined])
@pytest.mark.parametrize("chunk", [HOLE, 5000, 1 << 20])
@pytest.mark.parametrize("size", [HOLE, 50_000, 1_000_000])
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_stands_around_a_hole_is_read_whatever_the_chunks(
    name: str, size: int, chunk: int, read: Callable[[bytes, int], list[Any]]
) -> None:
    text, expected = EXAMPLES[name]
    found = read(text % (b"\0" * size), chunk)
    as_expected = [
        ("nul-bytes", f"{size} NUL bytes", int(one[0]))
        if isinstance(one, str) and one.endswith("NULs")
        else one
        for one in expected
    ]
    assert [one[0] if one[0] == "malformed-json" else one for one in found] == as_expected


@pytest.mark.parametrize("read", [told_lines, told_joined])
def test_a_few_nuls_are_left_out_around_a_record_and_stay_in_a_string(
    read: Callable[[bytes, int], list[Any]],
) -> None:
    assert read(b"\0\0\0[1]\0\n", 100) == [("nul-bytes", "4 NUL bytes", 1), ([1], False)]
    kept = read(b'["a\0b"]\n', 100)
    assert [one[0] for one in kept] == ["malformed-json", ["a\0b"]]
    assert read(b"[1]\0\0[2]\n", 100) == [("nul-bytes", "2 NUL bytes", 1), ([1], False), ([2], False)]


@pytest.mark.parametrize("read", [told_lines, told_joined])
def test_a_line_that_is_too_long_is_told_and_the_rest_is_read(
    read: Callable[[bytes, int], list[Any]],
) -> None:
    data = b'1\n"%b"\n3\n' % (b"a" * (LONGEST + 1))
    assert read(data, 1000) == [(1, True), ("too-long", f"{LONGEST + 3} bytes on one line", 2), (3, True)]


@pytest.mark.parametrize("read", [told_lines, told_joined])
def test_an_endless_last_line_is_told(read: Callable[[bytes, int], list[Any]]) -> None:
    found = read(b"1\n" + b"a" * (LONGEST * 3), 1000)
    assert [one[0] for one in found] == [1, "too-long"]


def test_no_more_is_held_of_a_line_than_is_allowed() -> None:
    line = LineBuffer(LONGEST)
    held = []
    for piece in (b"a" * 1000, b"\0" * HOLE):
        for _ in range(LONGEST // 500):
            line.add(piece)
            held.append(sum(map(len, line.pieces)))
    assert max(held) <= LONGEST + 1000
    assert line.size == (LONGEST // 500) * (1000 + HOLE)
    assert line_size(line.end(b"")) == (LONGEST // 500) * (1000 + HOLE)
    for _ in range(100_000):
        line.add(b"\0" * HOLE)
    assert sum(map(len, line.pieces)) == HOLE
    assert isinstance(line.end(b"[]"), CutLine)


def test_a_file_is_read_on_behind_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"1\n")
    with path.open("r+b") as file:
        file.truncate(3_000_000)
        file.seek(0, 2)
        file.write(b"2\n")

    def read(mark: Any) -> tuple[list[Any], Any]:
        opened = open_lines(path, mark)
        assert isinstance(opened, LineFile)
        with opened:
            found = [
                told(decode_line(raw, number, "file", is_whole=is_whole))
                for number, raw, is_whole in opened.pieces()
            ]
        return found, opened.mark

    found, mark = read(FILE_START)
    assert found == [[(1, True)], [("nul-bytes", "2999998 NUL bytes", 2), (2, False)]]
    assert mark.offset == path.stat().st_size
    with path.open("ab") as end:
        end.write(b"3\n")
        end.truncate(path.stat().st_size + 2_000_000)
    later, mark = read(mark)
    assert later[0] == [(3, True)]
    assert [one[0][0] for one in later[1:]] == ["nul-bytes"]
    assert mark.offset == 3_000_004


def test_a_document_that_is_too_long_is_a_problem_and_its_lines_are_not(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes(b"[\n" + b"1,\n" * 30 + b"1]\n")
    refused = read_bytes(path, longest=50)
    assert isinstance(refused, Problem)
    assert (refused.code, refused.message) == ("too-long", f"a document of {path.stat().st_size} bytes")
    lines = read_lines(path, longest=50)
    assert isinstance(lines, FileBytes)
    assert lines.data == path.read_bytes()
    path.write_bytes(b"[" + b"1," * 30 + b"1]")
    refused = read_bytes(path, longest=50)
    assert isinstance(refused, Problem)
    assert refused.code == "too-long"
    assert isinstance(read_bytes(path, longest=70), FileBytes)


def test_a_document_is_read_without_the_nuls_in_and_around_it(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes(b"\0\0[1," + b"\0" * 5000 + b"2]\0")
    file = read_bytes(path)
    assert isinstance(file, FileBytes)
    data, (skipped,) = remove_nuls(file)
    assert data == b"[1, 2]"
    assert (skipped.code, skipped.message) == ("nul-bytes", "5003 NUL bytes")
    path.write_bytes(b"[1, 2]")
    file = read_bytes(path)
    assert isinstance(file, FileBytes)
    assert remove_nuls(file) == (b"[1, 2]", ())
