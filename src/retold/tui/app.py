"""The terminal browser: the screen with the list and the preview, and the application."""

import os
from typing import ClassVar

from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input, Static

from retold.archive.database import RetoldError
from retold.search.dates import now
from retold.search.quick_find import TitleMatch
from retold.tui import list_rows
from retold.tui.data import ArchiveQueries, health_lines, run_in_thread, stats_lines
from retold.tui.dialogs import ReportDialog, SessionActions, lines_to_text
from retold.tui.list_rows import (
    FIRST_TITLES,
    ListFinder,
    deletion_warning,
    keys_line,
    load_preview,
    status_line,
)
from retold.tui.transcript import TranscriptScreen
from retold.tui.widgets import Rows, make_text

NARROW = 100
"""Columns below which the preview stands below the list."""
IN_LINE = "enter read|tab list|f1 help|esc quit|^e export|^r resume|^t scope|^s stats|^d doctor"
IN_LIST = "enter read|tab type|? help|q quit|e export|r resume|R restore|t scope|s stats|d doctor"


class SearchLine(Input):
    """The input line; a question mark in the empty line opens the help."""

    async def _on_key(self, event: events.Key) -> None:
        if event.character == "?" and not self.value:
            event.stop()
            event.prevent_default()
            await self.run_action("screen.help")
            return
        await super()._on_key(event)


