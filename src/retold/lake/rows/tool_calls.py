"""Rows of calls, with their results."""

from collections.abc import Iterator

from retold.lake.rows.figures import small
from retold.lake.told import RowSource
from retold.model.serialization import encoded
from retold.model.session import Message, ToolCall
from retold.model.usage import LARGEST, stored_figure


def tool_call_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each call."""
    for seq, place, message, call in calls_in(told):
        yield (
            seq,
            place,
            call.id,
            call.name,
            call.canonical,
            call.category,
            call.server,
            call.status,
            call.native_status,
            small(call.exit_code),
            call.at or message.at,
            stored_figure(call.took_ms, LARGEST),
            message.fate,
            message.own,
            message.model,
            call.child,
            encoded(call.arguments).decode(),
            call.full_result if call.full_result is not None else call.result,
            call.error,
        )


def calls_in(told: RowSource) -> Iterator[tuple[int, int, Message, ToolCall]]:
    """Yield every call with its place in the timeline and among the parts of its message."""
    for seq, entry in enumerate(told.session.timeline):
        if isinstance(entry, Message):
            for place, part in enumerate(entry.parts):
                if isinstance(part, ToolCall):
                    yield seq, place, entry, part
