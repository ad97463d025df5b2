"""Items of the model's history, one message each: what was said, thought, called, given back.

Evidence: `docs/formats/codex.md`, section 4.
"""

from datetime import datetime
from typing import Any

import msgspec

from retold.agents.codex.prompt_text import as_task, instructed, is_shell_act, said, said_by_user, texts
from retold.agents.codex.raw import Record, listed, rest, text_or_none
from retold.agents.codex.state import Handler, State, Twin, taken, wait
from retold.agents.codex.tokens import begin_turn, settle
from retold.agents.codex.tool_calls import answer, answer_search, ask, ask_and_end
from retold.model.serialization import shown_value
from retold.model.session import Context, ContextKind, Event, Message, Opaque, Part, Text, Thinking

_MESSAGE = frozenset(("type", "role", "content", "id"))
_REASONING = frozenset(("type", "id", "summary", "content", "encrypted_content"))
_PASSTHROUGH = "internal_chat_message_metadata_passthrough"


def item(state: State, payload: Record, at: datetime | None) -> None:
    """Take one item down."""
    kind = payload.get("type")
    handler = _HANDLERS.get(kind) if type(kind) is str else None
    if handler is None:
        state.notes.kept("unknown-record", f"an item of type {shown_value(kind)}")
        state.put(Event(None, "notice", at, "live", "", Opaque(payload)))
        return
    handler(state, payload, at)


def _message(state: State, payload: Record, at: datetime | None) -> None:
    role = payload.get("role")
    if role == "assistant":
        parts = said(payload.get("content"), state.notes)
        text = "\n".join(texts(payload.get("content")))
        put_said(state, _id(payload), parts, text, rest(payload, _MESSAGE), at)
    elif role == "user":
        _user(state, payload, at)
    else:
        if role not in ("developer", "system"):
            state.notes.kept("unknown-type", f"a message of role {shown_value(role)}")
        parts = instructed(payload.get("content"), state.notes)
        extra = rest(payload, _MESSAGE)
        state.put(Message(_id(payload), "system", at, "live", None, None, None, parts, extra=extra))


def put_said(  # noqa: PLR0913 - one argument a field
    state: State,
    item_id: str | None,
    parts: tuple[Part, ...],
    text: str,
    extra: Record | None,
    at: datetime | None,
) -> None:
    """Append what the model said; an event may have told it already."""
    state.answer = text
    told = taken(state.told, "assistant", text)
    if told is not None:
        extra = merged(extra, _withdrawn(state, told))
    index = put_response(state, item_id, parts, extra, at)
    if told is None:
        wait(state.said, "assistant", text, index)


def put_response(
    state: State, name: str | None, parts: tuple[Part, ...], extra: Record | None, at: datetime | None
) -> int:
    """Append a piece of the response that is being recorded."""
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


def _user(state: State, payload: Record, at: datetime | None) -> None:
    passed = payload.get(_PASSTHROUGH)
    kinds = passed.get("content_item_kinds") if type(passed) is dict else None
    found = said_by_user(payload.get("content"), kinds, state.notes)
    extra = rest(payload, _MESSAGE)
    if state.meter.ahead is not None:
        settle(state, at)
    if found.words is None:
        state.put(Message(_id(payload), "user", at, "live", None, None, None, found.parts, extra=extra))
    elif state.is_subagent:
        parts = as_task(found.parts)
        begin_turn(
            state, state.put(Message(_id(payload), "user", at, "live", None, None, None, parts, extra=extra))
        )
        wait(state.said, "user", found.words, len(state.entries) - 1)
    else:
        _put_words(
            state,
            Message(_id(payload), "user", at, "live", None, None, None, found.parts, extra=extra),
            found,
        )


def _put_words(state: State, message: Message, found: Any) -> None:
    """Append what looks typed; an event that told it already says so for certain."""
    words = found.words
    told = taken(state.told, "user", words)
    before = state.entries[told.index] if told else None
    prompt = before.prompt if type(before) is Message else words.strip() or None
    extra = merged(message.extra, _withdrawn(state, told))
    index = state.put(msgspec.structs.replace(message, prompt=prompt, extra=extra))
    if is_shell_act(words):
        return
    if told is None:
        begin_turn(state, index)
        wait(state.said, "user", words, index)
        if not found.is_certain:
            state.unconfirmed[index] = None


def _withdrawn(state: State, told: Twin | None) -> Record | None:
    """Take an event's message back whose words came as an item, and return what only the event said."""
    if told is None:
        return None
    before = state.entries[told.index]
    state.entries[told.index] = None
    return before.extra if type(before) is Message else None


def merged(first: Record | None, second: Record | None) -> Record | None:
    """Return what two records of the same thing say besides; where they differ, the first counts."""
    return {**second, **first} if first and second else first or second


def _reasoning(state: State, payload: Record, at: datetime | None) -> None:
    sealed = text_or_none(payload.get("encrypted_content"))
    pieces = [part for key in ("summary", "content") for part in listed(payload.get(key))]
    thoughts = [part["text"] for part in pieces if type(part) is dict and type(part.get("text")) is str]
    extra = merged(rest(payload, _REASONING), withdrawn_thoughts(state, thoughts))
    parts: list[Part] = [Thinking(None, text) for text in thoughts]
    parts += [Opaque(part) for part in pieces if type(part) is not dict or type(part.get("text")) is not str]
    if sealed is not None or not parts:
        first = parts[0] if parts and type(parts[0]) is Thinking else Thinking(None, "")
        parts[:1] = [msgspec.structs.replace(first, signature=sealed)]
    put_response(state, _id(payload), tuple(parts), extra, at)


def withdrawn_thoughts(state: State, thoughts: list[str]) -> Record | None:
    """Take the thoughts of events back that came as an item, and return what only the events said."""
    extra: Record | None = None
    for text in thoughts:
        index = state.thoughts.get(text)
        if index is not None:
            told = state.entries[index]
            extra = merged(extra, told.extra if type(told) is Message else None)
            state.entries[index] = None
        state.thoughts[text] = None
    return extra


def _agent_message(state: State, payload: Record, at: datetime | None) -> None:
    """Take a message of another agent down: nobody typed it."""
    parts = said(payload.get("content"), state.notes)
    kind: ContextKind = "task" if state.is_subagent else "background"
    told = tuple(Context(kind, part.text) if type(part) is Text else part for part in parts)
    extra = rest(payload, frozenset(("type", "id", "content")))
    state.put(Message(_id(payload), "user", at, "live", None, None, None, told, extra=extra))


def _notice(state: State, payload: Record, at: datetime | None) -> None:
    extra = {key: value for key, value in payload.items() if key != "id"}
    state.put(Event(_id(payload), "notice", at, "live", "", extra=extra))


def _id(payload: Record) -> str | None:
    return text_or_none(payload.get("id"))


_HANDLERS: dict[str, Handler] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": ask,
    "custom_tool_call": ask,
    "local_shell_call": ask,
    "tool_search_call": ask,
    "web_search_call": ask_and_end,
    "image_generation_call": ask_and_end,
    "function_call_output": answer,
    "custom_tool_call_output": answer,
    "tool_search_output": answer_search,
    "agent_message": _agent_message,
    "additional_tools": _notice,
    "compaction": _notice,
    "context_compaction": _notice,
    "compaction_summary": _notice,
    "compaction_trigger": _notice,
    "ghost_snapshot": _notice,
}
