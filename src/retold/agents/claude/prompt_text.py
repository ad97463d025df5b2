"""Separates a person's words from the text that Claude Code writes in a person's place.

The opening of a text decides: people paste tags into the middle of their words.
Evidence: `docs/formats/claude.md`, section 6.
"""

import re
from typing import Any

from retold.model.session import Context, ContextKind, Part, Text

_INTERRUPTION = re.compile(r"\[Request interrupted by user[^\]\n]*\]\s*")
CONTINUATION_OPENING = "This session is being continued"
REJECTION_OPENINGS = (
    "The user doesn't want to proceed with this tool use.",
    "The user doesn't want to take this action right now.",
)
"""Openings of the result of a call that a person refused, or left unanswered."""
_REJECTION_WORDS = re.compile(
    r"the user said:\s*\n?(.*?)(?:\n\nNote: The user's next message .*)?\Z", re.DOTALL
)
_CONTEXT_OPENINGS: tuple[tuple[str, ContextKind], ...] = (
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
_SIGNS = (("bash-input", "!"), ("user-memory-input", "#"))
"""Signs in front of typed words: `!` for a command of the shell, `#` for something to remember."""
_FIRST_CHARACTERS = frozenset(opening[0] for opening, _ in _CONTEXT_OPENINGS) | {"<", "["}
_HUMAN_SOURCES = (None, "typed", "queued", "suggestion_accepted", "sdk")
_HUMAN_ORIGINS = (None, "human")
SplitPrompt = tuple[str | None, list[Part]]
"""The person's words, and all parts."""


def split_prompt(text: str) -> SplitPrompt:
    """Return the person's words in a text, and its parts."""
    bare = text.lstrip()
    if bare[:1] not in _FIRST_CHARACTERS:
        return (text, [Text(text)]) if bare else (None, [Text(text)])
    if _COMMAND.match(bare) and (command := _command(text)):
        return command, [Context("command", text)]
    for tag, sign in _SIGNS:
        if bare.startswith(f"<{tag}>"):
            return sign + _tag_content(text, tag), [Context("command", text)]
    for opening, kind in _CONTEXT_OPENINGS:
        if bare.startswith(opening):
            return None, [Context(kind, text)]
    return _split_leading_blocks(text)


def _command(text: str) -> str:
    """Return a slash command as it was typed; an empty text if it has no name."""
    name = _tag_content(text, "command-name") or _tag_content(text, "command-message")
    return f"/{name.removeprefix('/')} {_tag_content(text, 'command-args')}".strip() if name else ""


def _tag_content(text: str, tag: str) -> str:
    """Return the text between a tag and its end, or all text after a tag without an end."""
    _, opened, rest = text.partition(f"<{tag}>")
    return rest.partition(f"</{tag}>")[0].strip() if opened else ""


def _split_leading_blocks(text: str) -> SplitPrompt:
    """Split off the agent's texts in front of a person's words: reminders, and the state of the editor."""
    parts: list[Part] = []
    end = 0
    while (block := _match_leading_block(text, end)) is not None:
        kind, behind = block
        parts.append(Context(kind, text[end:behind]))
        end = behind
    rest = text[end:]
    if not parts:
        return (rest if rest.strip() else None), [Text(rest)]
    if not rest:
        return None, parts
    prompt, found = split_prompt(rest)
    return prompt, parts + found


def _match_leading_block(text: str, start: int) -> tuple[ContextKind, int] | None:
    """Return the kind and the end of an agent's text that starts at a place."""
    if (marker := _INTERRUPTION.match(text, start)) is not None:
        return "notification", marker.end()
    block = _BLOCK.match(text, start)
    return None if block is None else ("reminder" if block[1] == "system-reminder" else "ide", block.end())


def is_interruption(text: str) -> bool:
    """Return whether a text is only the mark of an interrupted turn."""
    return _INTERRUPTION.fullmatch(text) is not None


def context_kind(text: str) -> ContextKind:
    """Return the kind of a text that the agent wrote itself."""
    bare = text.lstrip()
    return next((kind for opening, kind in _CONTEXT_OPENINGS if bare.startswith(opening)), "reminder")


def rejection_words(text: str) -> str | None:
    """Return a person's words in the refusal of a call."""
    match = _REJECTION_WORDS.search(text) if text.startswith(REJECTION_OPENINGS) else None
    return match[1].strip() or None if match else None


def is_human(extra: dict[str, Any]) -> bool:
    """Return whether the fields about the origin of a line allow that a person wrote it."""
    if not extra:
        return True
    origin = extra.get("origin")
    return (
        (origin.get("kind") if type(origin) is dict else None) in _HUMAN_ORIGINS
        and extra.get("promptSource") in _HUMAN_SOURCES
        and extra.get("isVisibleInTranscriptOnly") is not True
    )
