"""What can be done with a conversation: exported, resumed, restored, counted, looked after."""
# ruff: noqa: ASYNC240 - a test may wait for the disk

import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from retold.archive.database import RetoldError
from retold.export.formats.registry import FORMATS
from retold.tui.data import ArchiveQueries
from retold.tui.dialogs import ExportDialog
from retold.tui.widgets import Rows
from support.terminal_browser import drive, listed_matches, press, screen_after, screen_text, wait_until_idle


@pytest.fixture
def here(small: ArchiveQueries, tmp_path: Path) -> ArchiveQueries:
    """The same, looked at from a folder that can be written to."""
    return msgspec.structs.replace(small, here=str(tmp_path))


@pytest.mark.parametrize("form", list(FORMATS))
def test_every_form_is_written_into_this_folder(here: ArchiveQueries, form: str) -> None:
    place = list(FORMATS).index(form)

    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "ctrl+e", *["down"] * place, "enter")
        assert "wrote 2026-03-01-question-0" in screen_text(pilot)

    drive(here, play, size=(120, 40))
    (file,) = Path(here.here).iterdir()
    assert file.suffix == FORMATS[form].suffix
    assert file.stat().st_size > 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_nothing_is_written_over(here: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "ctrl+e", "enter")
        (first,) = Path(here.here).iterdir()
        first.write_text("mine")
        await press(pilot, "tab", "e", "enter")
        assert "-2.md" in screen_text(pilot)
        assert first.read_text() == "mine"

    drive(here, play, size=(120, 40))
    assert len(list(Path(here.here).iterdir())) == 2


def test_secrets_stay_out_unless_they_are_asked_for(
    here: ArchiveQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def written(*_: Any, is_redacted: bool) -> tuple[str, int]:
        asked.append(is_redacted)
        return "/x/y.md", 1

    monkeypatch.setattr("retold.tui.dialogs.export_to_folder", written)

    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "ctrl+e")
        assert "secrets are taken out" in screen_text(pilot)
        await press(pilot, "enter")
        await press(pilot, "ctrl+e", "x")
        assert "WITH all secrets in it" in screen_text(pilot)
        await press(pilot, "enter")

    drive(here, play)
    assert asked == [True, False]


def test_a_folder_that_cannot_be_written_to_is_told(here: ArchiveQueries) -> None:
    Path(here.here).rmdir()
    Path(here.here).write_text("a file")
    screen = screen_after(here, "ctrl+e", "enter")
    assert "Export" in screen
    assert "exists" in screen or "Not a directory" in screen


def test_the_command_to_resume_is_shown_and_copied(demo: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "ctrl+r")
        told = screen_text(pilot)
        assert "enter run it here" in told
        assert " --resume " in told or "resume" in told
        await press(pilot, "c")
        assert "copied the command" in screen_text(pilot)
        assert pilot.app.clipboard.startswith(("cd ", "retold restore"))
        assert pilot.app.is_running

    drive(demo, play)


def test_a_resume_ends_the_browser_with_the_conversation(demo: ArchiveQueries) -> None:
    keys: list[str] = []

    async def play(pilot: Pilot[str]) -> None:
        keys.append(listed_matches(pilot)[0].card.key)
        await press(pilot, "ctrl+r")
        await pilot.press("enter")
        await pilot.pause()

    assert drive(demo, play).return_value == keys[0]


def test_what_stands_in_the_way_of_a_resume_is_told(small: ArchiveQueries) -> None:
    screen = screen_after(small, "ctrl+r", "enter", "c")
    assert "the folder of its project is gone" in screen


