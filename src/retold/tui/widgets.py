"""The list widget, which draws only its visible rows, and text for the screen: styles, escaping, wrapping."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.cells import cell_len, get_character_cell_size
from rich.console import Console
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from retold.export.text.formatting import escape_control_chars

T = TypeVar("T")
_CONSOLE = Console(legacy_windows=False)
"""Renders text into segments; nothing is written to it."""


def make_strip(text: Text, width: int, style: Style) -> Strip:
    """Return a line as Textual draws it, padded to the width."""
    line = Strip([segment for segment in text.render(_CONSOLE) if segment.text])
    return line.apply_style(style).adjust_cell_length(width, style)


class Rows(ScrollView, Generic[T], can_focus=True):
    """A list of items with a selected row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "leaf(-1)", show=False),
        Binding("pagedown", "leaf(1)", show=False),
        Binding("home,g", "choose(0)", show=False),
        Binding("end,G", "choose(-1)", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--chosen", "rows--row"}

    class Chosen(Message):
        """Another row was selected."""

    class Opened(Message):
        """A row was double-clicked."""

    def __init__(self, draw: Callable[[T, int], Text], *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._draw = draw
        self.items: Sequence[T] = ()
        self.place = 0

    @property
    def chosen(self) -> T | None:
        """The item in the selected row."""
        return self.items[self.place] if self.items else None

    @property
    def width(self) -> int:
        """The columns for text."""
        return self.scrollable_content_region.width

    def fill(self, items: Sequence[T], place: int = 0) -> None:
        """Replace the items, and select one."""
        self.items = items
        self.virtual_size = Size(1, len(items))
        self.place = max(0, min(place, len(items) - 1))
        self._reveal()

    def action_move(self, step: int) -> None:
        """Select the row `step` rows away."""
        self.choose(self.place + step)

    def action_leaf(self, step: int) -> None:
        """Select the row `step` pages away."""
        self.choose(self.place + step * max(1, self.size.height - 1))

    def action_choose(self, place: int) -> None:
        """Select a row; a negative place counts from the end."""
        self.choose(place if place >= 0 else len(self.items) + place)

    def choose(self, place: int) -> None:
        """Select the row nearest to a place."""
        new = max(0, min(place, len(self.items) - 1))
        if new != self.place:
            self.place = new
            self._reveal()

    def _reveal(self) -> None:
        height = max(1, self.size.height)
        top = round(self.scroll_offset.y)
        if not top <= self.place < top + height:
            self.scroll_to(y=self.place if self.place < top else self.place - height + 1, animate=False)
        self.refresh()
        self.post_message(self.Chosen())

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen; Textual calls it for visible lines."""
        place, width = y + round(self.scroll_offset.y), self.width
        style = self.get_component_rich_style("rows--chosen" if place == self.place else "rows--row")
        if place >= len(self.items):
            return Strip.blank(width, self.get_component_rich_style("rows--row"))
        return make_strip(self._draw(self.items[place], width), width, style)

    def on_click(self, event: events.Click) -> None:
        """Select the clicked row; a double click opens it."""
        self.choose(event.y + round(self.scroll_offset.y))
        if event.chain > 1:
            self.post_message(self.Opened())


STYLES = {
    "title": Style(bold=True),
    "faint": Style(dim=True),
    "you": Style(bold=True, color="cyan"),
    "agent": Style(bold=True, color="magenta"),
    "tool": Style(color="blue"),
    "bad": Style(color="red"),
    "match": Style(bold=True, color="yellow"),
    "bar": Style(color="cyan"),
    "plain": Style(),
}
"""Styles of `retold show` and of reports; the text says the same without them."""
_TAB = "    "
_UNSHOWABLE = {ord("\n"): "\u240a", 0x200C: "\ufffd", 0x200D: "\ufffd"}
"""Characters that are safe in a terminal but not in a row: line ends, and joiners, which change its width."""


def escape_line(text: str) -> str:
    """Return text on one line, with a visible sign for each hidden or control character."""
    if text.isascii() and text.isprintable():
        return text
    return escape_control_chars(text.replace("\t", _TAB)).translate(_UNSHOWABLE)


def make_text(pieces: Iterable[tuple[str, str]]) -> Text:
    """Return styled pieces as one line."""
    line = Text(no_wrap=True, end="")
    for style, text in pieces:
        line.append(escape_line(text), STYLES.get(style))
    return line


def wrap_line(line: str, width: int) -> Iterator[str]:
    """Yield an escaped line in rows that fit, broken between words if possible."""
    width = max(width, 2)
    if len(line) <= width and cell_len(line) <= width:
        yield line
        return
    start = 0
    while start < len(line):
        end = _fitting_end(line, start, width)
        if end < len(line):
            space = line.rfind(" ", start + width // 3, end + 1)
            end = space + 1 if space > start else end
        yield line[start:end].rstrip(" ")
        start = end


def _fitting_end(line: str, start: int, width: int) -> int:
    part = line[start : start + width]
    if part.isascii():
        return start + len(part)
    used = 0
    for place, character in enumerate(part):
        used += get_character_cell_size(character)
        if used > width:
            return start + max(place, 1)
    return start + len(part)
