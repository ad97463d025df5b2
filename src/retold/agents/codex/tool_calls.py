"""Makes ToolCalls of items, with their results and with the outcomes in events. Evidence: `docs/formats/codex.md`, section 7."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from retold.agents.codex.raw import Record, unknown_fields
from retold.agents.codex.state import CallOutcome, PendingCall, State
from retold.agents.codex.tool_results import Result, decode_object, normalise_result
from retold.model import CATEGORIES
from retold.model.serialization import short_repr
from retold.model.session import Attachment, Canonical, Category, Context, Message, Status, ToolCall
from retold.reading.diagnostics import elapsed_ms
from retold.reading.json_decode import text_or_none, to_json

_NAMES: dict[Canonical, str] = {
    "shell_exec": "shell container.exec shell_command exec_command write_stdin local_shell unified_exec "
    "exec wait js_repl js_repl_reset node_repl.run",
    "file_edit": "apply_patch",
    "file_read": "read_file view_image list_dir",
    "file_search": "grep_files tool_search search_tool_bm25",
    "web_access": "web_search web.run web_fetch",
    "memory": "memories.list memories.read memories.search memories.add_ad_hoc_note get_memory",
    "planning": "update_plan create_goal get_goal update_goal",
    "skill": "skill",
    "agent": "spawn_agent send_input resume_agent wait_agent close_agent list_agents send_message "
    "followup_task interrupt_agent spawn_agents_on_csv report_agent_job_result "
    "background_agent",
    "mcp": "list_mcp_resources list_mcp_resource_templates read_mcp_resource",
    "ask_user": "request_user_input",
    "other": "image_gen.imagegen image_generation request_permissions request_plugin_install "
    "tool_suggest list_available_plugins_to_install clock.curr_time clock.sleep new_context "
    "get_context_remaining send_user_message_async remain_silent wait_for_environment "
    "test_sync_tool artifacts",
}  # fmt: skip
TOOLS = {name: canonical for canonical, names in _NAMES.items() for name in names.split()}
AGENT_NAMESPACES = ("multi_agent_v1.", "collaboration.")
_EVENTS = {
    "exec_command": "exec_command_end CommandExecution",
    "apply_patch": "patch_apply_end FileChange",
    "web_search": "web_search_end WebSearch",
    "view_image": "view_image_tool_call ImageView",
    "image_generation": "image_generation_end ImageGeneration",
    "spawn_agent": "collab_agent_spawn_end",
    "send_input": "collab_agent_interaction_end",
    "wait_agent": "collab_waiting_end",
    "close_agent": "collab_close_end",
    "resume_agent": "collab_resume_end",
}
EVENT_TOOLS = {event: tool for tool, events in _EVENTS.items() for event in events.split()}
"""The tool of an event: no item names it if a script used it."""
SCRIPTS = ("exec", "wait")
"""Tools that run the model's code, which may use other tools."""
SPAWN_TOOL = "spawn_agent"
QUESTION_TOOL = "request_user_input"
MCP_PREFIX = "mcp__"
_EVERYWHERE = "functions."
"""The namespace of all tools."""


def full_name(name: str, namespace: object) -> str:
    """Return the name of a tool with its namespace, if it has one."""
    return f"{namespace}.{name}" if type(namespace) is str and namespace else name


def tool_kind(name: str, arguments: Record) -> tuple[Canonical, Category]:
    """Return the canonical name and the category of a tool."""
    canonical = TOOLS.get(name)
    if canonical is None:
        canonical = _unlisted_kind(name.removeprefix(_EVERYWHERE))
    elif name == "wait" and "ids" in arguments:  # up to 0.98 the name of `wait_agent`
        canonical = "agent"
    return canonical, CATEGORIES[canonical]


def _unlisted_kind(name: str) -> Canonical:
    if name in TOOLS:
        return TOOLS[name]
    if name.startswith(MCP_PREFIX):
        return "mcp"
    if name.startswith("skills."):
        return "skill"
    for namespace in AGENT_NAMESPACES:
        if name.startswith(namespace):
            return "agent"
    return "other"


def base_name(name: str) -> str:
    """Return a tool's name without the namespace of the agents' tools."""
    for namespace in AGENT_NAMESPACES:
        name = name.removeprefix(namespace)
    return name


