"""`toolCalls` to our ToolCalls, and calls of one id in several versions to one."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeGuard

import msgspec

from retold.agents.gemini.context import MARKS, Notes, Setting
from retold.agents.gemini.raw import TOOL_CALL_KEYS, Record, ToolCallRecord
from retold.agents.gemini.state import Place
from retold.agents.gemini.tool_results import Result, display, exit_code, result
from retold.model.session import (
    CATEGORIES,
    Canonical,
    Category,
    Context,
    Display,
    Entry,
    Message,
    Opaque,
    Part,
    Status,
    ToolCall,
)
from retold.reading.diagnostics import LONGEST_MS, milliseconds

_EPOCH = datetime.fromtimestamp(0, UTC)
_PIECES = 3  # the tool, the time, and what tells calls of one time apart
_DIGITS = 13
"""Of milliseconds since 1970, from 2001 to 2286."""
_AT_ONCE = 1
"""Two times that one step of the CLI writes down are this far apart at most."""


def took_ms(call_id: str, said_at: datetime | None, done_at: datetime | None) -> int | None:
    """Return the milliseconds from when a call was asked for to when all that were asked for with it were done."""
    if done_at is None:
        return None
    pieces = call_id.rsplit("-", 2)
    if len(pieces) != _PIECES:
        pieces = call_id.rsplit("_", 2)
    if len(pieces) == _PIECES and len(pieces[1]) == _DIGITS and pieces[1].isdecimal():
        took, least = milliseconds(done_at - _EPOCH) - int(pieces[1]), 0
    elif said_at is not None:
        took, least = milliseconds(done_at - said_at), _AT_ONCE + 1
    else:
        return None
    return took if least <= took <= LONGEST_MS else None


TOOLS: dict[str, Canonical] = {
    "run_shell_command": "shell_exec",
    "shell": "shell_exec",
    "write_file": "file_write",
    "replace": "file_edit",
    "edit_file": "file_edit",
    "read_file": "file_read",
    "read_many_files": "file_read",
    "list_directory": "file_read",
    "glob": "file_search",
    "search_file_content": "file_search",
    "grep_search": "file_search",
    "codebase_investigator": "file_search",
    "search_files": "file_search",
    "web_fetch": "web_access",
    "google_web_search": "web_access",
    "web_search": "web_access",
    "save_memory": "memory",
    "write_todos": "planning",
    "activate_skill": "skill",
    "list_background_processes": "shell_exec",
    "read_background_output": "shell_exec",
    "get_internal_docs": "file_read",
    "write_todos_list": "planning",
    "tracker_create_task": "planning",
    "tracker_update_task": "planning",
    "tracker_get_task": "planning",
    "tracker_list_tasks": "planning",
    "tracker_add_dependency": "planning",
    "tracker_visualize": "planning",
    "enter_plan_mode": "planning",
    "exit_plan_mode": "planning",
    "update_topic": "planning",
    "invoke_agent": "agent",
    "delegate_to_agent": "agent",
    "cli_help": "agent",
    "introspection_agent": "agent",
    "generalist": "agent",
    "browser_agent": "agent",
    "confucius": "agent",
    "complete_task": "agent",
    "list_mcp_resources": "mcp",
    "read_mcp_resource": "mcp",
    "ask_user": "ask_user",
    "click": "web_access",
    "navigate": "web_access",
    "analyze_screenshot": "web_access",
}

SHELL_TOOLS = frozenset(("run_shell_command", "shell"))
STARTS_AGENT = frozenset(
    ("codebase_investigator", "invoke_agent", "delegate_to_agent", "cli_help", "introspection_agent", "generalist",
     "browser_agent", "confucius")
)  # fmt: skip

MCP_ENDING = " MCP Server)"


KINDS = {name: (canonical, CATEGORIES[canonical]) for name, canonical in TOOLS.items()}


def kind(name: str, is_mcp: bool, starts_agent: bool) -> tuple[Canonical, Category]:  # noqa: FBT001 - what a call says
    """Return our name for a tool, and its category; the flags are what a call says beyond the name."""
    if name in KINDS:
        return KINDS[name]
    if is_mcp or name.startswith("mcp_"):
        return "mcp", "Other"
    return ("agent" if starts_agent else "other"), "Other"


def mcp_names(title: str) -> tuple[str, str] | None:
    """Return (server, tool) from a call's title, `<tool> (<server> MCP Server)`: it holds in every version."""
    tool, opened, server = title.removesuffix(MCP_ENDING).rpartition(" (")
    return (server, tool) if opened and tool and server else None


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
