"""Dialogs over the screen: reports, export, resume, restore, help and outline. `esc` closes them."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Static

from retold.archive.database import RetoldError
from retold.export.formats.registry import FORMATS
from retold.export.text.formatting import DAY, StyledLine, clean_name, fit_width, format_minute, plural
from retold.sessions.timelines import SessionTurn
from retold.tui.data import (
    ArchiveQueries,
    export_to_folder,
    load_restore_plan,
    resume_command,
    run_in_thread,
    write_restored,
)
from retold.tui.list_rows import GUTTER, IN_TEXT, LOST
from retold.tui.widgets import Rows, escape_line, make_text


def lines_to_text(lines: Sequence[StyledLine]) -> Text:
    """Return lines as one text that wraps."""
    joined = Text("\n", no_wrap=False, end="").join(make_text(pieces) for pieces in lines)
    joined.no_wrap = False
    return joined


class Dialog(ModalScreen[str]):
    """A dialog with a title, and its keys below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "back", show=False)]
    KEYS: ClassVar[str] = "esc back"
    IS_LARGE: ClassVar[bool] = False

    def __init__(self, title: str) -> None:
        super().__init__()
        self.heading = title

    def compose(self) -> ComposeResult:
        """Compose the dialog."""
        with Vertical(id="box", classes="large" if self.IS_LARGE else None) as box:
            box.border_title = make_text([("plain", self.heading)])  # Textual would read a str as markup
            yield from self.inside()
            yield Static(Text(self.KEYS, style="dim"), id="box-keys")

    def inside(self) -> ComposeResult:
        """Compose its content."""
        with VerticalScroll():
            yield Static(Text("…"), id="box-text")

    def show_lines(self, lines: Sequence[StyledLine]) -> None:
        """Show lines as its content."""
        self.query_one("#box-text", Static).update(lines_to_text(lines))

    async def show_result(self, load: Callable[[], Awaitable[Sequence[StyledLine]]]) -> None:
        """Show the lines that a function loads, or its error."""
        try:
            self.show_lines(await load())
        except (RetoldError, OSError, ValueError) as error:
            self.show_lines([[("bad", str(error))]])

    def action_leave(self) -> None:
        """Close the dialog."""
        self.dismiss("")


class ReportDialog(Dialog):
    """A text that takes a while to load."""

    IS_LARGE = True
    KEYS = "↑↓ scroll   esc back"

    def __init__(self, title: str, load: Callable[[int], Awaitable[Sequence[StyledLine]]]) -> None:
        super().__init__(title)
        self._load = load

    def on_mount(self) -> None:
        """Load the text."""
        self.query_one(VerticalScroll).focus()
        self.run_worker(self.show_result(lambda: self._load(max(40, self.size.width - 6))), exclusive=True)


_NAME = 11


