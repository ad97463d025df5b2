"""Makes ToolCalls of `tool_use` blocks, and puts the results that come later into them."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from retold.agents.claude.prompt_text import REJECTION_OPENINGS
from retold.agents.claude.raw import ToolUseBlock
from retold.agents.claude.state import State
from retold.agents.claude.tool_results import OutputFiles, Result, TwinDetails, compare_twin
from retold.model import CATEGORIES
from retold.model.session import Canonical, Category, Context, Message, Part, Status, ToolCall
from retold.reading.diagnostics import duration_ms, elapsed_ms


def took_ms(twin: Any, asked_at: datetime | None, done_at: datetime | None) -> int | None:
    """Return how long a call took; few tools record it in the twin of their result."""
    recorded = _recorded_ms(twin) if type(twin) is dict else None
    return elapsed_ms(asked_at, done_at) if recorded is None else recorded


def _recorded_ms(twin: dict[str, Any]) -> int | None:
    """Return the duration that `Glob`, `WebFetch`, `Task` or, in seconds, `WebSearch` records."""
    for key in ("durationMs", "totalDurationMs"):
        if key in twin:
            return duration_ms(twin[key])
    seconds = twin.get("durationSeconds", -1)
    return duration_ms(seconds * 1000) if type(seconds) in (int, float) else None


_NAMES: dict[Canonical, str] = {
    "shell_exec": "Bash BashOutput KillBash KillShell PowerShell Monitor REPL",
    "file_write": "Write",
    "file_edit": "Edit MultiEdit NotebookEdit",
    "file_read": "Read NotebookRead LS",
    "file_search": "Grep Glob LSP ToolSearch",
    "web_access": "WebFetch WebSearch web_search web_fetch",
    "planning": "TodoWrite TodoRead TaskCreate TaskUpdate TaskGet TaskList EnterPlanMode ExitPlanMode "
    "exit_plan_mode",
    "agent": "Task Agent TaskOutput AgentOutputTool TaskStop SendMessage TeamCreate TeamDelete "
    "Workflow",
    "skill": "Skill SlashCommand",
    "mcp": "ListMcpResourcesTool ReadMcpResourceTool",
    "ask_user": "AskUserQuestion",
}  # fmt: skip
TOOLS = {name: canonical for canonical, names in _NAMES.items() for name in names.split()}
STARTS_AGENT = frozenset(("Task", "Agent"))
_MCP = "mcp__"
KINDS = {name: (canonical, CATEGORIES[canonical]) for name, canonical in TOOLS.items()}


def tool_kind(name: str) -> tuple[Canonical, Category]:
    """Return the canonical name and the category of a tool."""
    known = KINDS.get(name)
    if known is not None:
        return known
    return ("mcp" if name.startswith(_MCP) else "other"), "Other"


def mcp_names(name: str) -> tuple[str, str] | None:
    """Return (server, tool) from `mcp__<server>__<tool>`."""
    server, divided, tool = name.removeprefix(_MCP).partition("__")
    return (server, tool) if name.startswith(_MCP) and divided and server and tool else None


_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b")
_CANCELLATION_OPENINGS = (
    *REJECTION_OPENINGS,
    "[Request interrupted by user",
    "[Tool call interrupted",
    "Permission prompt was aborted.",
    "The user rejected",
)


def make_tool_call(block: ToolUseBlock) -> ToolCall:
    """Return a call without a result."""
    canonical, category = tool_kind(block.name)
    server = mcp_names(block.name)
    description = block.input.get("description")
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
        description=description if type(description) is str else None,
        server=server[0] if server else None,
        server_tool=server[1] if server else None,
        extra={"caller": block.caller} if block.caller not in (None, {"type": "direct"}) else None,
    )


def add_result(  # noqa: PLR0913 - one argument a thing that neither the call nor the result knows
    call: ToolCall,
    found: Result,
    asked_at: datetime | None,
    at: datetime | None,
    session_id: str,
    outputs: OutputFiles,
) -> ToolCall:
    """Return a call with a result; a second result is kept beside the first."""
    text = found.text
    if call.status != "unknown":
        if not text or text in (call.result, call.error, *call.other_results):
            return call
        return replace(call, other_results=(*call.other_results, text))
    details = compare_twin(found.twin, text, call.arguments)
    status = _status(found, details)
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
        f"claude:{session_id}/{details.agent_id}" if details.agent_id else None,
        description=call.description,
        display=details.display,
        exit_code=int(code[1]) if code else None,
        server=call.server,
        server_tool=call.server_tool,
        attachments=found.attachments,
        full_result=None if details.moved_to is None else outputs.full_text(text, details.moved_to),
        extra=call.extra if details.extra is None and found.rest is None else _extra(call, found, details),
        took_ms=took_ms(found.twin, asked_at, at),
    )


def _status(found: Result, details: TwinDetails) -> Status:
    if details.was_interrupted or (found.text is not None and found.text.startswith(_CANCELLATION_OPENINGS)):
        return "cancelled"
    return "error" if found.is_error else "success"


def _extra(call: ToolCall, found: Result, details: TwinDetails) -> dict[str, object] | None:
    fields = {"toolUseResult": details.extra, "content": found.rest}
    return (call.extra or {}) | {key: value for key, value in fields.items() if value is not None} or None


_FEW_PARTS = 16


def register_call(state: State, call_id: str, place: int, outputs: OutputFiles) -> None:
    """Register the place of a call; its result may have been met before."""
    if call_id in state.calls:
        if state.calls[call_id] == place:
            _keep_result(state, call_id, place)
        return  # a copy elsewhere: the first has the result
    state.calls[call_id] = place
    if call_id in state.early_results:
        where, result = state.early_results.pop(call_id)
        pair_result(state, call_id, result, where, outputs, is_early=True)
        _clear_text(state, where, call_id)


def _keep_result(state: State, call_id: str, place: int) -> None:
    """Give a rewritten line the results of the line before it."""
    last = len(state.nodes) - 1
    before, now = state.nodes[last].entry, state.nodes[place].entry
    if type(before) is not Message or type(now) is not Message:
        return
    known = (before.parts[index] for index in _find_parts(state, last, before, call_id))
    old = next((part for part in known if type(part) is ToolCall), None)
    parts = list(now.parts)
    for index in _find_parts(state, place, now, call_id):
        part = parts[index]
        if old is not None and type(part) is ToolCall:
            parts[index] = replace(old, name=part.name, arguments=part.arguments)
    state.replace_entry(place, replace(now, parts=tuple(parts)))


def pair_result(  # noqa: PLR0913 - one argument a thing that is known of a result
    state: State, call_id: str, result: Result, where: int, outputs: OutputFiles, *, is_early: bool = False
) -> None:
    """Put a result into its call; a call with many takes no more, and the message of the result keeps the text."""
    place = state.calls.get(call_id)
    message = state.nodes[where].entry
    has_room = state.has_room(call_id)
    if has_room:
        state.results[call_id] = (*state.results.get(call_id, ()), where)
    if place is None:
        state.early_results[call_id] = (where, result)
        return
    if not (has_room or is_early):
        _restore_text(state, where, call_id, result)
        return
    caller = state.nodes[place].entry
    if type(caller) is not Message:
        return
    session = state.nodes[where].session or state.session_id
    # A result of the API itself stands beside its call, without a time of its own.
    asked_at = None if where == place else caller.at
    parts = list(caller.parts)
    for index in _find_parts(state, place, caller, call_id):
        part = parts[index]
        if type(part) is ToolCall:
            parts[index] = add_result(part, result, asked_at, message.at, session, outputs)
    state.replace_entry(place, replace(caller, parts=tuple(parts)))


def _find_parts(state: State, place: int, message: Message, call_id: str) -> Sequence[int]:
    """Return the indexes of a call, or of its result, among a message's parts.

    In a message with many parts they are looked up, since each call asks.
    """
    if len(message.parts) <= _FEW_PARTS:
        return [index for index, part in enumerate(message.parts) if _call_id(part) == call_id]
    parts, known = message.parts, state.indexes.get(place, {}).get(call_id, ())
    if not known or known[-1] >= len(parts) or _call_id(parts[known[-1]]) != call_id:
        indexes: dict[str, list[int]] = {}
        for index, part in enumerate(message.parts):
            indexes.setdefault(_call_id(part) or "", []).append(index)
        state.indexes[place] = indexes
    return state.indexes[place].get(call_id, ())


def _call_id(part: Part) -> str | None:
    if type(part) is ToolCall:
        return part.id
    return part.call if type(part) is Context else None


def _restore_text(state: State, where: int, call_id: str, result: Result) -> None:
    """Put the text of a result into its message, unless it is there."""
    message = state.nodes[where].entry
    if type(message) is not Message:
        return
    parts = list(message.parts)
    for index in _find_parts(state, where, message, call_id):
        part = parts[index]
        if type(part) is Context and part.text is None:
            parts[index] = Context(part.kind, result.text, part.call, part.is_error, result.attachments)
            state.replace_entry(where, replace(message, parts=tuple(parts)))
            return


def _clear_text(state: State, where: int, call_id: str) -> None:
    """Remove from a message what its call now holds."""
    message = state.nodes[where].entry
    if type(message) is Message:
        parts = list(message.parts)
        for index in _find_parts(state, where, message, call_id):
            part = parts[index]
            if type(part) is Context:
                parts[index] = Context(part.kind, None, part.call, part.is_error)
        state.replace_entry(where, replace(message, parts=tuple(parts)))
