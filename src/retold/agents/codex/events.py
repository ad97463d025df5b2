"""Folds events: what Codex showed while it worked. Most repeat items; the others are entries of their own.

Evidence: `docs/formats/codex.md`, section 4.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from msgspec.structs import replace

from retold.agents.codex.prompt_text import content_texts, split_editor_context
from retold.agents.codex.raw import Record, list_or_empty, unknown_fields
from retold.agents.codex.state import CallOutcome, Handler, PendingCall, State, add_twin, take_twin
from retold.agents.codex.tokens import (
    assign_early_tokens,
    begin_turn,
    fold_compaction_event,
    fold_count,
    fold_rollback,
    note_turn_id,
    to_figures,
)
from retold.agents.codex.tool_calls import (
    EVENT_TOOLS,
    add_call_outcome,
    add_script_outcome,
    put_event_call,
    search_name,
)
from retold.agents.codex.tool_results import event_ms
from retold.model.serialization import short_repr
from retold.model.session import Context, Event, EventKind, Message, Opaque, Part, Text, Thinking
from retold.reading.json_decode import text_or_none

_IDS = ("call_id", "callId", "id", "event_id")
_KNOWN_KEYS = frozenset((*_IDS, "type", "status", "exit_code"))


def add_outcome(state: State, event: Record, at: datetime | None) -> None:
    """Add the outcome in an event or a completed item to its call; without a call it becomes one."""
    outcome = replace(OUTCOME_READERS[event["type"]](event), took_ms=event_ms(event))
    names = [event[key] for key in _IDS if type(event.get(key)) is str]
    if "action" in event:
        names.append(search_name(event["action"]))
    if any(add_call_outcome(state, name, outcome) for name in names) or add_script_outcome(state, event):
        return
    tool = _tool_name(event, outcome)
    name = names[-1] if names else state.notes.make_call_id(tool)
    call_id = names[0] if names else name
    pending = PendingCall(call_id, tool, _arguments(event), None, None, None, at, state.model, "", None)
    put_event_call(state, pending, outcome, name)


def _tool_name(event: Record, outcome: CallOutcome) -> str:
    if outcome.server is not None:
        return f"mcp__{outcome.server}__{outcome.server_tool}"
    return EVENT_TOOLS.get(event["type"]) or text_or_none(event.get("tool")) or event["type"]


def _arguments(event: Record) -> Record:
    invocation = event.get("invocation")
    given = invocation.get("arguments") if type(invocation) is dict else event.get("arguments")
    if type(given) is dict:
        return given
    keys = ("command", "changes", "query", "path", "prompt", "action")
    return {key: event[key] for key in keys if event.get(key)}


def _extra(event: Record) -> Record:
    return unknown_fields(event, _KNOWN_KEYS) or {}


def _command_outcome(event: Record) -> CallOutcome:
    exit_code = event.get("exit_code")
    output = text_or_none(event.get("aggregated_output")) or text_or_none(event.get("stdout"))
    return CallOutcome(
        text_or_none(event.get("status")),
        exit_code if type(exit_code) is int else None,
        result=output,
        extra=_extra(event),
    )


def _patch_outcome(event: Record) -> CallOutcome:
    return CallOutcome(_status(event), result=text_or_none(event.get("stdout")), extra=_extra(event))


def _status(event: Record) -> str | None:
    success = event.get("success")
    if event.get("status") is None and type(success) is bool:
        return "completed" if success else "failed"
    return text_or_none(event.get("status"))


def _mcp_outcome(event: Record) -> CallOutcome:
    invocation = event.get("invocation")
    called = invocation if type(invocation) is dict else event
    given = event.get("result")
    error = given.get("Err") if type(given) is dict else None
    inner = given.get("Ok", given) if type(given) is dict else {}
    is_error = error is not None or (type(inner) is dict and inner.get("isError") is True)
    status = text_or_none(event.get("status")) or ("failed" if is_error else "completed")
    return CallOutcome(
        "failed" if is_error else status,
        server=text_or_none(called.get("server")),
        server_tool=text_or_none(called.get("tool")),
        result=_mcp_text(inner),
        error=error if type(error) is str else None,
        extra=_extra(event),
    )


def _mcp_text(inner: Any) -> str | None:
    content = inner.get("content") if type(inner) is dict else None
    texts = [part.get("text") for part in content if type(part) is dict] if type(content) is list else []
    return "\n".join(text for text in texts if type(text) is str) or None


def _agent_outcome(event: Record) -> CallOutcome:
    """Return the outcome of work with another thread; its status is an object if that ended."""
    threads = event.get("receiver_thread_ids")
    first = threads[0] if type(threads) is list and threads else None
    child = next(
        (
            found
            for found in (event.get("new_thread_id"), event.get("agent_thread_id"), first)
            if type(found) is str
        ),
        None,
    )
    status = text_or_none(event.get("status"))
    extra = _extra(event) if status is not None else {**_extra(event), **_status_extra(event)}
    return CallOutcome(status, child=f"codex:{child}" if child else None, extra=extra)


def _status_extra(event: Record) -> Record:
    return {"status": event["status"]} if event.get("status") else {}


def _search_outcome(event: Record) -> CallOutcome:
    """Return the outcome of a search with its id, which the call may lack."""
    outcome = _other_outcome(event)
    return CallOutcome(
        outcome.status,
        error=outcome.error,
        extra={**outcome.extra, "call_id": event.get("call_id") or event.get("id")},
    )


def _other_outcome(event: Record) -> CallOutcome:
    return CallOutcome(_status(event), error=text_or_none(event.get("error")), extra=_extra(event))


_READERS: dict[Callable[[Record], CallOutcome], str] = {
    _command_outcome: "exec_command_end CommandExecution",
    _patch_outcome: "patch_apply_end FileChange",
    _mcp_outcome: "mcp_tool_call_end McpToolCall",
    _search_outcome: "web_search_end WebSearch",
    _other_outcome: "view_image_tool_call ImageView image_generation_end ImageGeneration "
    "dynamic_tool_call_request dynamic_tool_call_response DynamicToolCall",
    _agent_outcome: "collab_agent_spawn_end collab_agent_interaction_end collab_waiting_end collab_close_end "
    "collab_resume_end CollabAgentToolCall sub_agent_activity SubAgentActivity",
}
OUTCOME_READERS = {kind: reader for reader, kinds in _READERS.items() for kind in kinds.split()}
"""Readers of events and completed items that repeat a call."""
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
"""Events and completed items with content of their own."""
_TEXT_KEYS = ("message", "reason", "thread_name", "text", "user_facing_hint")
_MESSAGE_KEYS = frozenset(("type", "message", "id", "content", "kind"))
_TYPED_KINDS = (None, "plain")


def fold_event(state: State, payload: Record, at: datetime | None) -> None:
    """Fold one event."""
    kind = payload.get("type")
    handler = _HANDLERS.get(kind) if type(kind) is str else None
    if handler is not None:
        handler(state, payload, at)
    elif type(kind) is str and kind in OUTCOME_READERS:
        add_outcome(state, payload, at)
    else:
        _fold_notice(state, payload, at)


def _fold_completed_item(state: State, payload: Record, at: datetime | None) -> None:
    """Fold a completed item (since 0.144), which replaces several kinds of events."""
    item = payload.get("item")
    kind = item.get("type") if type(item) is dict else None
    if type(item) is not dict or type(kind) is not str:
        _fold_unknown(state, payload, at)
        return
    about = {key: value for key, value in payload.items() if key not in ("type", "item", "thread_id")}
    merged = {**about, **item}
    handler = _ITEM_HANDLERS.get(kind)
    if handler is not None:
        handler(state, merged, at)
    elif kind in OUTCOME_READERS:
        add_outcome(state, merged, at)
    else:
        _fold_notice(state, merged, at)


def _fold_notice(state: State, payload: Record, at: datetime | None) -> None:
    kind = payload.get("type")
    if type(kind) is not str or kind not in _NOTICES:
        _fold_unknown(state, payload, at)
        return
    words = next((payload[key] for key in _TEXT_KEYS if text_or_none(payload.get(key))), "")
    error = payload.get("error")
    if not words and type(error) is dict:
        words = text_or_none(error.get("message")) or ""
    state.put(
        Event(text_or_none(payload.get("id")), _KINDS.get(kind, "notice"), at, "live", words, extra=payload)
    )


def _fold_unknown(state: State, payload: Record, at: datetime | None) -> None:
    state.notes.add_opaque("unknown-record", f"an event of type {short_repr(payload.get('type'))}")
    state.put(Event(None, "notice", at, "live", "", Opaque(payload)))


def _fold_turn_bound(state: State, payload: Record, at: datetime | None) -> None:
    """Fold the start or the end of a turn, which repeats the last answer."""
    assign_early_tokens(state, at)
    note_turn_id(state, payload.get("turn_id"))
    error = payload.get("error")
    message = error.get("message") if type(error) is dict else None
    extra = {
        key: value for key, value in payload.items() if key != "last_agent_message" or value != state.answer
    }
    kind: EventKind = "notice" if message is None else "error"
    state.put(Event(None, kind, at, "live", message if type(message) is str else "", extra=extra))


def _fold_abort(state: State, payload: Record, at: datetime | None) -> None:
    assign_early_tokens(state, at)
    _fold_notice(state, payload, at)


def _fold_thread_name(state: State, payload: Record, at: datetime | None) -> None:
    state.name = text_or_none(payload.get("thread_name")) or state.name
    state.put(Event(None, "notice", at, "live", state.name or "", extra=payload))


def _fold_settings(state: State, payload: Record, at: datetime | None) -> None:
    changed = state.take_changes("thread_settings_applied", payload)
    if changed:
        state.put(Event(None, "notice", at, "live", "", extra=changed))


def _fold_token_count(state: State, payload: Record, at: datetime | None) -> None:
    if "info" not in payload:
        _fold_unknown(state, payload, at)
        return
    limits, info = payload.get("rate_limits"), payload["info"]
    if type(limits) is dict:
        state.limits = limits
    if type(info) is dict:
        state.window = info.get("model_context_window")
        last = partial(to_figures, info.get("last_token_usage"))
        fold_count(state, to_figures(info.get("total_token_usage")), last, at)
    else:
        state.meter.is_reset = True


def _fold_user_message(state: State, payload: Record, at: datetime | None) -> None:
    text = payload.get("message")
    if type(text) is not str:
        _fold_unknown(state, payload, at)
    elif payload.get("kind") not in _TYPED_KINDS:  # up to 0.4x the environment was an event too
        parts: tuple[Part, ...] = (Context("environment", text),)
        if take_twin(state.items_without_event, "user", text) is None:
            state.put(Message(None, "user", at, "live", None, None, None, parts))
    else:
        _fold_prompt(state, text, unknown_fields(payload, _MESSAGE_KEYS), at)


def _fold_user_item(state: State, payload: Record, at: datetime | None) -> None:
    others = [
        part
        for part in list_or_empty(payload.get("content"))
        if type(part) is not dict or part.get("type") != "text"
    ]
    extra = unknown_fields(payload, _MESSAGE_KEYS) or {}
    if others:
        extra["content"] = others
    _fold_prompt(state, "\n".join(content_texts(payload.get("content"))), extra or None, at)


def _fold_prompt(state: State, text: str, extra: Record | None, at: datetime | None) -> None:
    """Fold a person's words: confirm the item with the same words, or add an entry."""
    state.has_spoken_events = True
    words = None if state.is_subagent else split_editor_context(text)[1].strip() or None
    twin = take_twin(state.items_without_event, "user", text)
    entry = state.entries[twin.index] if twin else None
    if twin is not None and type(entry) is Message:
        state.unconfirmed.pop(twin.index, None)
        both = {**extra, **(entry.extra or {})} if extra else entry.extra
        state.replace(twin.index, replace(entry, prompt=words, extra=both))
        return
    assign_early_tokens(state, at)
    part = Context("task", text) if state.is_subagent else Text(text)
    index = state.put(Message(None, "user", at, "live", words, None, None, (part,), extra=extra))
    begin_turn(state, index)
    add_twin(state.events_without_item, "user", text, index)


