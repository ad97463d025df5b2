"""What stands in a message: the human's own words, and what Codex put there.

Evidence: `docs/formats/codex.md`, section 5.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from retold.agents.codex.raw import rest
from retold.model.serialization import shown_value
from retold.model.session import Attachment, Context, ContextKind, Opaque, Part, Text
from retold.reading.diagnostics import ReaderNotes

INJECTED: dict[str, ContextKind] = {
    "<environment_context>": "environment",
    "<user_instructions>": "environment",
    "# AGENTS.md instructions": "environment",
    "<INSTRUCTIONS>": "environment",
    "<turn_aborted>": "environment",
    "<user_action>": "environment",
    "<skill>": "environment",
    "<recommended_plugins>": "environment",
    "<codex_internal_context": "environment",
    "<goal_context>": "environment",
    "<current_time_reminder>": "environment",
    "<image_resize_notice>": "environment",
    "<realtime_delegation>": "environment",
    "<subagent_notification>": "background",
    "<guardian_sync_review>": "background",
    "<hook_prompt": "hook",
    "<user_shell_command>": "shell",
}
"""How a text begins that nobody typed; the last is what somebody ran, with its output."""
_BEGINNINGS = tuple(INJECTED)
_SHELL = re.compile(r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>", re.DOTALL)
_EDITOR = re.compile(
    r"\s*# (?:Context from my IDE setup|Files mentioned by the user|Review findings|Diff comments)\b"
)
_REQUEST = "## My request for Codex:"
_IMAGE_LABEL = re.compile(r"\s*(?:<image\b[^>]*>|</image>)\s*")
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_TEXTS = frozenset(("input_text", "output_text", "text", "Text"))
_TEXT = frozenset(("type", "text"))
_TYPED = "user.text"


class Said(msgspec.Struct, frozen=True, gc=False):
    """The parts of a message, and the words in it that may be the human's."""

    parts: tuple[Part, ...]
    words: str | None = None
    is_certain: bool = False
    """Whether the message itself tells that these words were typed."""


def said_by_user(content: Any, kinds: Any, notes: ReaderNotes) -> Said:
    """Tell the human's words from what Codex added; `kinds` names what each item is (0.166)."""
    items = _items(content)
    named = kinds if type(kinds) is list and len(kinds) == len(items) else None
    parts: list[Part] = []
    words: list[str] = []
    for place, item in enumerate(items):
        text = _text(item)
        if text is None:
            parts.append(other_part(item, notes))
        elif named is not None and named[place] != _TYPED:
            parts.append(Context(_injected_kind(text) or "environment", text))
        elif text.startswith("<user_shell_command>"):
            parts.append(Context("shell", text))
            words.append(_command(text))
        elif (kind := _injected_kind(text)) is not None:
            parts.append(Context(kind, text))
        elif _IMAGE_LABEL.fullmatch(text):
            parts.append(Context("referenced_files", text))
        else:
            before, own = without_editor(text)
            parts.extend(filter(None, (Context("ide", before) if before else None, Text(own))))
            words.append(own)
    return Said(tuple(parts), "\n".join(words) if words else None, named is not None)


def said(content: Any, notes: ReaderNotes) -> tuple[Part, ...]:
    """Return what a model said: text with what is noted in it, and what came along."""
    parts: list[Part] = []
    for item in _items(content):
        text = _text(item)
        parts.append(other_part(item, notes) if text is None else Text(text))
        beside = rest(item, _TEXT) if text is not None and type(item) is dict else None
        if beside is not None:
            parts.append(Opaque(beside))
    return tuple(parts)


def instructed(content: Any, notes: ReaderNotes) -> tuple[Part, ...]:
    """Return what Codex itself told the model."""
    return tuple(
        other_part(item, notes) if (text := _text(item)) is None else Context("environment", text)
        for item in _items(content)
    )


def texts(content: Any) -> Iterator[str]:
    """Yield the texts in a message's content."""
    return (text for item in _items(content) if (text := _text(item)) is not None)


def as_task(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a message that a model, not a human, gave to its subagent."""
    return tuple(Context("task", part.text) if type(part) is Text else part for part in parts)


def as_injected(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a message that turned out to be Codex's own."""
    return tuple(Context("environment", part.text) if type(part) is Text else part for part in parts)


def without_editor(text: str) -> tuple[str, str]:
    """Return what an editor put before a request, and the request."""
    if not _EDITOR.match(text):
        return "", text
    place = text.rfind(_REQUEST)
    if place < 0:
        return "", text
    end = place + len(_REQUEST)
    return text[:end], text[end:]


def is_shell_act(words: str) -> bool:
    """Tell whether somebody ran a command instead of saying something."""
    return words.startswith("!")


def attachment(item: dict[str, Any]) -> Attachment | None:
    """Return an image or a sound; None, if this is neither."""
    for key in ("image_url", "audio_url", "url", "path"):
        found = item.get(key)
        if type(found) is str and found:
            match = _DATA_URL.fullmatch(found)
            return Attachment(None, match[1] or None, match[2]) if match else Attachment(found)
    return None


def other_part(item: Any, notes: ReaderNotes) -> Part:
    """Return what is no text: an image, something sealed, or what nobody knows."""
    if type(item) is dict:
        if item.get("type") in ("input_image", "input_audio", "image", "localImage", "local_image"):
            return attachment(item) or Attachment()
        if item.get("type") in ("encrypted_content", "skill", "mention"):
            return Opaque(item)
    notes.kept("unknown-part", shown_value(item))
    return Opaque(item)


def _items(content: Any) -> list[Any]:
    if type(content) is list:
        return content
    return [] if content is None else [content]


def _text(item: Any) -> str | None:
    if type(item) is dict:
        text = item.get("text")
        kind = item.get("type")
        return text if type(text) is str and type(kind) is str and kind in _TEXTS else None
    return item if type(item) is str else None


def _injected_kind(text: str) -> ContextKind | None:
    start = text.lstrip()
    if not start.startswith(_BEGINNINGS):
        return None
    return next(kind for beginning, kind in INJECTED.items() if start.startswith(beginning))


def _command(text: str) -> str:
    match = _SHELL.match(text)
    return f"!{match[1] if match else ''}"
