"""`tool_use` blocks to our ToolCalls, and the results that come later into them."""

import re
from datetime import datetime

import msgspec

from retold.agents.claude.displays import Shown, shown
from retold.agents.claude.durations import took_ms
from retold.agents.claude.outputs import Outputs
from retold.agents.claude.raw import ToolUseBlock
from retold.agents.claude.results import Result
from retold.agents.claude.tools import kind, mcp_names
from retold.agents.claude.words import REJECTED
from retold.model.session import Status, ToolCall

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b")
_CANCELLED = (
    *REJECTED,
    "[Request interrupted by user",
    "[Tool call interrupted",
    "Permission prompt was aborted.",
    "The user rejected",
)


def tool_call(block: ToolUseBlock) -> ToolCall:
    """Return a call that has given nothing back yet."""
    canonical, category = kind(block.name)
    server = mcp_names(block.name)
    told = block.input.get("description")
    return ToolCall(
        block.id,
        block.name,
        canonical,
        category,
        block.input,
        "unknown",
        None,
        None,
        None,
        None,
        None,
        description=told if type(told) is str else None,
        server=server[0] if server else None,
        server_tool=server[1] if server else None,
        extra={"caller": block.caller} if block.caller not in (None, {"type": "direct"}) else None,
    )


def completed(  # noqa: PLR0913 - one argument a thing that neither the call nor the result knows
    call: ToolCall,
    found: Result,
    asked_at: datetime | None,
    at: datetime | None,
    session_id: str,
    outputs: Outputs,
) -> ToolCall:
    """Return a call with its result inside; a second result of the same call is kept beside the first."""
    text = found.text
    if call.status != "unknown":
        if not text or text in (call.result, call.error, *call.other_results):
            return call
        return msgspec.structs.replace(call, other_results=(*call.other_results, text))
    told = shown(found.twin, text, call.arguments)
    status = _status(found, told)
    failed = status != "success"
    code = _EXIT_CODE.match(text) if text is not None and found.is_error else None
    return ToolCall(
        call.id,
        call.name,
        call.canonical,
        call.category,
        call.arguments,
        status,
        None,
        None if failed else text,
        (text or "") if failed else None,
        at,
        f"claude:{session_id}/{told.agent_id}" if told.agent_id else None,
        description=call.description,
        display=told.display,
        exit_code=int(code[1]) if code else None,
        server=call.server,
        server_tool=call.server_tool,
        attachments=found.attachments,
        full_result=None if told.moved_to is None else outputs.full(text, told.moved_to),
        extra=call.extra if told.extra is None and found.rest is None else _extra(call, found, told),
        took_ms=took_ms(found.twin, asked_at, at),
    )


def _status(found: Result, told: Shown) -> Status:
    if told.was_interrupted or (found.text is not None and found.text.startswith(_CANCELLED)):
        return "cancelled"
    return "error" if found.is_error else "success"


def _extra(call: ToolCall, found: Result, told: Shown) -> dict[str, object] | None:
    beyond = {"toolUseResult": told.extra, "content": found.rest}
    return (call.extra or {}) | {key: value for key, value in beyond.items() if value is not None} or None
