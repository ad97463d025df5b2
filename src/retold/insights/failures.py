"""What failed in a session, and what mended it: the same call when it worked, and what was done between."""

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from retold.insights.changes import changed_files
from retold.insights.commands import (
    CommandRun,
    command_of,
    error_lines,
    is_done,
    is_failed,
    is_look,
    makes_good,
    runs,
    target,
    telling_lines,
    whole_target,
)
from retold.insights.text import PlacedEntry, TurnPlace, first_sentences, placed, words_said
from retold.model.session import Canonical, Entry, Event, Fate, Message, ToolCall, words_of

WORDS = 300
"""Characters of what the agent said about a fix."""
_MOST_BETWEEN = 12
_MOST_OPEN = 200
"""Failures that still wait for a call that works: the oldest give way."""
_WRITING = ("file_edit", "file_write")
_ABOUT_ONE_THING = ("file_read", "file_search", "file_edit", "file_write", "web_access")
"""Tools that are at work on what they are given; of others, any call that works shows that they do."""


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """The call that worked where one had failed, and what was done between the two."""

    place: TurnPlace
    target: str
    files: tuple[str, ...]
    """Changed since the failure, in their order."""
    commands: tuple[str, ...]
    """Others that worked since the failure, and did more than look."""
    before: str | None
    """What the agent said last before it worked, since the failure."""
    after: str | None
    """What it said first when it had worked, before anybody asked for more."""


class CallFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A call that failed, or an error that the agent itself met."""

    place: TurnPlace
    tool: str | None
    """The agent's name for it; None for an error of the agent's own, such as one of its model."""
    canonical: Canonical | None
    target: str
    """What it was about: a command, a file."""
    error: str
    """The first lines that tell what was wrong."""
    exit_code: int | None
    fate: Fate
    fix: Fix | None
    """None where nothing of the kind worked later in the session."""

    @property
    def is_open(self) -> bool:
        """Whether something is broken still: a command or a server, where nobody only looked, or took it back.

        Of a tool of the agent's own that failed, such as an edit that did not fit, another way was found or not needed.
        """
        is_deed = self.canonical == "mcp" or (self.canonical == "shell_exec" and not is_look(self.target))
        return is_deed and self.fix is None and self.fate != "rewound"


class _OpenFailure(msgspec.Struct):
    """A failure, and as much of its fix as there is."""

    failure: CallFailure
    aim: tuple[str, ...]
    runs: Sequence[CommandRun]
    files: int
    commands: int
    words: int
    """How many files, commands and words there had been."""


class Failures:
    """What failed so far."""

    def __init__(self) -> None:
        self._found: list[CallFailure] = []
        self._waiting: deque[tuple[int, _OpenFailure]] = deque(maxlen=_MOST_OPEN)
        self._unspoken: list[int] = []
        """Fixes about which the agent has not said anything yet."""
        self._files: list[str] = []
        self._commands: list[str] = []
        self._said: tuple[int, str] = (0, "")
        self._command = ""

    def take(self, one: PlacedEntry) -> None:
        """Take in the next entry."""
        entry = one.entry
        if isinstance(entry, Event):
            if entry.kind == "error" and entry.text.strip():
                self._found.append(_of_event(one, entry))
            return
        if words_of(entry) is not None:
            self._unspoken = []
        if entry.role == "assistant" and not one.is_taken_back:
            self._hear(entry)
        for part in entry.parts:
            if isinstance(part, ToolCall):
                self._see(part, one)

    def found(self) -> tuple[CallFailure, ...]:
        """Return them in their order."""
        return tuple(self._found)

    def _hear(self, message: Message) -> None:
        words = first_sentences(words_said(message), WORDS)
        if not words:
            return
        for number in self._unspoken:
            failure = self._found[number]
            if failure.fix is not None:
                self._found[number] = _mended(failure, msgspec.structs.replace(failure.fix, after=words))
        self._unspoken = []
        self._said = (self._said[0] + 1, words)

    def _see(self, call: ToolCall, one: PlacedEntry) -> None:
        if call.canonical == "shell_exec":
            call = self._named(call)
        if is_failed(call):
            self._fail(call, one)
        elif is_done(call) and not one.is_taken_back:
            self._mend(call, one.place)
            self._files.extend(changed_files(call))
            if call.canonical == "shell_exec" and not is_look(command_of(call)):
                self._commands.append(target(call))

    def _named(self, call: ToolCall) -> ToolCall:
        """Return a call of a shell with its command: one that only waits for a command is about that."""
        self._command = command_of(call) or self._command
        return msgspec.structs.replace(call, arguments={**call.arguments, "command": self._command})

    def _fail(self, call: ToolCall, one: PlacedEntry) -> None:
        failure = CallFailure(
            place=one.place,
            tool=call.name,
            canonical=call.canonical,
            target=target(call),
            error=error_lines(call),
            exit_code=call.exit_code,
            fate=one.entry.fate,
            fix=None,
        )
        aim, run = _aim(call), _runs(call)
        waiting = _OpenFailure(failure, aim, run, len(self._files), len(self._commands), self._said[0])
        self._waiting.append((len(self._found), waiting))
        self._found.append(failure)

    def _mend(self, call: ToolCall, place: TurnPlace) -> None:
        """Close what waited for this call."""
        if not self._waiting:
            return
        aim, run = _aim(call), _runs(call)
        is_mended = [_is_same(aim, run, waiting) for _, waiting in self._waiting]
        for (number, waiting), mends in zip(list(self._waiting), is_mended, strict=True):
            if mends:
                self._found[number] = _mended(waiting.failure, self._fix(call, place, waiting))
                self._unspoken.append(number)
        if any(is_mended):
            left = [one for one, mends in zip(self._waiting, is_mended, strict=True) if not mends]
            self._waiting = deque(left, maxlen=_MOST_OPEN)

    def _fix(self, call: ToolCall, place: TurnPlace, waiting: _OpenFailure) -> Fix:
        spoken, words = self._said
        changed = [*self._files[waiting.files :], *changed_files(call)]
        return Fix(
            place=place,
            target=target(call),
            files=tuple(dict.fromkeys(changed))[:_MOST_BETWEEN],
            commands=tuple(dict.fromkeys(self._commands[waiting.commands :]))[-_MOST_BETWEEN:],
            before=words if spoken > waiting.words else None,
            after=None,
        )


def failures(entries: Iterable[Entry]) -> tuple[CallFailure, ...]:
    """Return what failed in a timeline, in its order."""
    found = Failures()
    for one in placed(entries):
        found.take(one)
    return found.found()


def _mended(failure: CallFailure, fix: Fix) -> CallFailure:
    return msgspec.structs.replace(failure, fix=fix)


def _of_event(one: PlacedEntry, event: Event) -> CallFailure:
    return CallFailure(
        place=one.place,
        tool=None,
        canonical=None,
        target="",
        error=telling_lines(event.text),
        exit_code=None,
        fate=event.fate,
        fix=None,
    )


def _aim(call: ToolCall) -> tuple[str, ...]:
    """Return what two calls have in common where one makes the other good; commands are compared by their runs."""
    if call.canonical == "shell_exec":
        return ("shell_exec", whole_target(call))
    if call.canonical in _ABOUT_ONE_THING:
        return ("write" if call.canonical in _WRITING else call.canonical, whole_target(call))
    return (call.name,)


def _runs(call: ToolCall) -> Sequence[CommandRun]:
    return runs(command_of(call)) if call.canonical == "shell_exec" else ()


def _is_same(aim: tuple[str, ...], run: Sequence[CommandRun], waiting: _OpenFailure) -> bool:
    return aim == waiting.aim or makes_good(run, waiting.runs)
