"""Going on with a conversation, and writing one back: what would happen is shown first."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from retold.archive.database import RetoldError
from retold.maintenance.restore import RestorePlan
from retold.tui.answers import ArchiveQueries, StyledLine, restored, restoring, resuming
from retold.tui.box import Box
from retold.tui.threads import answer

RUN = "run"
"""What the box of a resume answers where the agent is to be started."""


class Resume(Box):
    """The command to go on with a conversation."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "run", priority=True),
        Binding("c", "copy"),
    ]
    KEYS = "enter run it here   c copy it   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Resume")
        self._archive, self._key, self.line = archive, key, ""

    def on_mount(self) -> None:
        """Ask for the command."""
        self.run_worker(self.told(self._plan))

    async def _plan(self) -> Sequence[StyledLine]:
        plan, self.line = await answer(lambda: resuming(self._archive, self._key))
        notes: list[StyledLine] = []
        if plan.additions:
            told = "Its agent has it no more, or would not resume it well: it is written back first, beside what is there."
            notes = [[("plain", told)], []]
        return [*notes, [("you", self.line)]]

    def action_copy(self) -> None:
        """Put the command where it can be pasted from; over SSH too, where the terminal allows it."""
        if self.line:
            self.app.copy_to_clipboard(self.line)
            self.dismiss("copied the command")

    def action_run(self) -> None:
        """Leave the browser, and let the agent go on."""
        if self.line:
            self.dismiss(RUN)


class Restore(Box):
    """What would be written so that the agent has it again."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "write")]
    KEYS = "y write it   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Restore")
        self._archive, self._key, self._plan_shown = archive, key, False

    def on_mount(self) -> None:
        """Ask what would be written."""
        self.run_worker(self.told(self._plan))

    async def _plan(self) -> Sequence[StyledLine]:
        plan = await answer(lambda: restoring(self._archive, self._key))
        if not plan.additions:
            return [[("plain", "Its agent has it: nothing to write.")]]
        self._plan_shown = True
        return [[("plain", "Would write, beside what is there:")], *_files(plan)]

    def action_write(self) -> None:
        """Write it, if that was shown."""
        if self._plan_shown:
            self._plan_shown = False
            self.run_worker(self._write(), exclusive=True)

    async def _write(self) -> None:
        self.tell([[("plain", "writing … (a running agent is waited for)")]])
        try:
            plan = await asyncio.to_thread(restored, self._archive, self._key)
        except (RetoldError, OSError) as error:
            self.tell([[("bad", str(error))]])
            return
        count = len(plan.additions)
        self.dismiss(f"restored: {count} file{'' if count == 1 else 's'} written; r resumes it")


def _files(plan: RestorePlan) -> list[StyledLine]:
    return [[("tool", f"  {addition.path}")] for addition in plan.additions]
