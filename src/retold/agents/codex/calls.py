"""A call with its result, and with what events say of it.

Evidence: `docs/formats/codex.md`, section 7.
"""

from datetime import datetime
from typing import Any

import msgspec

from retold.agents.codex.raw import Record
from retold.agents.codex.results import Result, as_object
from retold.agents.codex.state import Asked, End
from retold.agents.codex.tools import MCP, SPAWNS, base_name, kind, mcp_names
from retold.model.session import Message, Status, ToolCall

STATUSES: dict[str, Status] = {
    "completed": "success", "success": "success", "ok": "success", "failed": "error", "error": "error",
    "declined": "cancelled", "cancelled": "cancelled", "canceled": "cancelled", "rejected": "cancelled",
}  # fmt: skip
"""Codex's words for how a call ended; others mean that it has not."""
DONE = "item_completed"
"""Where a script's call keeps what the script did, under the name of the events that tell it."""


def message(asked: Asked, found: Result, at: datetime | None, waited_ms: int | None = None) -> Message:
    """Return the message of a call: where it was asked for, with what came back and how long that was waited for."""
    made = call(asked, found, at, waited_ms)
    for ended in asked.ends:
        made = enriched(made, ended)
    return Message(
        asked.id,
        "assistant",
        asked.at,
        "live",
        None,
        asked.model,
        asked.usage,
        (made,),
        response=asked.response,
        extra=asked.extra,
    )


def call(asked: Asked, found: Result, at: datetime | None, waited_ms: int | None = None) -> ToolCall:
    """Return a call with its result."""
    name, arguments = asked.name, asked.arguments
    canonical, category = kind(name, arguments)
    server, server_tool = mcp_names(name) if name.startswith(MCP) else (None, None)
    extra = asked.odd
    if found.rest is not None:
        extra = {**(extra or {}), **found.rest}
    return ToolCall(
        asked.call_id,
        name,
        canonical,
        category,
        arguments,
        found.status,
        asked.native_status,
        found.text,
        None,
        at,
        _child(name, found.text) if canonical == "agent" else None,
        exit_code=found.exit_code,
        server=server,
        server_tool=server_tool,
        attachments=found.attachments,
        extra=extra,
        took_ms=waited_ms if found.took_ms is None else found.took_ms,
    )


def call_in(entry: object) -> ToolCall | None:
    """Return the call that an entry tells of."""
    part = entry.parts[0] if type(entry) is Message and entry.parts else None
    return part if type(part) is ToolCall else None


def enriched(made: ToolCall, ended: End) -> ToolCall:
    """Return a call with what an event says of it; what the call says already is not said twice."""
    before = made.extra or {}
    extra = {key: value for key, value in ended.extra.items() if not _is_held(value, made)}
    if DONE in before and DONE in extra:
        extra[DONE] = [*before[DONE], *extra[DONE]]
    status = STATUSES.get(ended.status or "", made.status)
    return msgspec.structs.replace(
        made,
        status=made.status if made.status == "cancelled" else status,
        native_status=ended.status or made.native_status,
        exit_code=made.exit_code if ended.exit_code is None else ended.exit_code,
        error=ended.error if made.error is None else made.error,
        result=ended.result if made.result is None else made.result,
        server=ended.server or made.server,
        server_tool=ended.server_tool or made.server_tool,
        child=ended.child if base_name(made.name) == SPAWNS and ended.child else made.child,
        extra={**before, **extra} or None,
        took_ms=made.took_ms if ended.took_ms is None else ended.took_ms,
    )


def as_end(known: ToolCall) -> End:
    """Return what a call that only events told of says of the call that it turned out to be."""
    return End(
        known.native_status,
        known.exit_code,
        known.server,
        known.server_tool,
        known.child,
        known.result,
        known.error,
        known.extra or {},
        known.took_ms,
    )


def _is_held(value: Any, made: ToolCall) -> bool:
    if type(value) is str and made.result is not None and value.strip() in made.result:
        return True
    return value in (None, made.id, made.arguments) or value in made.arguments.values()


def _child(name: str, text: str | None) -> str | None:
    """Return the key of the thread that a call started, as the result names it."""
    if text is None or base_name(name) != SPAWNS:
        return None
    found: Record = as_object(text) or {}
    agent_id = found.get("agent_id")
    return f"codex:{agent_id}" if type(agent_id) is str else None
