"""A call with its result, and with what events say of it.

Evidence: `docs/formats/codex.md`, section 7.
"""

from datetime import datetime
from typing import Any

import msgspec

from retold.agents.codex.raw import Record, rest, text_or_none
from retold.agents.codex.state import Asked, End, State
from retold.agents.codex.tool_results import Result, as_json, as_object, result
from retold.model.serialization import shown_value
from retold.model.session import (
    CATEGORIES,
    Attachment,
    Canonical,
    Category,
    Context,
    Message,
    Status,
    ToolCall,
)
from retold.reading.diagnostics import elapsed_ms

TOOLS: dict[str, Canonical] = {
    "shell": "shell_exec",
    "container.exec": "shell_exec",
    "shell_command": "shell_exec",
    "exec_command": "shell_exec",
    "write_stdin": "shell_exec",
    "local_shell": "shell_exec",
    "unified_exec": "shell_exec",
    "exec": "shell_exec",
    "wait": "shell_exec",
    "js_repl": "shell_exec",
    "js_repl_reset": "shell_exec",
    "node_repl.run": "shell_exec",
    "apply_patch": "file_edit",
    "read_file": "file_read",
    "view_image": "file_read",
    "list_dir": "file_read",
    "grep_files": "file_search",
    "tool_search": "file_search",
    "search_tool_bm25": "file_search",
    "web_search": "web_access",
    "web.run": "web_access",
    "web_fetch": "web_access",
    "memories.list": "memory",
    "memories.read": "memory",
    "memories.search": "memory",
    "memories.add_ad_hoc_note": "memory",
    "get_memory": "memory",
    "update_plan": "planning",
    "create_goal": "planning",
    "get_goal": "planning",
    "update_goal": "planning",
    "skill": "skill",
    "spawn_agent": "agent",
    "send_input": "agent",
    "resume_agent": "agent",
    "wait_agent": "agent",
    "close_agent": "agent",
    "list_agents": "agent",
    "send_message": "agent",
    "followup_task": "agent",
    "interrupt_agent": "agent",
    "spawn_agents_on_csv": "agent",
    "report_agent_job_result": "agent",
    "background_agent": "agent",
    "list_mcp_resources": "mcp",
    "list_mcp_resource_templates": "mcp",
    "read_mcp_resource": "mcp",
    "request_user_input": "ask_user",
    "image_gen.imagegen": "other",
    "image_generation": "other",
    "request_permissions": "other",
    "request_plugin_install": "other",
    "tool_suggest": "other",
    "list_available_plugins_to_install": "other",
    "clock.curr_time": "other",
    "clock.sleep": "other",
    "new_context": "other",
    "get_context_remaining": "other",
    "send_user_message_async": "other",
    "remain_silent": "other",
    "wait_for_environment": "other",
    "test_sync_tool": "other",
    "artifacts": "other",
}
AGENT_NAMESPACES = ("multi_agent_v1.", "collaboration.")
EVENT_TOOLS: dict[str, str] = {
    "exec_command_end": "exec_command",
    "CommandExecution": "exec_command",
    "patch_apply_end": "apply_patch",
    "FileChange": "apply_patch",
    "web_search_end": "web_search",
    "WebSearch": "web_search",
    "view_image_tool_call": "view_image",
    "ImageView": "view_image",
    "image_generation_end": "image_generation",
    "ImageGeneration": "image_generation",
    "collab_agent_spawn_end": "spawn_agent",
    "collab_agent_interaction_end": "send_input",
    "collab_waiting_end": "wait_agent",
    "collab_close_end": "close_agent",
    "collab_resume_end": "resume_agent",
}
"""The tool whose use an event tells of: where a script used it, no item names it."""
SCRIPTS = ("exec", "wait")
"""Tools that run what the model wrote, which may use the others."""
SPAWNS = "spawn_agent"
ASKS = "request_user_input"
MCP = "mcp__"
_EVERYWHERE = "functions."
"""The namespace that all tools are in."""


def full_name(name: str, namespace: object) -> str:
    """Return the name of a tool with its namespace, if it has one."""
    return f"{namespace}.{name}" if type(namespace) is str and namespace else name


def kind(name: str, arguments: Record) -> tuple[Canonical, Category]:
    """Return what a tool does, in our words."""
    canonical = TOOLS.get(name)
    if canonical is None:
        canonical = _unlisted(name.removeprefix(_EVERYWHERE))
    elif name == "wait" and "ids" in arguments:  # up to 0.98: what is called `wait_agent` now
        canonical = "agent"
    return canonical, CATEGORIES[canonical]


