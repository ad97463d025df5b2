"""What people see of the browser: reviewed as prose, kept as snapshots."""

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from retold.tui.data import ArchiveQueries
from support.terminal_browser import LARGE, SMALL, drive, press, screen_after, screen_text

SIZES = pytest.mark.parametrize("size", [SMALL, LARGE], ids=lambda size: f"{size[0]}x{size[1]}")


@SIZES
@pytest.mark.parametrize(
    "keys",
    [
        (),
        ("tab", "down", "down"),
        ("down", "down", "enter"),
        ("down", "down", "enter", "t", "o"),
        ("down", "down", "enter", "v"),
        ("down", "down", "enter", "u"),
        ("ctrl+e",),
        ("ctrl+t",),
        ("f1",),
    ],
    ids=lambda keys: " ".join(keys) or "nothing",
)
def test_each_screen(
    small: ArchiveQueries, keys: tuple[str, ...], size: tuple[int, int], snapshot: SnapshotAssertion
) -> None:
    assert screen_after(small, *keys, size=size) == snapshot


@SIZES
@pytest.mark.parametrize("typed", ["quokka", "mooon", "nothing-like-it", '"unclosed'])
def test_what_is_found(
    small: ArchiveQueries, typed: str, size: tuple[int, int], snapshot: SnapshotAssertion
) -> None:
    assert screen_after(small, typed=typed, size=size) == snapshot


@pytest.mark.parametrize("size", [(40, 12), (20, 6), (200, 60)], ids=str)
def test_no_size_is_too_small(small: ArchiveQueries, size: tuple[int, int]) -> None:
    async def play(pilot: Pilot[str]) -> None:
        for keys in (
            ("down",),
            ("enter", "]", "u", "escape", "escape"),
            ("ctrl+e", "escape"),
            ("f1", "escape"),
        ):
            await press(pilot, *keys)
        assert len(screen_text(pilot).splitlines()) <= size[1]

    drive(small, play, size)
