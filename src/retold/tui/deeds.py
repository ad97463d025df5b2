"""What can be done with a conversation, wherever it is looked at."""

from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen, ScreenResultType

from retold.tui.answers import ArchiveQueries
from retold.tui.exporting import ExportDialog
from retold.tui.help import Help
from retold.tui.resuming import RUN, Restore, Resume


class SessionActions(Screen[ScreenResultType]):
    """A screen on which one conversation is looked at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+e", "export", priority=True),
        Binding("e", "export"),
        Binding("ctrl+r", "resume", priority=True),
        Binding("r", "resume"),
        Binding("ctrl+o", "restore", priority=True),
        Binding("R", "restore"),
        Binding("f1", "help", priority=True),
        Binding("question_mark", "help"),
    ]
    archive: ArchiveQueries

    def key(self) -> str | None:
        """Return the key of the conversation."""
        raise NotImplementedError

    def tell(self, told: str | None) -> None:
        """Show what came of it."""
        raise NotImplementedError

    def action_export(self) -> None:
        """Write it as a file."""
        if (key := self.key()) is not None:
            self.app.push_screen(ExportDialog(self.archive, key), self.tell)

    def action_restore(self) -> None:
        """Give it back to its agent."""
        if (key := self.key()) is not None:
            self.app.push_screen(Restore(self.archive, key), self.tell)

    def action_resume(self) -> None:
        """Go on with it."""
        if (key := self.key()) is not None:
            self.app.push_screen(Resume(self.archive, key), partial(self._resumed, key))

    def _resumed(self, key: str, told: str | None) -> None:
        if told == RUN:
            self.app.exit(key)
        else:
            self.tell(told)

    def action_help(self) -> None:
        """Tell all keys."""
        self.app.push_screen(Help())
