"""One step of a trajectory: what a person, the system or the agent said and did."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from retold.export.dialogue import SPOKEN, ModelTurn, Said, text_of
from retold.export.gen_ai import outcome
from retold.model.serialization import encoded, time_text
from retold.model.session import Attachment, Context, Event, Message, Opaque, Part, Text, Thinking, ToolCall
from retold.model.usage import Totals

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""The pictures that the format knows."""
DEEPEST = 64
"""How deep a value may be nested before it is told as text: the format's own validator gives up on deeper ones."""
_UNTOLD = {"compaction": "The conversation was compressed here."}
"""What to say of an event that says nothing itself."""

Json = dict[str, Any]


def step(said: Said, number: int, started: Collection[str]) -> Json:
    """Return a step; `started` are the subagents whose trajectories are told as well."""
    match said:
        case ModelTurn():
            told = _answer(said, started)
        case Event():
            told = {"source": "system", "message": said.text or _UNTOLD.get(said.kind, said.kind)}
        case Message():
            told = {"source": _source(said), "message": _message(said.parts)}
    first = said.messages[0] if isinstance(said, ModelTurn) else said
    extra = _extra(said)
    return {"step_id": number, **_circumstances(first), **told, **({"extra": extra} if extra else {})}


def sums(usages: Sequence[Totals]) -> Json:
    """Return the tokens of all steps; a figure that no step has stays unknown."""
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    steps = [_metrics(usage) for usage in usages]
    known = {name: [told[name] for told in steps if name in told] for name in names}
    return {f"total_{name}": sum(figures) for name, figures in known.items() if figures}


def _circumstances(entry: Message | Event) -> Json:
    """Return when a step was taken, and whether it was taken in another session."""
    told: Json = {} if entry.at is None else {"timestamp": time_text(entry.at)}
    return told if entry.own else {**told, "is_copied_context": True}


def _extra(said: Said) -> Json:
    """Return what the format has no place for: that the model is told this no more, and what nobody understands."""
    told: Json = {"kind": said.kind} if isinstance(said, Event) else {}
    if said.fate != "live":
        told["fate"] = said.fate
    parts: Iterable[Part | None] = (said.opaque,) if isinstance(said, Event) else said.parts
    opaque = [_shallow(part.value) for part in parts if isinstance(part, Opaque)]
    return {**told, "opaque": opaque} if opaque else told


def _source(message: Message) -> str:
    """Return who spoke: what the agent added by itself is the system's."""
    spoken = any(
        isinstance(part, Text | Attachment) or (isinstance(part, Context) and part.kind in SPOKEN)
        for part in message.parts
    )
    return "user" if message.role == "user" and spoken else "system"


def _answer(answer: ModelTurn, started: Collection[str]) -> Json:
    told: Json = {"source": "agent", "message": _message(answer.parts)}
    if answer.model:
        told["model_name"] = answer.model
    thoughts = [part for part in answer.parts if isinstance(part, Thinking)]
    if thoughts:
        told["reasoning_content"] = "\n\n".join(_thought(part) for part in thoughts)
    calls = _named(part for part in answer.parts if isinstance(part, ToolCall))
    if calls:
        told["tool_calls"] = [_call(call, name) for name, call in calls.items()]
        results = [_result(call, name, started) for name, call in calls.items() if _is_done(call)]
        told |= {"observation": {"results": results}} if results else {}
    if answer.usage is not None:
        told |= {"metrics": _metrics(answer.usage), "llm_call_count": answer.usage.requests}
    return told


def _thought(thought: Thinking) -> str:
    return "\n".join(words for words in (thought.subject, thought.text) if words)


def _named(calls: Iterable[ToolCall]) -> dict[str, ToolCall]:
    """Return calls by ids that are different in one step, whatever the transcript says."""
    taken: Counter[str] = Counter()
    named: dict[str, ToolCall] = {}
    for call in calls:
        taken[call.id] += 1
        name = call.id if taken[call.id] == 1 else f"{call.id}~{taken[call.id]}"
        named[name] = call
    return named


def _call(call: ToolCall, name: str) -> Json:
    extra: Json = {"canonical": call.canonical, "category": call.category}
    if call.server:
        extra["server"] = call.server
    return {
        "tool_call_id": name,
        "function_name": call.name,
        "arguments": _shallow(call.arguments),
        "extra": extra,
    }


def _is_done(call: ToolCall) -> bool:
    return call.result is not None or call.error is not None or call.status != "unknown" or bool(call.child)


def _result(call: ToolCall, name: str, started: Collection[str]) -> Json:
    extra: Json = {"status": call.status}
    if call.exit_code is not None:
        extra["exit_code"] = call.exit_code
    if call.at is not None:
        extra["at"] = time_text(call.at)
    told = {"source_call_id": name, "content": _content(outcome(call), call.attachments), "extra": extra}
    if call.child in started:
        told["subagent_trajectory_ref"] = [{"trajectory_id": call.child}]
    return told


def _message(parts: Sequence[Part]) -> str | list[Json]:
    return _content(text_of(parts), [part for part in parts if isinstance(part, Attachment)])


def _content(text: str, files: Iterable[Attachment]) -> str | list[Json]:
    """Return words alone, or with the files that came along."""
    attached = [_file(file) for file in files]
    return [*([{"type": "text", "text": text}] if text else []), *attached] if attached else text


def _file(file: Attachment) -> Json:
    """Return a picture as one, anything else by its name."""
    media = file.media_type
    if media in IMAGES and (file.data is not None or file.path):
        path = f"data:{media};base64,{file.data}" if file.data is not None else file.path
        return {"type": "image", "source": {"media_type": media, "path": path}}
    return {"type": "text", "text": f"[attached: {file.path or media or 'a file'}]"}


def _metrics(usage: Totals) -> Json:
    """Return the tokens of a step; in this format those of thoughts are part of the completion."""
    completion = [figure for figure in (usage.output, usage.reasoning) if figure is not None]
    told = {
        "prompt_tokens": usage.input,
        "completion_tokens": sum(completion) if completion else None,
        "cached_tokens": usage.cached,
    }
    extra = {
        "reasoning_tokens": usage.reasoning,
        "cache_write_tokens": usage.cache_write,
        "tool_tokens": usage.tool,
        "estimated": True if usage.estimated else None,
    }
    metrics: Json = {name: figure for name, figure in told.items() if figure is not None}
    besides = {name: figure for name, figure in extra.items() if figure is not None}
    return {**metrics, "extra": besides} if besides else metrics


def _shallow(value: Any) -> Any:
    """Return a value, or where it is nested too deep, its JSON as text."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    return {"json": encoded(value).decode()}


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
