"""Boxes over the screen: something to read, to choose or to confirm, and `esc` to leave."""

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from retold.archive.database import RetoldError
from retold.tui.answers import StyledLine
from retold.tui.words import styled


def text_of(lines: Sequence[StyledLine]) -> Text:
    """Return lines as one text, which wraps where it must."""
    joined = Text("\n", no_wrap=False, end="").join(styled(pieces) for pieces in lines)
    joined.no_wrap = False
    return joined


class Box(ModalScreen[str]):
    """A box with a title, and keys that are told below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "back", show=False)]
    KEYS: ClassVar[str] = "esc back"
    IS_LARGE: ClassVar[bool] = False

    def __init__(self, title: str) -> None:
        super().__init__()
        self.heading = title

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Vertical(id="box", classes="large" if self.IS_LARGE else None) as box:
            box.border_title = styled([("plain", self.heading)])  # a str would be read as markup
            yield from self.inside()
            yield Static(Text(self.KEYS, style="dim"), id="box-keys")

    def inside(self) -> ComposeResult:
        """Make what is in it."""
        with VerticalScroll():
            yield Static(Text("…"), id="box-text")

    def tell(self, lines: Sequence[StyledLine]) -> None:
        """Show something in it."""
        self.query_one("#box-text", Static).update(text_of(lines))

    async def told(self, ask: Callable[[], Awaitable[Sequence[StyledLine]]]) -> None:
        """Show an answer when it is there; what stands in its way is told in its place."""
        try:
            self.tell(await ask())
        except (RetoldError, OSError, ValueError) as error:
            self.tell([[("bad", str(error))]])

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss("")


class Report(Box):
    """Something to read that takes a while to find out."""

    IS_LARGE = True
    KEYS = "↑↓ scroll   esc back"

    def __init__(self, title: str, ask: Callable[[int], Awaitable[Sequence[StyledLine]]]) -> None:
        super().__init__(title)
        self._ask = ask

    def on_mount(self) -> None:
        """Ask."""
        self.query_one(VerticalScroll).focus()
        self.run_worker(self.told(lambda: self._ask(max(40, self.size.width - 6))), exclusive=True)
