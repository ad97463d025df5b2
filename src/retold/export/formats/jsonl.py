"""JSON lines: chat messages for fine-tuning and chat templates, events, and whole sessions."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.events import steps
from retold.model.serialization import encode_session, encode_step, encode_tree, format_utc
from retold.model.session import Context, Entry, Message, Session, Text, Thinking, ToolCall
from retold.projects.matching import folder_name

Json = dict[str, Any]
_PROMPT_CONTEXT = ("referenced_files", "shell", "task")
"""Context that an agent adds to a message and that belongs to the prompt."""


def encode_chat(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield a line for each conversation with messages, followed by those of its subagents."""
    for export in exports:
        messages = list(_messages(export.session, options))
        if messages:
            yield encode_tree({"messages": messages, "metadata": _metadata(export.session)}) + b"\n"
        yield from encode_chat(export.subagents.values(), options)


def _metadata(session: Session) -> Json:
    root = session.project.root
    return {
        "key": session.key,
        "agent": session.agent,
        "kind": session.kind,
        "parent": session.parent,
        "models": list(session.models),
        "project": folder_name(root) if root else None,
        "title": session.title,
        "started_at": session.started_at and format_utc(session.started_at),
        "status": session.status,
    }


def _messages(session: Session, options: ExportOptions) -> Iterator[Json]:
    """Yield the live messages and results, with alternating roles, as chat templates require."""
    ids: Counter[str] = Counter()
    last: Json | None = None
    results: list[Json] = []
    for entry in session.timeline:
        message, new_results = _convert(entry, options, ids)
        if message is None:
            continue
        if last is not None and _continues(last, message, entry, results):
            last = _join_messages(last, message)
        else:
            yield from _turn(last, results)
            last, results = message, []
        results += new_results
    yield from _turn(last, results)


def _turn(message: Json | None, results: list[Json]) -> Iterator[Json]:
    """Yield a message, and exactly one result for each of its calls."""
    if message is not None:
        message.pop("response", None)
        yield message
        yield from results


def _convert(entry: Entry, options: ExportOptions, ids: Counter[str]) -> tuple[Json | None, list[Json]]:
    """Return the message of an entry, if it has one, and the results of its calls."""
    if entry.fate != "live":
        return None, []
    if not isinstance(entry, Message):
        is_shown = options.notices and entry.kind == "notice" and bool(entry.text)
        return ({"role": "system", "content": entry.text} if is_shown else None), []
    message: Json = {"role": entry.role, "content": _content(entry, options), "response": entry.response}
    thoughts = [part.text for part in entry.parts if isinstance(part, Thinking) and part.text]
    thought = "\n".join(thoughts) if options.thoughts else ""
    if thought:
        message["reasoning_content"] = thought
    calls = [part for part in entry.parts if isinstance(part, ToolCall) and options.tools != "none"]
    named = [(_unique_id(call.id, ids), call) for call in calls]
    if named:
        message["tool_calls"] = [_call(call_id, call) for call_id, call in named]
    is_empty = not (message["content"] or thought or named)
    return (None if is_empty else message), [_result(call_id, call) for call_id, call in named]


def _content(message: Message, options: ExportOptions) -> str:
    texts, has_prompt = [], False
    for part in message.parts:
        if isinstance(part, Text):
            texts += [] if has_prompt else [part.text if message.prompt is None else message.prompt]
            has_prompt = message.prompt is not None
        elif isinstance(part, Context) and part.text and (options.notices or part.kind in _PROMPT_CONTEXT):
            texts.append(part.text)
    if message.prompt is not None and not has_prompt:
        texts.insert(0, message.prompt)
    return "\n".join(texts)


def _unique_id(call_id: str, ids: Counter[str]) -> str:
    """Return an id that no other call of the conversation has; repeated ids are numbered."""
    ids[call_id] += 1
    return call_id if ids[call_id] == 1 else f"{call_id}~{ids[call_id]}"


def _call(call_id: str, call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": encode_tree(call.arguments).decode()}
    return {"id": call_id, "type": "function", "function": function}


def _result(call_id: str, call: ToolCall) -> Json:
    content = "\n".join(text for text in (call.result, call.error) if text is not None)
    return {"role": "tool", "tool_call_id": call_id, "name": call.name, "content": content}


def _continues(last: Json, message: Json, entry: Entry, results: list[Json]) -> bool:
    """Return whether a message belongs to the last one: it has the same role, and no results or the same response."""
    if last["role"] != message["role"]:
        return False
    response = entry.response if isinstance(entry, Message) else None
    return not results or (response is not None and response == last.get("response"))


def _join_messages(last: Json, message: Json) -> Json:
    texts = [text for text in (last["content"], message["content"]) if text]
    joined = {**last, "content": "\n\n".join(texts), "response": message.get("response")}
    for name in ("reasoning_content", "tool_calls"):
        if name in message:
            between = "\n\n" if name == "reasoning_content" else []
            joined[name] = last[name] + between + message[name] if name in last else message[name]
    return joined


def encode_events(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield the events of each session with their texts, followed by those of its subagents."""
    for export in exports:
        for step in steps(export.session, with_text=True, with_thoughts=options.thoughts):
            yield encode_step(step) + b"\n"
        yield from encode_events(export.subagents.values(), options)


def encode_json(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield each session, followed by its subagents."""
    for export in exports:
        yield from encode_session(export.session)
        yield b"\n"
        yield from encode_json(export.subagents.values(), options)
