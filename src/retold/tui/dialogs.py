"""Boxes over the screen: something to read, to choose or to confirm, and `esc` to leave."""

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
from retold.export.text.table import clean, fitted
from retold.export.text.times import DAY, minute
from retold.maintenance.restore import RestorePlan
from retold.sessions.pages import SessionTurn
from retold.tui.data import ArchiveQueries, StyledLine, answer, exported, restored, restoring, resuming
from retold.tui.list_rows import IN_TEXT, LOST
from retold.tui.transcript_pages import GUTTER
from retold.tui.widgets import Rows, plain, styled


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


_NAME = 11


class ExportDialog(Box):
    """The forms that there are."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "write", priority=True),
        Binding("x", "toggle_secrets"),
    ]
    KEYS = "enter write it into this folder   x with or without secrets   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Export")
        self._archive, self._key, self.is_redacted = archive, key, True

    def inside(self) -> ComposeResult:
        """Make the list of forms."""
        yield Static(id="secrets")
        yield Rows[str](_form, id="forms")

    def on_mount(self) -> None:
        """Show them."""
        rows = self.query_one(Rows)
        rows.fill(list(FORMATS))
        rows.focus()
        self._tell_secrets()

    def _tell_secrets(self) -> None:
        told = "secrets are taken out" if self.is_redacted else "WITH all secrets in it, as they were said"
        style = "plain" if self.is_redacted else "bad"
        where = plain(self._archive.here)
        self.query_one("#secrets", Static).update(styled([(style, told), ("faint", f"; into {where}")]))

    def action_toggle_secrets(self) -> None:
        """Let secrets stay in, or take them out."""
        self.is_redacted = not self.is_redacted
        self._tell_secrets()

    def on_rows_opened(self) -> None:
        """Write by mouse."""
        self.action_write()

    def action_write(self) -> None:
        """Write the file; the box stays until it is there."""
        self.run_worker(self._write(str(self.query_one(Rows).chosen)), exclusive=True)

    async def _write(self, form: str) -> None:
        asked = (self._archive, self._key, form, self._archive.here)
        self.query_one("#secrets", Static).update(Text("writing …"))
        try:
            path, size = await asyncio.to_thread(exported, *asked, is_redacted=self.is_redacted)
        except (RetoldError, OSError) as error:
            self.query_one("#secrets", Static).update(styled([("bad", str(error))]))
            return
        self.dismiss(f"wrote {os.path.basename(path)} ({size:,} bytes) into {self._archive.here}")


def _form(form: str, width: int) -> Text:
    return styled([("plain", f"{form:<{_NAME}}"), ("faint", fitted(FORMATS[form].told, width - _NAME))])


RUN = "run"
"""What the box of a resume answers where the agent is to be started."""


class Resume(Box):
    """The command to go on with a conversation."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "run", priority=True),
        Binding("c", "copy"),
    ]
    KEYS = "enter run it here   c copy it   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Resume")
        self._archive, self._key, self.line = archive, key, ""

    def on_mount(self) -> None:
        """Ask for the command."""
        self.run_worker(self.told(self._plan))

    async def _plan(self) -> Sequence[StyledLine]:
        plan, self.line = await answer(lambda: resuming(self._archive, self._key))
        notes: list[StyledLine] = []
        if plan.additions:
            told = "Its agent has it no more, or would not resume it well: it is written back first, beside what is there."
            notes = [[("plain", told)], []]
        return [*notes, [("you", self.line)]]

    def action_copy(self) -> None:
        """Put the command where it can be pasted from; over SSH too, where the terminal allows it."""
        if self.line:
            self.app.copy_to_clipboard(self.line)
            self.dismiss("copied the command")

    def action_run(self) -> None:
        """Leave the browser, and let the agent go on."""
        if self.line:
            self.dismiss(RUN)


