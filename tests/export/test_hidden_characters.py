"""No terminal gets characters that steer it or hide in its text, whichever way text reaches it."""

import io
import json
import re
import sys

import pytest

from retold.cli.console import Console, escape_for_terminal
from retold.export.html.blocks import show_control_chars
from retold.export.text.formatting import escape_control_chars
from retold.export.text.formatting import escape_formula as harmless_cell
from retold.mcp.reply import show_hidden as plain_for_agents
from retold.tui.widgets import escape_line, make_text

HIDDEN = {
    "zero width space": "\u200b",
    "byte order mark": "\ufeff",
    "Arabic letter mark": "\u061c",
    "Mongolian vowel separator": "\u180e",
    "tag": "\U000e0041",
    "language tag": "\U000e0001",
    "cancel tag": "\U000e007f",
    "direction": "\u202e",
    "isolate": "\u2066",
    "left-to-right mark": "\u200e",
    "line separator": "\u2028",
    "word joiner": "\u2060",
    "filler": "\u3164",
    "vowel without a sign": "\u17b4",
    "annotation": "\ufff9",
    "escape": "\x1b",
    "C1": "\x9b",
    "delete": "\x7f",
}
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


def console() -> tuple[Console, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Console({}, out, err), out, err


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN)
def test_it_is_shown_as_a_sign_by_every_writer(character: str) -> None:
    text = f"a{character}b"
    said, out, err = console()
    said.write_line(text)
    said.write_line(text, "title")
    said.write_lines([text, text])
    said.write_line_in_pieces([text])
    said.write_styled([("plain", text)])
    said.notice(text)
    written = out.getvalue() + err.getvalue() + escape_line(text) + make_text([("plain", text)]).plain
    assert character not in written
    assert len(re.findall("a[\ufffd\u2400-\u2421]b", written)) == 9


def test_whatever_the_terminal_gets_unchanged_needs_no_sign() -> None:
    for code in range(sys.maxunicode + 1):
        text = f"{chr(code)} {chr(code)}"
        expected = escape_control_chars(text)
        assert (escape_for_terminal(text) == expected) or 0xD800 <= code < 0xE000, hex(code)


@pytest.mark.parametrize("character", [*HIDDEN.values(), "\U000e0fff", "\xad"])
def test_pages_and_agents_get_a_sign_for_it(character: str) -> None:
    text = f"a{character}b"
    assert character not in show_control_chars(text)
    assert len(show_control_chars(text)) >= len(text)
    assert character not in plain_for_agents(text)
    assert len(plain_for_agents(text)) == len(text)


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN)
def test_json_has_it_as_an_escape_and_says_the_same(character: str) -> None:
    said, out, _ = console()
    said.write_json(json.dumps({"text": f"a{character}b"}, ensure_ascii=False).encode())
    assert character not in out.getvalue()
    assert json.loads(out.getvalue()) == {"text": f"a{character}b"}


def test_a_flag_of_a_region_is_named_and_hides_nothing() -> None:
    assert escape_control_chars(f"in {SCOTLAND}!") == "in \U0001f3f4[gbsct]!"
    assert escape_line(SCOTLAND) == "\U0001f3f4[gbsct]"
    no_flag = SCOTLAND[:-1]
    assert escape_control_chars(no_flag) == "\U0001f3f4" + "\ufffd" * 5


def test_emoji_and_scripts_keep_their_joiners() -> None:
    assert escape_control_chars(FAMILY) == FAMILY
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert escape_control_chars(persian) == persian
    assert escape_control_chars("rm\u200d -rf") == "rm\ufffd -rf"


def test_selectors_of_variants_stand_behind_chinese_characters_only() -> None:
    assert escape_control_chars("\u845b\U000e0100") == "\u845b\U000e0100"
    assert escape_control_chars("x\U000e0100\U000e0101") == "x\ufffd\ufffd"


IGNORABLE = (
    "\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What Unicode calls Default_Ignorable_Code_Point: characters that are not shown."""


def test_no_character_that_is_not_shown_hides_behind_a_letter() -> None:
    each = re.findall(f"[{IGNORABLE}]", "".join(map(chr, range(0x110000))))
    assert len(each) > 4_000
    assert [f"U+{ord(one):04X}" for one in each if one in escape_control_chars(f"a{one}b")] == []


@pytest.mark.parametrize("carrier", ["\u00e9", "\U0001f600", "\u845b", "1"])
@pytest.mark.parametrize("pair", ["\u200c\u200d", "\ufe00\ufe0f", "\ufe0f\u200d", "\U000e0100\U000e0101"])
def test_joiners_and_selectors_carry_no_hidden_text(carrier: str, pair: str) -> None:
    shown = escape_control_chars(carrier + pair * 8 + "x")
    assert len(shown) == 18
    assert shown.count("\ufffd") >= 7


def test_a_symbol_may_choose_its_variant_once() -> None:
    for text in ("\u2764\ufe0f", "1\ufe0f\u20e3", "\U0001f3f3\ufe0f\u200d\U0001f308", "\u2714\ufe0f done"):
        assert escape_control_chars(text) == text
    assert escape_control_chars("a\ufe0f") == "a\ufffd"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe66"])
@pytest.mark.parametrize(
    "before",
    [
        "",
        " ",
        "   ",
        "\u00a0",
        "\u3000",
        "\u200b",
        "\ufeff",
        "\u2060",
        "\u061c",
        "\u180e",
        "\U000e0020",
        " \u200b\t ",
        "\x01",
    ],
    ids=lambda text: text.encode("unicode_escape").decode() or "nothing",
)
def test_no_cell_of_csv_becomes_a_formula(before: str, sign: str) -> None:
    text = f"{before}{sign}cmd|' /C calc'!A0"
    assert harmless_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "text", ["", " ", "\u200b", "x", " x", "1-1", "a=b", "'=1", "\u200bx", "\u7d50\u679c"]
)
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert harmless_cell(text) == text


def test_a_long_run_of_blanks_is_looked_through_once() -> None:
    blanks = " \u200b" * 1_000_000
    assert harmless_cell(blanks + "x") == blanks + "x"
    assert harmless_cell(blanks + "=x") == f"'{blanks}=x"
