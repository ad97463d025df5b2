"""Makes ToolCalls of `toolCalls`, merges versions of a call, and pairs calls with results."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeGuard

from msgspec.structs import replace

from retold.agents.gemini.raw import TOOL_CALL_KEYS, Record, ToolCallRecord
from retold.agents.gemini.state import Notes, Place, RecordContext
from retold.agents.gemini.tool_results import (
    EXTRACT_OPENINGS,
    Result,
    exit_code,
    normalise_display,
    normalise_result,
)
from retold.model import CATEGORIES
from retold.model.session import (
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
from retold.reading.diagnostics import LONGEST_MS, to_milliseconds

_EPOCH = datetime.fromtimestamp(0, UTC)
_PIECES = 3  # the tool, the time, and a suffix for calls of the same time
_DIGITS = 13
"""Digits of the milliseconds since 1970, from 2001 to 2286."""
_AT_ONCE = 1
"""The largest distance in milliseconds between two times that one step of the CLI records."""


def took_ms(call_id: str, said_at: datetime | None, done_at: datetime | None) -> int | None:
    """Return the milliseconds from the request of a call until all calls of the same request were done."""
    if done_at is None:
        return None
    pieces = call_id.rsplit("-", 2)
    if len(pieces) != _PIECES:
        pieces = call_id.rsplit("_", 2)
    if len(pieces) == _PIECES and len(pieces[1]) == _DIGITS and pieces[1].isdecimal():
        elapsed, least = to_milliseconds(done_at - _EPOCH) - int(pieces[1]), 0
    elif said_at is not None:
        elapsed, least = to_milliseconds(done_at - said_at), _AT_ONCE + 1
    else:
        return None
    return elapsed if least <= elapsed <= LONGEST_MS else None


_NAMES: dict[Canonical, str] = {
    "shell_exec": "run_shell_command shell list_background_processes read_background_output",
    "file_write": "write_file",
    "file_edit": "replace edit_file",
    "file_read": "read_file read_many_files list_directory get_internal_docs",
    "file_search": "glob search_file_content grep_search codebase_investigator search_files",
    "web_access": "web_fetch google_web_search web_search click navigate analyze_screenshot",
    "memory": "save_memory",
    "planning": "write_todos write_todos_list tracker_create_task tracker_update_task tracker_get_task "
    "tracker_list_tasks tracker_add_dependency tracker_visualize enter_plan_mode "
    "exit_plan_mode update_topic",
    "skill": "activate_skill",
    "agent": "invoke_agent delegate_to_agent cli_help introspection_agent generalist browser_agent "
    "confucius complete_task",
    "mcp": "list_mcp_resources read_mcp_resource",
    "ask_user": "ask_user",
}  # fmt: skip
TOOLS = {name: canonical for canonical, names in _NAMES.items() for name in names.split()}
SHELL_TOOLS = frozenset(("run_shell_command", "shell"))
STARTS_AGENT = frozenset(
    ("codebase_investigator", "invoke_agent", "delegate_to_agent", "cli_help", "introspection_agent", "generalist",
     "browser_agent", "confucius")
)  # fmt: skip
MCP_ENDING = " MCP Server)"
KINDS = {name: (canonical, CATEGORIES[canonical]) for name, canonical in TOOLS.items()}


def tool_kind(name: str, is_mcp: bool, starts_agent: bool) -> tuple[Canonical, Category]:  # noqa: FBT001 - what a call says
    """Return the canonical name and the category of a tool, by its name and two flags of the call."""
    if name in KINDS:
        return KINDS[name]
    if is_mcp or name.startswith("mcp_"):
        return "mcp", "Other"
    return ("agent" if starts_agent else "other"), "Other"


def mcp_names(title: str) -> tuple[str, str] | None:
    """Return (server, tool) from a call's title, `<tool> (<server> MCP Server)`, which every version writes."""
    tool, opened, server = title.removesuffix(MCP_ENDING).rpartition(" (")
    return (server, tool) if opened and tool and server else None


MASK_OPENING = "<tool_output_masked>"
STATUSES: dict[Any, Status] = {"success": "success", "error": "error", "cancelled": "cancelled"}


def normalise_calls(value: Any, said_at: datetime | None, context: RecordContext) -> list[ToolCall | Opaque]:
    """Return a message's tool calls; one that is no object stays as it is."""
    if type(value) is list:
        return [normalise_call(call, said_at, context) for call in value]
    context.notes.add_opaque("unexpected-shape", "toolCalls is no list")
    return [Opaque(value)]


