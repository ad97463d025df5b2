"""Guesses at tokens, for sessions that recorded none at all."""

from collections.abc import Sequence

import msgspec

from retold.model.entries import Entry, Message
from retold.model.parts import ToolCall
from retold.model.usage import Usage

BYTES_PER_TOKEN = 4
"""The usual rule of thumb for text and code."""


def estimated(timeline: Sequence[Entry], native_id: str) -> tuple[Entry, ...]:
    """Return the timeline with a guess for each answer: what was said before is its prompt."""
    entries: list[Entry] = []
    said = 0
    for place, entry in enumerate(timeline):
        if not isinstance(entry, Message):
            entries.append(entry)
            continue
        size = _message_size(entry)
        if entry.role == "assistant":
            given, output = _tokens(said), _tokens(size)
            request = f"{native_id}/{entry.id or place}"
            guess = Usage(request, given, None, 0, output, None, None, given + output, estimated=True)
            entry = msgspec.structs.replace(entry, usage=guess)  # noqa: PLW2901
        entries.append(entry)
        said += size
    return tuple(entries)


def _message_size(message: Message) -> int:
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            texts.extend((part.name, str(part.arguments), part.result or "", part.error or ""))
        else:
            texts.append(getattr(part, "text", None) or "")
    return sum(len(text.encode(errors="replace")) for text in texts)


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)