def _unlisted(name: str) -> Canonical:
    if name in TOOLS:
        return TOOLS[name]
    if name.startswith(MCP):
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
    """Return the MCP server and the tool's name on it, where a tool's name tells: `mcp__<server>__<tool>`."""
    if not name.startswith(MCP):
        return None, None
    server, separator, tool = name.removeprefix(MCP).partition("__")
    if not separator:
        server, separator, tool = server.partition(".")
    return (server, tool) if separator else (None, None)


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


_MOST = 200
"""Results and events that one call may have. Further ones stand for themselves: to join them all would take quadratic time."""
_KNOWN = frozenset(
    ("type", "id", "call_id", "name", "namespace", "arguments", "input", "action", "status", "output", "tools",
     "revised_prompt", "result")
)  # fmt: skip


def ask(state: State, payload: Record, at: datetime | None) -> None:
    """Take a call down; its message is made when the result comes, and stands here."""
    name = payload.get("name")
    if type(name) is not str:
        native = payload["type"].removesuffix("_call")
        name = native if native not in ("function", "custom_tool") else "unknown"
    name = full_name(name, payload.get("namespace"))
    arguments, odd = _arguments(payload, state)
    call_id = payload.get("call_id") or payload.get("id")
    if type(call_id) is not str:
        state.unnamed.append(len(state.entries))
        call_id = state.notes.call_id(name)
    native_status, item_id = text_or_none(payload.get("status")), text_or_none(payload.get("id"))
    extra, response = rest(payload, _KNOWN), state.meter.response
    wait_for(
        state, Asked(call_id, name, arguments, native_status, odd, item_id, at, state.model, response, extra)
    )


def wait_for(state: State, asked: Asked) -> None:
    """Keep the place of a call until its result comes."""
    index = state.reserve()
    state.meter.open.append(index)
    state.asked[asked.call_id] = index
    state.waiting[index] = asked
    if asked.name in SCRIPTS:
        state.scripts.append(index)
    if state.inner:
        _take_over(state, asked.call_id, index)


def ask_and_end(state: State, payload: Record, at: datetime | None) -> None:
    """Take a call down that has no output of its own: a search in the web, an image."""
    ask(state, payload, at)
    index = len(state.entries) - 1
    if "action" in payload:
        name = search_name(payload["action"])
        state.asked[name] = index
        _take_over(state, name, index)
    status = STATUSES.get(str(payload.get("status")), "unknown")
    made = payload.get("result")
    attached = (Attachment(data=made),) if type(made) is str and made else ()
    state.put_back(index, message(state.waiting.pop(index), Result(None, status, attachments=attached), at))
    if _is_unnamed(state, index):
        state.unnamed.pop()


def search_name(action: Any) -> str:
    """Return what tells a search apart: up to 0.14x only its event has an id."""
    return f"web_search {as_json(action)}"


def answer(state: State, payload: Record, at: datetime | None) -> None:
    """Bring a result to its call."""
    item_id, extra = text_or_none(payload.get("id")), rest(payload, _KNOWN)
    put_answer(state, payload.get("call_id"), result(payload.get("output")), item_id, extra, at)


def answer_search(state: State, payload: Record, at: datetime | None) -> None:
    """Bring the tools that a search found to the call that looked for them."""
    answer(state, {**payload, "output": as_json(payload.get("tools"))}, at)


def put_answer(  # noqa: PLR0913 - one argument a field: most lines of a rollout come through here
    state: State, call_id: Any, found: Result, item_id: str | None, extra: Record | None, at: datetime | None
) -> None:
    """Put a result into its call, and leave a mention of it where it stood."""
    index = state.asked.get(call_id) if type(call_id) is str else _oldest_unnamed(state)
    asked = None if index is None else state.waiting.pop(index, None)
    words = None
    if index is None:
        state.notes.add("orphan-tool-result", shown_value(call_id))
        is_error = found.status == "error"
        part = Context("tool_result", found.text, text_or_none(call_id), is_error, found.attachments)
    elif asked is None:
        part = _answer_again(state, index, text_or_none(call_id), found)
    else:
        # Copied lines have the time at which they were copied.
        waited = None if state.is_copying else elapsed_ms(asked.at, at)
        state.put_back(index, message(asked, found, at, waited))
        part = Context("tool_result", None, asked.call_id)
        words = _answers(found.text) if asked.name == ASKS and found.text else None
    state.put(Message(item_id, "user", at, "live", words, None, None, (part,), extra=extra))


