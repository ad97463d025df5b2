"""Drives the terminal browser with keys, and returns the screen as plain lines."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from textual.pilot import Pilot

from retold.search.quick_find import TitleMatch
from retold.tui.app import Browser
from retold.tui.data import ArchiveQueries
from retold.tui.widgets import Rows
from support.gemini_home import GeminiHome, at, call, gemini, user

SMALL, LARGE = (80, 24), (120, 40)
PATIENCE = 60.0
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ROOT, OTHER = "/home/ann/dev/almanac", "/home/ann/dev/tide-clock"
HOSTILE = (
    "[bold red]alarm[/bold red] [link=file:///etc/passwd]x[/link] [@click=app.quit]quit[/]",
    "\x1b[2J\x1b]0;owned\x07\x1b]52;c;aGk=\x07 clear the screen",
    "abc \u202egnp.exe \u2066isolate\u2069 \x9b31m hid\u200b\ufeff\u061c\u180e\U000e0041den end",
    "潮汐時計の文字盤が夜に読めない 🌊🌊👩‍👩‍👧 e\u0301",
    "very long " + "word " * 400,
)
"""Texts with markup, terminal codes or direction marks, which must have no effect, and texts hard to lay out."""
Play = Callable[[Pilot[str]], Awaitable[None]]


def drive(archive: ArchiveQueries, play: Play, size: tuple[int, int] = SMALL, typed: str = "") -> Browser:
    """Start the browser, run `play`, and return the browser."""

    async def run() -> Browser:
        app = Browser(archive, typed)
        app.animation_level = "none"  # scrolling is done at once, so a test need not wait for it
        async with app.run_test(size=size) as pilot:
            await wait_until_idle(pilot)
            await play(pilot)
        return app

    return asyncio.run(run())


async def wait_until_idle(pilot: Pilot[str]) -> None:
    """Wait until every worker is done and the screen is drawn."""
    for _ in range(3):
        await pilot.pause()
        while any(worker.is_running for worker in pilot.app.workers):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)
    await pilot.pause()


async def wait_until(pilot: Pilot[str], is_so: Callable[[], object]) -> None:
    """Wait until `is_so()` is true, where a worker that waits keeps the browser from being idle."""
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends, screen_text(pilot)
        await pilot.pause(0.01)


async def press(pilot: Pilot[str], *keys: str) -> None:
    """Press keys one after the other, and wait until the browser is idle."""
    for key in keys:
        await pilot.press(key)
    await wait_until_idle(pilot)


def screen_lines(pilot: Pilot[str]) -> list[str]:
    """Return the lines on the screen."""
    screen = pilot.app.screen
    strips = screen._compositor.render_strips()  # noqa: SLF001 - no public API returns plain lines
    bars = " ▁▂▃▄▅▆▇"  # including those of scroll bars
    return ["".join(segment.text for segment in strip).rstrip(bars) for strip in strips]


def screen_text(pilot: Pilot[str]) -> str:
    """Return the screen as one text."""
    return "\n".join(screen_lines(pilot))


def screen_after(archive: ArchiveQueries, *keys: str, size: tuple[int, int] = SMALL, typed: str = "") -> str:
    """Return the screen's text after some keys."""
    found: list[str] = []

    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, *keys)
        found.append(screen_text(pilot))

    drive(archive, play, size, typed)
    return found[0]


def listed_matches(pilot: Pilot[str]) -> list[TitleMatch]:
    """Return the conversations in the list."""
    return list(pilot.app.screen_stack[0].query_one("#found", Rows).items)


def listed_titles(pilot: Pilot[str]) -> list[str | None]:
    """Return the titles of the conversations in the list."""
    return [match.card.title for match in listed_matches(pilot)]


def write_small_home(folder: Path) -> GeminiHome:
    """Make a home with three conversations: a plain one, one with a rewound turn, and one with many turns."""
    home = GeminiHome(folder)
    home.mark("almanac", ROOT)
    home.mark("tide-clock", OTHER)
    shell = call("run_shell_command", {"command": "make tides"}, 3, status="error")
    home.lines(
        "almanac",
        1,
        1,
        [
            user("u1", 1, "Why does the moon table skip a day?"),
            {
                **gemini("g1", 2, "The migration of the table lost February 29.", [shell]),
                "thoughts": [{"subject": "Leap years", "description": "check 2024", "timestamp": at(2)}],
            },
            user("u2", 4, "Write it in COBOL instead"),
            gemini("g2", 5, "IDENTIFICATION DIVISION."),
            {"$rewindTo": "u2"},
            user("u3", 6, "Then mend the query"),
            gemini("g3", 7, "Mended: the quokka query now counts every day."),
        ],
    )
    home.lines(
        "tide-clock",
        2,
        20,
        [user("v1", 20, "Draw the dial of the tide clock"), gemini("h1", 21, "It has one hand.")],
        root=OTHER,
    )
    many = [
        step
        for number in range(120)
        for step in (
            user(f"w{number}", 30, f"Question {number}: how high is it?"),
            gemini(
                f"k{number}", 31, f"Answer {number}: {number} feet." + ("\nA walrus." if number == 90 else "")
            ),
        )
    ]
    home.lines("tide-clock", 3, 30, many, root=OTHER)
    return home


def write_hostile_home(folder: Path) -> GeminiHome:
    """Make a home whose titles, answers, commands and paths contain hostile texts."""
    home = GeminiHome(folder)
    home.mark("x", "/home/ann/[bold]dev[/bold]")
    for number, text in enumerate(HOSTILE):
        tool = call("run_shell_command", {"command": text}, 3)
        said = [user(f"u{number}", 1, text), gemini(f"g{number}", 2, f"{text}\n{text}", [tool])]
        home.lines("x", number + 1, number, said, root="/home/ann/[bold]dev[/bold]")
    return home
