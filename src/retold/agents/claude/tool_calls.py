"""`tool_use` blocks to our ToolCalls, and the results that come later into them."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from retold.agents.claude.prompt_text import REJECTED
from retold.agents.claude.raw import ToolUseBlock
from retold.agents.claude.state import State
from retold.agents.claude.tool_results import Outputs, Result, Shown, shown
from retold.model.session import CATEGORIES, Canonical, Category, Context, Message, Part, Status, ToolCall
from retold.reading.diagnostics import duration_ms, elapsed_ms


def took_ms(twin: Any, asked_at: datetime | None, done_at: datetime | None) -> int | None:
    """Return the milliseconds that a call took; few tools tell them in the twin of their result."""
    told = _told_ms(twin) if type(twin) is dict else None
    return elapsed_ms(asked_at, done_at) if told is None else told


def _told_ms(twin: dict[str, Any]) -> int | None:
    """Return what `Glob` and `WebFetch` tell, or `Task` of its subagent, or `WebSearch` in seconds."""
    for key in ("durationMs", "totalDurationMs"):
        if key in twin:
            return duration_ms(twin[key])
    seconds = twin.get("durationSeconds", -1)
    return duration_ms(seconds * 1000) if type(seconds) in (int, float) else None


TOOLS: dict[str, Canonical] = {
    "Bash": "shell_exec",
    "BashOutput": "shell_exec",
    "KillBash": "shell_exec",
    "KillShell": "shell_exec",
    "PowerShell": "shell_exec",
    "Monitor": "shell_exec",
    "REPL": "shell_exec",
    "Write": "file_write",
    "Edit": "file_edit",
    "MultiEdit": "file_edit",
    "NotebookEdit": "file_edit",
    "Read": "file_read",
    "NotebookRead": "file_read",
    "LS": "file_read",
    "Grep": "file_search",
    "Glob": "file_search",
    "LSP": "file_search",
    "ToolSearch": "file_search",
    "WebFetch": "web_access",
    "WebSearch": "web_access",
    "web_search": "web_access",
    "web_fetch": "web_access",
    "TodoWrite": "planning",
    "TodoRead": "planning",
    "TaskCreate": "planning",
    "TaskUpdate": "planning",
    "TaskGet": "planning",
    "TaskList": "planning",
    "EnterPlanMode": "planning",
    "ExitPlanMode": "planning",
    "exit_plan_mode": "planning",
    "Task": "agent",
    "Agent": "agent",
    "TaskOutput": "agent",
    "AgentOutputTool": "agent",
    "TaskStop": "agent",
    "SendMessage": "agent",
    "TeamCreate": "agent",
    "TeamDelete": "agent",
    "Workflow": "agent",
    "Skill": "skill",
    "SlashCommand": "skill",
    "ListMcpResourcesTool": "mcp",
    "ReadMcpResourceTool": "mcp",
    "AskUserQuestion": "ask_user",
}

STARTS_AGENT = frozenset(("Task", "Agent"))
_MCP = "mcp__"
KINDS = {name: (canonical, CATEGORIES[canonical]) for name, canonical in TOOLS.items()}


def kind(name: str) -> tuple[Canonical, Category]:
    """Return our name for a tool, and its category."""
    known = KINDS.get(name)
    if known is not None:
        return known
    return ("mcp" if name.startswith(_MCP) else "other"), "Other"


def mcp_names(name: str) -> tuple[str, str] | None:
    """Return (server, tool) from `mcp__<server>__<tool>`."""
    server, divided, tool = name.removeprefix(_MCP).partition("__")
    return (server, tool) if name.startswith(_MCP) and divided and server and tool else None


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


_FEW = 16


def called(state: State, call_id: str, place: int, outputs: Outputs) -> None:
    """Remember where a call stands; its result may have been met before."""
    if call_id in state.calls:
        if state.calls[call_id] == place:
            _carry_over(state, call_id, place)
        return  # a copy elsewhere: the first has the result
    state.calls[call_id] = place
    if call_id in state.early:
        where, result = state.early.pop(call_id)
        given(state, call_id, result, where, outputs, is_early=True)
        _told_by_call(state, where, call_id)


def _carry_over(state: State, call_id: str, place: int) -> None:
    """Let a line that was written again in other words have the result that the one before it had."""
    last = len(state.nodes) - 1
    before, now = state.nodes[last].entry, state.nodes[place].entry
    if type(before) is not Message or type(now) is not Message:
        return
    known = (before.parts[index] for index in _parts_of(state, last, before, call_id))
    old = next((part for part in known if type(part) is ToolCall), None)
    parts = list(now.parts)
    for index in _parts_of(state, place, now, call_id):
        part = parts[index]
        if old is not None and type(part) is ToolCall:
            parts[index] = msgspec.structs.replace(old, name=part.name, arguments=part.arguments)
    state.put(place, msgspec.structs.replace(now, parts=tuple(parts)))


def given(  # noqa: PLR0913 - one argument a thing that is known of a result
    state: State, call_id: str, result: Result, where: int, outputs: Outputs, *, is_early: bool = False
) -> None:
    """Put a result into its call; a call that has many keeps no more, and the message of the result has its text."""
    place = state.calls.get(call_id)
    message = state.nodes[where].entry
    has_room = state.has_room(call_id)
    if has_room:
        state.results[call_id] = (*state.results.get(call_id, ()), where)
    if place is None:
        state.early[call_id] = (where, result)
        return
    if not (has_room or is_early):
        _keep_text(state, where, call_id, result)
        return
    caller = state.nodes[place].entry
    if type(caller) is not Message:
        return
    session = state.nodes[where].session or state.session_id
    # What the API ran itself stands beside its call: when it was done, nobody wrote down.
    asked_at = None if where == place else caller.at
    parts = list(caller.parts)
    for index in _parts_of(state, place, caller, call_id):
        part = parts[index]
        if type(part) is ToolCall:
            parts[index] = completed(part, result, asked_at, message.at, session, outputs)
    state.put(place, msgspec.structs.replace(caller, parts=tuple(parts)))


def _parts_of(state: State, place: int, message: Message, call_id: str) -> Sequence[int]:
    """Return where the parts of a message stand that are a call, or its result.

    In a message with many parts they are looked up: each of its calls asks.
    """
    if len(message.parts) <= _FEW:
        return [index for index, part in enumerate(message.parts) if _call_of(part) == call_id]
    parts, known = message.parts, state.indexes.get(place, {}).get(call_id, ())
    if not known or known[-1] >= len(parts) or _call_of(parts[known[-1]]) != call_id:
        found: dict[str, list[int]] = {}
        for index, part in enumerate(message.parts):
            found.setdefault(_call_of(part) or "", []).append(index)
        state.indexes[place] = found
    return state.indexes[place].get(call_id, ())


def _call_of(part: Part) -> str | None:
    if type(part) is ToolCall:
        return part.id
    return part.call if type(part) is Context else None


def _keep_text(state: State, where: int, call_id: str, result: Result) -> None:
    """Put the text of a result into its message, unless it is there."""
    message = state.nodes[where].entry
    if type(message) is not Message:
        return
    parts = list(message.parts)
    for index in _parts_of(state, where, message, call_id):
        part = parts[index]
        if type(part) is Context and part.text is None:
            parts[index] = Context(part.kind, result.text, part.call, part.is_error, result.attachments)
            state.put(where, msgspec.structs.replace(message, parts=tuple(parts)))
            return


def _told_by_call(state: State, where: int, call_id: str) -> None:
    """Leave out of a message what its call holds from now on."""
    message = state.nodes[where].entry
    if type(message) is Message:
        parts = list(message.parts)
        for index in _parts_of(state, where, message, call_id):
            part = parts[index]
            if type(part) is Context:
                parts[index] = Context(part.kind, None, part.call, part.is_error)
        state.put(where, msgspec.structs.replace(message, parts=tuple(parts)))