class HomeScreen(SessionActions[None]):
    """The list of sessions and the preview of the selected one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", priority=True),
        Binding("up", "move(-1)"),
        Binding("down", "move(1)"),
        Binding("pageup", "leaf(-1)"),
        Binding("pagedown", "leaf(1)"),
        Binding("tab", "turn_focus", priority=True),
        Binding("slash", "turn_focus"),
        Binding("ctrl+t,f2", "scope", priority=True),
        Binding("t", "scope"),
        Binding("ctrl+s", "stats", priority=True),
        Binding("s", "stats"),
        Binding("ctrl+d", "doctor", priority=True),
        Binding("d", "doctor"),
        Binding("escape", "back", priority=True),
        Binding("q", "quit"),
    ]

    def __init__(self, archive: ArchiveQueries, typed: str = "") -> None:
        super().__init__()
        self.archive, self.finder, self._typed = archive, ListFinder(archive), typed
        self.finder.type(typed)
        self._now = now()
        self._note, self._shown_key = "", ""

    def compose(self) -> ComposeResult:
        """Compose the screen."""
        with Horizontal(id="top"):
            yield Static("❯", id="sign")  # noqa: RUF001 - a prompt
            yield SearchLine(
                self._typed,
                id="query",
                placeholder="type to find, in titles and in all text",
                select_on_focus=False,
            )
            yield Static(id="scope")
        yield Static(id="status")
        with Horizontal(id="main"):
            with Vertical(id="left"):
                yield Static(id="columns")
                yield Rows[TitleMatch](
                    lambda match, width: list_rows.format_row(match, width, self._now), id="found"
                )
            with VerticalScroll(id="preview", can_focus=False):
                yield Static(id="shown")
        yield Static(id="keys", classes="keys")

    @property
    def rows(self) -> Rows[TitleMatch]:
        """The list."""
        return self.query_one("#found", Rows)

    def on_mount(self) -> None:
        """Focus the input line and load the list."""
        self.query_one(SearchLine).focus()
        self.load()

    def on_resize(self, event: events.Resize) -> None:
        """Move the preview to where there is room for it."""
        self.set_class(event.size.width < NARROW, "narrow")
        self.call_after_refresh(self._draw_frame)

    def on_descendant_focus(self) -> None:
        """Show the keys of the focused widget."""
        self._draw_frame()

    @work(exclusive=True, group="load")
    async def load(self) -> None:
        """Load the list: a screenful first, then all of it."""
        try:
            for limit in (FIRST_TITLES, None):
                await self.finder.load(limit)
                self._fill()
            note = await run_in_thread(lambda: deletion_warning(self.archive))
            if not self.finder.typed:  # otherwise the status line shows the results
                self._note = self._note or note
        except (RetoldError, OSError) as error:
            self._note = str(error)
        self.search()
        self._draw_frame()

    @work(exclusive=True, group="search")
    async def search(self) -> None:
        """Add the results of a search in the text."""
        if self.finder.typed:
            await self.finder.search()
            self._fill()

    def _fill(self) -> None:
        """Fill the list; the selected session stays selected unless something else was typed."""
        found = self.finder.matches()
        keys = [match.card.key for match in found]
        place = keys.index(self._shown_key) if self._shown_key in keys and self.rows.place else 0
        self.rows.fill(found, place)
        self._draw_frame()

    def _draw_frame(self) -> None:
        width = self.rows.width or self.size.width
        self.query_one("#columns", Static).update(list_rows.column_headings(width))
        self.query_one("#scope", Static).update(make_text([("title", self.finder.scope.name)]))
        status = status_line(self.finder, self.rows.items, self._note)
        self.query_one("#status", Static).update(status)
        in_line = self.query_one(SearchLine).has_focus
        self.query_one("#keys", Static).update(
            keys_line(IN_LINE if in_line else IN_LIST, self.size.width - 2)
        )

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter the titles at once, and start a search."""
        self.finder.type(event.value)
        self._note = ""
        self.rows.place = 0
        self._fill()
        self.search()

    def on_rows_chosen(self) -> None:
        """Show the preview of the selected session."""
        match = self.rows.chosen
        self._shown_key = match.card.key if match else ""
        self.show_preview(match)

    @work(exclusive=True, group="preview")
    async def show_preview(self, match: TitleMatch | None) -> None:
        """Load and show the preview, without blocking the screen."""
        shown = self.query_one("#shown", Static)
        if match is None:
            empty = "nothing found" if self.finder.typed else "no conversations here"
            shown.update(Text("" if self.finder.is_searching else empty, style="dim"))
            return
        try:
            lines = await run_in_thread(lambda: load_preview(self.archive, match, self._now))
        except (RetoldError, OSError) as error:
            lines = [[("bad", str(error))]]
        shown.update(lines_to_text(lines))
        self.query_one("#preview").scroll_home(animate=False)

    def on_rows_opened(self) -> None:
        """Open the session that was double-clicked."""
        self.action_open()

    def action_move(self, step: int) -> None:
        """Select another row, wherever the focus is."""
        self.rows.action_move(step)

    def action_leaf(self, step: int) -> None:
        """Select the row a page away."""
        self.rows.action_leaf(step)

    def action_turn_focus(self) -> None:
        """Move the focus between the input line and the list."""
        line = self.query_one(SearchLine)
        (self.rows if line.has_focus else line).focus()

    def action_back(self) -> None:
        """Clear the input line; quit if it is empty."""
        line = self.query_one(SearchLine)
        if line.value:
            line.value = ""
            line.focus()
        else:
            self.app.exit()

    def action_quit(self) -> None:
        """Quit."""
        self.app.exit()

    def action_scope(self) -> None:
        """Switch to the next scope."""
        self.finder.next_scope()
        self.finder.type(self.finder.typed)
        self.load()

    def action_open(self) -> None:
        """Open the selected session, at its first hit."""
        match = self.rows.chosen
        if match is not None:
            hit = None if match.has_title_match or not match.hits else match.hits[0]
            self.app.push_screen(TranscriptScreen(self.archive, match.card, hit), self.show_note)

    def key(self) -> str | None:
        """Return the key of the selected session."""
        return None if self.rows.chosen is None else self.rows.chosen.card.key

    def show_note(self, note: str | None) -> None:
        """Show a note in the status line."""
        self._note = note or ""
        self._draw_frame()

    def action_stats(self) -> None:
        """Show tokens, costs and tools of the sessions in scope."""
        scope, typed = self.finder.scope, self.finder.typed
        load = lambda columns: run_in_thread(lambda: stats_lines(self.archive, scope, typed, columns))  # noqa: E731
        self.app.push_screen(ReportDialog(f"Stats: {scope.name}", load))

    def action_doctor(self) -> None:
        """Show the findings of `doctor`."""
        self.app.push_screen(
            ReportDialog("Doctor", lambda columns: run_in_thread(lambda: health_lines(columns)))
        )


_FEW_COLOURS = ("standard", "windows")
"""Colour systems of 16 colours; the terminal knows best what they look like."""


class Browser(App[str]):
    """The application. It ends with the key of a session that is to be resumed, or with None."""

    CSS_PATH = "browse.tcss"
    TITLE = "retold"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", priority=True)]

    def __init__(self, archive: ArchiveQueries, typed: str = "") -> None:
        # Without `ansi_color`, NO_COLOR turns colours into greys, which are black on black in terminals of few colours.
        super().__init__(ansi_color="NO_COLOR" in os.environ)
        self._archive, self._typed = archive, typed
        self.ansi_theme_dark = DIMMED_MONOKAI
        if self.no_color or self.console.color_system in _FEW_COLOURS:
            self.theme = "ansi-dark"

    def get_default_screen(self) -> HomeScreen:
        """Return the screen of the list."""
        return HomeScreen(self._archive, self._typed)