def mcp_names(name: str) -> tuple[str | None, str | None]:
    """Return the MCP server and its tool in a name `mcp__<server>__<tool>`."""
    if not name.startswith(MCP_PREFIX):
        return None, None
    server, separator, tool = name.removeprefix(MCP_PREFIX).partition("__")
    if not separator:
        server, separator, tool = server.partition(".")
    return (server, tool) if separator else (None, None)


STATUSES: dict[str, Status] = {
    "completed": "success", "success": "success", "ok": "success", "failed": "error", "error": "error",
    "declined": "cancelled", "cancelled": "cancelled", "canceled": "cancelled", "rejected": "cancelled",
}  # fmt: skip
"""Codex's words for the end of a call; others mean that it has not ended."""
DONE = "item_completed"
"""The field of a script's call for the actions of the script, named after the events that hold them."""


def make_message(
    pending: PendingCall, outcome: Result, at: datetime | None, waited_ms: int | None = None
) -> Message:
    """Return the message of a call with its result, and how long the call waited for it."""
    call = make_call(pending, outcome, at, waited_ms)
    for ended in pending.ends:
        call = apply_outcome(call, ended)
    return Message(
        pending.id,
        "assistant",
        pending.at,
        "live",
        None,
        pending.model,
        pending.usage,
        (call,),
        response=pending.response,
        extra=pending.extra,
    )


def make_call(
    pending: PendingCall, outcome: Result, at: datetime | None, waited_ms: int | None = None
) -> ToolCall:
    """Return a call with its result."""
    name, arguments = pending.name, pending.arguments
    canonical, category = tool_kind(name, arguments)
    server, server_tool = mcp_names(name) if name.startswith(MCP_PREFIX) else (None, None)
    extra = pending.odd
    if outcome.rest is not None:
        extra = {**(extra or {}), **outcome.rest}
    return ToolCall(
        pending.call_id,
        name,
        canonical,
        category,
        arguments,
        outcome.status,
        pending.native_status,
        outcome.text,
        None,
        at,
        _child(name, outcome.text) if canonical == "agent" else None,
        exit_code=outcome.exit_code,
        server=server,
        server_tool=server_tool,
        attachments=outcome.attachments,
        extra=extra,
        took_ms=waited_ms if outcome.took_ms is None else outcome.took_ms,
    )


def call_of(entry: object) -> ToolCall | None:
    """Return the call in an entry, None if it has none."""
    part = entry.parts[0] if type(entry) is Message and entry.parts else None
    return part if type(part) is ToolCall else None


def apply_outcome(call: ToolCall, outcome: CallOutcome) -> ToolCall:
    """Return a call with the outcome in an event; repetitions of the call are left out."""
    before = call.extra or {}
    extra = {key: value for key, value in outcome.extra.items() if not _is_repeated(value, call)}
    if DONE in before and DONE in extra:
        extra[DONE] = [*before[DONE], *extra[DONE]]
    status = STATUSES.get(outcome.status or "", call.status)
    return replace(
        call,
        status=call.status if call.status == "cancelled" else status,
        native_status=outcome.status or call.native_status,
        exit_code=call.exit_code if outcome.exit_code is None else outcome.exit_code,
        error=outcome.error if call.error is None else call.error,
        result=outcome.result if call.result is None else call.result,
        server=outcome.server or call.server,
        server_tool=outcome.server_tool or call.server_tool,
        child=outcome.child if base_name(call.name) == SPAWN_TOOL and outcome.child else call.child,
        extra={**before, **extra} or None,
        took_ms=call.took_ms if outcome.took_ms is None else outcome.took_ms,
    )


