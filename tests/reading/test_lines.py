"""JSON lines: one value or one problem a line, with its number."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from retold.model.problem import Problem
from retold.reading.lines import Line, decode_lines


def told(data: bytes) -> list[tuple[int | None, Any]]:
    """Each line's number with its value, or with the code of what is wrong with it."""
    return [
        (found.number, found.value) if isinstance(found, Line) else (found.line, found.code)
        for found in decode_lines(data, "file")
    ]


def test_blank_lines_count_and_say_nothing() -> None:
    assert told(b"1\n\n  \n2\n") == [(1, 1), (4, 2)]


def test_every_line_end_is_one() -> None:
    assert told(b"1\r\n2\r3\n4") == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_a_torn_end_is_told_from_a_broken_line() -> None:
    assert told(b'{"a":\n1\n{"b":') == [(1, "malformed-json"), (2, 1), (3, "truncated-tail")]


def test_reading_goes_on_where_it_stopped() -> None:
    later = [found for found in decode_lines(b"1\n2\n3\n", "file", 2, 1) if isinstance(found, Line)]
    assert [(line.number, line.value) for line in later] == [(2, 2), (3, 3)]


def test_what_was_mended_is_told_before_the_value() -> None:
    first, second = decode_lines(b'"\\ud800"\n', "file")
    assert isinstance(first, Problem)
    assert first.code == "replaced-bytes"
    assert isinstance(second, Line)
    assert (second.value, second.strict) == ("\ufffd", True)


@given(st.lists(st.text() | st.integers(-(2**80), 2**80) | st.lists(st.booleans()), max_size=8))
def test_every_value_comes_back(values: list[Any]) -> None:
    data = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    assert told(data) == list(enumerate(values, 1))
