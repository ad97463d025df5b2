"""What events say of calls: exit codes, servers, threads that were started, patches that were applied.

Evidence: `docs/formats/codex.md`, section 7.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from retold.agents.codex.durations import event_ms
from retold.agents.codex.pairing import end, end_script, put_inner, search_name
from retold.agents.codex.raw import Record, rest, text_or_none
from retold.agents.codex.state import Asked, End, State
from retold.agents.codex.tools import EVENT_TOOLS

_IDS = ("call_id", "callId", "id", "event_id")
_TOLD_ELSEWHERE = frozenset((*_IDS, "type", "status", "exit_code"))


def ended(state: State, told: Record, at: datetime | None) -> None:
    """Add to a call what an event, or a completed item, says of it; alone, it is a call of its own."""
    known = msgspec.structs.replace(END_TYPES[told["type"]](told), took_ms=event_ms(told))
    names = [told[key] for key in _IDS if type(told.get(key)) is str]
    if "action" in told:
        names.append(search_name(told["action"]))
    if any(end(state, name, known) for name in names) or end_script(state, told):
        return
    tool = _tool(told, known)
    name = names[-1] if names else state.notes.call_id(tool)
    call_id = names[0] if names else name
    asked = Asked(call_id, tool, _arguments(told), None, None, None, at, state.model, "", None)
    put_inner(state, asked, known, name)


def _tool(told: Record, known: End) -> str:
    """Return the name of the tool that an event tells of."""
    if known.server is not None:
        return f"mcp__{known.server}__{known.server_tool}"
    return EVENT_TOOLS.get(told["type"]) or text_or_none(told.get("tool")) or told["type"]


def _arguments(told: Record) -> Record:
    """Return what a call was given, as far as an event tells."""
    invocation = told.get("invocation")
    given = invocation.get("arguments") if type(invocation) is dict else told.get("arguments")
    if type(given) is dict:
        return given
    keys = ("command", "changes", "query", "path", "prompt", "action")
    return {key: told[key] for key in keys if told.get(key)}


def _extra(told: Record) -> Record:
    return rest(told, _TOLD_ELSEWHERE) or {}


def _command(told: Record) -> End:
    exit_code = told.get("exit_code")
    output = text_or_none(told.get("aggregated_output")) or text_or_none(told.get("stdout"))
    return End(
        text_or_none(told.get("status")),
        exit_code if type(exit_code) is int else None,
        result=output,
        extra=_extra(told),
    )


def _patch(told: Record) -> End:
    return End(_status(told), result=text_or_none(told.get("stdout")), extra=_extra(told))


def _status(told: Record) -> str | None:
    success = told.get("success")
    if told.get("status") is None and type(success) is bool:
        return "completed" if success else "failed"
    return text_or_none(told.get("status"))


def _mcp(told: Record) -> End:
    invocation = told.get("invocation")
    called = invocation if type(invocation) is dict else told
    given = told.get("result")
    error = given.get("Err") if type(given) is dict else None
    inner = given.get("Ok", given) if type(given) is dict else {}
    is_error = error is not None or (type(inner) is dict and inner.get("isError") is True)
    status = text_or_none(told.get("status")) or ("failed" if is_error else "completed")
    return End(
        "failed" if is_error else status,
        server=text_or_none(called.get("server")),
        server_tool=text_or_none(called.get("tool")),
        result=_mcp_text(inner),
        error=error if type(error) is str else None,
        extra=_extra(told),
    )


def _mcp_text(inner: Any) -> str | None:
    content = inner.get("content") if type(inner) is dict else None
    texts = [part.get("text") for part in content if type(part) is dict] if type(content) is list else []
    return "\n".join(text for text in texts if type(text) is str) or None


def _agents(told: Record) -> End:
    """Read what was done with another thread; the status of that is an object where it ended."""
    threads = told.get("receiver_thread_ids")
    first = threads[0] if type(threads) is list and threads else None
    child = next(
        (
            found
            for found in (told.get("new_thread_id"), told.get("agent_thread_id"), first)
            if type(found) is str
        ),
        None,
    )
    status = text_or_none(told.get("status"))
    extra = _extra(told) if status is not None else {**_extra(told), **_named_status(told)}
    return End(status, child=f"codex:{child}" if child else None, extra=extra)


def _named_status(told: Record) -> Record:
    return {"status": told["status"]} if told.get("status") else {}


def _search(told: Record) -> End:
    """Read a search; its id is kept, as the call may have none."""
    known = _other(told)
    return End(
        known.status,
        error=known.error,
        extra={**known.extra, "call_id": told.get("call_id") or told.get("id")},
    )


def _other(told: Record) -> End:
    return End(_status(told), error=text_or_none(told.get("error")), extra=_extra(told))


END_TYPES: dict[str, Callable[[Record], End]] = {
    "exec_command_end": _command,
    "CommandExecution": _command,
    "patch_apply_end": _patch,
    "FileChange": _patch,
    "mcp_tool_call_end": _mcp,
    "McpToolCall": _mcp,
    "web_search_end": _search,
    "WebSearch": _search,
    "view_image_tool_call": _other,
    "ImageView": _other,
    "image_generation_end": _other,
    "ImageGeneration": _other,
    "dynamic_tool_call_request": _other,
    "dynamic_tool_call_response": _other,
    "DynamicToolCall": _other,
    "collab_agent_spawn_end": _agents,
    "collab_agent_interaction_end": _agents,
    "collab_waiting_end": _agents,
    "collab_close_end": _agents,
    "collab_resume_end": _agents,
    "CollabAgentToolCall": _agents,
    "sub_agent_activity": _agents,
    "SubAgentActivity": _agents,
}
"""Events and completed items that repeat a call."""
