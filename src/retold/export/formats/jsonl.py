"""Conversations as chat messages, one JSON object per line: what fine-tuning and chat templates take."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.events import steps
from retold.model.serialization import encoded, session_pieces, step_json, time_text
from retold.model.session import Context, Entry, Message, Session, Text, Thinking, ToolCall
from retold.projects.matching import last_name

Json = dict[str, Any]
_TOLD = ("referenced_files", "shell", "task")
"""What an agent adds to a message that belongs to what was asked of the model."""


def chat_pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield a line for each conversation in which something was said, and after it those of its subagents."""
    for telling in tellings:
        messages = list(_messages(telling.session, choice))
        if messages:
            yield encoded({"messages": messages, "metadata": _metadata(telling.session)}) + b"\n"
        yield from chat_pieces(telling.subagents.values(), choice)


def _metadata(session: Session) -> Json:
    root = session.project.root
    return {
        "key": session.key,
        "agent": session.agent,
        "kind": session.kind,
        "parent": session.parent,
        "models": list(session.models),
        "project": last_name(root) if root else None,
        "title": session.title,
        "started_at": session.started_at and time_text(session.started_at),
        "status": session.status,
    }


def _messages(session: Session, choice: ExportOptions) -> Iterator[Json]:
    """Yield what is still part of the conversation, in turns: templates want the roles to alternate."""
    ids: Counter[str] = Counter()
    last: Json | None = None
    results: list[Json] = []
    for entry in session.timeline:
        told, given = _told(entry, choice, ids)
        if told is None:
            continue
        if last is not None and _goes_on(last, told, entry, results):
            last = _joined(last, told)
        else:
            yield from _turn(last, results)
            last, results = told, []
        results += given
    yield from _turn(last, results)


def _turn(message: Json | None, results: list[Json]) -> Iterator[Json]:
    """Yield a message, its calls, and exactly one result for each of them."""
    if message is not None:
        message.pop("response", None)
        yield message
        yield from results


def _told(entry: Entry, choice: ExportOptions, ids: Counter[str]) -> tuple[Json | None, list[Json]]:
    if entry.fate != "live":
        return None, []
    if not isinstance(entry, Message):
        is_told = choice.notices and entry.kind == "notice" and bool(entry.text)
        return ({"role": "system", "content": entry.text} if is_told else None), []
    message: Json = {"role": entry.role, "content": _content(entry, choice), "response": entry.response}
    thought = _thought(entry) if choice.thoughts else ""
    if thought:
        message["reasoning_content"] = thought
    calls = [part for part in entry.parts if isinstance(part, ToolCall) and choice.tools != "none"]
    named = [(_own_id(call.id, ids), call) for call in calls]
    if named:
        message["tool_calls"] = [_call(call_id, call) for call_id, call in named]
    is_empty = not (message["content"] or thought or named)
    return (None if is_empty else message), [_result(call_id, call) for call_id, call in named]


def _content(message: Message, choice: ExportOptions) -> str:
    texts, is_told = [], False
    for part in message.parts:
        if isinstance(part, Text):
            texts += [] if is_told else [part.text if message.prompt is None else message.prompt]
            is_told = message.prompt is not None
        elif isinstance(part, Context) and part.text and (choice.notices or part.kind in _TOLD):
            texts.append(part.text)
    if message.prompt is not None and not is_told:
        texts.insert(0, message.prompt)
    return "\n".join(texts)


def _thought(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Thinking) and part.text)


def _own_id(call_id: str, ids: Counter[str]) -> str:
    """Return an id that no other call of the conversation has."""
    ids[call_id] += 1
    return call_id if ids[call_id] == 1 else f"{call_id}~{ids[call_id]}"


def _call(call_id: str, call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": encoded(call.arguments).decode()}
    return {"id": call_id, "type": "function", "function": function}


def _result(call_id: str, call: ToolCall) -> Json:
    content = "\n".join(text for text in (call.result, call.error) if text is not None)
    return {"role": "tool", "tool_call_id": call_id, "name": call.name, "content": content}


def _goes_on(last: Json, told: Json, entry: Entry, results: list[Json]) -> bool:
    """Tell whether a message belongs to the one before: a piece of one response, or the same speaker once more."""
    if last["role"] != told["role"]:
        return False
    response = entry.response if isinstance(entry, Message) else None
    return not results or (response is not None and response == last.get("response"))


def _joined(last: Json, told: Json) -> Json:
    texts = [text for text in (last["content"], told["content"]) if text]
    joined = {**last, "content": "\n\n".join(texts), "response": told.get("response")}
    for name in ("reasoning_content", "tool_calls"):
        if name in told:
            between = "\n\n" if name == "reasoning_content" else []
            joined[name] = last[name] + between + told[name] if name in last else told[name]
    return joined


def event_pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield the events of each session, with what was said, and after them those of its subagents."""
    for telling in tellings:
        for step in steps(telling.session, with_text=True, with_thoughts=choice.thoughts):
            yield step_json(step) + b"\n"
        yield from event_pieces(telling.subagents.values(), choice)


def json_pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield each session, and after it its subagents."""
    for telling in tellings:
        yield from session_pieces(telling.session)
        yield b"\n"
        yield from json_pieces(telling.subagents.values(), choice)
