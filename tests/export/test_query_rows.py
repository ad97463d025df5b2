"""Rows of a query as they are shown: whatever they hold, a row stays a row, and fits."""

import csv
import io
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.cli.console import Console
from retold.export.text.formatting import PIECE_LENGTH, escape_formula, text_width
from retold.export.text.sql_results import (
    SAMPLE,
    csv_line,
    csv_pieces,
    format_rows,
    format_value,
    json_line,
    json_pieces,
    unique_names,
)

NUMBERS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
VALUES = st.one_of(NUMBERS, st.text(), st.binary())


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[str], list[tuple[int | float | str | bytes | None, ...]]]:
    names = draw(st.lists(st.text(), min_size=1, max_size=6))
    rows = st.tuples(*[draw(st.sampled_from([NUMBERS, VALUES])) for _ in names])
    return names, draw(st.lists(rows, max_size=5))


@given(answers(), st.integers(1, 200))
def test_a_table_has_a_line_for_each_row_or_for_each_cell(
    answer: tuple[list[str], list[tuple[int | float | str | bytes | None, ...]]], width: int
) -> None:
    names, rows = answer
    out = io.StringIO()
    console = Console({}, out)
    lines = list(format_rows(names, rows, width))
    for pieces in lines:
        console.write_styled(pieces)
    assert len(out.getvalue().splitlines()) == len(lines) == out.getvalue().count("\n")
    cells = len(names) * len(rows) + max(0, len(rows) - 1)
    assert len(lines) in (len(rows) + 1, cells)
    if len(lines) != cells:
        assert all(text_width("".join(text for _, text in pieces)) <= width for pieces in lines)


@given(answers())
def test_json_and_csv_hold_what_a_row_does(
    answer: tuple[list[str], list[tuple[int | float | str | bytes | None, ...]]],
) -> None:
    names, rows = answer
    for row in rows:
        told = json.loads(json_line(unique_names(names), row))
        (read,) = csv.reader(io.StringIO(csv_line(row), newline=""), strict=True)
        assert len(told) == len(read) == len(row)
        for value, from_json, from_csv in zip(row, told.values(), read, strict=True):
            match value:
                case str():
                    assert (from_json, from_csv) == (
                        value.encode("utf-8", "replace").decode(),
                        escape_formula(value),
                    )
                case bytes():
                    assert bytes.fromhex(from_json) == bytes.fromhex(from_csv) == value
                case float() if value - value != 0:
                    assert (from_json, from_csv) == (None, "")
                case None:
                    assert (from_json, from_csv) == (None, "")
                case _:
                    assert from_json == type(value)(from_csv) == value


LONG = (
    '"ä\x7f\n😀' * PIECE_LENGTH,
    1,
    None,
    b"\x00\xff" * PIECE_LENGTH,
    "a" * (PIECE_LENGTH + 1),
    "=" * PIECE_LENGTH * 2,
    "",
    9e999,
)


def test_what_is_long_is_told_bit_by_bit_and_comes_to_the_same() -> None:
    names = [f'{place}"' for place, _ in enumerate(LONG)]
    told = list(json_pieces(names, LONG))
    assert b"".join(told) == json_line(names, LONG)
    cells = list(csv_pieces(LONG))
    assert "".join(cells) == csv_line(LONG)
    assert max(map(len, cells)) <= 2 * PIECE_LENGTH
    assert max(map(len, told)) <= 6 * PIECE_LENGTH


def test_names_are_told_apart() -> None:
    assert unique_names(["a", "a_2", "a", "a", "b"]) == ["a", "a_2", "a_3", "a_4", "b"]


def test_a_number_is_never_cut_however_late_it_comes() -> None:
    rows = [(1, "a")] * SAMPLE + [(123_456_789, "a" * 50)]
    *_, last = format_rows(["number", "text"], rows, 20)
    assert "".join(text for _, text in last) == "123456789  aaa…"


LATE = 123_456_789_012_345_678


def lines_of(names: list[str], rows: list[tuple[int | float | str | None, ...]], width: int) -> list[str]:
    return ["".join(text for _, text in pieces) for pieces in format_rows(names, rows, width)]


def test_a_number_is_not_cut_where_each_row_is_told_apart() -> None:
    names = ["a_long_column_name_here", "title", "session", "project"]
    told = lines_of(names, [(LATE, "a" * 50, "b" * 50, -0.123456789012345)], 30)
    assert told[0].split() == ["a_long_column_…", str(LATE)]
    assert told[3].split() == ["project", "-0.123456789012345"]
    assert all(len(line) == 30 for line in told[1:3])


@pytest.mark.parametrize("before", [None, "a" * 50, ""])
def test_a_number_is_not_cut_among_what_is_none(before: str | None) -> None:
    told = lines_of(["a", "b"], [(before, "b" * 50)] * SAMPLE + [(LATE, "b" * 50)], 20)
    assert told[-1].split()[0] == str(LATE)


def test_text_is_cut_among_numbers() -> None:
    told = lines_of(["number", "b"], [(1, "b")] * SAMPLE + [("a" * 50, "b")], 20)
    assert told[-1] == "aaaaa…  b"
    assert lines_of(["a"], [(1,)] * SAMPLE + [(None,)], 20)[-1] == "NULL"


def test_values_as_people_read_them() -> None:
    values = (None, "", " \n", "a\nb", 0.1 + 0.2, 2.0, 1e300, float("inf"), b"\x00\xff", 2**62)
    told = ["NULL", "", "", "a b", "0.3", "2.0", "1e+300", "inf", "x'00ff'", "4611686018427387904"]
    assert list(map(format_value, values)) == told


def test_only_as_much_is_held_as_tells_how_wide_columns_are() -> None:
    taken: list[int] = []

    def rows() -> Iterator[tuple[str]]:
        for number in range(100):
            taken.append(number)
            yield ("x" * (1 << 20),)

    next(iter(format_rows(["a"], rows(), 80)))
    assert len(taken) < 10
