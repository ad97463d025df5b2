"""Events: what Codex showed while it worked. Most repeat items; the rest are entries of their own.

Evidence: `docs/formats/codex.md`, section 4.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from retold.agents.codex.prompt_text import texts, without_editor
from retold.agents.codex.raw import Record, listed, rest, text_or_none
from retold.agents.codex.state import Asked, End, Handler, State, taken, wait
from retold.agents.codex.tokens import (
    begin_turn,
    count,
    figures,
    meet_turn,
    mention_compaction,
    roll_back,
    settle,
)
from retold.agents.codex.tool_calls import EVENT_TOOLS, end, end_script, put_inner, search_name
from retold.agents.codex.tool_results import event_ms
from retold.model.serialization import shown_value
from retold.model.session import Context, Event, EventKind, Message, Opaque, Part, Text, Thinking

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


_KINDS: dict[str, EventKind] = {
    "error": "error",
    "stream_error": "warning",
    "warning": "warning",
    "turn_aborted": "warning",
}
_NOTICES = frozenset(
    (
        *_KINDS, "thread_goal_updated", "entered_review_mode", "exited_review_mode", "guardian_assessment",
        "undo_started", "undo_completed", "background_event", "plan_update", "deprecation_notice",
        "EnteredReviewMode", "ExitedReviewMode", "Extension", "Plan", "HookPrompt", "Sleep",
    )
)  # fmt: skip
"""Events and completed items that say something of their own."""
_WORDS = ("message", "reason", "thread_name", "text", "user_facing_hint")
_SPOKEN = frozenset(("type", "message", "id", "content", "kind"))
_TYPED = (None, "plain")


def event(state: State, payload: Record, at: datetime | None) -> None:
    """Take one event down."""
    kind = payload.get("type")
    handler = _HANDLERS.get(kind) if type(kind) is str else None
    if handler is not None:
        handler(state, payload, at)
    elif type(kind) is str and kind in END_TYPES:
        ended(state, payload, at)
    else:
        _notice(state, payload, at)


def _completed(state: State, payload: Record, at: datetime | None) -> None:
    """Take a completed item down (since 0.144): what several kinds of events were before."""
    item = payload.get("item")
    kind = item.get("type") if type(item) is dict else None
    if type(item) is not dict or type(kind) is not str:
        _unknown(state, payload, at)
        return
    about = {key: value for key, value in payload.items() if key not in ("type", "item", "thread_id")}
    told = {**about, **item}
    handler = _ITEM_HANDLERS.get(kind)
    if handler is not None:
        handler(state, told, at)
    elif kind in END_TYPES:
        ended(state, told, at)
    else:
        _notice(state, told, at)


def _notice(state: State, payload: Record, at: datetime | None) -> None:
    kind = payload.get("type")
    if type(kind) is not str or kind not in _NOTICES:
        _unknown(state, payload, at)
        return
    words = next((payload[key] for key in _WORDS if text_or_none(payload.get(key))), "")
    error = payload.get("error")
    if not words and type(error) is dict:
        words = text_or_none(error.get("message")) or ""
    state.put(
        Event(text_or_none(payload.get("id")), _KINDS.get(kind, "notice"), at, "live", words, extra=payload)
    )


def _unknown(state: State, payload: Record, at: datetime | None) -> None:
    state.notes.kept("unknown-record", f"an event of type {shown_value(payload.get('type'))}")
    state.put(Event(None, "notice", at, "live", "", Opaque(payload)))


def _bound(state: State, payload: Record, at: datetime | None) -> None:
    """Take the beginning or the end of a turn down; the last answer is repeated there."""
    settle(state, at)
    meet_turn(state, payload.get("turn_id"))
    error = payload.get("error")
    message = error.get("message") if type(error) is dict else None
    extra = {
        key: value for key, value in payload.items() if key != "last_agent_message" or value != state.answer
    }
    kind: EventKind = "notice" if message is None else "error"
    state.put(Event(None, kind, at, "live", message if type(message) is str else "", extra=extra))


def _aborted(state: State, payload: Record, at: datetime | None) -> None:
    settle(state, at)
    _notice(state, payload, at)


def _named(state: State, payload: Record, at: datetime | None) -> None:
    state.name = text_or_none(payload.get("thread_name")) or state.name
    state.put(Event(None, "notice", at, "live", state.name or "", extra=payload))


def _settings(state: State, payload: Record, at: datetime | None) -> None:
    changed = state.changed("thread_settings_applied", payload)
    if changed:
        state.put(Event(None, "notice", at, "live", "", extra=changed))


def _counted(state: State, payload: Record, at: datetime | None) -> None:
    if "info" not in payload:
        _unknown(state, payload, at)
        return
    limits, info = payload.get("rate_limits"), payload["info"]
    if type(limits) is dict:
        state.limits = limits
    if type(info) is dict:
        state.window = info.get("model_context_window")
        last = partial(figures, info.get("last_token_usage"))
        count(state, figures(info.get("total_token_usage")), last, at)
    else:
        state.meter.is_unset = True


def _user_message(state: State, payload: Record, at: datetime | None) -> None:
    text = payload.get("message")
    if type(text) is not str:
        _unknown(state, payload, at)
    elif payload.get("kind") not in _TYPED:  # up to 0.4x the environment was told as an event too
        parts: tuple[Part, ...] = (Context("environment", text),)
        if taken(state.said, "user", text) is None:
            state.put(Message(None, "user", at, "live", None, None, None, parts))
    else:
        _speak(state, text, rest(payload, _SPOKEN), at)


def _user_item(state: State, payload: Record, at: datetime | None) -> None:
    others = [
        part
        for part in listed(payload.get("content"))
        if type(part) is not dict or part.get("type") != "text"
    ]
    extra = rest(payload, _SPOKEN) or {}
    if others:
        extra["content"] = others
    _speak(state, "\n".join(texts(payload.get("content"))), extra or None, at)


def _speak(state: State, text: str, extra: Record | None, at: datetime | None) -> None:
    """Take the human's words down: the item that holds them is told so, else they stand for themselves."""
    state.has_spoken_events = True
    words = None if state.is_subagent else without_editor(text)[1].strip() or None
    held = taken(state.said, "user", text)
    entry = state.entries[held.index] if held else None
    if held is not None and type(entry) is Message:
        state.unconfirmed.pop(held.index, None)
        both = {**extra, **(entry.extra or {})} if extra else entry.extra
        state.put_back(held.index, msgspec.structs.replace(entry, prompt=words, extra=both))
        return
    settle(state, at)
    part = Context("task", text) if state.is_subagent else Text(text)
    index = state.put(Message(None, "user", at, "live", words, None, None, (part,), extra=extra))
    begin_turn(state, index)
    wait(state.told, "user", text, index)


