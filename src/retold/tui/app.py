"""The terminal browser itself."""

import os
from datetime import datetime
from typing import ClassVar

from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input, Static

from retold.archive.database import RetoldError
from retold.search.quick_find import TitleMatch
from retold.tui import list_rows
from retold.tui.data import ArchiveQueries, answer, findings, now, stats
from retold.tui.dialogs import Report, SessionActions, text_of
from retold.tui.list_rows import FIRST, ListFinder, keys_line, preview, status_line, warning
from retold.tui.transcript import TranscriptScreen
from retold.tui.widgets import Rows, styled

NARROW = 100
"""Columns below which the preview stands under the list."""
IN_LINE = "enter read|tab list|f1 help|esc quit|^e export|^r resume|^t scope|^s stats|^d doctor"
IN_LIST = "enter read|tab type|? help|q quit|e export|r resume|R restore|t scope|s stats|d doctor"


class SearchLine(Input):
    """What is typed; a question mark in an empty line asks for help."""

    async def _on_key(self, event: events.Key) -> None:
        if event.character == "?" and not self.value:
            event.stop()
            event.prevent_default()
            await self.run_action("screen.help")
            return
        await super()._on_key(event)


class HomeScreen(SessionActions[None]):
    """The list and the preview."""

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
        self._now: datetime = now()
        self._said, self._shown_key = "", ""

    def compose(self) -> ComposeResult:
        """Make the screen."""
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
                    lambda match, width: list_rows.row(match, width, self._now), id="found"
                )
            with VerticalScroll(id="preview", can_focus=False):
                yield Static(id="shown")
        yield Static(id="keys", classes="keys")

    @property
    def rows(self) -> Rows[TitleMatch]:
        """The list."""
        return self.query_one("#found", Rows)

    def on_mount(self) -> None:
        """Begin."""
        self.query_one(SearchLine).focus()
        self.load()

    def on_resize(self, event: events.Resize) -> None:
        """Put the preview where there is room for it."""
        self.set_class(event.size.width < NARROW, "narrow")
        self.call_after_refresh(self._draw_frame)

    def on_descendant_focus(self) -> None:
        """Tell the keys that work now."""
        self._draw_frame()

    @work(exclusive=True, group="load")
    async def load(self) -> None:
        """Read the list: a screen full first, then all."""
        try:
            for limit in (FIRST, None):
                await self.finder.load(limit)
                self._fill()
            told = await answer(lambda: warning(self.archive))
            if not self.finder.typed:  # else somebody has gone on meanwhile, and what was found is told
                self._said = self._said or told
        except (RetoldError, OSError) as error:
            self._said = str(error)
        self.search()
        self._draw_frame()

    @work(exclusive=True, group="search")
    async def search(self) -> None:
        """Add what the text says."""
        if self.finder.typed:
            await self.finder.search()
            self._fill()

    def _fill(self) -> None:
        """Show the answers; the chosen one stays chosen, unless something else was typed."""
        found = self.finder.matches()
        keys = [match.card.key for match in found]
        place = keys.index(self._shown_key) if self._shown_key in keys and self.rows.place else 0
        self.rows.fill(found, place)
        self._draw_frame()

    def _draw_frame(self) -> None:
        width = self.rows.width or self.size.width
        self.query_one("#columns", Static).update(list_rows.heading(width))
        self.query_one("#scope", Static).update(styled([("title", self.finder.scope.name)]))
        told = status_line(self.finder, self.rows.things, self._said)
        self.query_one("#status", Static).update(told)
        in_line = self.query_one(SearchLine).has_focus
        self.query_one("#keys", Static).update(
            keys_line(IN_LINE if in_line else IN_LIST, self.size.width - 2)
        )

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list at once, and search."""
        self.finder.type(event.value)
        self._said = ""
        self.rows.place = 0
        self._fill()
        self.search()

    def on_rows_chosen(self) -> None:
        """Show the chosen one."""
        match = self.rows.chosen
        self._shown_key = match.card.key if match else ""
        self.show_preview(match)

    @work(exclusive=True, group="preview")
    async def show_preview(self, match: TitleMatch | None) -> None:
        """Read the chosen one; the screen goes on meanwhile."""
        shown = self.query_one("#shown", Static)
        if match is None:
            empty = "nothing found" if self.finder.typed else "no conversations here"
            shown.update(Text("" if self.finder.is_searching else empty, style="dim"))
            return
        try:
            told = await answer(lambda: preview(self.archive, match, self._now))
        except (RetoldError, OSError) as error:
            told = [[("bad", str(error))]]
        shown.update(text_of(told))
        self.query_one("#preview").scroll_home(animate=False)

    def on_rows_opened(self) -> None:
        """Open by mouse."""
        self.action_open()

    def action_move(self, step: int) -> None:
        """Choose another, wherever the focus is."""
        self.rows.action_move(step)

    def action_leaf(self, step: int) -> None:
        """Choose another, a page away."""
        self.rows.action_leaf(step)

    def action_turn_focus(self) -> None:
        """Go from the line to the list, and back."""
        line = self.query_one(SearchLine)
        (self.rows if line.has_focus else line).focus()

    def action_back(self) -> None:
        """Empty the line; if it is empty, go."""
        line = self.query_one(SearchLine)
        if line.value:
            line.value = ""
            line.focus()
        else:
            self.app.exit()

    def action_quit(self) -> None:
        """Go."""
        self.app.exit()

    def action_scope(self) -> None:
        """Take the next scope."""
        self.finder.turn_scope()
        self.finder.type(self.finder.typed)
        self.load()

    def action_open(self) -> None:
        """Read the chosen one, from where it says what was looked for."""
        match = self.rows.chosen
        if match is not None:
            hit = None if match.is_named or not match.hits else match.hits[0]
            self.app.push_screen(TranscriptScreen(self.archive, match.card, hit), self.tell)

    def key(self) -> str | None:
        """Return the key of the chosen one."""
        return None if self.rows.chosen is None else self.rows.chosen.card.key

    def tell(self, told: str | None) -> None:
        """Say something in place of what was found."""
        self._said = told or ""
        self._draw_frame()

    def action_stats(self) -> None:
        """Tell what it cost."""
        scope, typed = self.finder.scope, self.finder.typed
        ask = lambda columns: answer(lambda: stats(self.archive, scope, typed, columns))  # noqa: E731
        self.app.push_screen(Report(f"Stats: {scope.name}", ask))

    def action_doctor(self) -> None:
        """Tell what is at risk."""
        ask = lambda columns: answer(lambda: findings(columns))  # noqa: E731
        self.app.push_screen(Report("Doctor", ask))


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
