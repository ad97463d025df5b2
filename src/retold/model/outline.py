"""Entries without what was said at length: enough to list, count and sum up a session of any size."""

from typing import Any

import msgspec

from retold.model.entries import Entry, Event
from retold.model.parts import ToolCall

SHORT = 1_000
"""Texts in a tool's arguments up to this length stay: paths, patterns, most commands."""


def outlined(entry: Entry) -> Entry:
    """Return an entry that counts the same; of its parts only the calls are left, without what they gave back."""
    if isinstance(entry, Event):
        return Event(entry.id, entry.kind, entry.at, entry.fate, "", own=entry.own)
    calls = tuple([_outlined_call(part) for part in entry.parts if type(part) is ToolCall])
    return msgspec.structs.replace(entry, parts=calls, extra=None)


def _outlined_call(call: ToolCall) -> ToolCall:
    return ToolCall(
        call.id,
        call.name,
        call.canonical,
        call.category,
        {name: value for name, value in call.arguments.items() if _is_short(value)},
        call.status,
        call.native_status,
        None,
        None,
        call.at,
        call.child,
        server=call.server,
    )


def _is_short(value: Any) -> bool:
    return type(value) is str and len(value) <= SHORT