def normalise_call(call: Any, said_at: datetime | None, context: RecordContext) -> ToolCall | Opaque:
    """Return one recorded call."""
    notes = context.notes
    name = call.get("name") if type(call) is dict else None
    if type(name) is not str:
        notes.add_opaque("unexpected-shape", "a tool call without a name")
        return Opaque(call)
    field = call.get
    call_id, arguments, status, title = field("id"), field("args"), field("status"), field("displayName")
    if type(call_id) is not str:
        call_id = notes.make_call_id(name)
    outcome = normalise_result(field("result"), call_id)
    text = outcome.text
    notes.has_agents = notes.has_agents or name in STARTS_AGENT
    extra = None
    if outcome.rest is not None or type(arguments) is not dict or not call.keys() <= TOOL_CALL_KEYS:
        extra = _extra(call, outcome, notes)
        arguments = arguments if type(arguments) is dict else {}
    child, description, done_at = field("agentId"), field("description"), notes.parse_time(field("timestamp"))
    return make_call(
        call_id,
        name,
        arguments,
        outcome,
        STATUSES.get(status, "unknown") if type(status) is str else status_of(outcome),
        status if status is None or type(status) is str else str(status),
        done_at,
        context.child_key(child) if type(child) is str else None,
        title if type(title) is str else None,
        description if type(description) is str else None,
        normalise_display(field("resultDisplay")),
        field("renderOutputAsMarkdown") is True,
        context.outputs.full_text(text, context.notes)
        if text is not None and text.startswith(EXTRACT_OPENINGS)
        else None,
        None,
        extra,
        took_ms(call_id, said_at, done_at),
    )


def normalise_checked_call(call: ToolCallRecord, said_at: datetime, context: RecordContext) -> ToolCall:
    """Return a call whose fields were all checked: `make_call` without its intermediate values."""
    given = call.result[0].function_response.response
    name, title, text = call.name, call.display_name, given.output
    server = mcp_names(title) if title is not None and title.endswith(MCP_ENDING) else None
    canonical, category = KINDS.get(name) or tool_kind(name, server is not None, call.agent_id is not None)
    if name in STARTS_AGENT:
        context.notes.has_agents = True
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
        context.child_key(call.agent_id),
        title,
        call.description,
        normalise_display(call.result_display),
        call.render_output_as_markdown,
        exit_code(text) if text is not None and name in SHELL_TOOLS else None,
        server[0] if server else None,
        server[1] if server else None,
        (),
        context.outputs.full_text(text, context.notes)
        if text is not None and text.startswith(EXTRACT_OPENINGS)
        else None,
        (),
        None,
        None,
        took_ms(call.id, said_at, call.timestamp),
    )


def make_call(  # noqa: PLR0913 - one argument a field that callers know
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
    shown_as: Display | None = None,
    is_markdown: bool = False,  # noqa: FBT001, FBT002 - by position: this is the hottest call there is
    full_result: str | None = None,
    signature: str | None = None,
    extra: Record | None = None,
    elapsed: int | None = None,
) -> ToolCall:
    """Return a ToolCall with everything that follows from its name and result."""
    server = mcp_names(title) if title is not None and title.endswith(MCP_ENDING) else None
    canonical, category = tool_kind(name, server is not None, child is not None)
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
        shown_as,
        is_markdown,
        exit_code(found.text) if found.text is not None and name in SHELL_TOOLS else None,
        server[0] if server else None,
        server[1] if server else None,
        found.attachments,
        full_result,
        (),
        signature,
        extra,
        elapsed,
    )


def status_of(found: Result) -> Status:
    """Return the status that a result implies if none was recorded."""
    if found.error is not None:
        return "error"
    return "success" if found.text is not None or found.attachments else "unknown"


def have_ids(value: Any) -> bool:
    """Return whether every call in a list has an id."""
    return type(value) is list and all(type(call) is dict and type(call.get("id")) is str for call in value)


def merge_calls(versions: Iterable[list[ToolCall | Opaque]]) -> list[ToolCall | Opaque]:
    """Return each call once, from its richest version, with the results of its other versions."""
    by_id: dict[str, ToolCall] = {}
    opaque: list[Opaque] = []
    for version in versions:
        for call in version:
            if isinstance(call, Opaque):
                if call not in opaque:
                    opaque.append(call)
            else:
                earlier = by_id.get(call.id)
                by_id[call.id] = call if earlier is None else _choose_richer(earlier, call)
    return [*by_id.values(), *opaque]


_FILLED = (
    "at",
    "title",
    "description",
    "display",
    "attachments",
    "full_result",
    "signature",
    "extra",
    "took_ms",
)
"""Fields of a call that a version without a value takes from another version."""