class ExportDialog(Dialog):
    """The export formats, with or without secrets."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "write", priority=True),
        Binding("x", "toggle_secrets"),
    ]
    KEYS = "enter write it into this folder   x with or without secrets   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Export")
        self._archive, self._key, self.is_redacted = archive, key, True

    def inside(self) -> ComposeResult:
        """Compose the list of formats."""
        yield Static(id="secrets")
        yield Rows[str](_form, id="forms")

    def on_mount(self) -> None:
        """Fill and focus the list."""
        rows = self.query_one(Rows)
        rows.fill(list(FORMATS))
        rows.focus()
        self._show_secrets()

    def _show_secrets(self) -> None:
        text = "secrets are taken out" if self.is_redacted else "WITH all secrets in it, as they were said"
        style = "plain" if self.is_redacted else "bad"
        folder = escape_line(self._archive.here)
        self.query_one("#secrets", Static).update(make_text([(style, text), ("faint", f"; into {folder}")]))

    def action_toggle_secrets(self) -> None:
        """Toggle redaction."""
        self.is_redacted = not self.is_redacted
        self._show_secrets()

    def on_rows_opened(self) -> None:
        """Write the format that was double-clicked."""
        self.action_write()

    def action_write(self) -> None:
        """Write the file; the dialog stays until it is written."""
        self.run_worker(self._write(str(self.query_one(Rows).chosen)), exclusive=True)

    async def _write(self, form: str) -> None:
        export = partial(
            export_to_folder, self._archive, self._key, form, self._archive.here, is_redacted=self.is_redacted
        )
        self.query_one("#secrets", Static).update(Text("writing …"))
        try:
            path, size = await asyncio.to_thread(export)
        except (RetoldError, OSError) as error:
            self.query_one("#secrets", Static).update(make_text([("bad", str(error))]))
            return
        self.dismiss(f"wrote {os.path.basename(path)} ({size:,} bytes) into {self._archive.here}")


def _form(form: str, width: int) -> Text:
    return make_text(
        [("plain", f"{form:<{_NAME}}"), ("faint", fit_width(FORMATS[form].description, width - _NAME))]
    )


RUN = "run"
"""The result of a `ResumeDialog` if the agent is to be started."""


class ResumeDialog(Dialog):
    """The command that resumes a session."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "run", priority=True), Binding("c", "copy")]
    KEYS = "enter run it here   c copy it   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Resume")
        self._archive, self._key, self.line = archive, key, ""

    def on_mount(self) -> None:
        """Load the command."""
        self.run_worker(self.show_result(self._plan))

    async def _plan(self) -> Sequence[StyledLine]:
        plan, self.line = await run_in_thread(lambda: resume_command(self._archive, self._key))
        notes: list[StyledLine] = []
        if plan.additions:
            note = "Its agent has it no more, or would not resume it well: it is written back first, beside what is there."
            notes = [[("plain", note)], []]
        return [*notes, [("you", self.line)]]

    def action_copy(self) -> None:
        """Copy the command to the clipboard, over SSH too if the terminal allows it."""
        if self.line:
            self.app.copy_to_clipboard(self.line)
            self.dismiss("copied the command")

    def action_run(self) -> None:
        """Quit the browser and run the command."""
        if self.line:
            self.dismiss(RUN)


class RestoreDialog(Dialog):
    """The files that a restore would write."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "write")]
    KEYS = "y write it   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Restore")
        self._archive, self._key, self._plan_shown = archive, key, False

    def on_mount(self) -> None:
        """Load the plan."""
        self.run_worker(self.show_result(self._plan))

    async def _plan(self) -> Sequence[StyledLine]:
        plan = await run_in_thread(lambda: load_restore_plan(self._archive, self._key))
        if not plan.additions:
            return [[("plain", "Its agent has it: nothing to write.")]]
        self._plan_shown = True
        files: list[StyledLine] = [[("tool", f"  {addition.path}")] for addition in plan.additions]
        return [[("plain", "Would write, beside what is there:")], *files]

    def action_write(self) -> None:
        """Write the files, once the plan has been shown."""
        if self._plan_shown:
            self._plan_shown = False
            self.run_worker(self._write(), exclusive=True)

    async def _write(self) -> None:
        self.show_lines([[("plain", "writing … (a running agent is waited for)")]])
        try:
            plan = await asyncio.to_thread(write_restored, self._archive, self._key)
        except (RetoldError, OSError) as error:
            self.show_lines([[("bad", str(error))]])
            return
        self.dismiss(f"restored: {plural(len(plan.additions), 'file')} written; r resumes it")


KEYS = (
    ("", "The list"),
    ("type", "titles, projects and prompts at once, then all text"),
    ("", "fields too: tool:shell, is:error, role:user, after:7d"),
    ("↑ ↓ pgup pgdn", "choose a conversation"),
    ("enter", "read it"),
    ("tab", "to the list, where a letter is enough, and back"),
    ("ctrl+t or t", "all conversations, this project, this folder"),
    ("ctrl+e or e", "export it as a file"),
    ("ctrl+r or r", "resume it with its agent"),
    ("ctrl+o or R", "restore it, where its agent has lost it"),
    ("ctrl+s or s", "what it cost and how it went"),
    ("ctrl+d or d", "what is at risk, and what mends it"),
    ("esc", "empty the line, then quit"),
    ("q or ctrl+c", "quit"),
    ("", "The transcript"),
    ("[ and ]", "the turn before, the next turn"),
    ("u", "all turns: an outline to jump by"),
    ("/", "find; n the next place, N the one before"),
    ("t", "thoughts"),
    ("o", "tools: their names, all they gave, none"),
    ("v", "everything said, or only what its agent holds"),
    ("i", "notices, and what the agent added to messages"),
    ("g and G", "the beginning, the end"),
    ("e r R", "export, resume, restore, as in the list"),
    ("", "Marks"),
    (IN_TEXT, "found in the text, not by its name"),
    (LOST, "gone from its agent's home; the archive has it"),
    (GUTTER.strip(), "rewound, compacted or superseded: the heading says"),
)
_WIDTH = 15


class HelpDialog(Dialog):
    """The keys and marks of the browser."""

    KEYS = "↑↓ scroll   esc back"
    IS_LARGE = True

    def __init__(self) -> None:
        super().__init__("Keys")

    def on_mount(self) -> None:
        """Show them."""
        self.query_one("VerticalScroll").focus()
        lines = []
        for key, text in KEYS:
            is_heading = not key and text[0].isupper()
            lines.append(
                [("title", text)] if is_heading else [("tool", f"  {key:<{_WIDTH}}"), ("plain", text)]
            )
        self.show_lines(lines)


class OutlineDialog(Dialog):
    """The prompts of a session, a line each, with the number of tool calls behind it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "jump", priority=True)]
    KEYS = "enter jump there   esc back"
    IS_LARGE = True

    def __init__(self, turns: list[SessionTurn], here: int) -> None:
        super().__init__("Turns")
        self._turns, self._here = turns, here

    def inside(self) -> ComposeResult:
        """Compose the list."""
        yield Rows[SessionTurn](_row, id="turns")

    def on_mount(self) -> None:
        """Fill the list and select the current turn."""
        before = [number for number, turn in enumerate(self._turns) if turn.seq <= self._here]
        rows = self.query_one(Rows)
        rows.fill(self._turns, before[-1] if before else 0)
        rows.focus()

    def on_rows_opened(self) -> None:
        """Jump to the turn that was double-clicked."""
        self.action_jump()

    def action_jump(self) -> None:
        """Close with the place of the selected turn."""
        chosen = self.query_one(Rows).chosen
        self.dismiss(str(chosen.seq) if chosen else "")