def _agent_message(state: State, payload: Record, at: datetime | None) -> None:
    text = payload.get("message")
    if type(text) is str:
        tell_answer(state, text, rest(payload, _SPOKEN), at)
    else:
        _unknown(state, payload, at)


def _agent_item(state: State, payload: Record, at: datetime | None) -> None:
    tell_answer(state, "\n".join(texts(payload.get("content"))), rest(payload, _SPOKEN), at)


def tell_answer(state: State, text: str, extra: Record | None, at: datetime | None) -> None:
    """Take an answer down that an event tells; the item that holds it may have come, or will."""
    state.answer = text
    held = taken(state.said, "assistant", text)
    entry = state.entries[held.index] if held else None
    if held is not None and type(entry) is Message:
        if extra:
            state.put_back(held.index, msgspec.structs.replace(entry, extra={**extra, **(entry.extra or {})}))
        return
    index = state.put(
        Message(None, "assistant", at, "live", None, state.model, None, (Text(text),), extra=extra)
    )
    state.meter.told = index
    wait(state.told, "assistant", text, index)


def _thought(state: State, payload: Record, at: datetime | None) -> None:
    text = payload.get("text")
    if type(text) is str:
        _think(state, text, None, at)
    else:
        _unknown(state, payload, at)


def _thoughts(state: State, payload: Record, at: datetime | None) -> None:
    thoughts = [*listed(payload.get("summary_text")), *listed(payload.get("raw_content"))]
    extra = rest(payload, frozenset(("type", "id", "summary_text", "raw_content")))
    for text in thoughts:
        if type(text) is str:
            _think(state, text, extra, at)


def _think(state: State, text: str, extra: Record | None, at: datetime | None) -> None:
    if text in state.thoughts:
        return
    parts: tuple[Part, ...] = (Thinking(None, text),)
    state.thoughts[text] = state.put(
        Message(None, "assistant", at, "live", None, state.model, None, parts, extra=extra)
    )


_HANDLERS: dict[str, Handler] = {
    "token_count": _counted,
    "user_message": _user_message,
    "agent_message": _agent_message,
    "agent_reasoning": _thought,
    "agent_reasoning_raw_content": _thought,
    "item_completed": _completed,
    "task_started": _bound,
    "turn_started": _bound,
    "task_complete": _bound,
    "turn_complete": _bound,
    "turn_aborted": _aborted,
    "thread_rolled_back": roll_back,
    "context_compacted": mention_compaction,
    "thread_name_updated": _named,
    "thread_settings_applied": _settings,
}
_ITEM_HANDLERS: dict[str, Handler] = {
    "UserMessage": _user_item,
    "AgentMessage": _agent_item,
    "Reasoning": _thoughts,
    "ContextCompaction": mention_compaction,
}
