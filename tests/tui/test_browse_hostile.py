"""Transcripts that want to steer the terminal, or the browser in it, are only shown."""

import re

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from retold.export.text.formatting import StyledLine
from retold.tui.data import ArchiveQueries
from retold.tui.dialogs import ReportDialog
from retold.tui.widgets import escape_line, make_text, wrap_line
from support.terminal_browser import (
    HOSTILE,
    LARGE,
    SMALL,
    drive,
    listed_matches,
    press,
    screen_lines,
    screen_text,
)

pytestmark = pytest.mark.slow

CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
def test_nothing_hostile_reaches_any_screen(hostile: ArchiveQueries, size: tuple[int, int]) -> None:
    async def look(pilot: Pilot[str]) -> None:
        told = screen_text(pilot)
        assert not CONTROLS.search(told), told
        assert all(cell_len(line) <= size[0] for line in screen_lines(pilot))
        assert pilot.app.is_running

    async def play(pilot: Pilot[str]) -> None:
        assert len(listed_matches(pilot)) == len(HOSTILE)
        for number in range(len(HOSTILE)):
            await look(pilot)
            for keys in (("enter",), ("o",), ("i",), ("u",), ("escape",), ("v",), ("escape",)):
                await press(pilot, *keys)
                await look(pilot)
            for keys in (("ctrl+e",), ("escape",), ("ctrl+r",), ("escape",), ("down",)):
                await press(pilot, *keys)
                await look(pilot)
            assert number < len(listed_matches(pilot))

    drive(hostile, play, size)


def test_markup_is_shown_as_it_was_typed(hostile: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *"alarm")
        assert "[bold red]alarm[/bold red]" in screen_text(pilot)
        await press(pilot, "enter")
        assert (
            "[bold red]alarm[/bold red] [link=file:///etc/passwd]x[/link] [@click=app.quit]quit[/]"
            in screen_text(pilot)
        )
        styles = [
            segment.style
            for strip in pilot.app.screen._compositor.render_strips()  # noqa: SLF001 - nothing public gives them
            for segment in strip
        ]
        assert not any(style and (style.link or style.meta.get("@click")) for style in styles)

    drive(hostile, play, LARGE)


def test_what_is_typed_is_not_markup_either(hostile: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *'"[bold][/')
        assert '"[bold][/' in screen_lines(pilot)[0]
        assert "is not closed" in screen_text(pilot)

    drive(hostile, play)


def test_the_title_of_a_box_is_not_markup_and_hides_nothing(hostile: ArchiveQueries) -> None:
    async def nothing(_width: int) -> list[StyledLine]:
        return []

    async def play(pilot: Pilot[str]) -> None:
        pilot.app.push_screen(ReportDialog("Stats: [red]tide\u200b\U000e0041[/red]", nothing))
        await press(pilot)
        assert "Stats: [red]tide\ufffd\ufffd[/red]" in screen_text(pilot)

    drive(hostile, play)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_wrapped_rows_fit_and_lose_nothing_but_blanks(text: str) -> None:
    for width in (2, 7, 20, 80):
        rows = list(wrap_line(escape_line(text), width))
        assert all(cell_len(row) <= width for row in rows)
        assert "".join(rows).replace(" ", "") == escape_line(text).replace(" ", "")


def test_controls_become_pictures() -> None:
    assert escape_line("a\x1b[2J\x07\x7f\x9b\u202e\tb\n") == "a\u241b[2J\u2407\u2421\ufffd\ufffd    b\u240a"
    assert make_text([("plain", "[red]x[/red]")]).plain == "[red]x[/red]"


def test_a_line_of_megabytes_is_wrapped_without_trouble() -> None:
    rows = list(wrap_line("ä" * 2_000_000, 80))
    assert len(rows) == 25_000
    assert list(wrap_line("", 80)) == [""]
