"""The terminal browser itself."""

import os
from typing import ClassVar

from rich.terminal_theme import DIMMED_MONOKAI
from textual.app import App
from textual.binding import Binding, BindingType

from retold.tui.answers import ArchiveQueries
from retold.tui.home import HomeScreen

_FEW_COLOURS = ("standard", "windows")
"""Where there are sixteen, the terminal knows best what they look like."""


class Browser(App[str]):
    """All screens; ends with the key of a conversation that its agent is to go on with, or with nothing."""

    CSS_PATH = "browse.tcss"
    TITLE = "retold"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", priority=True)]

    def __init__(self, archive: ArchiveQueries, typed: str = "") -> None:
        super().__init__(
            ansi_color="NO_COLOR" in os.environ
        )  # else colours become greys, black on black where there are few
        self._archive, self._typed = archive, typed
        self.ansi_theme_dark = DIMMED_MONOKAI
        if self.no_color or self.console.color_system in _FEW_COLOURS:
            self.theme = "ansi-dark"

    def get_default_screen(self) -> HomeScreen:
        """Return the first screen."""
        return HomeScreen(self._archive, self._typed)
