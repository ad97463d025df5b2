"""The transcript of a session: its pages of rows, the view that scrolls through them, and the screen."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

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
from retold.export.transcript import Tools, TranscriptLine, TranscriptOptions, format_entries, format_heading
from retold.model.session import View
from retold.search.quick_find import SessionCard
from retold.search.results import MessageHit
from retold.sessions.load import load_session
from retold.sessions.slices import TimelineSlice, load_slices, load_turns
from retold.sessions.timelines import SessionTurn
from retold.tui.data import ArchiveQueries, run_in_thread
from retold.tui.dialogs import OutlineDialog, SessionActions
from retold.tui.list_rows import GUTTER, keys_line
from retold.tui.widgets import STYLES, escape_line, make_strip, make_text, wrap_line

ENTRIES = 80
"""Entries of a page."""

LinePlace = tuple[int, int]
"""The place of an entry in the timeline, and the number of a line of it."""


class TranscriptReading(msgspec.Struct, frozen=True):
    """The session that is read, its view, and the options of its transcript."""

    archive: ArchiveQueries
    key: str
    view: View = "full"
    options: TranscriptOptions = TranscriptOptions()


class ScreenRow(NamedTuple):
    """A row of the screen: its style and text, the entry it belongs to, and the line of that entry."""

    style: str
    text: str
    place: int
    line: int


class TranscriptPage(NamedTuple):
    """Rows of the entries from `first` to before `end`, of `total`."""

    first: int
    end: int
    total: int
    rows: list[ScreenRow]


def read_page(
    reading: TranscriptReading, first: int, columns: int, until: int | None = None
) -> TranscriptPage:
    """Return the entries from `first` to before `until`; the page of the first entry begins with the facts of the session."""
    rows: list[ScreenRow] = []
    first = place = max(first, 0)
    total = 0
    for part in _slices(reading, first, ENTRIES if until is None else until - first):
        rows += _facts(part, columns) if part.first == 0 else ()
        for seq, lines in format_entries(part.session, reading.options):
            is_live = part.session.timeline[seq].fate == "live"
            rows += _rows(lines, part.first + seq, columns, is_live=is_live)
        place, total = part.first + len(part.session.timeline), part.total
        if until is None or place >= until:
            break
    if not total and not rows:
        return TranscriptPage(
            0, 0, 0, [ScreenRow("bad", "This conversation is no longer in the archive.", 0, 0)]
        )
    return TranscriptPage(min(first, place), place, total, rows)


def _slices(reading: TranscriptReading, first: int, count: int) -> Iterator[TimelineSlice]:
    with reading.archive.open() as store:
        yield from load_slices(store, reading.key, count, first, reading.view)


def _facts(part: TimelineSlice, columns: int) -> Iterator[ScreenRow]:
    title, *facts = format_heading(part.session)
    # The screen has the title in its first line; one that is too long for it stands here as well.
    return _rows(facts if len(title.text) <= columns else [title, *facts], -1, columns, is_live=True)


def _rows(lines: Iterable[TranscriptLine], place: int, columns: int, *, is_live: bool) -> Iterator[ScreenRow]:
    gutter = "" if is_live else GUTTER
    for number, line in enumerate(lines):
        for row in wrap_line(escape_line(line.text), columns - len(gutter)):
            style = line.style if is_live or line.style != "plain" else "faint"
            yield ScreenRow(style, (gutter if row or number else "") + row, place, number)


def load_outline(reading: TranscriptReading) -> list[SessionTurn]:
    """Return the turns of a session in its view."""
    with reading.archive.open() as store:
        return list(load_turns(store, reading.key, reading.view))


def place_in_view(reading: TranscriptReading, other: View, place: int) -> int:
    """Return the place of an entry in another view; if it is not there, that of the nearest entry before."""
    with reading.archive.open() as store:
        here, there = (load_session(store, reading.key, view) for view in (reading.view, other))
    if here is None or there is None:
        return 0
    places = {entry.id: number for number, entry in enumerate(there.timeline) if entry.id is not None}
    before = reversed(here.timeline[: place + 1])
    return next((places[entry.id] for entry in before if entry.id in places), 0)


def find_match(reading: TranscriptReading, words: str, start: LinePlace, step: int) -> LinePlace | None:
    """Return the next line with `words` after `start`, or before it for a negative step; the search wraps around."""
    needle = words.casefold()
    matches = [place for place, text in _all_lines(reading) if needle in text.casefold()]
    if not matches:
        return None
    after = [place for place in matches if (place > start if step > 0 else place < start)]
    return (after or matches)[0 if step > 0 else -1]


def _all_lines(reading: TranscriptReading) -> Iterator[tuple[LinePlace, str]]:
    for part in _slices(reading, 0, 5 * ENTRIES):
        for seq, lines in format_entries(part.session, reading.options):
            yield from (((part.first + seq, line), text) for line, (_, text) in enumerate(lines))


_NARROWEST = 20
_NEAR = 2
"""Screens before the end at which the next page is requested."""


class TranscriptView(ScrollView, can_focus=True):
    """The rows that have been read, in a view that scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down"),
        Binding("k", "scroll_up"),
        Binding("space", "page_down"),
        Binding("home,g", "screen.go(-1)"),
        Binding("end,G", "screen.go(1)"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"pages--row"}

    class NeedsMore(Message):
        """The view is near the end of its rows, above or below."""

        def __init__(self, *, is_above: bool) -> None:
            super().__init__()
            self.is_above = is_above

    def __init__(self) -> None:
        super().__init__(id="rows")
        self.page = TranscriptPage(0, 0, 0, [])
        self.needle = ""

    @property
    def width(self) -> int:
        """The columns for text."""
        return max(_NARROWEST, self.scrollable_content_region.width)

    def show(self, page: TranscriptPage, at: LinePlace) -> None:
        """Replace all rows by a page, scrolled to a line."""
        self.page = page
        self._measure()
        self.go_to(at)

    def join(self, page: TranscriptPage) -> None:
        """Add a page before or behind the rows."""
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

    def row_of(self, at: LinePlace) -> int | None:
        """Return the first row of a line, or of the next line that is shown."""
        rows = self.page.rows
        return next((number for number, row in enumerate(rows) if (row.place, row.line) >= at), None)

    def has(self, place: int) -> bool:
        """Return whether an entry has been read."""
        return self.page.first <= max(place, 0) < self.page.end

    def go_to(self, at: LinePlace) -> None:
        """Scroll a line to the top."""
        row = self.row_of(at)
        self.scroll_to(y=len(self.page.rows) if row is None else row, animate=False, force=True)
        self.refresh()

    @property
    def top(self) -> ScreenRow | None:
        """The first visible row with text."""
        rows = self.page.rows[round(self.scroll_offset.y) :]
        return next((row for row in rows if row.text), rows[0] if rows else None)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Request more rows when the view scrolls towards their end."""
        super().watch_scroll_y(old_value, new_value)
        self.ask_for_more()

    def ask_for_more(self) -> None:
        """Request more rows if few are left."""
        height = self.size.height or 1
        top, page = self.scroll_offset.y, self.page
        if page.end < page.total and top + height * (1 + _NEAR) >= len(page.rows):
            self.post_message(self.NeedsMore(is_above=False))
        if page.first > 0 and top < height:
            self.post_message(self.NeedsMore(is_above=True))

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen; Textual calls it for visible lines."""
        width, style = self.width, self.get_component_rich_style("pages--row")
        place = y + round(self.scroll_offset.y)
        if place >= len(self.page.rows):
            return Strip.blank(width, style)
        row = self.page.rows[place]
        line = Text(no_wrap=True, end="").append(row.text, STYLES[row.style])
        if self.needle:
            _mark(line, row.text, self.needle)
        return make_strip(line, width, style)


