"""A table in TOML settings: put in and taken out, and all around it keeps its bytes."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.agents.protocol import SettingsTable
from retold.maintenance.json_edit import MalformedSettings
from retold.maintenance.toml_edit import has_table, with_table, without_table

VALUE = {"command": 'C:\\Program Files\\"re" told\\retold.exe', "args": ["mcp", "é"], "env": {"A_B": "x y"}}
TABLE = SettingsTable(Path("config.toml"), ("mcp_servers", "retold"), VALUE)
OURS = '[mcp_servers.retold]\ncommand = "/bin/retold"\nargs = ["mcp"]\n'
TEXTS = {
    "nothing": "",
    "keys": 'model = "x"\n',
    "comments": "# first\n\n# last\n",
    "tables": '[a]\nb = 1\n\n[mcp_servers.other]\ncommand = "x"\n\n[[c]]\nd = [\n  [1],\n  [2],\n]\n',
    "an outer table": "[mcp_servers]\n",
    "a text that looks like a table": 'a = """\n[mcp_servers.retold]\ncommand = "retold"\n"""\n',
    "other line ends": 'model = "x"\r\n\r\n[a]\r\nb = 1\r\n',
    "blank lines at the end": 'model = "x"\n\n\n',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_put_in_says_so_and_is_taken_out_to_the_byte(text: str) -> None:
    after = with_table(text, TABLE)
    assert tomllib.loads(after)["mcp_servers"]["retold"] == VALUE
    assert after.startswith(text)
    assert has_table(after, TABLE)
    assert with_table(after, TABLE) == after
    assert ("\r\n" in text) == ("\r\n[mcp_servers.retold]\r\n" in after)
    assert without_table(after, TABLE) == text


def test_the_end_of_a_last_line_is_put_there() -> None:
    assert without_table(with_table('model = "x"', TABLE), TABLE) == 'model = "x"\n'
    assert with_table(None, TABLE).startswith("[mcp_servers.retold]\n")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a = 1\n\n{OURS}\n# of the next\n[b]\nc = 1\n", "a = 1\n\n# of the next\n[b]\nc = 1\n"),
        (f"{OURS}\n[mcp_servers.retold.tools.search_history]\napproval_mode = 'approve'\n\n[b]\n", "\n[b]\n"),
        ("[ mcp_servers . \"retold\" ] # x\ncommand = 'retold'\n# in it\nenabled = false\n[b]\n", "[b]\n"),
        (f"[b]\nc = 1\n\n[mcp_servers.retold.env]\nA = 'retold'\n\n{OURS}", "[b]\nc = 1\n"),
    ],
)
def test_what_others_have_written_around_it_stays(text: str, left: str) -> None:
    assert without_table(text, TABLE) == left


def test_an_older_one_is_renewed() -> None:
    after = with_table(f"a = 1\n\n{OURS}\n[b]\nc = 1\n", TABLE)
    assert tomllib.loads(after) == {"a": 1, "b": {"c": 1}, "mcp_servers": {"retold": VALUE}}


def test_what_somebody_has_put_into_it_is_no_reason_to_renew_it() -> None:
    after = with_table("a = 1\n", TABLE) + "startup_timeout_sec = 30\n"
    assert with_table(after, TABLE) == after


def test_what_starts_something_else_stays_and_is_no_place_for_ours() -> None:
    text = '[mcp_servers.retold]\ncommand = "else"\n'
    assert without_table(text, TABLE) == text
    with pytest.raises(MalformedSettings, match="starts something else"):
        with_table(text, TABLE)


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers.retold.command = 'retold'\n",
        "mcp_servers = { retold = { command = 'retold' } }\n",
        "[mcp_servers]\nretold = { command = 'retold' }\n",
        "[mcp_servers.retold]\ncommand = 'retold'\nargs = [\n  [\n['x']\n  ]\n]\n",
    ],
)
def test_what_cannot_be_cut_is_refused(text: str) -> None:
    with pytest.raises(MalformedSettings):
        without_table(text, TABLE)


def test_what_is_no_toml_is_refused() -> None:
    for act in (with_table, without_table, has_table):
        with pytest.raises(MalformedSettings):
            act("a = ", TABLE)


@given(st.text(alphabet="[]\"'=#.ab \n\r\t\\"), st.text(alphabet="[]\"'=#.ab \n\r\t\\"))
def test_whatever_stands_around_it_means_the_same(before: str, behind: str) -> None:
    text = f"{before}\n{OURS}{behind}"
    try:
        told = tomllib.loads(text)
        left = tomllib.loads(without_table(text, TABLE))
    except (MalformedSettings, tomllib.TOMLDecodeError):
        return
    if "retold" in told.get("mcp_servers", {}):
        del told["mcp_servers"]
        assert left == told
