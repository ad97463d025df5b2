"""`toolCalls` to our ToolCalls, and calls of one id in several versions to one."""

from collections.abc import Iterable
from typing import Any

import msgspec

from retold.agents.gemini.displays import display
from retold.agents.gemini.notes import Notes
from retold.agents.gemini.outputs import Outputs
from retold.agents.gemini.raw import TOOL_CALL_KEYS, Record
from retold.agents.gemini.results import Result, exit_code, result
from retold.agents.gemini.tools import CATEGORIES, SHELL_TOOLS, canonical, mcp_names
from retold.model.parts import Opaque, Status, ToolCall

MASKED = "<tool_output_masked>"
STATUSES: dict[Any, Status] = {"success": "success", "error": "error", "cancelled": "cancelled"}


def tool_calls(value: Any, notes: Notes, outputs: Outputs) -> list[ToolCall | Opaque]:
    """Return a message's tool calls; one that is no object is kept as it is."""
    if type(value) is not list:
        if value is not None:
            notes.kept("unexpected-shape", "toolCalls is no list")
            return [Opaque(value)]
        return []
    return [_checked(call, place, notes, outputs) for place, call in enumerate(value, 1)]


def _checked(call: Any, place: int, notes: Notes, outputs: Outputs) -> ToolCall | Opaque:
    if type(call) is dict and type(call.get("name")) is str:
        return tool_call(call, place, notes, outputs)
    notes.kept("unexpected-shape", "a tool call without a name")
    return Opaque(call)


def tool_call(call: Record, place: int, notes: Notes, outputs: Outputs) -> ToolCall:
    """Return one recorded call."""
    name, call_id = call["name"], call.get("id")
    if type(call_id) is not str:
        call_id = f"{name}-{place}"
    arguments, status = call.get("args"), call.get("status")
    extra = {} if call.keys() <= TOOL_CALL_KEYS else _extra(call, notes)
    if type(arguments) is not dict:
        if arguments is not None:
            extra = {**extra, "args": arguments}
            notes.kept("unexpected-shape", f"args of {name} is no object")
        arguments = {}
    found = result(call.get("result"), call_id)
    if found.rest:
        extra = {**extra, "result": found.rest}
    return built(
        call_id,
        name,
        arguments,
        found,
        STATUSES.get(status, "unknown") if status is not None else status_of(found),
        native_status=status if status is None or type(status) is str else str(status),
        at=notes.time(call.get("timestamp")),
        child=_text(call.get("agentId")),
        title=_text(call.get("displayName")),
        description=_text(call.get("description")),
        shown=display(call.get("resultDisplay")),
        is_markdown=call.get("renderOutputAsMarkdown") is True,
        full_result=outputs.full(found.text, notes),
        extra=extra,
    )


def built(  # noqa: PLR0913 - one argument a field that callers know
    call_id: str,
    name: str,
    arguments: Record,
    found: Result,
    status: Status,
    *,
    native_status: str | None = None,
    at: Any = None,
    child: str | None = None,
    title: str | None = None,
    description: str | None = None,
    shown: Any = None,
    is_markdown: bool = False,
    full_result: str | None = None,
    signature: str | None = None,
    extra: Record | None = None,
) -> ToolCall:
    """Return a ToolCall with everything that follows from its name and result."""
    server = mcp_names(title)
    kind = canonical(name, is_mcp=server is not None, starts_agent=child is not None)
    return ToolCall(
        call_id,
        name,
        kind,
        CATEGORIES[kind],
        arguments,
        status,
        native_status,
        found.text,
        found.error,
        at,
        child,
        title,
        description,
        shown,
        is_markdown,
        exit_code(found.text) if name in SHELL_TOOLS else None,
        server[0] if server else None,
        server[1] if server else None,
        found.attachments,
        full_result,
        (),
        signature,
        extra or {},
    )


def status_of(found: Result) -> Status:
    """Return the status that a result implies where none was recorded."""
    if found.error is not None:
        return "error"
    return "success" if found.text is not None or found.attachments else "unknown"


def merged_calls(versions: Iterable[list[ToolCall | Opaque]]) -> list[ToolCall | Opaque]:
    """Return each call once, from the version that says most, with the other results it had beside it."""
    by_id: dict[str, ToolCall] = {}
    opaque: list[Opaque] = []
    for version in versions:
        for call in version:
            if isinstance(call, Opaque):
                if call not in opaque:
                    opaque.append(call)
            else:
                known = by_id.get(call.id)
                by_id[call.id] = call if known is None else _richer(known, call)
    return [*by_id.values(), *opaque]


def _richer(first: ToolCall, second: ToolCall) -> ToolCall:
    """Prefer the later version, unless the agent has masked or lost the result in it."""
    best, other = second, first
    if (second.result is None and second.error is None) or (
        (second.result or "").startswith(MASKED) and not (first.result or "").startswith(MASKED)
    ):
        best, other = first, second
    texts = dict.fromkeys((*first.other_results, *second.other_results))
    texts |= dict.fromkeys(text for text in (other.result, other.error) if text)
    for own in (best.result, best.error):
        texts.pop(own or "", None)
    return msgspec.structs.replace(best, other_results=tuple(texts))


def _extra(call: Record, notes: Notes) -> Record:
    unknown = {key: value for key, value in call.items() if key not in TOOL_CALL_KEYS}
    notes.kept("unknown-part", "unknown keys in a tool call: " + ", ".join(sorted(unknown)))
    return unknown


def _text(value: Any) -> str | None:
    return value if type(value) is str else None