def _mark(line: Text, text: str, needle: str) -> None:
    folded = text.casefold()
    if len(folded) != len(text):  # some letters fold to two, which would move the places
        return
    at = folded.find(needle)
    while at >= 0:
        line.stylize("reverse bold yellow", at, at + len(needle))
        at = folded.find(needle, at + len(needle))


KEYS = "esc back|? help|[] turns|u outline|/ find|o tools|t thoughts|v view|i notices|e export|r resume|R restore"
BEGINNING = (-1, 0)
"""The place of the facts before all entries."""
HEADING = 1
"""The line of an entry that has its heading; line 0 is empty."""
_LAST = 1 << 30
_NEXT: dict[Tools, Tools] = {"names": "full", "full": "none", "none": "names"}
_TOOLS = {"names": "tools by name", "full": "tools with output", "none": "no tools"}
_VIEWS = {"full": "everything said", "active": "only what its agent holds"}


class TranscriptScreen(SessionActions[str]):
    """The screen of a transcript, which loads pages while it scrolls."""

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
        self.reading = TranscriptReading(archive, card.key)
        self._heading = card.title or "(no prompt is left)"
        self._start = BEGINNING if hit is None else (max(0, hit.seq), HEADING)
        self._needle = "" if hit is None or not hit.matches else hit.snippet[slice(*hit.matches[0])]
        self.turns: list[SessionTurn] = []
        self._match: LinePlace | None = None
        self._note = ""
        self._is_joining = False

    def compose(self) -> ComposeResult:
        """Compose the screen."""
        yield Static(make_text([("title", self._heading)]), id="name")
        yield Static(id="told")
        yield TranscriptView()
        yield Input(id="find", placeholder="find in this conversation")
        yield Static(id="keys", classes="keys")

    @property
    def view(self) -> TranscriptView:
        """The rows."""
        return self.query_one(TranscriptView)

    def on_mount(self) -> None:
        """Focus the rows and load the turns."""
        self.view.focus()
        self.view.needle = self._needle.casefold()
        self.read_turns()

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines again, from the first visible one on."""
        self.query_one("#keys", Static).update(keys_line(KEYS, event.size.width - 2))
        self.call_after_refresh(self._reload)

    def _reload(self) -> None:
        top = self.view.top
        at = self._start if top is None else (top.place, top.line)
        self.load(max(at[0], 0), at)

    @work(exclusive=True, group="turns")
    async def read_turns(self) -> None:
        """Load the turns."""
        try:
            self.turns = await run_in_thread(lambda: load_outline(self.reading))
        except (RetoldError, OSError) as error:
            self.show_note(str(error))
        self._draw_state()

    @work(exclusive=True, group="page")
    async def load(self, first: int, at: LinePlace) -> None:
        """Show the page of an entry, scrolled to a line; the end of the session if there is no such line."""
        self._is_joining = False
        begins = max(0, first - ENTRIES // 4) if first else 0
        self.view.show(await self._page(begins, begins + ENTRIES if first else None), at)
        self._draw_state()
        self.view.ask_for_more()

    async def _page(self, first: int, until: int | None = None) -> TranscriptPage:
        reading, width = self.reading, self.view.width
        try:
            return await run_in_thread(lambda: read_page(reading, first, width, until))
        except (RetoldError, OSError) as error:
            return TranscriptPage(0, 0, 0, [ScreenRow("bad", str(error), 0, 0)])

    def on_transcript_view_needs_more(self, event: TranscriptView.NeedsMore) -> None:
        """Load the page that the view needs."""
        if not self._is_joining:
            self._is_joining = True
            self.join_page(is_above=event.is_above)

    @work(exclusive=True, group="page")
    async def join_page(self, *, is_above: bool) -> None:
        """Add the page before or behind the rows."""
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
        options, page = self.reading.options, self.view.page
        state = [_VIEWS[self.reading.view], _TOOLS[options.tools]]
        state += [name for name in ("thoughts", "notices") if getattr(options, name)]
        state += [f"{page.total:,} entries, {len(self.turns):,} turns"]
        style, text = ("match", self._note) if self._note else ("faint", " · ".join(state))
        self.query_one("#told", Static).update(make_text([(style, text)]))

    def key(self) -> str:
        """Return the key of the session."""
        return self.reading.key

    def show_note(self, note: str | None) -> None:
        """Show a note in place of the state."""
        self._note = note or ""
        self._draw_state()

    def _change(self, **changes: Any) -> None:
        self.reading = msgspec.structs.replace(self.reading, options=self.reading.options._replace(**changes))
        self._note, self._match = "", None
        self._reload()

    def action_thoughts(self) -> None:
        """Toggle the model's thoughts."""
        self._change(thoughts=not self.reading.options.thoughts)

    def action_notices(self) -> None:
        """Toggle notices."""
        self._change(notices=not self.reading.options.notices)

    def action_tools(self) -> None:
        """Show tool calls by name, with output, or not at all."""
        self._change(tools=_NEXT[self.reading.options.tools])

    @work(exclusive=True, group="page")
    async def action_view(self) -> None:
        """Switch between the full view and what the agent would resume."""
        other: View = "active" if self.reading.view == "full" else "full"
        top, reading = self.view.top, self.reading
        place = await run_in_thread(lambda: place_in_view(reading, other, top.place if top else 0))
        self.reading = msgspec.structs.replace(reading, view=other)
        self._note, self._match = "", None
        self.read_turns()
        self.load(place, (place, HEADING))

    def action_turn(self, step: int) -> None:
        """Go to the next turn, or to the one before."""
        top = self.view.top
        here = top.place if top else 0
        places = [turn.seq for turn in self.turns]
        after = [place for place in places if (place > here if step > 0 else place < here)]
        if after:
            self.go_to((after[0] if step > 0 else after[-1], HEADING))

    def go_to(self, at: LinePlace) -> None:
        """Go to a line, and load its page if needed."""
        self._note = ""
        if self.view.has(at[0]):
            self.view.go_to(at)
            self._draw_state()
        else:
            self.load(at[0], at)

    def action_go(self, end: int) -> None:
        """Go to the beginning or to the end."""
        self.go_to(BEGINNING if end < 0 else (max(0, self.view.page.total - 1), _LAST))

    def action_outline(self) -> None:
        """Open the outline."""
        top = self.view.top
        self.app.push_screen(OutlineDialog(self.turns, top.place if top else 0), self._on_outline_closed)

    def _on_outline_closed(self, place: str | None) -> None:
        if place:
            self.go_to((int(place), HEADING))

    def action_find(self) -> None:
        """Open the line for the search."""
        find = self.query_one("#find", Input)
        find.add_class("open")
        find.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search for the typed words."""
        self._close_find()
        self.view.needle = event.value.casefold()
        self._match = None
        self.action_next(1)

    def _close_find(self) -> None:
        self.query_one("#find", Input).remove_class("open")
        self.view.focus()

    @work(exclusive=True, group="find")
    async def action_next(self, step: int) -> None:
        """Go to the next match, or to the one before."""
        words, top, reading = self.view.needle, self.view.top, self.reading
        if not words:
            return
        start = self._match or ((top.place, top.line - 1) if top else (-1, 0))
        match = await run_in_thread(lambda: find_match(reading, words, start, step))
        if match is None:
            self.show_note("not found in what is shown; o shows more of tools, t thoughts")
            return
        self._match = match
        self.go_to(match)

    def action_back(self) -> None:
        """Close the search line, then clear the search, then leave."""
        if self.query_one("#find", Input).has_class("open"):
            self._close_find()
        elif self.view.needle:
            self.view.needle, self._match = "", None
            self.view.refresh()
            self.show_note("")
        else:
            self.dismiss("")

    def action_leave(self) -> None:
        """Go back to the list."""
        self.dismiss("")
