"""Separates a person's words from the text that Codex adds to a message. Evidence: `docs/formats/codex.md`, section 5."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from retold.agents.codex.raw import unknown_fields
from retold.model.serialization import short_repr
from retold.model.session import Attachment, Context, ContextKind, Opaque, Part, Text
from retold.reading.diagnostics import ReaderNotes

CONTEXT_OPENINGS: dict[str, ContextKind] = {
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
"""Openings of texts that nobody typed; the last is a command that a person ran, with its output."""
_OPENINGS = tuple(CONTEXT_OPENINGS)
_SHELL = re.compile(r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>", re.DOTALL)
_EDITOR = re.compile(
    r"\s*# (?:Context from my IDE setup|Files mentioned by the user|Review findings|Diff comments)\b"
)
_REQUEST = "## My request for Codex:"
_IMAGE_LABEL = re.compile(r"\s*(?:<image\b[^>]*>|</image>)\s*")
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_TEXT_TYPES = frozenset(("input_text", "output_text", "text", "Text"))
_TEXT_KEYS = frozenset(("type", "text"))
_TYPED_KIND = "user.text"


class UserContent(msgspec.Struct, frozen=True, gc=False):
    """The parts of a message, and the words that may be a person's."""

    parts: tuple[Part, ...]
    words: str | None = None
    is_certain: bool = False
    """Whether the message itself says that these words were typed."""


def split_user_content(content: Any, kinds: Any, notes: ReaderNotes) -> UserContent:
    """Return the parts of a user's message and the person's words; `kinds` has the kind of each item (0.166)."""
    items = _items(content)
    item_kinds = kinds if type(kinds) is list and len(kinds) == len(items) else None
    parts: list[Part] = []
    words: list[str] = []
    for place, item in enumerate(items):
        text = _text(item)
        if text is None:
            parts.append(normalise_other_part(item, notes))
        elif item_kinds is not None and item_kinds[place] != _TYPED_KIND:
            parts.append(Context(_context_kind(text) or "environment", text))
        elif text.startswith("<user_shell_command>"):
            parts.append(Context("shell", text))
            words.append(_shell_command(text))
        elif (kind := _context_kind(text)) is not None:
            parts.append(Context(kind, text))
        elif _IMAGE_LABEL.fullmatch(text):
            parts.append(Context("referenced_files", text))
        else:
            before, own = split_editor_context(text)
            parts.extend(filter(None, (Context("ide", before) if before else None, Text(own))))
            words.append(own)
    return UserContent(tuple(parts), "\n".join(words) if words else None, item_kinds is not None)


def normalise_answer(content: Any, notes: ReaderNotes) -> tuple[Part, ...]:
    """Return the parts of a model's message."""
    parts: list[Part] = []
    for item in _items(content):
        text = _text(item)
        parts.append(normalise_other_part(item, notes) if text is None else Text(text))
        fields = unknown_fields(item, _TEXT_KEYS) if text is not None and type(item) is dict else None
        if fields is not None:
            parts.append(Opaque(fields))
    return tuple(parts)


def normalise_instructions(content: Any, notes: ReaderNotes) -> tuple[Part, ...]:
    """Return the parts of Codex's instructions to the model."""
    return tuple(
        normalise_other_part(item, notes) if (text := _text(item)) is None else Context("environment", text)
        for item in _items(content)
    )


def content_texts(content: Any) -> Iterator[str]:
    """Yield the texts in a message's content."""
    return (text for item in _items(content) if (text := _text(item)) is not None)


def as_context(kind: ContextKind, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a message that no person wrote: a model's task for its subagent, or a text of Codex."""
    return tuple(Context(kind, part.text) if type(part) is Text else part for part in parts)


def split_editor_context(text: str) -> tuple[str, str]:
    """Return the editor's text in front of a request, and the request."""
    if not _EDITOR.match(text):
        return "", text
    place = text.rfind(_REQUEST)
    if place < 0:
        return "", text
    end = place + len(_REQUEST)
    return text[:end], text[end:]


def is_shell_command(words: str) -> bool:
    """Return whether a person ran a command instead of saying something."""
    return words.startswith("!")


def make_attachment(item: dict[str, Any]) -> Attachment | None:
    """Return an image or a sound; None for another item."""
    for key in ("image_url", "audio_url", "url", "path"):
        address = item.get(key)
        if type(address) is str and address:
            match = _DATA_URL.fullmatch(address)
            return Attachment(None, match[1] or None, match[2]) if match else Attachment(address)
    return None


def normalise_other_part(item: Any, notes: ReaderNotes) -> Part:
    """Return the part of an item that is no text: an image, a sealed or an unknown one."""
    if type(item) is dict:
        if item.get("type") in ("input_image", "input_audio", "image", "localImage", "local_image"):
            return make_attachment(item) or Attachment()
        if item.get("type") in ("encrypted_content", "skill", "mention"):
            return Opaque(item)
    notes.add_opaque("unknown-part", short_repr(item))
    return Opaque(item)


def _items(content: Any) -> list[Any]:
    if type(content) is list:
        return content
    return [] if content is None else [content]


def _text(item: Any) -> str | None:
    if type(item) is dict:
        text = item.get("text")
        kind = item.get("type")
        return text if type(text) is str and type(kind) is str and kind in _TEXT_TYPES else None
    return item if type(item) is str else None


def _context_kind(text: str) -> ContextKind | None:
    start = text.lstrip()
    if not start.startswith(_OPENINGS):
        return None
    return next(kind for beginning, kind in CONTEXT_OPENINGS.items() if start.startswith(beginning))


def _shell_command(text: str) -> str:
    match = _SHELL.match(text)
    return f"!{match[1] if match else ''}"
