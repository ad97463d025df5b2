"""Rows of entries: messages, and events that nobody said."""

from collections.abc import Iterator

from retold.lake.told import RowSource
from retold.model.session import Context, Entry, Event, Message, Text, Thinking, ToolCall


def message_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each entry of the timeline."""
    for seq, entry in enumerate(told.session.timeline):
        yield (seq, entry.id, *_about_entry(entry))


def _about_entry(entry: Entry) -> tuple[object, ...]:
    if isinstance(entry, Event):
        text = entry.text or None
        return (None, entry.kind, entry.at, entry.fate, entry.own, False, None, None, 0, text, None, None)
    return (
        entry.role,
        None,
        entry.at,
        entry.fate,
        entry.own,
        entry.prompt is not None,
        entry.model,
        entry.usage.request if entry.usage else None,
        sum(isinstance(part, ToolCall) for part in entry.parts),
        entry.prompt if entry.prompt is not None else _joined(entry, Text),
        _joined(entry, Thinking),
        _context(entry),
    )


def _joined(message: Message, kind: type[Text | Thinking]) -> str | None:
    return "\n".join(part.text for part in message.parts if isinstance(part, kind)) or None


def _context(message: Message) -> str | None:
    """Return what the agent put into a message; a result that belongs to a call is told with it."""
    texts = (part.text for part in message.parts if isinstance(part, Context) and part.call is None)
    return "\n".join(filter(None, texts)) or None
