"""Tasks that an agent gave its subagent: up to 0.36 they stand as user messages in the main file.

Such a message comes before the call that started the subagent, and holds the call's arguments between tags, as
`<objective>…</objective>`. A person's own words may well repeat an argument, but not so wrapped.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from retold.agents.gemini.tools import STARTS_AGENT
from retold.agents.gemini.words import as_task
from retold.model.entries import Entry, Message
from retold.model.parts import ToolCall


def with_tasks_told(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries with every task marked as such: nobody typed it."""
    told = list(entries)
    asked: int | None = None
    for place, entry in enumerate(entries):
        if type(entry) is not Message:
            continue
        if entry.prompt is not None:
            asked = place
        elif asked is not None:
            started = [part for part in entry.parts if type(part) is ToolCall and part.name in STARTS_AGENT]
            question = told[asked]
            if started and isinstance(question, Message) and _is_task(question.prompt or "", started):
                told[asked] = msgspec.structs.replace(question, prompt=None, parts=as_task(question.parts))
                asked = None
    return told


def _is_task(text: str, calls: Iterable[ToolCall]) -> bool:
    return any(_is_wrapped(value, text) for call in calls for value in call.arguments.values())


def _is_wrapped(value: Any, text: str) -> bool:
    if type(value) is not str or not value.strip() or value.strip() not in text:
        return False
    return re.search(rf"<(\w+)>\s*{re.escape(value.strip())}\s*</\1>", text) is not None
