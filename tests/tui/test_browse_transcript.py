"""The transcript: read as far as it is looked at, and never in the way of the next key."""

import threading
from typing import Any

import pytest
from textual.pilot import Pilot

from retold.tui.data import ArchiveQueries
from retold.tui.transcript import ENTRIES, TranscriptPage, TranscriptScreen, read_page
from support.terminal_browser import (
    drive,
    press,
    screen_after,
    screen_lines,
    screen_text,
    wait_until,
    wait_until_idle,
)

MOON = ("down", "down", "enter")


def screen(pilot: Pilot[str]) -> TranscriptScreen:
    found = pilot.app.screen
    assert isinstance(found, TranscriptScreen)
    return found


def test_what_was_taken_back_is_marked_in_a_word(small: ArchiveQueries) -> None:
    told = screen_after(small, *MOON)
    assert "┆ ── you (rewound) · 09:04:00\n ┆ Write it in COBOL instead" in told
    assert "\n ── you · 09:06:00\n Then mend the query" in told


def test_toggles(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *MOON)
        assert "Leap years" not in screen_text(pilot)
        await press(pilot, "t")
        assert "~ Leap years: check 2024" in screen_text(pilot)
        assert "thoughts" in screen_lines(pilot)[1]
        await press(pilot, "o")
        assert '"command": "make tides"' in screen_text(pilot)
        await press(pilot, "o")
        assert "run_shell_command" not in screen_text(pilot)
        await press(pilot, "o", "i")
        assert "run_shell_command" in screen_text(pilot)
        assert "notices" in screen_lines(pilot)[1]

    drive(small, play)


def test_both_views(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *MOON, "v")
        assert "only what its agent holds · tools by name · 4 entries, 2 turns" in screen_text(pilot)
        assert "COBOL" not in screen_text(pilot)
        await press(pilot, "]", "v")
        assert "everything said" in screen_text(pilot)
        assert "COBOL" in screen_text(pilot)

    drive(small, play)


def test_turns_are_jumped_to(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "enter", "]")
        assert screen_lines(pilot)[2].startswith(" ── you · 09:30:00")
        assert screen_lines(pilot)[3] == " Question 0: how high is it?"
        await press(pilot, "]")
        assert screen_lines(pilot)[3] == " Question 1: how high is it?"
        await press(pilot, "]", "]")
        assert screen_lines(pilot)[3] == " Question 3: how high is it?"
        await press(pilot, "[")
        assert screen_lines(pilot)[3] == " Question 2: how high is it?"

    drive(small, play)


@pytest.mark.slow
def test_it_is_read_page_by_page(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "enter")
        view = screen(pilot).view
        assert (view.page.first, view.page.end, view.page.total) == (0, ENTRIES, 240)
        await press(pilot, "end")
        assert "Answer 119: 119 feet." in screen_text(pilot)
        assert view.page.first > 0
        for _ in range(60):
            await press(pilot, "pageup")
        assert view.page.first == 0
        assert "Question 0: how high is it?" in screen_lines(pilot)[0]
        rows = [row.text for row in view.page.rows if row.text.startswith("Question")]
        assert rows == [f"Question {number}: how high is it?" for number in range(120)]
        await press(pilot, "G", "g")
        assert screen_lines(pilot)[2].startswith(" gemini:session-2026-03-01T09-30")

    drive(small, play)


def test_scrolling_down_joins_the_next_page(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "enter")
        for _ in range(40):
            await press(pilot, "space")
        assert "Answer 119" in screen_text(pilot)
        rows = [row.text for row in screen(pilot).view.page.rows if row.text.startswith("Question")]
        assert rows == [f"Question {number}: how high is it?" for number in range(120)]

    drive(small, play)


def test_the_outline_leads_to_a_turn(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "enter", "u", "end", "enter")
        assert "Question 119: how high is it?" in screen_text(pilot)
        await press(pilot, "u", "escape")
        assert "Question 119: how high is it?" in screen_text(pilot)

    drive(small, play)


def test_something_is_found_far_away_and_again(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "enter", "slash", *"WALRUS", "enter")
        assert screen_lines(pilot)[2] == " A walrus."
        await press(pilot, "slash", *["backspace"] * 6, *"feet", "enter")
        assert screen_lines(pilot)[2] == " Answer 91: 91 feet."
        await press(pilot, "n")
        assert screen_lines(pilot)[2] == " Answer 92: 92 feet."
        await press(pilot, "N", "N")
        assert screen_lines(pilot)[2] == " Answer 90: 90 feet."
        await press(pilot, "slash", *["backspace"] * 4, *"zebra", "enter")
        assert "not found in what is shown" in screen_text(pilot)

    drive(small, play)


def test_esc_closes_one_thing_after_the_other(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "enter", "slash", *"feet", "enter", "slash", "escape")
        assert screen(pilot).view.has_focus
        await press(pilot, "escape")
        assert screen(pilot).view.needle == ""
        await press(pilot, "escape")
        assert "the newest first" in screen_text(pilot)

    drive(small, play)


def test_a_hit_is_opened_where_it_is(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *"walrus")
        await press(pilot, "enter")
        assert "A walrus." in screen_text(pilot)
        assert "everything said" in screen_text(pilot)
        assert screen(pilot).view.needle == "walrus"

    drive(small, play)


def test_lines_are_broken_anew_when_the_window_changes(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *MOON)
        await pilot.resize_terminal(30, 40)
        await wait_until_idle(pilot)
        assert " The migration of the table\n lost February 29." in screen_text(pilot)

    drive(small, play)


def test_a_large_conversation_does_not_keep_the_screen_from_answering(
    small: ArchiveQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, started = threading.Event(), threading.Event()

    def slow(*asked: Any) -> TranscriptPage:
        started.set()
        gate.wait(120)
        return read_page(*asked)

    monkeypatch.setattr("retold.tui.transcript.read_page", slow)

    async def play(pilot: Pilot[str]) -> None:
        await pilot.press("enter")
        await wait_until(pilot, started.is_set)
        # The title is there, and the text is being read.
        await wait_until(pilot, lambda: "Question 0" in screen_lines(pilot)[0])
        await pilot.press("question_mark")
        await wait_until(pilot, lambda: "The transcript" in screen_text(pilot))
        await pilot.press("escape", "escape")
        await wait_until(pilot, lambda: "conversations, the newest first" in screen_text(pilot))
        await pilot.press("down")
        await pilot.pause()
        assert not gate.is_set()
        gate.set()

    drive(small, play)


def test_a_large_conversation_does_not_keep_the_list_from_moving(
    small: ArchiveQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    asked: list[str] = []

    def slow(_archive: ArchiveQueries, match: Any, _now: Any) -> list[list[tuple[str, str]]]:
        asked.append(match.card.title)
        gate.wait(120)
        return [[("plain", f"preview of {match.card.title}")]]

    monkeypatch.setattr("retold.tui.app.load_preview", slow)

    async def play(pilot: Pilot[str]) -> None:
        await pilot.press("down")
        await pilot.pause()
        await pilot.press("down")
        await wait_until(pilot, lambda: len(asked) > 1)
        assert "preview of" not in screen_text(pilot)
        gate.set()
        await wait_until_idle(pilot)
        assert "preview of Why does the moon" in screen_text(pilot)

    async def run_gated() -> None:
        from retold.tui.app import Browser  # noqa: PLC0415

        app = Browser(small)
        async with app.run_test(size=(80, 24)) as pilot:
            while not asked:
                await pilot.pause(0.01)
            await play(pilot)

    import asyncio  # noqa: PLC0415

    asyncio.run(run_gated())
