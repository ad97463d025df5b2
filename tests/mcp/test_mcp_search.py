"""`search_history`: words, letters and patterns, within reach, without secrets, in a bounded time."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from retold.mcp.service import NARROW, STOPPED, ServerSettings
from retold.mcp.tools.find_fix import FIND_FIX
from retold.mcp.tools.search_history import SEARCH_HISTORY
from support.gemini_home import ROOT, GeminiHome, call, gemini, user
from support.mcp_client import connect_person
from support.synced_archive import sync_archive

KEY = "AKIA" + "QZ7YXW2PLMKJ4RTB"
"""Invented, in the form of a key that everybody knows."""


def called(place: ServerSettings, tool: str, **arguments: Any) -> tuple[str, bool]:
    with connect_person(
        place.folder, place.here, is_all=place.is_all, is_redacted=place.is_redacted
    ) as agent:
        return agent.ask(tool, **arguments)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    folder = tmp_path_factory.mktemp("search")
    home = GeminiHome(folder / "ann")
    home.mark("almanac", ROOT)
    home.mark("tide", "/home/ann/dev/tide")
    shell = call("run_shell_command", {"command": f"deploy --key {KEY} harbour"}, 3)
    home.json(
        "almanac",
        1,
        1,
        [user("a", 1, "Where is the heron counted?"), gemini("b", 2, "In count.py.", [shell])],
    )
    home.json("tide", 2, 9, [user("c", 9, "Where is the heron drawn?")], root="/home/ann/dev/tide")
    home.json("almanac", 3, 11, [user("d", 11, "spin " + "a" * 40_000 + "!")])
    archive = sync_archive(folder / "retold", {"HOME": str(home.folder)})
    return ServerSettings(archive.folder, ROOT)


@pytest.mark.parametrize("mode", ["words", "letters", "regex"])
def test_each_way_of_looking_stays_within_reach(place: ServerSettings, mode: str) -> None:
    text, is_error = called(place, "search_history", query="heron", mode=mode)
    assert not is_error
    assert "heron counted" in text
    assert "> turn 1, user: Where is the heron counted?" in text
    assert "drawn" not in text
    everything = ServerSettings(place.folder, "/", is_all=True)
    assert "heron drawn" in called(everything, "search_history", query="heron", mode=mode)[0]


@pytest.mark.parametrize(
    "filters", [{"project": "tide"}, {"project": "/home/ann/dev/tide"}, {"query": "heron project:tide"}]
)
def test_no_filter_widens_the_reach(place: ServerSettings, filters: dict[str, str]) -> None:
    for mode in ("words",) if "query" in filters else ("words", "letters"):
        text, _ = called(place, "search_history", **({"query": "heron", "mode": mode} | filters))
        assert text == f"{SEARCH_HISTORY.empty_text} {NARROW}"


@pytest.mark.parametrize(("query", "mode"), [("deploy", "words"), ("deploy", "letters"), ("dep.oy", "regex")])
def test_a_snippet_has_no_secret_in_it(place: ServerSettings, query: str, mode: str) -> None:
    text, _ = called(place, "search_history", query=query, mode=mode)
    assert "deploy" in text
    assert "harbour" in text
    assert "AKIA" not in text
    shown, _ = called(
        ServerSettings(place.folder, ROOT, is_redacted=False), "search_history", query=query, mode=mode
    )
    assert KEY in shown


@pytest.mark.parametrize(("query", "mode"), [(KEY[:9], "letters"), ("AKIA[Q-Z]", "regex")])
def test_a_secret_cannot_be_guessed_letter_by_letter(place: ServerSettings, query: str, mode: str) -> None:
    text, _ = called(place, "search_history", query=query, mode=mode)
    assert text == f"{SEARCH_HISTORY.empty_text} {NARROW}"


@pytest.mark.parametrize("query", [KEY, f"{KEY[:8]}*", f'"key {KEY}"', f"{KEY[:8]}* OR zanzibar"])
def test_nor_word_by_word(place: ServerSettings, query: str) -> None:
    text, is_error = called(place, "search_history", query=query)
    assert (text, is_error) == (f"{SEARCH_HISTORY.empty_text} {NARROW}", False)
    assert (
        "deploy"
        in called(ServerSettings(place.folder, ROOT, is_redacted=False), "search_history", query=query)[0]
    )


def test_nor_by_a_question(place: ServerSettings) -> None:
    assert called(place, "find_fix", problem=KEY) == (f"{FIND_FIX.empty_text} {NARROW}", False)


@pytest.mark.parametrize("query", ["deploy(?!.*AKIAQ)", "(?<=key )AKIA", "deploy(.*AKIAQ)?(?(1)x|)"])
def test_a_pattern_does_not_look_around_for_secrets(place: ServerSettings, query: str) -> None:
    text, is_error = called(place, "search_history", query=query, mode="regex")
    assert is_error
    assert "could tell secrets" in text


def test_fields_alone_find_what_has_no_words(place: ServerSettings) -> None:
    assert "heron counted" in called(place, "search_history", query="tool:run_shell_command")[0]


def test_a_pattern_without_end_is_ended_and_said_to_be(place: ServerSettings) -> None:
    text, is_error = called(place, "search_history", query="(a+)+$", mode="regex")
    assert not is_error
    assert text.endswith(STOPPED)


def test_a_scan_of_a_broken_index_says_what_mends_it(place: ServerSettings, tmp_path: Path) -> None:
    # SQLite's files beside the archive are empty by now, and go when the last reader of another test closes it.
    shutil.copytree(place.folder, tmp_path / "retold", ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    for file in (tmp_path / "retold").rglob("text-*"):
        file.unlink()
    for mode in ("words", "letters"):
        text, is_error = called(
            ServerSettings(str(tmp_path / "retold"), ROOT), "search_history", query="heron", mode=mode
        )
        assert is_error
        assert "`retold sync --reindex`" in text


def test_what_means_nothing_is_refused_with_what_to_write(place: ServerSettings, tmp_path: Path) -> None:
    for arguments, words in (
        ({"query": '"heron'}, 'write "two words"'),
        ({"query": "["}, "no regular expression"),
        ({"query": "a{99999999999}"}, "no regular expression"),
        ({"query": "heron", "since": "the other day"}, "'the other day' is no date: write 2026-01-27"),
    ):
        mode = "regex" if arguments["query"] in ("[", "a{99999999999}") else "words"
        text, is_error = called(place, "search_history", mode=mode, **arguments)
        assert is_error
        assert words in text
    text, is_error = called(ServerSettings(str(tmp_path), ROOT), "search_history", query="heron")
    assert is_error
    assert "`retold sync`" in text
