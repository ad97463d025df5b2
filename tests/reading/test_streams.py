"""Lines of growing files: each once, with its number, whatever the chunks and whenever the file is read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.model.problem import Problem
from retold.reading.jsonl import (
    FILE_START,
    FileMark,
    JsonLine,
    LineFile,
    decode_line,
    open_lines,
    split_lines,
)

BYTES = st.binary(max_size=60).map(lambda data: data.replace(b"a", b"\n"))


def opened(path: Path, after: FileMark = FILE_START) -> LineFile:
    file = open_lines(path, after)
    assert isinstance(file, LineFile)
    return file


def taken(file: LineFile) -> list[tuple[int, bytes, bool]]:
    with file:
        return [(number, bytes(raw), is_whole) for number, raw, is_whole in file.pieces()]


@given(chunks=st.lists(BYTES.filter(len), max_size=6))
def test_chunks_make_no_difference(chunks: list[bytes]) -> None:
    data = b"".join(chunks)
    rest = iter(chunks)
    found = [(bytes(raw), is_whole) for raw, is_whole in split_lines(lambda: next(rest, b""))]
    assert b"".join(raw + b"\n" * is_whole for raw, is_whole in found) == data
    assert all(b"\n" not in raw for raw, _ in found)
    assert all(is_whole for _, is_whole in found[:-1])


def test_a_file_is_read_on_from_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\n\ntwo\nthr")
    first = opened(path)
    assert taken(first) == [(1, b"one", True), (2, b"", True), (3, b"two", True), (4, b"thr", False)]
    with path.open("ab") as end:
        end.write(b"ee\nfour\n")
    second = opened(path, first.mark)
    assert taken(second) == [(4, b"three", True), (5, b"four", True)]
    assert second.mark.offset == path.stat().st_size


def test_what_is_appended_while_a_file_is_read_is_for_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\n")
    file = opened(path)
    with path.open("ab") as end:
        end.write(b"two\n")
    assert taken(file) == [(1, b"one", True)]
    assert taken(opened(path, file.mark)) == [(2, b"two", True)]


@pytest.mark.parametrize(
    ("name", "code"), [("missing", "missing-file"), (".", "not-a-file"), ("\0", "missing-file")]
)
def test_what_is_no_file_is_told(name: str, code: str, tmp_path: Path) -> None:
    found = open_lines(tmp_path / name)
    assert isinstance(found, Problem)
    assert found.code == code


def values(raw: bytes, *, is_whole: bool = True) -> list[object]:
    return [
        found.value if isinstance(found, JsonLine) else found.code
        for found in decode_line(raw, 7, "file", is_whole=is_whole)
    ]


def test_a_line_is_a_value_a_problem_or_nothing() -> None:
    assert values(b'{"a": 1}\r') == [{"a": 1}]
    assert values(b"  ") == []
    assert values(b'{"a": ') == ["malformed-json"]
    assert values(b'{"a": ', is_whole=False) == ["truncated-tail"]
    assert values(b'{"a": "\xff"}') == ["replaced-bytes", {"a": "\ufffd"}]


def test_records_that_were_glued_together_are_taken_apart() -> None:
    assert values(b'{"a": 1}{"b": 2} {"c": 3}') == ["glued-records", {"a": 1}, {"b": 2}, {"c": 3}]
    assert values(b'{"a": 1}{"b": ') == ["glued-records", {"a": 1}, "malformed-json"]
