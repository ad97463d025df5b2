"""The turns of a conversation, to jump by."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from retold.export.text.table import clean, fitted
from retold.export.text.times import DAY, minute
from retold.sessions.pages import SessionTurn
from retold.tui.box import Box
from retold.tui.rows import Rows
from retold.tui.words import styled


class Outline(Box):
    """What a person said, a line each, with how much was done about it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "jump", priority=True)]
    KEYS = "enter jump there   esc back"
    IS_LARGE = True

    def __init__(self, turns: list[SessionTurn], here: int) -> None:
        super().__init__("Turns")
        self._turns, self._here = turns, here

    def inside(self) -> ComposeResult:
        """Make the list."""
        yield Rows[SessionTurn](_row, id="turns")

    def on_mount(self) -> None:
        """Show it, from where one is."""
        before = [number for number, turn in enumerate(self._turns) if turn.place <= self._here]
        rows = self.query_one(Rows)
        rows.fill(self._turns, before[-1] if before else 0)
        rows.focus()

    def on_rows_opened(self) -> None:
        """Jump by mouse."""
        self.action_jump()

    def action_jump(self) -> None:
        """Answer with the place."""
        chosen = self.query_one(Rows).chosen
        self.dismiss(str(chosen.place) if chosen else "")


def _row(turn: SessionTurn, width: int) -> Text:
    at = f"{minute(turn.at)[DAY + 1 :]} " if turn.at else ""
    fate = "" if turn.fate == "live" else f"({turn.fate}) "
    failed = f", {turn.errors} failed" if turn.errors else ""
    done = f"  {turn.calls} call{'' if turn.calls == 1 else 's'}{failed}" if turn.calls else ""
    room = max(8, width - len(at) - len(fate) - len(done))
    said = fitted(clean(turn.text), room)
    return styled([("faint", at), ("match", fate), ("plain", said), ("faint", done)])
