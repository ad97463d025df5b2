"""JSON lines: one value or one problem a line, with its number."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.model.problem import Problem
from retold.reading.disk import Gap
from retold.reading.jsonl import JsonLine, decode_lines


def told(data: bytes) -> list[tuple[int | None, Any]]:
    """Each line's number with its value, or with the code of what is wrong with it."""
    return [
        (found.number, found.value) if isinstance(found, JsonLine) else (found.line, found.code)
        for found in decode_lines(data, "file")
    ]


def test_blank_lines_count_and_say_nothing() -> None:
    assert told(b"1\n\n  \n2\n") == [(1, 1), (4, 2)]


def test_every_line_end_is_one() -> None:
    assert told(b"1\r\n2\r3\n4") == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_a_torn_end_is_told_from_a_broken_line() -> None:
    assert told(b'{"a":\n1\n{"b":') == [(1, "malformed-json"), (2, 1), (3, "truncated-tail")]


def test_reading_goes_on_where_it_stopped() -> None:
    later = [found for found in decode_lines(b"1\n2\n3\n", "file", 2, 1) if isinstance(found, JsonLine)]
    assert [(line.number, line.value) for line in later] == [(2, 2), (3, 3)]


def test_what_was_mended_is_told_before_the_value() -> None:
    first, second = decode_lines(b'"\\ud800"\n', "file")
    assert isinstance(first, Problem)
    assert first.code == "replaced-bytes"
    assert isinstance(second, JsonLine)
    assert (second.value, second.strict) == ("\ufffd", True)


class SearchedBytes(bytes):
    """Bytes that count how many of them `find` looks at."""

    looked_at = 0

    def find(self, mark: Any, start: Any = 0, end: Any = None) -> int:
        stop = len(self) if end is None else end
        place = super().find(mark, start, stop)
        self.looked_at += (stop if place < 0 else place) - start
        return place


@pytest.mark.parametrize("line", [b"\r", b"1\r", b"1\r\n", b"1\r\r\n", b"1\n"])
def test_each_byte_is_looked_at_a_few_times_for_line_ends(line: bytes) -> None:
    data = SearchedBytes(line * 1000)
    assert len(list(decode_lines(data, "file"))) == 1000 * line.count(b"1")
    assert data.looked_at <= 3 * len(data)


class CountedGaps(list[Gap]):
    """Gaps that count how often one is looked up."""

    looked_up = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.looked_up += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self) -> Any:
        self.looked_up += len(self)
        return super().__iter__()


def test_a_broken_line_looks_up_its_own_gaps() -> None:
    line = b"[1" + b"\0" * 4096 + b"\n"
    gaps = CountedGaps(Gap(place * len(line) + 2, 1000) for place in range(200))
    problems = [found for found in decode_lines(line * 200, "file", gaps=gaps) if isinstance(found, Problem)]
    assert [one.message for one in problems if one.code == "nul-bytes"] == ["5096 NUL bytes"] * 200
    assert gaps.looked_up <= 20 * 200


@given(st.lists(st.text() | st.integers(-(2**80), 2**80) | st.lists(st.booleans()), max_size=8))
def test_every_value_comes_back(values: list[Any]) -> None:
    data = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    assert told(data) == list(enumerate(values, 1))
