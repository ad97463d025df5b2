"""A transcript that is read as far as it is looked at: pages are joined above and below while one scrolls."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from retold.tui.pages import ScreenRow, TranscriptPage
from retold.tui.rows import strip
from retold.tui.words import STYLES

_NARROWEST = 20
_NEAR = 2
"""Screens before the end at which more is asked for."""


class View(ScrollView, can_focus=True):
    """The rows that were read so far."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down"),
        Binding("k", "scroll_up"),
        Binding("space", "page_down"),
        Binding("home,g", "screen.go(-1)"),
        Binding("end,G", "screen.go(1)"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"pages--row"}

    class Wants(Message):
        """More is to be seen: from a place on, or up to it."""

        def __init__(self, *, is_above: bool) -> None:
            super().__init__()
            self.is_above = is_above

    def __init__(self) -> None:
        super().__init__(id="rows")
        self.page = TranscriptPage(0, 0, 0, [])
        self.needle = ""

    @property
    def width(self) -> int:
        """The columns that there are for text."""
        return max(_NARROWEST, self.scrollable_content_region.width)

    def show(self, page: TranscriptPage, at: tuple[int, int]) -> None:
        """Show a page instead of all others, from a line on."""
        self.page = page
        self._measure()
        self.go_to(at)

    def join(self, page: TranscriptPage) -> None:
        """Add a page that goes before or behind what is there."""
        here = self.page
        if page.first == here.end:
            self.page = TranscriptPage(here.first, page.end, page.total, here.rows + page.rows)
            self._measure()
        elif page.end == here.first:
            self.page = TranscriptPage(page.first, here.end, page.total, page.rows + here.rows)
            top = round(self.scroll_offset.y) + len(page.rows)
            self._measure()
            self.scroll_to(y=top, animate=False, force=True)
        self.refresh()

    def _measure(self) -> None:
        self.virtual_size = Size(1, len(self.page.rows))
        self.refresh()

    def row_of(self, at: tuple[int, int]) -> int | None:
        """Return the row in which a line of an entry begins, or the next one that is shown."""
        rows = self.page.rows
        return next((number for number, row in enumerate(rows) if (row.place, row.line) >= at), None)

    def has(self, place: int) -> bool:
        """Tell whether an entry was read."""
        return self.page.first <= max(place, 0) < self.page.end

    def go_to(self, at: tuple[int, int]) -> None:
        """Scroll so that a line is the first."""
        row = self.row_of(at)
        self.scroll_to(y=len(self.page.rows) if row is None else row, animate=False, force=True)
        self.refresh()

    @property
    def top(self) -> ScreenRow | None:
        """The first row that is seen and says something."""
        rows = self.page.rows[round(self.scroll_offset.y) :]
        return next((row for row in rows if row.text), rows[0] if rows else None)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for more before the end is reached."""
        super().watch_scroll_y(old_value, new_value)
        self.ask_for_more()

    def ask_for_more(self) -> None:
        """Ask for more where little is left to be seen."""
        height = self.size.height or 1
        top, page = self.scroll_offset.y, self.page
        if page.end < page.total and top + height * (1 + _NEAR) >= len(page.rows):
            self.post_message(self.Wants(is_above=False))
        if page.first > 0 and top < height:
            self.post_message(self.Wants(is_above=True))

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        width, style = self.width, self.get_component_rich_style("pages--row")
        place = y + round(self.scroll_offset.y)
        if place >= len(self.page.rows):
            return Strip.blank(width, style)
        row = self.page.rows[place]
        line = Text(no_wrap=True, end="").append(row.text, STYLES[row.style])
        if self.needle:
            _mark(line, row.text, self.needle)
        return strip(line, width, style)


def _mark(line: Text, text: str, needle: str) -> None:
    folded = text.casefold()
    if len(folded) != len(text):  # some letters are folded to two: places would be off
        return
    at = folded.find(needle)
    while at >= 0:
        line.stylize("reverse bold yellow", at, at + len(needle))
        at = folded.find(needle, at + len(needle))
