"""A conversation as a file: the form is chosen, and secrets stay out unless they are asked for."""

import asyncio
import os
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from retold.archive.database import RetoldError
from retold.export.formats.registry import FORMATS
from retold.export.text.table import fitted
from retold.tui.answers import ArchiveQueries, exported
from retold.tui.box import Box
from retold.tui.rows import Rows
from retold.tui.words import plain, styled

_NAME = 11


class ExportDialog(Box):
    """The forms that there are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "write", priority=True),
        Binding("x", "toggle_secrets"),
    ]
    KEYS = "enter write it into this folder   x with or without secrets   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Export")
        self._archive, self._key, self.is_redacted = archive, key, True

    def inside(self) -> ComposeResult:
        """Make the list of forms."""
        yield Static(id="secrets")
        yield Rows[str](_form, id="forms")

    def on_mount(self) -> None:
        """Show them."""
        rows = self.query_one(Rows)
        rows.fill(list(FORMATS))
        rows.focus()
        self._tell_secrets()

    def _tell_secrets(self) -> None:
        told = "secrets are taken out" if self.is_redacted else "WITH all secrets in it, as they were said"
        style = "plain" if self.is_redacted else "bad"
        where = plain(self._archive.here)
        self.query_one("#secrets", Static).update(styled([(style, told), ("faint", f"; into {where}")]))

    def action_toggle_secrets(self) -> None:
        """Let secrets stay in, or take them out."""
        self.is_redacted = not self.is_redacted
        self._tell_secrets()

    def on_rows_opened(self) -> None:
        """Write by mouse."""
        self.action_write()

    def action_write(self) -> None:
        """Write the file; the box stays until it is there."""
        self.run_worker(self._write(str(self.query_one(Rows).chosen)), exclusive=True)

    async def _write(self, form: str) -> None:
        asked = (self._archive, self._key, form, self._archive.here)
        self.query_one("#secrets", Static).update(Text("writing …"))
        try:
            path, size = await asyncio.to_thread(exported, *asked, is_redacted=self.is_redacted)
        except (RetoldError, OSError) as error:
            self.query_one("#secrets", Static).update(styled([("bad", str(error))]))
            return
        self.dismiss(f"wrote {os.path.basename(path)} ({size:,} bytes) into {self._archive.here}")


def _form(form: str, width: int) -> Text:
    return styled([("plain", f"{form:<{_NAME}}"), ("faint", fitted(FORMATS[form].told, width - _NAME))])
