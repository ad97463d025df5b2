"""A list of any length, of which only the rows that are seen are drawn."""

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

from retold.export.text.escape import safe_for_terminal

T = TypeVar("T")
_CONSOLE = Console(legacy_windows=False)
"""Text is taken apart into styled pieces with it; nothing is written to it."""


def strip(text: Text, width: int, style: Style) -> Strip:
    """Return a line as Textual draws it, as wide as there is room."""
    line = Strip([segment for segment in text.render(_CONSOLE) if segment.text])
    return line.apply_style(style).adjust_cell_length(width, style)


class Rows(ScrollView, Generic[T], can_focus=True):
    """Rows of which one is chosen."""

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
        """Another row was chosen."""

    class Opened(Message):
        """A row was pressed twice."""

    def __init__(self, draw: Callable[[T, int], Text], *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._draw = draw
        self.things: Sequence[T] = ()
        self.place = 0

    @property
    def chosen(self) -> T | None:
        """The thing in the chosen row."""
        return self.things[self.place] if self.things else None

    @property
    def width(self) -> int:
        """The columns that there are for text."""
        return self.scrollable_content_region.width

    def fill(self, things: Sequence[T], place: int = 0) -> None:
        """Show other rows."""
        self.things = things
        self.virtual_size = Size(1, len(things))
        self.place = max(0, min(place, len(things) - 1))
        self._reveal()

    def action_move(self, step: int) -> None:
        """Choose the next row, or the one before."""
        self.choose(self.place + step)

    def action_leaf(self, step: int) -> None:
        """Choose the row a page away."""
        self.choose(self.place + step * max(1, self.size.height - 1))

    def action_choose(self, place: int) -> None:
        """Choose a row; the last where it is counted from the end."""
        self.choose(place if place >= 0 else len(self.things) + place)

    def choose(self, place: int) -> None:
        """Choose a row, as near as there is one."""
        new = max(0, min(place, len(self.things) - 1))
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
        """Return a line of the screen."""
        place, width = y + round(self.scroll_offset.y), self.width
        style = self.get_component_rich_style("rows--chosen" if place == self.place else "rows--row")
        if place >= len(self.things):
            return Strip.blank(width, self.get_component_rich_style("rows--row"))
        return strip(self._draw(self.things[place], width), width, style)

    def on_click(self, event: events.Click) -> None:
        """Choose by mouse; twice opens."""
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
"""The styles of `retold show` and of reports; none of them carries a meaning that the words do not."""
_TAB = "    "
_ALSO = {ord("\n"): "\u240a", 0x200C: "\ufffd", 0x200D: "\ufffd"}
"""What the guard for terminals lets pass and a screen cannot show: line ends, and joiners, which change how wide a row is."""


def plain(text: str) -> str:
    """Return text on one line in which every hidden or steering character is a visible sign."""
    if text.isascii() and text.isprintable():
        return text
    return safe_for_terminal(text.replace("\t", _TAB)).translate(_ALSO)


def styled(pieces: Iterable[tuple[str, str]]) -> Text:
    """Return a line in pieces, each with its style."""
    line = Text(no_wrap=True, end="")
    for style, text in pieces:
        line.append(plain(text), STYLES.get(style))
    return line


def wrapped(line: str, width: int) -> Iterator[str]:
    """Yield a line that is already plain in rows that fit; between words where there are some."""
    width = max(width, 2)
    if len(line) <= width and cell_len(line) <= width:
        yield line
        return
    start = 0
    while start < len(line):
        end = _fitting(line, start, width)
        if end < len(line):
            space = line.rfind(" ", start + width // 3, end + 1)
            end = space + 1 if space > start else end
        yield line[start:end].rstrip(" ")
        start = end


def _fitting(line: str, start: int, width: int) -> int:
    part = line[start : start + width]
    if part.isascii():
        return start + len(part)
    used = 0
    for place, character in enumerate(part):
        used += get_character_cell_size(character)
        if used > width:
            return start + max(place, 1)
    return start + len(part)
