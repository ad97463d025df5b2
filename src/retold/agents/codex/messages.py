"""Folds items of the model's history: messages, thoughts, calls and results. Evidence: `docs/formats/codex.md`, section 4."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from retold.agents.codex.prompt_text import (
    as_context,
    content_texts,
    is_shell_command,
    normalise_answer,
    normalise_instructions,
    split_user_content,
)
from retold.agents.codex.raw import Record, list_or_empty, unknown_fields
from retold.agents.codex.state import Handler, State, Twin, add_twin, take_twin
from retold.agents.codex.tokens import assign_early_tokens, begin_turn
from retold.agents.codex.tool_calls import fold_call, fold_finished_call, fold_result, fold_search_result
from retold.model.serialization import short_repr
from retold.model.session import ContextKind, Event, Message, Opaque, Part, Thinking
from retold.reading.json_decode import text_or_none

_MESSAGE_KEYS = frozenset(("type", "role", "content", "id"))
_REASONING_KEYS = frozenset(("type", "id", "summary", "content", "encrypted_content"))
_PASSTHROUGH = "internal_chat_message_metadata_passthrough"


def fold_item(state: State, payload: Record, at: datetime | None) -> None:
    """Fold one item."""
    kind = payload.get("type")
    handler = _HANDLERS.get(kind) if type(kind) is str else None
    if handler is None:
        state.notes.add_opaque("unknown-record", f"an item of type {short_repr(kind)}")
        state.put(Event(None, "notice", at, "live", "", Opaque(payload)))
        return
    handler(state, payload, at)


def _fold_message(state: State, payload: Record, at: datetime | None) -> None:
    role = payload.get("role")
    if role == "assistant":
        parts = normalise_answer(payload.get("content"), state.notes)
        text = "\n".join(content_texts(payload.get("content")))
        put_answer_text(state, _id(payload), parts, text, unknown_fields(payload, _MESSAGE_KEYS), at)
    elif role == "user":
        _fold_user_message(state, payload, at)
    else:
        if role not in ("developer", "system"):
            state.notes.add_opaque("unknown-type", f"a message of role {short_repr(role)}")
        parts = normalise_instructions(payload.get("content"), state.notes)
        extra = unknown_fields(payload, _MESSAGE_KEYS)
        state.put(Message(_id(payload), "system", at, "live", None, None, None, parts, extra=extra))


def put_answer_text(  # noqa: PLR0913 - one argument a field
    state: State,
    item_id: str | None,
    parts: tuple[Part, ...],
    text: str,
    extra: Record | None,
    at: datetime | None,
) -> None:
    """Append the text of an answer, and withdraw the event with the same text."""
    state.answer = text
    twin = take_twin(state.events_without_item, "assistant", text)
    if twin is not None:
        extra = merge_extra(extra, _withdraw_event(state, twin))
    index = put_response(state, item_id, parts, extra, at)
    if twin is None:
        add_twin(state.items_without_event, "assistant", text, index)


def put_response(
    state: State, name: str | None, parts: tuple[Part, ...], extra: Record | None, at: datetime | None
) -> int:
    """Append a piece of the current response."""
    meter = state.meter
    index = state.put(
        Message(
            name,
            "assistant",
            at,
            "live",
            None,
            state.model,
            None,
            parts,
            response=meter.response,
            extra=extra,
        )
    )
    meter.open.append(index)
    return index


def _fold_user_message(state: State, payload: Record, at: datetime | None) -> None:
    passed = payload.get(_PASSTHROUGH)
    kinds = passed.get("content_item_kinds") if type(passed) is dict else None
    content = split_user_content(payload.get("content"), kinds, state.notes)
    extra = unknown_fields(payload, _MESSAGE_KEYS)
    if state.meter.ahead is not None:
        assign_early_tokens(state, at)
    if content.words is None:
        state.put(Message(_id(payload), "user", at, "live", None, None, None, content.parts, extra=extra))
    elif state.is_subagent:
        parts = as_context("task", content.parts)
        begin_turn(
            state, state.put(Message(_id(payload), "user", at, "live", None, None, None, parts, extra=extra))
        )
        add_twin(state.items_without_event, "user", content.words, len(state.entries) - 1)
    else:
        _put_prompt(
            state,
            Message(_id(payload), "user", at, "live", None, None, None, content.parts, extra=extra),
            content,
        )


def _put_prompt(state: State, message: Message, content: Any) -> None:
    """Append a message that looks typed; an event with the same words confirms it."""
    words = content.words
    twin = take_twin(state.events_without_item, "user", words)
    before = state.entries[twin.index] if twin else None
    prompt = before.prompt if type(before) is Message else words.strip() or None
    extra = merge_extra(message.extra, _withdraw_event(state, twin))
    index = state.put(replace(message, prompt=prompt, extra=extra))
    if is_shell_command(words):
        return
    if twin is None:
        begin_turn(state, index)
        add_twin(state.items_without_event, "user", words, index)
        if not content.is_certain:
            state.unconfirmed[index] = None


def _withdraw_event(state: State, twin: Twin | None) -> Record | None:
    """Withdraw the message of an event that an item repeats, and return its other fields."""
    if twin is None:
        return None
    before = state.entries[twin.index]
    state.entries[twin.index] = None
    return before.extra if type(before) is Message else None


def merge_extra(first: Record | None, second: Record | None) -> Record | None:
    """Return the merged fields of two records of the same thing; of conflicting values, the first."""
    return {**second, **first} if first and second else first or second


def _fold_reasoning(state: State, payload: Record, at: datetime | None) -> None:
    sealed = text_or_none(payload.get("encrypted_content"))
    pieces = [part for key in ("summary", "content") for part in list_or_empty(payload.get(key))]
    thoughts = [part["text"] for part in pieces if type(part) is dict and type(part.get("text")) is str]
    extra = merge_extra(unknown_fields(payload, _REASONING_KEYS), withdraw_thoughts(state, thoughts))
    parts: list[Part] = [Thinking(None, text) for text in thoughts]
    parts += [Opaque(part) for part in pieces if type(part) is not dict or type(part.get("text")) is not str]
    if sealed is not None or not parts:
        first = parts[0] if parts and type(parts[0]) is Thinking else Thinking(None, "")
        parts[:1] = [replace(first, signature=sealed)]
    put_response(state, _id(payload), tuple(parts), extra, at)


def withdraw_thoughts(state: State, thoughts: list[str]) -> Record | None:
    """Withdraw the thoughts of events that an item repeats, and return their other fields."""
    extra: Record | None = None
    for text in thoughts:
        index = state.thoughts.get(text)
        if index is not None:
            event = state.entries[index]
            extra = merge_extra(extra, event.extra if type(event) is Message else None)
            state.entries[index] = None
        state.thoughts[text] = None
    return extra


def _fold_agent_message(state: State, payload: Record, at: datetime | None) -> None:
    """Fold a message of another agent: nobody typed it."""
    parts = normalise_answer(payload.get("content"), state.notes)
    kind: ContextKind = "task" if state.is_subagent else "background"
    extra = unknown_fields(payload, frozenset(("type", "id", "content")))
    state.put(
        Message(_id(payload), "user", at, "live", None, None, None, as_context(kind, parts), extra=extra)
    )


def _fold_notice(state: State, payload: Record, at: datetime | None) -> None:
    extra = {key: value for key, value in payload.items() if key != "id"}
    state.put(Event(_id(payload), "notice", at, "live", "", extra=extra))


def _id(payload: Record) -> str | None:
    return text_or_none(payload.get("id"))


_HANDLERS: dict[str, Handler] = {
    "message": _fold_message,
    "reasoning": _fold_reasoning,
    "function_call": fold_call,
    "custom_tool_call": fold_call,
    "local_shell_call": fold_call,
    "tool_search_call": fold_call,
    "web_search_call": fold_finished_call,
    "image_generation_call": fold_finished_call,
    "function_call_output": fold_result,
    "custom_tool_call_output": fold_result,
    "tool_search_output": fold_search_result,
    "agent_message": _fold_agent_message,
    "additional_tools": _fold_notice,
    "compaction": _fold_notice,
    "context_compaction": _fold_notice,
    "compaction_summary": _fold_notice,
    "compaction_trigger": _fold_notice,
    "ghost_snapshot": _fold_notice,
}