def _choose_richer(first: ToolCall, second: ToolCall) -> ToolCall:
    """Return the later version of a call, or the earlier one if the agent has masked or lost the result since.

    Its empty fields are filled from the other version.
    """
    best, other = second, first
    if (second.result is None and second.error is None) or (
        (second.result or "").startswith(MASK_OPENING) and not (first.result or "").startswith(MASK_OPENING)
    ):
        best, other = first, second
    texts = dict.fromkeys((*first.other_results, *second.other_results))
    texts |= dict.fromkeys(text for text in (other.result, other.error) if text)
    for own in (best.result, best.error):
        texts.pop(own or "", None)
    filled = {name: getattr(other, name) for name in _FILLED if getattr(best, name) in (None, ())}
    return replace(best, other_results=tuple(texts), **filled)


def _extra(call: Record, found: Result, notes: Notes) -> Record | None:
    """Return the unknown fields of a call, under the agent's own names."""
    extra = {key: value for key, value in call.items() if key not in TOOL_CALL_KEYS}
    if extra:
        notes.add_opaque("unknown-part", "unknown keys in a tool call: " + ", ".join(sorted(extra)))
    if type(call.get("args")) not in (dict, type(None)):
        notes.add_opaque("unexpected-shape", f"args of {call['name']} is no object")
        extra["args"] = call["args"]
    if found.rest is not None:
        extra["result"] = found.rest
    return extra or None


class LocatedEntry(NamedTuple):
    """An entry with the place of its record, and whether it may be a mere repetition."""

    entry: Entry
    place: Place | None = None
    may_go: bool = False


def pair_results(placed: Sequence[LocatedEntry], notes: Notes) -> tuple[Entry, ...]:
    """Return the entries with each tool result in its call, and a mention at its old place.

    An entry with `may_go` is dropped if the calls hold all of it.
    """
    if not notes.has_results:
        return tuple([entry for entry, _, _ in placed])
    calls = _pair_calls([entry for entry, _, _ in placed])
    paired_entries: list[Entry] = []
    for entry, notes.place, may_go in placed:
        paired = _bring_results(entry, calls, notes) if isinstance(entry, Message) else entry
        if not may_go or not isinstance(paired, Message) or any(map(_has_content, paired.parts)):
            paired_entries.append(paired)
    return tuple(paired_entries)


def _pair_calls(entries: Iterable[Entry]) -> dict[str, ToolCall]:
    messages = [entry for entry in entries if isinstance(entry, Message)]
    calls = {part.id: part for message in messages for part in message.parts if isinstance(part, ToolCall)}
    for message in messages:
        for part in message.parts:
            if _is_result(part) and part.call in calls:
                calls[part.call] = _add_result(calls[part.call], part)
    return calls


def _is_result(part: Part) -> TypeGuard[Context]:
    return isinstance(part, Context) and part.kind == "tool_result"


def _add_result(call: ToolCall, result: Context) -> ToolCall:
    if call.result is not None or call.error is not None or call.attachments:
        if result.text is None or result.text in (call.result, call.error, *call.other_results):
            return call
        return replace(call, other_results=(*call.other_results, result.text))
    outcome = Result(None, result.text) if result.is_error else Result(result.text, None, result.attachments)
    return replace(
        call,
        result=outcome.text,
        error=outcome.error,
        attachments=outcome.attachments,
        status=status_of(outcome) if call.native_status is None else call.status,
        exit_code=exit_code(outcome.text) if outcome.text is not None and call.name in SHELL_TOOLS else None,
    )


def _bring_results(entry: Message, calls: dict[str, ToolCall], notes: Notes) -> Message:
    parts: tuple[Part, ...] = tuple(_bring_result(part, calls, notes) for part in entry.parts)
    return replace(entry, parts=parts)


def _bring_result(part: Part, calls: dict[str, ToolCall], notes: Notes) -> Part:
    if isinstance(part, ToolCall):
        answered = calls[part.id]  # a superseded version may have had other arguments
        return answered if part.arguments == answered.arguments else part
    if _is_result(part) and part.call is not None:
        return _mention(part, calls.get(part.call), notes)
    return part


def _mention(part: Context, call: ToolCall | None, notes: Notes) -> Context:
    if call is None:
        notes.add("orphan-tool-result", part.call or "")
        return part
    attachments = tuple(attached for attached in part.attachments if attached not in call.attachments)
    return replace(part, text=None, attachments=attachments)


def _has_content(part: Part) -> bool:
    return part.text is not None or bool(part.attachments) if _is_result(part) else True
