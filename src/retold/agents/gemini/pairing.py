"""Tool results that stand in records of their own, brought to their calls."""

from collections.abc import Callable, Sequence

import msgspec

from retold.agents.gemini.calls import status_of
from retold.agents.gemini.notes import Notes
from retold.agents.gemini.results import Result, exit_code
from retold.agents.gemini.tools import SHELL_TOOLS
from retold.model.entries import Entry, Message
from retold.model.parts import Context, Part, ToolCall


def paired(
    entries: Sequence[Entry], notes: Notes, drops: Callable[[Message], bool] | None = None
) -> tuple[Entry, ...]:
    """Return the entries with each tool result in its call, and only a mention of it where it stood.

    A record for which `drops` holds is left out when all it had to say is said by the calls.
    """
    if not notes.has_results:
        return tuple(entries)
    calls = {part.id: part for entry in entries if isinstance(entry, Message) for part in _calls(entry)}
    for entry in entries:
        for result in _results(entry):
            call = calls.get(result.call or "")
            if call is not None and _is_unanswered(call):
                calls[call.id] = _answered(call, result)
    kept: list[Entry] = []
    for entry in entries:
        if isinstance(entry, Message):
            told = _told(entry, calls, notes)
            if drops is None or not drops(entry) or any(_says(part) for part in told.parts):
                kept.append(told)
        else:
            kept.append(entry)
    return tuple(kept)


def _calls(entry: Message) -> list[ToolCall]:
    return [part for part in entry.parts if isinstance(part, ToolCall)]


def _results(entry: Entry) -> list[Context]:
    if not isinstance(entry, Message) or entry.role != "user":
        return []
    return [part for part in entry.parts if isinstance(part, Context) and part.kind == "tool_result"]


def _is_unanswered(call: ToolCall) -> bool:
    return call.result is None and call.error is None and not call.attachments


def _answered(call: ToolCall, result: Context) -> ToolCall:
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
        return calls[part.id] if _is_unanswered(part) else part
    if not isinstance(part, Context) or part.kind != "tool_result" or part.call is None:
        return part
    call = calls.get(part.call)
    if call is None:
        notes.add("orphan-tool-result", part.call)
        return part
    text = None if part.text in (call.result, call.error, *call.other_results) else part.text
    attachments = tuple(attached for attached in part.attachments if attached not in call.attachments)
    return msgspec.structs.replace(part, text=text, attachments=attachments)


def _says(part: Part) -> bool:
    is_mention = isinstance(part, Context) and part.kind == "tool_result" and part.text is None
    return not is_mention or bool(isinstance(part, Context) and part.attachments)
