"""A report for programs: JSON and CSV."""

import csv
import io
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.cli.console import Console
from retold.export.text.report_data import HEADINGS, csv_lines, line_json
from retold.model.report import Line, Spend
from support.sample_reports import HOSTILE, NOTHING, spend, tools

WHOLE = Line(
    "2026-01-27",
    spend(17, 85_000_000, 68_000_000, 4_250_000),
    NOTHING,
    sessions=4,
    prompts=9,
    tool_calls=5,
    tool_errors=1,
    tool_retries=0,
    active_seconds=3600,
    compactions=2,
)


def test_a_line_in_json_has_what_the_contract_names() -> None:
    assert json.loads(line_json(WHOLE, "day")) == {
        "by": "day",
        "of": "2026-01-27",
        "sessions": 4,
        "requests": 17,
        "usage": {
            "input": 153_000_000,
            "cached": 68_000_000,
            "cache_write": 0,
            "output": 4_250_000,
            "reasoning": None,
            "tool": None,
            "total": 157_250_000,
            "requests": 17,
            "estimated": False,
        },
        "cost_usd": "157.25",
        "unpriced_requests": 0,
        "prompts": 9,
        "tool_calls": 5,
        "tool_errors": 1,
        "tool_retries": 0,
        "active_seconds": 3600,
        "compactions": 2,
        "estimated": None,
    }


def test_guesses_are_an_object_of_their_own() -> None:
    told = json.loads(line_json(Line("x", NOTHING, spend(3, 40_000)), "session"))
    assert (told["requests"], told["usage"]["total"], told["cost_usd"]) == (0, None, None)
    assert told["estimated"]["requests"] == 3
    assert told["estimated"]["usage"]["total"] == 40_000
    assert told["estimated"]["usage"]["estimated"] is True
    assert told["estimated"]["cost_usd"] == "0.05"


def test_what_was_written_for_an_hour_is_told_where_it_was_recorded() -> None:
    figures = {**NOTHING.figures, "cache_write_1h": 7}
    assert json.loads(line_json(Line("x", Spend(1, figures), NOTHING), "day"))["usage"]["cache_write_1h"] == 7


def test_a_tool_says_how_long_it_took() -> None:
    told = json.loads(line_json(Line("replace", NOTHING, NOTHING, tool_calls=240), "tool", tool=tools()[2]))
    assert told["tool"] == {
        "name": "replace",
        "canonical": "file_edit",
        "timed_calls": 240,
        "seconds": 12.0,
        "slowest_seconds": 2.5,
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_json_stays_on_its_line_and_keeps_the_name(name: str) -> None:
    out = io.StringIO()
    Console({}, out).write_json(line_json(Line(name, NOTHING, NOTHING), "model"))
    written = out.getvalue()
    assert written.count("\n") == 1
    assert not set(written[:-1]) & {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))}
    assert json.loads(written)["of"] == name.encode("utf-8", "replace").decode()


def test_csv_has_plain_numbers_and_nothing_where_nothing_is_known() -> None:
    header, whole, unknown = csv_lines([WHOLE, Line("x", Spend(2, None, None, 2), spend(1, 8))], "day")
    assert header == ",".join(HEADINGS)
    assert (
        whole == "day,2026-01-27,4,17,153000000,68000000,0,,4250000,,,157250000,157.25,0,9,5,1,0,3600,2,0,,"
    )
    assert unknown == "day,x,,2,,,,,,,,,,2,,,,,,,1,8,0.00001"


@pytest.mark.parametrize("name", HOSTILE)
def test_csv_is_read_back_as_one_row_and_no_cell_is_a_formula(name: str) -> None:
    out = io.StringIO()
    Console({}, out).write_lines(csv_lines([Line(name, spend(1, 8), NOTHING)], "project"))
    rows = list(csv.reader(io.StringIO(out.getvalue(), newline=""), strict=True))
    assert [len(row) for row in rows] == [len(HEADINGS)] * 2
    assert not rows[1][1].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@given(st.lists(st.text(), max_size=5))
def test_csv_keeps_every_name(names: list[str]) -> None:
    written = "\n".join(csv_lines([Line(name, NOTHING, NOTHING) for name in names], "tool"))
    rows = list(csv.reader(io.StringIO(written, newline=""), strict=True))[1:]
    assert [
        row[1] if name == row[1] else row[1].removeprefix("'") for name, row in zip(names, rows, strict=True)
    ] == names


def test_showing_a_report_takes_none_of_the_libraries_that_reading_does() -> None:
    code = (
        "import sys, retold.export.text.report_overview, retold.export.text.report_table, retold.export.text.report_data\n"
        "print({'msgspec', 'typing', 'json', 'decimal', 'csv', 'apsw', 'genai_prices'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"], capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout == "set()\n"