def test_what_the_agent_has_is_not_written(demo: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        place = [one.card.agent for one in listed_matches(pilot)].index("claude")
        pilot.app.screen.query_one("#found", Rows).choose(place)
        await press(pilot, "ctrl+o")
        assert "nothing to write" in screen_text(pilot)
        await press(pilot, "y")
        assert "nothing to write" in screen_text(pilot)

    drive(demo, play)


def test_a_lost_conversation_is_restored(demo: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        (match, *_) = [
            one for one in listed_matches(pilot) if one.card.agent == "gemini" and one.card.kind == "main"
        ]
        (source, *_) = [one for one in match.card.sources if one.state == "present"]
        place = [one.card.key for one in listed_matches(pilot)].index(match.card.key)
        pilot.app.screen.query_one("#found", Rows).choose(place)
        held = Path(source.path)
        kept = held.read_bytes()
        held.unlink()
        try:
            await press(pilot, "ctrl+o")
            assert "Would write, beside what is there:" in screen_text(pilot)
            there = set(held.parent.rglob("*"))
            assert not held.exists()
            await press(pilot, "y")
            assert "restored: " in screen_text(pilot)
            new = set(held.parent.rglob("*")) - there
            assert new
            for path in sorted(new, reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
        finally:
            held.write_bytes(kept)

    drive(demo, play, size=(120, 40))


def test_stats_follow_the_scope_and_the_fields(demo: ArchiveQueries) -> None:
    whole, part = screen_after(demo, "ctrl+s"), screen_after(demo, "ctrl+s", typed="project:harbour")
    assert "Stats: all" in whole
    assert "sessions" in whole
    assert "model" in whole
    assert whole != part
    assert "Nothing to count." in screen_after(demo, "ctrl+t", "ctrl+s")


def test_the_doctor_tells_what_is_at_risk(demo: ArchiveQueries) -> None:
    assert "retold keep --install" in screen_after(demo, "ctrl+d")


def test_nothing_at_risk_is_told_too(small: ArchiveQueries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retold.tui.data.run_checks", lambda _: iter(()))
    assert "Nothing is at risk" in screen_after(small, "tab", "d")


def test_an_answer_that_fails_is_told_in_its_box(
    small: ArchiveQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RetoldError("the disk is gone")

    monkeypatch.setattr("retold.tui.app.health_lines", broken)
    monkeypatch.setattr("retold.tui.app.stats_lines", broken)
    assert "the disk is gone" in screen_after(small, "ctrl+d")
    assert "the disk is gone" in screen_after(small, "ctrl+s")


@pytest.mark.parametrize("keys", [("?",), ("f1",), ("tab", "?"), ("enter", "?")], ids=" ".join)
def test_help_is_never_far(small: ArchiveQueries, keys: tuple[str, ...]) -> None:
    screen = screen_after(small, *keys)
    assert "Keys" in screen
    assert "all conversations, this project, this folder" in screen


def test_a_question_mark_can_still_be_typed(small: ArchiveQueries) -> None:
    assert "❯ day?" in screen_after(small, *"day?")  # noqa: RUF001 - a prompt


@pytest.mark.parametrize("key", ["ctrl+e", "ctrl+r", "ctrl+o", "enter"])
def test_where_nothing_is_chosen_nothing_happens(small: ArchiveQueries, key: str) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, key)
        assert len(pilot.app.screen_stack) == 1

    drive(small, play, typed="nothing-like-it")


def test_every_box_is_left_by_esc(small: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        for key in ("ctrl+e", "ctrl+r", "ctrl+o", "ctrl+s", "ctrl+d", "f1"):
            await press(pilot, key)
            assert len(pilot.app.screen_stack) == 2, key
            await press(pilot, "escape")
            assert len(pilot.app.screen_stack) == 1, key

    drive(small, play)


def test_a_form_is_chosen_by_mouse(here: ArchiveQueries) -> None:
    async def play(pilot: Pilot[str]) -> None:
        await press(pilot, "ctrl+e")
        assert isinstance(pilot.app.screen, ExportDialog)
        await pilot.click("#forms", offset=(3, 2), times=2)
        await wait_until_idle(pilot)
        assert ".json (" in screen_text(pilot)

    drive(here, play, size=(120, 40))
