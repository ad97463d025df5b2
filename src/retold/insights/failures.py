"""Failed calls of a session, and their fixes: the same call when it succeeded, and what was done in between."""

from collections import deque
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from retold.insights.changes import CHANGING_TOOLS, files_changed_by
from retold.insights.commands import (
    CommandRun,
    call_error,
    error_excerpt,
    full_target,
    has_failed,
    has_succeeded,
    is_read_only,
    parse_runs,
    repairs,
    shell_command,
    short_target,
)
from retold.insights.text import PlacedEntry, TurnPlace, first_sentences, message_text
from retold.model.session import Canonical, Event, Fate, Message, ToolCall, prompt_words

WORDS = 300
"""Characters of the agent's words about a fix."""
_MOST_BETWEEN = 12
"""Files and commands of a fix."""
_MOST_OPEN = 200
"""Failures that wait for a fix; more replace the oldest."""
_TARGET_TOOLS = ("file_read", "file_search", "file_edit", "file_write", "web_access")
"""Tools that fail because of their target. Of others, any successful call shows that they work again."""


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """The call that succeeded after a failed one, and what was done in between."""

    place: TurnPlace
    target: str
    files: tuple[str, ...]
    """The files that were changed since the failure, in order."""
    commands: tuple[str, ...]
    """Other successful commands since the failure that were not read-only."""
    before: str | None
    """The agent's last words between the failure and the fix."""
    after: str | None
    """The agent's first words after the fix, before the next prompt."""


class CallFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A failed call, or an error of the agent itself."""

    place: TurnPlace
    tool: str | None
    """The agent's name for the tool; None for an error of the agent itself, such as one of its model."""
    canonical: Canonical | None
    target: str
    """The target of the call: a command, a file."""
    error: str
    """The lines that describe the error."""
    exit_code: int | None
    fate: Fate
    fix: Fix | None
    """None if no such call succeeded later in the session."""

    @property
    def is_open(self) -> bool:
        """Whether a command or a server still fails; not if the command was read-only or the call was rewound.

        If a tool of the agent itself failed, such as an edit that did not fit, another way was found or not needed.
        """
        has_effect = self.canonical == "mcp" or (
            self.canonical == "shell_exec" and not is_read_only(self.target)
        )
        return has_effect and self.fix is None and self.fate != "rewound"


class _OpenFailure(msgspec.Struct):
    """A failure that waits for a fix, with the numbers of files, commands and words before it."""

    index: int
    kind: tuple[str, ...]
    runs: Sequence[CommandRun]
    files: int
    commands: int
    words: int


class FailureCollector:
    """Collects the failures of a session."""

    def __init__(self) -> None:
        self._failures: list[CallFailure] = []
        self._waiting: deque[_OpenFailure] = deque(maxlen=_MOST_OPEN)
        self._new_fixes: list[int] = []
        """The indexes of failures with a fix that the agent has not commented yet."""
        self._files: list[str] = []
        self._commands: list[str] = []
        self._words: tuple[int, str] = (0, "")
        """The number of the agent's messages with words, and the words of the last one."""
        self._command = ""

    def add(self, one: PlacedEntry) -> None:
        """Add the next entry."""
        entry = one.entry
        if isinstance(entry, Event):
            if entry.kind == "error" and entry.text.strip():
                self._failures.append(_event_failure(one, entry))
            return
        if prompt_words(entry) is not None:
            self._new_fixes = []
        if entry.role == "assistant" and not one.is_rewound:
            self._add_words(entry)
        for part in entry.parts:
            if isinstance(part, ToolCall):
                self._add_call(part, one)

    def failures(self) -> tuple[CallFailure, ...]:
        """Return the failures in order."""
        return tuple(self._failures)

    def _add_words(self, message: Message) -> None:
        words = first_sentences(message_text(message), WORDS)
        if not words:
            return
        for index in self._new_fixes:
            failure = self._failures[index]
            if failure.fix is not None:
                self._failures[index] = replace(failure, fix=replace(failure.fix, after=words))
        self._new_fixes = []
        self._words = (self._words[0] + 1, words)

    def _add_call(self, call: ToolCall, one: PlacedEntry) -> None:
        if call.canonical == "shell_exec":
            # A call that only waits for a command has the command of the call before.
            self._command = shell_command(call) or self._command
            call = replace(call, arguments={**call.arguments, "command": self._command})
        if has_failed(call):
            self._add_failure(call, one)
        elif has_succeeded(call) and not one.is_rewound:
            self._fix_failures(call, one.place)
            self._files.extend(files_changed_by(call))
            if call.canonical == "shell_exec" and not is_read_only(shell_command(call)):
                self._commands.append(short_target(call))

    def _add_failure(self, call: ToolCall, one: PlacedEntry) -> None:
        counts = len(self._files), len(self._commands), self._words[0]
        self._waiting.append(_OpenFailure(len(self._failures), _kind(call), _runs(call), *counts))
        self._failures.append(
            CallFailure(
                place=one.place,
                tool=call.name,
                canonical=call.canonical,
                target=short_target(call),
                error=call_error(call),
                exit_code=call.exit_code,
                fate=one.entry.fate,
                fix=None,
            )
        )

    def _fix_failures(self, call: ToolCall, place: TurnPlace) -> None:
        """Set the fix of the failures that waited for a call like this."""
        if not self._waiting:
            return
        kind, runs = _kind(call), _runs(call)
        left: list[_OpenFailure] = []
        for waiting in self._waiting:
            if kind == waiting.kind or repairs(runs, waiting.runs):
                fix = self._fix(call, place, waiting)
                self._failures[waiting.index] = replace(self._failures[waiting.index], fix=fix)
                self._new_fixes.append(waiting.index)
            else:
                left.append(waiting)
        self._waiting = deque(left, maxlen=_MOST_OPEN)

    def _fix(self, call: ToolCall, place: TurnPlace, waiting: _OpenFailure) -> Fix:
        number, words = self._words
        changed = [*self._files[waiting.files :], *files_changed_by(call)]
        return Fix(
            place=place,
            target=short_target(call),
            files=tuple(dict.fromkeys(changed))[:_MOST_BETWEEN],
            commands=tuple(dict.fromkeys(self._commands[waiting.commands :]))[-_MOST_BETWEEN:],
            before=words if number > waiting.words else None,
            after=None,
        )


def _event_failure(one: PlacedEntry, event: Event) -> CallFailure:
    return CallFailure(
        place=one.place,
        tool=None,
        canonical=None,
        target="",
        error=error_excerpt(event.text),
        exit_code=None,
        fate=event.fate,
        fix=None,
    )


def _kind(call: ToolCall) -> tuple[str, ...]:
    """Return what a call has in common with one that fixes it; commands are also compared by their runs."""
    if call.canonical == "shell_exec":
        return ("shell_exec", full_target(call))
    if call.canonical in _TARGET_TOOLS:
        return ("write" if call.canonical in CHANGING_TOOLS else call.canonical, full_target(call))
    return (call.name,)


def _runs(call: ToolCall) -> Sequence[CommandRun]:
    return parse_runs(shell_command(call)) if call.canonical == "shell_exec" else ()