def _fold_answer_event(state: State, payload: Record, at: datetime | None) -> None:
    text = payload.get("message")
    if type(text) is str:
        fold_answer_text(state, text, unknown_fields(payload, _MESSAGE_KEYS), at)
    else:
        _fold_unknown(state, payload, at)


def _fold_answer_item(state: State, payload: Record, at: datetime | None) -> None:
    fold_answer_text(
        state, "\n".join(content_texts(payload.get("content"))), unknown_fields(payload, _MESSAGE_KEYS), at
    )


def fold_answer_text(state: State, text: str, extra: Record | None, at: datetime | None) -> None:
    """Fold the text of an answer in an event, whose item may come before or after it."""
    state.answer = text
    twin = take_twin(state.items_without_event, "assistant", text)
    entry = state.entries[twin.index] if twin else None
    if twin is not None and type(entry) is Message:
        if extra:
            state.replace(twin.index, replace(entry, extra={**extra, **(entry.extra or {})}))
        return
    index = state.put(
        Message(None, "assistant", at, "live", None, state.model, None, (Text(text),), extra=extra)
    )
    state.meter.event_answer = index
    add_twin(state.events_without_item, "assistant", text, index)


def _fold_thought(state: State, payload: Record, at: datetime | None) -> None:
    text = payload.get("text")
    if type(text) is str:
        _put_thought(state, text, None, at)
    else:
        _fold_unknown(state, payload, at)


