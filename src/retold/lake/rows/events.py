"""Rows of the normalised events; what a tool gave back stands with its call alone."""

from collections.abc import Iterator

from retold.lake.told import Told
from retold.model.entries import Message
from retold.model.steps import (
    AnyStep,
    AssistantText,
    SessionEnd,
    ToolResult,
    ToolUse,
    UserPrompt,
    sourced_steps,
)


def rows(told: Told) -> Iterator[tuple[object, ...]]:
    """Yield a row for each event."""
    for message, step in sourced_steps(told.session, with_text=True):
        kind = step.__struct_config__.tag
        yield (step.seq, kind, step.at, step.at_derived, step.fate, *_about(message, step))


def _about(message: Message | None, step: AnyStep) -> tuple[object, ...]:
    """Return message, call, tool, canonical, category, status and text."""
    said_by = None if message is None else message.id
    match step:
        case ToolUse(call_id=call, tool=tool):
            return said_by, call, tool.name, tool.canonical, tool.category, None, None
        case ToolResult(call_id=call, tool=tool, status=status):
            return said_by, call, tool.name, tool.canonical, tool.category, status, None
        case UserPrompt(text=text) | AssistantText(text=text):
            return said_by, None, None, None, None, None, text
        case SessionEnd(status=ended):
            return said_by, None, None, None, None, ended, None
    return said_by, None, None, None, None, None, None