def _row(turn: SessionTurn, width: int) -> Text:
    at = f"{format_minute(turn.at)[DAY + 1 :]} " if turn.at else ""
    fate = "" if turn.fate == "live" else f"({turn.fate}) "
    failed = f", {turn.errors} failed" if turn.errors else ""
    calls = f"  {plural(turn.calls, 'call')}{failed}" if turn.calls else ""
    room = max(8, width - len(at) - len(fate) - len(calls))
    prompt = fit_width(clean_name(turn.text), room)
    return make_text([("faint", at), ("match", fate), ("plain", prompt), ("faint", calls)])


class SessionActions(Screen[ScreenResultType]):
    """A screen with a current session, and the actions on it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+e", "export", priority=True),
        Binding("e", "export"),
        Binding("ctrl+r", "resume", priority=True),
        Binding("r", "resume"),
        Binding("ctrl+o", "restore", priority=True),
        Binding("R", "restore"),
        Binding("f1", "help", priority=True),
        Binding("question_mark", "help"),
    ]
    archive: ArchiveQueries

    def key(self) -> str | None:
        """Return the key of the current session."""
        raise NotImplementedError

    def show_note(self, note: str | None) -> None:
        """Show the outcome of an action."""
        raise NotImplementedError

    def action_export(self) -> None:
        """Open the export dialog."""
        if (key := self.key()) is not None:
            self.app.push_screen(ExportDialog(self.archive, key), self.show_note)

    def action_restore(self) -> None:
        """Open the restore dialog."""
        if (key := self.key()) is not None:
            self.app.push_screen(RestoreDialog(self.archive, key), self.show_note)

    def action_resume(self) -> None:
        """Open the resume dialog."""
        if (key := self.key()) is not None:
            self.app.push_screen(ResumeDialog(self.archive, key), partial(self._on_resume_closed, key))

    def _on_resume_closed(self, key: str, result: str | None) -> None:
        if result == RUN:
            self.app.exit(key)
        else:
            self.show_note(result)

    def action_help(self) -> None:
        """Open the help."""
        self.app.push_screen(HelpDialog())