def _fold_thoughts(state: State, payload: Record, at: datetime | None) -> None:
    thoughts = [*list_or_empty(payload.get("summary_text")), *list_or_empty(payload.get("raw_content"))]
    extra = unknown_fields(payload, frozenset(("type", "id", "summary_text", "raw_content")))
    for text in thoughts:
        if type(text) is str:
            _put_thought(state, text, extra, at)


def _put_thought(state: State, text: str, extra: Record | None, at: datetime | None) -> None:
    if text in state.thoughts:
        return
    parts: tuple[Part, ...] = (Thinking(None, text),)
    state.thoughts[text] = state.put(
        Message(None, "assistant", at, "live", None, state.model, None, parts, extra=extra)
    )


_HANDLERS: dict[str, Handler] = {
    "token_count": _fold_token_count,
    "user_message": _fold_user_message,
    "agent_message": _fold_answer_event,
    "agent_reasoning": _fold_thought,
    "agent_reasoning_raw_content": _fold_thought,
    "item_completed": _fold_completed_item,
    "task_started": _fold_turn_bound,
    "turn_started": _fold_turn_bound,
    "task_complete": _fold_turn_bound,
    "turn_complete": _fold_turn_bound,
    "turn_aborted": _fold_abort,
    "thread_rolled_back": fold_rollback,
    "context_compacted": fold_compaction_event,
    "thread_name_updated": _fold_thread_name,
    "thread_settings_applied": _fold_settings,
}
_ITEM_HANDLERS: dict[str, Handler] = {
    "UserMessage": _fold_user_item,
    "AgentMessage": _fold_answer_item,
    "Reasoning": _fold_thoughts,
    "ContextCompaction": fold_compaction_event,
}
