"""Tool results that stand in records of their own, brought to their calls."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeGuard

import msgspec

from retold.agents.gemini.calls import status_of
from retold.agents.gemini.notes import Notes
from retold.agents.gemini.results import Result, exit_code
from retold.agents.gemini.state import Place
from retold.agents.gemini.tools import SHELL_TOOLS
from retold.model.session import Context, Entry, Message, Part, ToolCall


class Placed(NamedTuple):
    """An entry, where its record stands, and whether it only repeats what may be said elsewhere."""

    entry: Entry
    place: Place | None = None
    may_go: bool = False


def paired(placed: Sequence[Placed], notes: Notes) -> tuple[Entry, ...]:
    """Return the entries with each tool result in its call, and only a mention of it where it stood.

    What may go does, when the calls say all that it had to say.
    """
    if not notes.has_results:
        return tuple([entry for entry, _, _ in placed])
    calls = _answered_calls([entry for entry, _, _ in placed])
    kept: list[Entry] = []
    for entry, notes.place, may_go in placed:
        told = _told(entry, calls, notes) if isinstance(entry, Message) else entry
        if not may_go or not isinstance(told, Message) or any(map(_says, told.parts)):
            kept.append(told)
    return tuple(kept)


def _answered_calls(entries: Iterable[Entry]) -> dict[str, ToolCall]:
    """Return every call by id, with all the results that any record has for it."""
    messages = [entry for entry in entries if isinstance(entry, Message)]
    calls = {part.id: part for message in messages for part in message.parts if isinstance(part, ToolCall)}
    for message in messages:
        for part in message.parts:
            if _is_result(part) and part.call in calls:
                calls[part.call] = _answered(calls[part.call], part)
    return calls


def _is_result(part: Part) -> TypeGuard[Context]:
    return isinstance(part, Context) and part.kind == "tool_result"


def _answered(call: ToolCall, result: Context) -> ToolCall:
    if call.result is not None or call.error is not None or call.attachments:
        if result.text is None or result.text in (call.result, call.error, *call.other_results):
            return call
        return msgspec.structs.replace(call, other_results=(*call.other_results, result.text))
    found = Result(None, result.text) if result.is_error else Result(result.text, None, result.attachments)
    return msgspec.structs.replace(
        call,
        result=found.text,
        error=found.error,
        attachments=found.attachments,
        status=status_of(found) if call.native_status is None else call.status,
        exit_code=exit_code(found.text) if found.text is not None and call.name in SHELL_TOOLS else None,
    )


def _told(entry: Message, calls: dict[str, ToolCall], notes: Notes) -> Message:
    parts: tuple[Part, ...] = tuple(_brought(part, calls, notes) for part in entry.parts)
    return msgspec.structs.replace(entry, parts=parts)


def _brought(part: Part, calls: dict[str, ToolCall], notes: Notes) -> Part:
    if isinstance(part, ToolCall):
        answered = calls[part.id]  # a superseded version may have asked for something else
        return answered if part.arguments == answered.arguments else part
    if _is_result(part) and part.call is not None:
        return _mentioned(part, calls.get(part.call), notes)
    return part


def _mentioned(part: Context, call: ToolCall | None, notes: Notes) -> Context:
    if call is None:
        notes.add("orphan-tool-result", part.call or "")
        return part
    attachments = tuple(attached for attached in part.attachments if attached not in call.attachments)
    return msgspec.structs.replace(part, text=None, attachments=attachments)


def _says(part: Part) -> bool:
    return part.text is not None or bool(part.attachments) if _is_result(part) else True
