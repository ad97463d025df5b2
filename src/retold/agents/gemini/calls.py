"""`toolCalls` to our ToolCalls, and calls of one id in several versions to one."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from retold.agents.gemini.displays import display
from retold.agents.gemini.durations import took_ms
from retold.agents.gemini.notes import Notes
from retold.agents.gemini.outputs import MARKS
from retold.agents.gemini.raw import TOOL_CALL_KEYS, Record
from retold.agents.gemini.results import Result, exit_code, result
from retold.agents.gemini.setting import Setting
from retold.agents.gemini.tools import KINDS, MCP_ENDING, SHELL_TOOLS, STARTS_AGENT, kind, mcp_names
from retold.agents.gemini.usual import ToolCallRecord
from retold.model.session import Display, Opaque, Status, ToolCall

MASKED = "<tool_output_masked>"
STATUSES: dict[Any, Status] = {"success": "success", "error": "error", "cancelled": "cancelled"}


def tool_calls(value: Any, said_at: datetime | None, setting: Setting) -> list[ToolCall | Opaque]:
    """Return a message's tool calls; one that is no object is kept as it is."""
    if type(value) is list:
        return [tool_call(call, said_at, setting) for call in value]
    setting.notes.kept("unexpected-shape", "toolCalls is no list")
    return [Opaque(value)]


def tool_call(call: Any, said_at: datetime | None, setting: Setting) -> ToolCall | Opaque:
    """Return one recorded call."""
    notes = setting.notes
    name = call.get("name") if type(call) is dict else None
    if type(name) is not str:
        notes.kept("unexpected-shape", "a tool call without a name")
        return Opaque(call)
    field = call.get
    call_id, arguments, status, title = field("id"), field("args"), field("status"), field("displayName")
    if type(call_id) is not str:
        call_id = notes.call_id(name)
    found = result(field("result"), call_id)
    text = found.text
    notes.has_agents = notes.has_agents or name in STARTS_AGENT
    extra = None
    if found.rest is not None or type(arguments) is not dict or not call.keys() <= TOOL_CALL_KEYS:
        extra = _extra(call, found, notes)
        arguments = arguments if type(arguments) is dict else {}
    child, description, done_at = field("agentId"), field("description"), notes.time(field("timestamp"))
    return built(
        call_id,
        name,
        arguments,
        found,
        STATUSES.get(status, "unknown") if type(status) is str else status_of(found),
        status if status is None or type(status) is str else str(status),
        done_at,
        setting.child(child) if type(child) is str else None,
        title if type(title) is str else None,
        description if type(description) is str else None,
        display(field("resultDisplay")),
        field("renderOutputAsMarkdown") is True,
        setting.outputs.full(text, setting.notes) if text is not None and text.startswith(MARKS) else None,
        None,
        extra,
        took_ms(call_id, said_at, done_at),
    )


def usual_call(call: ToolCallRecord, said_at: datetime, setting: Setting) -> ToolCall:
    """Return a call whose every field is known to be of its kind: `built`, without a step between."""
    given = call.result[0].function_response.response
    name, title, text = call.name, call.display_name, given.output
    server = mcp_names(title) if title is not None and title.endswith(MCP_ENDING) else None
    canonical, category = KINDS.get(name) or kind(name, server is not None, call.agent_id is not None)
    if name in STARTS_AGENT:
        setting.notes.has_agents = True
    return ToolCall(
        call.id,
        name,
        canonical,
        category,
        call.args,
        STATUSES.get(call.status, "unknown"),
        call.status,
        text,
        given.error,
        call.timestamp,
        setting.child(call.agent_id),
        title,
        call.description,
        display(call.result_display),
        call.render_output_as_markdown,
        exit_code(text) if text is not None and name in SHELL_TOOLS else None,
        server[0] if server else None,
        server[1] if server else None,
        (),
        setting.outputs.full(text, setting.notes) if text is not None and text.startswith(MARKS) else None,
        (),
        None,
        None,
        took_ms(call.id, said_at, call.timestamp),
    )


def built(  # noqa: PLR0913 - one argument a field that callers know
    call_id: str,
    name: str,
    arguments: Record,
    found: Result,
    status: Status,
    native_status: str | None = None,
    at: datetime | None = None,
    child: str | None = None,
    title: str | None = None,
    description: str | None = None,
    shown: Display | None = None,
    is_markdown: bool = False,  # noqa: FBT001, FBT002 - by position: this is the hottest call there is
    full_result: str | None = None,
    signature: str | None = None,
    extra: Record | None = None,
    took: int | None = None,
) -> ToolCall:
    """Return a ToolCall with everything that follows from its name and result."""
    server = mcp_names(title) if title is not None and title.endswith(MCP_ENDING) else None
    canonical, category = kind(name, server is not None, child is not None)
    return ToolCall(
        call_id,
        name,
        canonical,
        category,
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
        exit_code(found.text) if found.text is not None and name in SHELL_TOOLS else None,
        server[0] if server else None,
        server[1] if server else None,
        found.attachments,
        full_result,
        (),
        signature,
        extra,
        took,
    )


def status_of(found: Result) -> Status:
    """Return the status that a result implies where none was recorded."""
    if found.error is not None:
        return "error"
    return "success" if found.text is not None or found.attachments else "unknown"


def are_identified(value: Any) -> bool:
    """Tell whether every call in a list has an id, by which it can be found in another version."""
    return type(value) is list and all(type(call) is dict and type(call.get("id")) is str for call in value)


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


def _extra(call: Record, found: Result, notes: Notes) -> Record | None:
    """Return what a call holds beyond the known, under the agent's own names."""
    extra = {key: value for key, value in call.items() if key not in TOOL_CALL_KEYS}
    if extra:
        notes.kept("unknown-part", "unknown keys in a tool call: " + ", ".join(sorted(extra)))
    if type(call.get("args")) not in (dict, type(None)):
        notes.kept("unexpected-shape", f"args of {call['name']} is no object")
        extra["args"] = call["args"]
    if found.rest is not None:
        extra["result"] = found.rest
    return extra or None
