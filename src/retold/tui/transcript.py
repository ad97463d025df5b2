"""A conversation to read, on a screen of its own."""

from typing import ClassVar

import msgspec
from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from retold.archive.database import RetoldError
from retold.export.transcript import Tools, TranscriptOptions
from retold.model.session import View as Which
from retold.search.quick_find import SessionCard
from retold.search.results import MessageHit
from retold.sessions.pages import SessionTurn
from retold.tui.data import ArchiveQueries, answer
from retold.tui.dialogs import Outline, SessionActions
from retold.tui.list_rows import keys_line
from retold.tui.transcript_pages import (
    ENTRIES,
    ScreenRow,
    TranscriptPage,
    TranscriptReading,
    next_match,
    outline,
    page,
    same_place,
)
from retold.tui.widgets import STYLES, strip, styled

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


KEYS = "esc back|? help|[] turns|u outline|/ find|o tools|t thoughts|v view|i notices|e export|r resume|R restore"
BEGINNING = (-1, 0)
"""Before all entries stands what is known of the whole."""
HEADING = 1
"""The line of an entry that says whose it is; an empty one stands before it."""
_LAST = 1 << 30
_NEXT: dict[Tools, Tools] = {"names": "full", "full": "none", "none": "names"}
_TOOLS = {"names": "tools by name", "full": "tools with output", "none": "no tools"}
_VIEWS = {"full": "everything said", "active": "only what its agent holds"}