def as_outcome(known: ToolCall) -> CallOutcome:
    """Return a call known only from events as the outcome of another call."""
    return CallOutcome(
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


def _is_repeated(value: Any, call: ToolCall) -> bool:
    if type(value) is str and call.result is not None and value.strip() in call.result:
        return True
    return value in (None, call.id, call.arguments) or value in call.arguments.values()


def _child(name: str, text: str | None) -> str | None:
    """Return the key of the thread that a call started, by its result."""
    if text is None or base_name(name) != SPAWN_TOOL:
        return None
    found: Record = decode_object(text) or {}
    agent_id = found.get("agent_id")
    return f"codex:{agent_id}" if type(agent_id) is str else None


_MOST = 200
"""How many results and events one call may have; more would take quadratic time, and become entries of their own."""
_KNOWN_KEYS = frozenset(
    ("type", "id", "call_id", "name", "namespace", "arguments", "input", "action", "status", "output", "tools",
     "revised_prompt", "result")
)  # fmt: skip


def fold_call(state: State, payload: Record, at: datetime | None) -> None:
    """Fold a call: its message takes this place when the result comes."""
    name = payload.get("name")
    if type(name) is not str:
        native = payload["type"].removesuffix("_call")
        name = native if native not in ("function", "custom_tool") else "unknown"
    name = full_name(name, payload.get("namespace"))
    arguments, odd = _arguments(payload, state)
    call_id = payload.get("call_id") or payload.get("id")
    if type(call_id) is not str:
        state.calls_without_id.append(len(state.entries))
        call_id = state.notes.make_call_id(name)
    native_status, item_id = text_or_none(payload.get("status")), text_or_none(payload.get("id"))
    extra, response = unknown_fields(payload, _KNOWN_KEYS), state.meter.response
    keep_place(
        state,
        PendingCall(call_id, name, arguments, native_status, odd, item_id, at, state.model, response, extra),
    )


def keep_place(state: State, pending: PendingCall) -> None:
    """Reserve the place of a call until its result comes."""
    index = state.reserve()
    state.meter.open.append(index)
    state.call_places[pending.call_id] = index
    state.pending_calls[index] = pending
    if pending.name in SCRIPTS:
        state.scripts.append(index)
    if state.event_calls:
        _withdraw_event_call(state, pending.call_id, index)


def fold_finished_call(state: State, payload: Record, at: datetime | None) -> None:
    """Fold a call without an output item: a web search, an image."""
    fold_call(state, payload, at)
    index = len(state.entries) - 1
    if "action" in payload:
        name = search_name(payload["action"])
        state.call_places[name] = index
        _withdraw_event_call(state, name, index)
    status = STATUSES.get(str(payload.get("status")), "unknown")
    image = payload.get("result")
    attached = (Attachment(data=image),) if type(image) is str and image else ()
    state.replace(
        index, make_message(state.pending_calls.pop(index), Result(None, status, attachments=attached), at)
    )
    if _is_unnamed(state, index):
        state.calls_without_id.pop()


def search_name(action: Any) -> str:
    """Return the key of a search: up to 0.14x only its event has an id."""
    return f"web_search {to_json(action)}"


def fold_result(state: State, payload: Record, at: datetime | None) -> None:
    """Fold the result of a call."""
    item_id, extra = text_or_none(payload.get("id")), unknown_fields(payload, _KNOWN_KEYS)
    put_result(state, payload.get("call_id"), normalise_result(payload.get("output")), item_id, extra, at)


def fold_search_result(state: State, payload: Record, at: datetime | None) -> None:
    """Fold the tools found by a search as the result of its call."""
    fold_result(state, {**payload, "output": to_json(payload.get("tools"))}, at)


def put_result(  # noqa: PLR0913 - one argument a field: most lines of a rollout come through here
    state: State, call_id: Any, found: Result, item_id: str | None, extra: Record | None, at: datetime | None
) -> None:
    """Put a result into its call, and leave a mention at its old place."""
    index = state.call_places.get(call_id) if type(call_id) is str else _take_oldest_unnamed(state)
    pending = None if index is None else state.pending_calls.pop(index, None)
    words = None
    if index is None:
        state.notes.add("orphan-tool-result", short_repr(call_id))
        is_error = found.status == "error"
        part = Context("tool_result", found.text, text_or_none(call_id), is_error, found.attachments)
    elif pending is None:
        part = _add_second_result(state, index, text_or_none(call_id), found)
    else:
        # Copied lines have the time at which they were copied.
        waited = None if state.is_copying else elapsed_ms(pending.at, at)
        state.replace(index, make_message(pending, found, at, waited))
        part = Context("tool_result", None, pending.call_id)
        words = _answers_text(found.text) if pending.name == QUESTION_TOOL and found.text else None
    state.put(Message(item_id, "user", at, "live", words, None, None, (part,), extra=extra))


def add_call_outcome(state: State, call_id: str, outcome: CallOutcome) -> bool:
    """Add an outcome to its call; return whether there is one."""
    index = state.call_places.get(call_id)
    if index is None:
        return False
    pending, entry = state.pending_calls.get(index), state.entries[index]
    if pending is not None:
        if len(pending.ends) >= _MOST:
            return False
        state.pending_calls[index] = replace(pending, ends=(*pending.ends, outcome))
    elif type(entry) is Message and (call := call_of(entry)) is not None:
        state.replace(index, replace(entry, parts=(apply_outcome(call, outcome),)))
    return True


def add_script_outcome(state: State, action: Record) -> bool:
    """Add the action of a script to the call that runs it; return whether there is one."""
    while state.scripts and state.scripts[0] not in state.pending_calls:
        state.scripts.pop(0)
    if not state.scripts:
        return False
    pending = state.pending_calls[state.scripts[0]]
    if len(pending.ends) >= _MOST:
        return False
    done = CallOutcome(extra={DONE: [action]})
    state.pending_calls[state.scripts[0]] = replace(pending, ends=(*pending.ends, done))
    return True


def put_event_call(state: State, pending: PendingCall, outcome: CallOutcome, name: str) -> None:
    """Add a call known only from an event: its item is missing, or comes later."""
    call = apply_outcome(make_call(pending, Result(outcome.result, "unknown"), pending.at), outcome)
    index = state.put(Message(None, "assistant", pending.at, "live", None, pending.model, None, (call,)))
    state.event_calls[name] = index


def finish_calls(state: State) -> None:
    """Make the messages of calls without results."""
    for index, pending in state.pending_calls.items():
        state.replace(index, make_message(pending, Result(None, "unknown"), None))
    state.pending_calls.clear()


def _is_unnamed(state: State, index: int) -> bool:
    return bool(state.calls_without_id) and state.calls_without_id[-1] == index


def _take_oldest_unnamed(state: State) -> int | None:
    return state.calls_without_id.pop(0) if state.calls_without_id else None


def _arguments(payload: Record, state: State) -> tuple[Record, Record | None]:
    """Return a call's arguments, and the value in their place if that is no object."""
    if "input" in payload:
        return {"input": payload["input"]}, None
    given = payload.get("arguments", payload.get("action"))
    found = decode_object(given) if type(given) is str else given
    if type(found) is dict:
        return found, None
    if given in (None, ""):
        prompt = payload.get("revised_prompt")
        return ({} if prompt is None else {"revised_prompt": prompt}), None
    state.notes.add_opaque("unexpected-shape", "the arguments of a call are no object")
    return {}, {"arguments": given}


def _add_second_result(state: State, index: int, call_id: str | None, found: Result) -> Context:
    """Keep a further result of a call if it differs; return the part for its place."""
    entry, mention = state.entries[index], Context("tool_result", None, call_id)
    call = call_of(entry)
    if type(entry) is not Message or call is None or found.text in (None, call.result, *call.other_results):
        return mention
    if len(call.other_results) >= _MOST:
        return Context("tool_result", found.text, call_id, found.status == "error", found.attachments)
    call = replace(call, other_results=(*call.other_results, found.text))
    state.replace(index, replace(entry, parts=(call,)))
    return mention


def _answers_text(text: str) -> str | None:
    found: Record = decode_object(text) or {}
    answers = found.get("answers")
    if type(answers) is not dict:
        return None
    answer_lists = [answer.get("answers") for answer in answers.values() if type(answer) is dict]
    texts = [text for listed in answer_lists if type(listed) is list for text in listed if type(text) is str]
    return "\n".join(texts) or None


def _withdraw_event_call(state: State, name: str, index: int) -> None:
    """Withdraw a call known only from an event whose item has come."""
    place = state.event_calls.pop(name, None)
    known = None if place is None else call_of(state.entries[place])
    if place is not None and known is not None:
        pending = state.pending_calls[index]
        call_id = known.id if _is_unnamed(state, index) else pending.call_id
        ends = (*pending.ends, as_outcome(known))
        state.pending_calls[index] = replace(pending, call_id=call_id, ends=ends)
        state.entries[place] = None
