"""The list: what is typed narrows it, by name at once and by the text a moment later."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from retold.search.results import SearchResult
from retold.tui import data
from retold.tui.app import Browser
from retold.tui.data import ArchiveQueries
from retold.tui.transcript import TranscriptScreen
from retold.tui.widgets import Rows
from support.terminal_browser import (
    OTHER,
    drive,
    listed_titles,
    press,
    screen_after,
    screen_lines,
    screen_text,
    wait_until,
    wait_until_idle,
)

MOON, DIAL, MANY = (
    "Why does the moon table skip a day?",
    "Draw the dial of the tide clock",
    "Question 0: how high is it?",
)


def found(archive: ArchiveQueries, *keys: str, typed: str = "") -> list[str | None]:
    """Return the titles in the list after some keys."""
    told: list[list[str | None]] = []

    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *keys)
        told.append(listed_titles(pilot))

    drive(archive, play, typed=typed)
    return told[0]


def test_an_empty_line_lists_the_newest_first(small: ArchiveQueries) -> None:
    assert found(small) == [MANY, DIAL, MOON]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("moon", [MOON]),
        ("mooon tabel", [MOON]),
        ("almanac", [MOON]),
        ("tide dial", [DIAL]),
        ("quokka", [MOON]),
        ("quok", [MOON]),
        ("walrus", [MANY]),
        ("project:tide-clock", [MANY, DIAL]),
        ("project:tide-clock hand", [DIAL]),
        ("is:rewound", [MOON]),
        ("tool:shell_exec is:error", [MOON]),
        ("moon -quokka", []),
        ("moon -walrus", [MOON]),
        ("nothing-like-it", []),
    ],
)
def test_what_is_typed_narrows_the_list(small: ArchiveQueries, typed: str, expected: list[str]) -> None:
    assert found(small, typed=typed) == expected


def test_names_answer_before_the_text_was_searched(
    small: ArchiveQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def slow(*_: Any) -> list[SearchResult]:
        gate.wait(120)
        return []

    monkeypatch.setattr("retold.tui.list_rows.search_text", slow)

    async def play(pilot: Pilot[str]) -> None:
        await pilot.press(*"moon")
        await wait_until(pilot, lambda: listed_titles(pilot) == [MOON])
        await wait_until(pilot, lambda: "searching" in screen_text(pilot))
        gate.set()
        await wait_until_idle(pilot)
        assert "searching" not in screen_text(pilot)

    drive(small, play)


def test_an_answer_that_comes_too_late_is_dropped(
    small: ArchiveQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, asked = threading.Event(), []

    def answered(archive: ArchiveQueries, scope: Any, typed: str) -> Sequence[SearchResult]:
        asked.append(typed)
        if typed == "walrus":
            first.wait(120)
        return data.search_text(archive, scope, typed)

    monkeypatch.setattr("retold.tui.list_rows.search_text", answered)

    async def play(pilot: Pilot[str]) -> None:
        await pilot.press(*"walrus")
        while "walrus" not in asked:  # noqa: ASYNC110 - a thread fills it
            await asyncio.sleep(0.01)
        await press(pilot, *["backspace"] * 6, *"quokka")
        first.set()
        await asyncio.sleep(0.1)
        await wait_until_idle(pilot)
        assert listed_titles(pilot) == [MOON]

    drive(small, play)


def test_rows_out_of_the_text_are_marked_and_say_where(small: ArchiveQueries) -> None:
    screen = screen_after(small, typed="quokka")
    assert "0 by name, 1 more in the text ≡" in screen
    assert "≡ Why does the moon" in screen
    assert "▸ agent: Mended: the quokka query" in screen


def test_a_query_that_means_nothing_is_told_in_a_line(small: ArchiveQueries) -> None:
    assert 'the quote at 0 is not closed: write "two words"' in screen_after(small, typed='"moon')
    assert "the OR at 5 has only one side" in screen_after(small, typed="moon OR")
    assert "the date at 0 is none" in screen_after(small, typed="after:someday")


def test_the_scope_rotates(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        assert screen_lines(pilot)[0].endswith(" all")
        await press(pilot, "ctrl+t")
        assert screen_lines(pilot)[0].endswith("this project")
        assert listed_titles(pilot) == [MANY, DIAL]
        await press(pilot, *"quokka")
        assert listed_titles(pilot) == []
        await press(pilot, "ctrl+t")
        assert screen_lines(pilot)[0].endswith(" all")
        assert listed_titles(pilot) == [MOON]

    drive(small, play)


def test_a_folder_that_is_no_project_is_a_scope_as_well(small: ArchiveQueries) -> None:
    above = msgspec.structs.replace(small, here="/home/ann/dev")

    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "f2")
        assert screen_lines(pilot)[0].endswith("this folder")
        assert listed_titles(pilot) == [MANY, DIAL, MOON]

    drive(above, play)


def test_filters_of_the_command_line_hold_for_names_and_text(small: ArchiveQueries) -> None:
    narrow = msgspec.structs.replace(small, filters=(("project", OTHER), ("role", "user")))
    assert found(narrow) == [MANY, DIAL]
    assert found(narrow, typed="quokka") == []
    assert found(narrow, typed="question") == [MANY]


def test_arrows_choose_while_one_types(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "down", "down")
        assert "2 rewound: told in the transcript" in screen_text(pilot)
        await press(pilot, "up")
        assert "It has one hand." in screen_text(pilot)
        await press(pilot, "pagedown")
        assert "2 rewound" in screen_text(pilot)
        await press(pilot, "pageup")
        assert "Answer 0" in screen_text(pilot)

    drive(small, play)


def test_letters_are_typed_in_the_line_and_are_keys_in_the_list(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *"dials")
        assert screen_lines(pilot)[0].startswith(" ❯ dials")  # noqa: RUF001 - a prompt
        await press(pilot, "escape", "tab", "j", "j")
        assert "2 rewound" in screen_text(pilot)
        await press(pilot, "g")
        assert "Answer 0" in screen_text(pilot)
        await press(pilot, "G", "t")
        assert "this project" in screen_lines(pilot)[0]
        await press(pilot, "slash", *"hand")
        assert listed_titles(pilot) == [DIAL]

    drive(small, play)


def test_the_mouse_may_do_the_same(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await pilot.click("#found", offset=(5, 1))
        await wait_until_idle(pilot)
        assert "It has one hand." in screen_text(pilot)
        await pilot.click("#found", offset=(5, 1), times=2)
        await wait_until_idle(pilot)
        assert isinstance(pilot.app.screen, TranscriptScreen)

    drive(small, play)


def test_esc_empties_the_line_and_then_quits(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *"moon", "escape")
        assert listed_titles(pilot) == [MANY, DIAL, MOON]
        assert pilot.app.is_running
        await pilot.press("escape")

    assert drive(small, play).return_code == 0


@pytest.mark.parametrize("keys", [("tab", "q"), ("ctrl+c",)], ids=" ".join)
def test_other_ways_out(small: ArchiveQueries, keys: tuple[str, ...]) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await pilot.press(*keys)
        await pilot.pause()
        assert not pilot.app.is_running

    drive(small, play)


def test_the_chosen_one_stays_when_answers_join(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await pilot.press(*"tide", "down")
        chosen = pilot.app.screen.query_one("#found", Rows).chosen
        await wait_until_idle(pilot)
        assert listed_titles(pilot)[:2] == [DIAL, MANY]
        assert chosen is not None
        assert chosen.card.title == MANY
        assert "Answer 0" in screen_text(pilot)

    drive(small, play)


def test_an_archive_that_cannot_be_read_is_told(small: ArchiveQueries, tmp_path: Any) -> None:
    (tmp_path / "archive.db").write_text("this is no database, but a text that is long enough")
    broken = msgspec.structs.replace(small, folder=str(tmp_path))
    assert "archive.db" in screen_after(broken, size=(300, 24))  # wide enough for any path


def test_what_goes_soon_is_told_first(demo: ArchiveQueries) -> None:
    assert "soon deleted, archived: Claude Code" in screen_after(demo)


def test_what_goes_soon_is_not_told_over_what_was_found_meanwhile(
    small: ArchiveQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def late(_: ArchiveQueries) -> str:
        is_asked.set()
        may_answer.wait(120)
        return "soon deleted"

    monkeypatch.setattr("retold.tui.app.deletion_warning", late)

    async def run() -> None:
        async with Browser(small).run_test(size=(80, 24)) as pilot:
            await asyncio.to_thread(is_asked.wait, 60)
            await pilot.press(*"walrus")
            may_answer.set()
            await wait_until_idle(pilot)
            assert "1 more in the text" in screen_text(pilot)
            assert "soon deleted" not in screen_text(pilot)

    asyncio.run(run())