def end(state: State, call_id: str, ended: End) -> bool:
    """Add what an event says to its call; tell whether there is such a call."""
    index = state.asked.get(call_id)
    if index is None:
        return False
    asked, entry = state.waiting.get(index), state.entries[index]
    if asked is not None:
        if len(asked.ends) >= _MOST:
            return False
        state.waiting[index] = msgspec.structs.replace(asked, ends=(*asked.ends, ended))
    elif type(entry) is Message and (made := call_in(entry)) is not None:
        state.put_back(index, msgspec.structs.replace(entry, parts=(enriched(made, ended),)))
    return True


def end_script(state: State, told: Record) -> bool:
    """Add what a script did to the call that runs it; tell whether one does."""
    while state.scripts and state.scripts[0] not in state.waiting:
        state.scripts.pop(0)
    if not state.scripts:
        return False
    asked = state.waiting[state.scripts[0]]
    if len(asked.ends) >= _MOST:
        return False
    done = End(extra={DONE: [told]})
    state.waiting[state.scripts[0]] = msgspec.structs.replace(asked, ends=(*asked.ends, done))
    return True


def put_inner(state: State, asked: Asked, ended: End, name: str) -> None:
    """Add a call that only an event tells of: its item is not in this file, or comes later."""
    made = enriched(call(asked, Result(ended.result, "unknown"), asked.at), ended)
    index = state.put(Message(None, "assistant", asked.at, "live", None, asked.model, None, (made,)))
    state.inner[name] = index


def finish(state: State) -> None:
    """Make the messages of calls whose results never came."""
    for index, asked in state.waiting.items():
        state.put_back(index, message(asked, Result(None, "unknown"), None))
    state.waiting.clear()


def _is_unnamed(state: State, index: int) -> bool:
    """Tell whether the call that was asked last has no id."""
    return bool(state.unnamed) and state.unnamed[-1] == index


def _oldest_unnamed(state: State) -> int | None:
    return state.unnamed.pop(0) if state.unnamed else None


def _arguments(payload: Record, state: State) -> tuple[Record, Record | None]:
    """Return a call's arguments, and what stands in their place where it is no object."""
    if "input" in payload:
        return {"input": payload["input"]}, None
    given = payload.get("arguments", payload.get("action"))
    found = as_object(given) if type(given) is str else given
    if type(found) is dict:
        return found, None
    if given in (None, ""):
        prompt = payload.get("revised_prompt")
        return ({} if prompt is None else {"revised_prompt": prompt}), None
    state.notes.kept("unexpected-shape", "the arguments of a call are no object")
    return {}, {"arguments": given}


def _answer_again(state: State, index: int, call_id: str | None, found: Result) -> Context:
    """Keep a second result of one call, if it says something else; return what stands in its place."""
    entry, mention = state.entries[index], Context("tool_result", None, call_id)
    made = call_in(entry)
    if type(entry) is not Message or made is None or found.text in (None, made.result, *made.other_results):
        return mention
    if len(made.other_results) >= _MOST:
        return Context("tool_result", found.text, call_id, found.status == "error", found.attachments)
    made = msgspec.structs.replace(made, other_results=(*made.other_results, found.text))
    state.put_back(index, msgspec.structs.replace(entry, parts=(made,)))
    return mention


def _answers(text: str) -> str | None:
    """Return what a person answered to the questions of an agent."""
    found: Record = as_object(text) or {}
    answers = found.get("answers")
    if type(answers) is not dict:
        return None
    given = [answer.get("answers") for answer in answers.values() if type(answer) is dict]
    texts = [text for listed in given if type(listed) is list for text in listed if type(text) is str]
    return "\n".join(texts) or None


def _take_over(state: State, name: str, index: int) -> None:
    """Withdraw what an event told of this very call before its item came."""
    told = state.inner.pop(name, None)
    known = None if told is None else call_in(state.entries[told])
    if told is not None and known is not None:
        asked = state.waiting[index]
        call_id = known.id if _is_unnamed(state, index) else asked.call_id
        ends = (*asked.ends, as_end(known))
        state.waiting[index] = msgspec.structs.replace(asked, call_id=call_id, ends=ends)
        state.entries[told] = None
