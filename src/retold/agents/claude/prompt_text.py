"""What a person said, told apart from what Claude Code wrote in a person's place.

A text is classed by how it begins: people do paste tags into the middle of what they say.
Evidence: `docs/formats/claude.md`, section 6.
"""

import re
from typing import Any

from retold.model.session import Context, ContextKind, Part, Text

_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]*\]\s*")
CONTINUED = "This session is being continued"
REJECTED = (
    "The user doesn't want to proceed with this tool use.",
    "The user doesn't want to take this action right now.",
)
"""How the result of a call begins that a person refused, or broke off by not answering."""
_SAID = re.compile(r"the user said:\s*\n?(.*?)(?:\n\nNote: The user's next message .*)?\Z", re.DOTALL)

_MACHINE: tuple[tuple[str, ContextKind], ...] = (
    ("<local-command-stdout>", "command"),
    ("<local-command-stderr>", "command"),
    ("<local-command-caveat>", "command"),
    ("Caveat: The messages below", "command"),
    ("<bash-stdout>", "shell"),
    ("<bash-stderr>", "shell"),
    ("<task-notification>", "notification"),
    ("<teammate-message", "notification"),
    ("<cross-session-message", "notification"),
    ("<tick>", "notification"),
    ("<channel", "notification"),
    ("<user-prompt-submit-hook>", "hook"),
    ("<session-start-hook>", "hook"),
    ("Stop hook feedback:", "hook"),
    ("Operation stopped by hook", "hook"),
    ("Base directory for this skill", "skill"),
    ("[Image: source:", "referenced_files"),
)
_BLOCK = re.compile(
    r"\s*<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)>.*?</\1>\s*", re.DOTALL
)
_COMMAND = re.compile(r"<command-(name|message)>")
_TYPED = (("bash-input", "!"), ("user-memory-input", "#"))
"""What was typed behind a sign of its own: a command for the shell, something to remember."""
_OPENINGS = frozenset(opening[0] for opening, _ in _MACHINE) | {"<", "["}

_HUMAN_SOURCES = (None, "typed", "queued", "suggestion_accepted", "sdk")
_HUMAN_ORIGINS = (None, "human")

Said = tuple[str | None, list[Part]]
"""The human's own words, and all there is."""


def said(text: str) -> Said:
    """Return what of a text a person said."""
    bare = text.lstrip()
    if bare[:1] not in _OPENINGS:
        return (text, [Text(text)]) if bare else (None, [Text(text)])
    if _COMMAND.match(bare) and (command := _command(text)):
        return command, [Context("command", text)]
    for tag, sign in _TYPED:
        if bare.startswith(f"<{tag}>"):
            return sign + _piece(text, tag), [Context("command", text)]
    for opening, kind in _MACHINE:
        if bare.startswith(opening):
            return None, [Context(kind, text)]
    return _behind_blocks(text)


def _command(text: str) -> str:
    """Return a slash command as it was typed; nothing, if it has no name."""
    name = _piece(text, "command-name") or _piece(text, "command-message")
    return f"/{name.removeprefix('/')} {_piece(text, 'command-args')}".strip() if name else ""


def _piece(text: str, tag: str) -> str:
    """Return what stands between a tag and its end; all that follows, if it has none."""
    _, opened, rest = text.partition(f"<{tag}>")
    return rest.partition(f"</{tag}>")[0].strip() if opened else ""


def _behind_blocks(text: str) -> Said:
    """Cut off what the agent put before a person's words: reminders, and what was open in the editor."""
    parts: list[Part] = []
    end = 0
    while (block := _block(text, end)) is not None:
        kind, behind = block
        parts.append(Context(kind, text[end:behind]))
        end = behind
    rest = text[end:]
    if not parts:
        return (rest if rest.strip() else None), [Text(rest)]
    if not rest:
        return None, parts
    prompt, found = said(rest)
    return prompt, parts + found


def _block(text: str, start: int) -> tuple[ContextKind, int] | None:
    """Return what begins at a place that nobody said, and where it ends."""
    if (marker := _INTERRUPTED.match(text, start)) is not None:
        return "notification", marker.end()
    block = _BLOCK.match(text, start)
    return None if block is None else ("reminder" if block[1] == "system-reminder" else "ide", block.end())


def is_interruption(text: str) -> bool:
    """Tell whether a text is nothing but the mark of a turn that was stopped."""
    return _INTERRUPTED.fullmatch(text) is not None


def machine_kind(text: str) -> ContextKind:
    """Return what a text is that is marked as written by the agent itself."""
    bare = text.lstrip()
    return next((kind for opening, kind in _MACHINE if bare.startswith(opening)), "reminder")


def rejection_words(text: str) -> str | None:
    """Return what a person said when refusing a call."""
    match = _SAID.search(text) if text.startswith(REJECTED) else None
    return match[1].strip() or None if match else None


def is_human(told: dict[str, Any]) -> bool:
    """Tell whether nothing that a line says of where its words come from speaks against a person."""
    if not told:
        return True
    origin = told.get("origin")
    return (
        (origin.get("kind") if type(origin) is dict else None) in _HUMAN_ORIGINS
        and told.get("promptSource") in _HUMAN_SOURCES
        and told.get("isVisibleInTranscriptOnly") is not True
    )
