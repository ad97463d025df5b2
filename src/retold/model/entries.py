"""What stands in a timeline: messages, and events that nobody said."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from retold.model.parts import Opaque, Part, Text
from retold.model.usage import Usage

Role = Literal["user", "assistant", "system"]
Fate = Literal["live", "rewound", "compacted", "superseded"]
EventKind = Literal["compaction", "info", "warning", "error", "notice"]


class Message(msgspec.Struct, frozen=True, tag="message", omit_defaults=True, gc=False):
    """One message, in parts, with what became of it."""

    id: str | None
    """The record's own id; none where the record has none."""
    role: Role
    at: datetime | None
    fate: Fate
    prompt: str | None
    """The human's own words; none where no human spoke."""
    model: str | None
    usage: Usage | None
    parts: tuple[Part, ...]
    own: bool = True
    """False for an entry that was copied from another session."""
    response: str | None = None
    """The response of the model that this is a piece of, where one is recorded in several messages."""
    extra: dict[str, Any] | None = None
    """What else the agent recorded with this message, under its own names."""


class Event(msgspec.Struct, frozen=True, tag="event", omit_defaults=True, gc=False):
    """Something that happened between messages."""

    id: str | None
    kind: EventKind
    at: datetime | None
    fate: Fate
    text: str
    opaque: Opaque | None = None
    own: bool = True
    extra: dict[str, Any] | None = None
    """What else the agent recorded with this event, under its own names."""


Entry = Message | Event


def words_of(entry: Entry) -> str | None:
    """Return what a person said, here or in the session that it was copied from; None where nobody did."""
    if not isinstance(entry, Message) or entry.role != "user":
        return None
    return entry.prompt if entry.prompt is not None or entry.own else first_text(entry)


def is_copied_prompt(message: Message) -> bool:
    """Tell whether a person said it in another session: here nobody did."""
    return not message.own and first_text(message) is not None


def first_text(message: Message) -> str | None:
    """Return the first words of a message, whoever said them."""
    return next((part.text for part in message.parts if isinstance(part, Text)), None)
