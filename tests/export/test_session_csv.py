"""CSV of sessions: read back by a parser of RFC 4180, and never calculated by a spreadsheet."""

import csv
import io
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from retold.export.formats.csv import HEADINGS, LIMIT, encode_sessions
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.session import Text
from support.full_session import agent, call, everything, session, session_with_text, user

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"]


def rows(*tellings: ExportSession, choice: ExportOptions = ExportOptions()) -> list[dict[str, str]]:  # noqa: B008 - a frozen value
    text = b"".join(encode_sessions(tellings, choice)).decode()
    found = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    assert tuple(found.fieldnames or ()) == HEADINGS
    return list(found)


def texts(found: Iterable[dict[str, str]]) -> list[str]:
    return [row[name] for row in found for name in ("text", "arguments", "result") if row[name]]


def test_everything(snapshot: SnapshotAssertion) -> None:
    assert b"".join(encode_sessions([everything()], ExportOptions())).decode() == snapshot


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_is_a_formula(formula: str) -> None:
    found = rows(ExportSession(session_with_text(formula)))
    cells = [cell for row in found for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(tuple("=+-@\t\r\n\uff1d"))]
    assert f"'{formula}" in cells


@given(st.text(max_size=60).filter(lambda text: "\x00" not in text))
def test_every_text_comes_back(text: str) -> None:
    found = rows(ExportSession(session(user(1, text), agent(2, Text("x")))))
    assert found[0]["text"].removeprefix("'") == text.removeprefix("'")
    assert found[0]["text_length"] == str(len(text))


@pytest.mark.parametrize("letter", ["x", "潮", "🌊", '"', "="])
def test_a_cell_holds_as_much_as_excel_takes_and_says_so(letter: str) -> None:
    long = letter * 40_000
    _asked, done = rows(ExportSession(session(agent(1, call("cat", result=long)))))
    assert LIMIT - 1 <= len(done["result"].encode("utf-16-le")) // 2 <= LIMIT
    assert (done["cut"], done["result_length"]) == ("result", "40000")
    (short, _call) = rows(ExportSession(session(agent(1, call("cat", result=letter)))))
    assert short["cut"] == ""


def test_a_cell_that_just_fits_is_whole() -> None:
    _asked, done = rows(ExportSession(session(agent(1, call("cat", result="x" * LIMIT)))))
    assert (len(done["result"]), done["cut"]) == (LIMIT, "")


def test_control_characters_do_not_break_a_row() -> None:
    (found, *_rest) = rows(ExportSession(session_with_text("a\x00b\x1b\u202e")))
    assert found["text"] == "a\u2400b\x1b\u202e"


def test_many_sessions_have_one_row_of_headings_and_numbers_of_their_own() -> None:
    found = rows(everything(), ExportSession(session_with_text("x")))
    assert len({row["session"] for row in found}) == 2
    assert [row["seq"] for row in found].count("0") == 3


def test_tools_as_asked_for() -> None:
    assert not [row for row in rows(everything(), choice=ExportOptions(tools="none")) if row["tool"]]
    named = [row for row in rows(everything(), choice=ExportOptions(tools="names")) if row["tool"]]
    assert named
    assert not [row for row in named if row["arguments"] or row["result"]]


def test_tokens_are_numbers() -> None:
    _asked, answer, *_calls = rows(ExportSession(session_with_text("x")))
    assert (answer["input_tokens"], answer["total_tokens"], answer["estimated"]) == ("1200", "1275", "False")
    assert texts([answer]) == ["x"]
