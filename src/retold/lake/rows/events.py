"""Rows of the normalised events; what a tool gave back stands with its call alone."""

from collections.abc import Iterator
from typing import get_args

from retold.lake.told import RowSource
from retold.model.events import (
    AnyStep,
    AssistantText,
    SessionEnd,
    ToolResult,
    ToolUse,
    UserPrompt,
    sourced_steps,
)

KINDS = {kind: kind.__struct_config__.tag for kind in get_args(AnyStep)}
"""What events are called: to ask each of them takes longer than all else."""


def event_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each event."""
    for message, step in sourced_steps(told.session, with_text=True):
        said_by = None if message is None else message.id
        yield (step.seq, KINDS[type(step)], step.at, step.at_derived, step.fate, said_by, *_about_event(step))


def _about_event(step: AnyStep) -> tuple[object, ...]:
    """Return call, tool, canonical, category, status and text; most events are of calls."""
    if isinstance(step, ToolUse | ToolResult):
        tool, went = step.tool, step.status if isinstance(step, ToolResult) else None
        return step.call_id, tool.name, tool.canonical, tool.category, went, None
    ended = step.status if isinstance(step, SessionEnd) else None
    text = step.text if isinstance(step, UserPrompt | AssistantText) else None
    return None, None, None, None, ended, text