class TranscriptScreen(SessionActions[str]):
    """The transcript, a page at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", priority=True),
        Binding("q", "leave"),
        Binding("t", "thoughts"),
        Binding("i", "notices"),
        Binding("o", "tools"),
        Binding("v", "view"),
        Binding("left_square_bracket", "turn(-1)"),
        Binding("right_square_bracket", "turn(1)"),
        Binding("u", "outline"),
        Binding("slash", "find"),
        Binding("n", "next(1)"),
        Binding("N", "next(-1)"),
    ]

    def __init__(self, archive: ArchiveQueries, card: SessionCard, hit: MessageHit | None = None) -> None:
        super().__init__()
        self.archive = archive
        self.reading, self._heading = (
            TranscriptReading(archive, card.key),
            card.title or "(no prompt is left)",
        )
        self._start = BEGINNING if hit is None else (max(0, hit.seq), HEADING)
        self._needle = "" if hit is None or not hit.matches else hit.snippet[slice(*hit.matches[0])]
        self.turns: list[SessionTurn] = []
        self._found: tuple[int, int] | None = None
        self._said = ""
        self._is_joining = False

    def compose(self) -> ComposeResult:
        """Make the screen."""
        yield Static(styled([("title", self._heading)]), id="name")
        yield Static(id="told")
        yield View()
        yield Input(id="find", placeholder="find in this conversation")
        yield Static(id="keys", classes="keys")

    @property
    def view(self) -> View:
        """The rows."""
        return self.query_one(View)

    def on_mount(self) -> None:
        """Begin."""
        self.view.focus()
        self.view.needle = self._needle.casefold()
        self.read_turns()

    def on_resize(self, event: events.Resize) -> None:
        """Break lines anew, from what is read now."""
        self.query_one("#keys", Static).update(keys_line(KEYS, event.size.width - 2))
        self.call_after_refresh(self._read_again)

    def _read_again(self) -> None:
        top = self.view.top
        at = self._start if top is None else (top.place, top.line)
        self.load(max(at[0], 0), at)

    @work(exclusive=True, group="turns")
    async def read_turns(self) -> None:
        """Learn the turns."""
        try:
            self.turns = await answer(lambda: outline(self.reading))
        except (RetoldError, OSError) as error:
            self.tell(str(error))
        self._draw_state()

    @work(exclusive=True, group="page")
    async def load(self, first: int, at: tuple[int, int]) -> None:
        """Show what stands at a place; the end of it where there is no such place."""
        self._is_joining = False
        begins = max(0, first - ENTRIES // 4) if first else 0
        self.view.show(await self._page(begins, begins + ENTRIES if first else None), at)
        self._draw_state()
        self.view.ask_for_more()

    async def _page(self, first: int, until: int | None = None) -> TranscriptPage:
        reading, width = self.reading, self.view.width
        try:
            return await answer(lambda: page(reading, first, width, until))
        except (RetoldError, OSError) as error:
            return TranscriptPage(0, 0, 0, [ScreenRow("bad", str(error), 0, 0)])

    def on_view_wants(self, event: View.Wants) -> None:
        """Read on."""
        if not self._is_joining:
            self._is_joining = True
            self.join_page(is_above=event.is_above)

    @work(exclusive=True, group="page")
    async def join_page(self, *, is_above: bool) -> None:
        """Add the next page, or the one before."""
        here = self.view.page
        if is_above:
            first = max(0, here.first - ENTRIES)
            new = await self._page(first, here.first)
        else:
            new = await self._page(here.end)
        self._is_joining = False
        self.view.join(new)
        self.view.ask_for_more()

    def _draw_state(self) -> None:
        wanted, page_read = self.reading.wanted, self.view.page
        told = [_VIEWS[self.reading.view], _TOOLS[wanted.tools]]
        told += [name for name in ("thoughts", "notices") if getattr(wanted, name)]
        told += [f"{page_read.total:,} entries, {len(self.turns):,} turns"]
        style, text = ("match", self._said) if self._said else ("faint", " · ".join(told))
        self.query_one("#told", Static).update(styled([(style, text)]))

    def key(self) -> str:
        """Return the key of what is read."""
        return self.reading.key

    def tell(self, told: str | None) -> None:
        """Say something in place of what is shown how."""
        self._said = told or ""
        self._draw_state()

    def _want(self, wanted: TranscriptOptions) -> None:
        self.reading = msgspec.structs.replace(self.reading, wanted=wanted)
        self._said, self._found = "", None
        self._read_again()

    def action_thoughts(self) -> None:
        """Show what the model thought, or hide it."""
        self._want(self.reading.wanted._replace(thoughts=not self.reading.wanted.thoughts))

    def action_notices(self) -> None:
        """Show notices, or hide them."""
        self._want(self.reading.wanted._replace(notices=not self.reading.wanted.notices))

    def action_tools(self) -> None:
        """Show more of tools, or less."""
        wanted = self.reading.wanted
        self._want(wanted._replace(tools=_NEXT[wanted.tools]))

    @work(exclusive=True, group="page")
    async def action_view(self) -> None:
        """Show everything that was said, or what its agent holds."""
        other: Which = "active" if self.reading.view == "full" else "full"
        top, reading = self.view.top, self.reading
        place = await answer(lambda: same_place(reading, other, top.place if top else 0))
        self.reading = msgspec.structs.replace(reading, view=other)
        self._said, self._found = "", None
        self.read_turns()
        self.load(place, (place, HEADING))

    def action_turn(self, step: int) -> None:
        """Go to the next turn, or the one before."""
        top = self.view.top
        here = top.place if top else 0
        places = [turn.place for turn in self.turns]
        after = [place for place in places if (place > here if step > 0 else place < here)]
        if after:
            self.go_to((after[0] if step > 0 else after[-1], HEADING))

    def go_to(self, at: tuple[int, int]) -> None:
        """Go to a line, which may have to be read first."""
        self._said = ""
        if self.view.has(at[0]):
            self.view.go_to(at)
            self._draw_state()
        else:
            self.load(at[0], at)

    def action_go(self, end: int) -> None:
        """Go to the beginning, or to the end."""
        self.go_to(BEGINNING if end < 0 else (max(0, self.view.page.total - 1), _LAST))

    def action_outline(self) -> None:
        """Show all turns."""
        top = self.view.top
        self.app.push_screen(Outline(self.turns, top.place if top else 0), self._outlined)

    def _outlined(self, place: str | None) -> None:
        if place:
            self.go_to((int(place), HEADING))

    def action_find(self) -> None:
        """Ask what to find."""
        find = self.query_one("#find", Input)
        find.add_class("open")
        find.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Find it."""
        self._close_find()
        self.view.needle = event.value.casefold()
        self._found = None
        self.action_next(1)

    def _close_find(self) -> None:
        self.query_one("#find", Input).remove_class("open")
        self.view.focus()

    @work(exclusive=True, group="find")
    async def action_next(self, step: int) -> None:
        """Go to the next place where it stands, or the one before."""
        words, top, reading = self.view.needle, self.view.top, self.reading
        if not words:
            return
        start = self._found or ((top.place, top.line - 1) if top else (-1, 0))
        found = await answer(lambda: next_match(reading, words, start, step))
        if found is None:
            self.tell("not found in what is shown; o shows more of tools, t thoughts")
            return
        self._found = found
        self.go_to(found)

    def action_back(self) -> None:
        """Close what is open, then the transcript."""
        if self.query_one("#find", Input).has_class("open"):
            self._close_find()
        elif self.view.needle:
            self.view.needle, self._found = "", None
            self.view.refresh()
            self.tell("")
        else:
            self.dismiss("")

    def action_leave(self) -> None:
        """Go back to the list."""
        self.dismiss("")