class Restore(Box):
    """What would be written so that the agent has it again."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "write")]
    KEYS = "y write it   esc back"

    def __init__(self, archive: ArchiveQueries, key: str) -> None:
        super().__init__("Restore")
        self._archive, self._key, self._plan_shown = archive, key, False

    def on_mount(self) -> None:
        """Ask what would be written."""
        self.run_worker(self.told(self._plan))

    async def _plan(self) -> Sequence[StyledLine]:
        plan = await answer(lambda: restoring(self._archive, self._key))
        if not plan.additions:
            return [[("plain", "Its agent has it: nothing to write.")]]
        self._plan_shown = True
        return [[("plain", "Would write, beside what is there:")], *_files(plan)]

    def action_write(self) -> None:
        """Write it, if that was shown."""
        if self._plan_shown:
            self._plan_shown = False
            self.run_worker(self._write(), exclusive=True)

    async def _write(self) -> None:
        self.tell([[("plain", "writing … (a running agent is waited for)")]])
        try:
            plan = await asyncio.to_thread(restored, self._archive, self._key)
        except (RetoldError, OSError) as error:
            self.tell([[("bad", str(error))]])
            return
        count = len(plan.additions)
        self.dismiss(f"restored: {count} file{'' if count == 1 else 's'} written; r resumes it")


def _files(plan: RestorePlan) -> list[StyledLine]:
    return [[("tool", f"  {addition.path}")] for addition in plan.additions]


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


class Help(Box):
    """What can be done."""

    KEYS = "↑↓ scroll   esc back"
    IS_LARGE = True

    def __init__(self) -> None:
        super().__init__("Keys")

    def on_mount(self) -> None:
        """Tell them."""
        self.query_one("VerticalScroll").focus()
        lines = []
        for key, told in KEYS:
            is_heading = not key and told[0].isupper()
            lines.append(
                [("title", told)] if is_heading else [("tool", f"  {key:<{_WIDTH}}"), ("plain", told)]
            )
        self.tell(lines)


class Outline(Box):
    """What a person said, a line each, with how much was done about it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "jump", priority=True)]
    KEYS = "enter jump there   esc back"
    IS_LARGE = True

    def __init__(self, turns: list[SessionTurn], here: int) -> None:
        super().__init__("Turns")
        self._turns, self._here = turns, here

    def inside(self) -> ComposeResult:
        """Make the list."""
        yield Rows[SessionTurn](_row, id="turns")

    def on_mount(self) -> None:
        """Show it, from where one is."""
        before = [number for number, turn in enumerate(self._turns) if turn.place <= self._here]
        rows = self.query_one(Rows)
        rows.fill(self._turns, before[-1] if before else 0)
        rows.focus()

    def on_rows_opened(self) -> None:
        """Jump by mouse."""
        self.action_jump()

    def action_jump(self) -> None:
        """Answer with the place."""
        chosen = self.query_one(Rows).chosen
        self.dismiss(str(chosen.place) if chosen else "")


def _row(turn: SessionTurn, width: int) -> Text:
    at = f"{minute(turn.at)[DAY + 1 :]} " if turn.at else ""
    fate = "" if turn.fate == "live" else f"({turn.fate}) "
    failed = f", {turn.errors} failed" if turn.errors else ""
    done = f"  {turn.calls} call{'' if turn.calls == 1 else 's'}{failed}" if turn.calls else ""
    room = max(8, width - len(at) - len(fate) - len(done))
    said = fitted(clean(turn.text), room)
    return styled([("faint", at), ("match", fate), ("plain", said), ("faint", done)])


class SessionActions(Screen[ScreenResultType]):
    """A screen on which one conversation is looked at."""

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
        """Return the key of the conversation."""
        raise NotImplementedError

    def tell(self, told: str | None) -> None:
        """Show what came of it."""
        raise NotImplementedError

    def action_export(self) -> None:
        """Write it as a file."""
        if (key := self.key()) is not None:
            self.app.push_screen(ExportDialog(self.archive, key), self.tell)

    def action_restore(self) -> None:
        """Give it back to its agent."""
        if (key := self.key()) is not None:
            self.app.push_screen(Restore(self.archive, key), self.tell)

    def action_resume(self) -> None:
        """Go on with it."""
        if (key := self.key()) is not None:
            self.app.push_screen(Resume(self.archive, key), partial(self._resumed, key))

    def _resumed(self, key: str, told: str | None) -> None:
        if told == RUN:
            self.app.exit(key)
        else:
            self.tell(told)

    def action_help(self) -> None:
        """Tell all keys."""
        self.app.push_screen(Help())
