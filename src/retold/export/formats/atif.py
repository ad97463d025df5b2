"""Trajectories in the Agent Trajectory Interchange Format, version 1.8: one JSON document per line and conversation.

The format has no place for branches: steps are the path that was kept. What was taken back is counted in `notes`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from retold.export.formats.dialogue import SPOKEN, ModelTurn, Said, agent_version, dialogue, outcome, text_of
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.serialization import encoded, time_text
from retold.model.session import (
    Attachment,
    Context,
    Event,
    Message,
    Opaque,
    Part,
    Session,
    Text,
    Thinking,
    ToolCall,
)
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


SCHEMA_VERSION = "ATIF-v1.8"
UNKNOWN = "unknown"
_GONE = ("rewound", "superseded")


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield each trajectory on one line, its subagents inside."""
    for telling in tellings:
        yield from _trajectory(telling, choice)
        yield b"\n"


def _trajectory(telling: ExportSession, choice: ExportOptions) -> Iterator[bytes]:
    """Yield a trajectory step by step; what follows from all of them comes after them."""
    session = telling.session
    yield encoded(_head(session))[:-1] + b',"steps":['
    number, gone = 0, Counter[str]()
    usages: list[Totals] = []
    children: dict[str, ExportSession] = {}
    for said in dialogue(session, choice):
        if said.fate in _GONE:
            gone[said.fate] += isinstance(said, Message | ModelTurn)
            continue
        number += 1
        usages += [said.usage] if isinstance(said, ModelTurn) and said.usage else []
        started = _started(said, telling)
        children |= started
        yield (b"," if number > 1 else b"") + encoded(step(said, number, started))
    yield b"]," + encoded(_tail(session, choice, number, usages, gone))[1:-1]
    yield from _children(children.values(), choice)
    yield b"}"


def _children(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    for place, telling in enumerate(tellings):
        yield b"," if place else b',"subagent_trajectories":['
        yield from _trajectory(telling, choice)
    if tellings:
        yield b"]"


def _started(said: Said, telling: ExportSession) -> dict[str, ExportSession]:
    """Return the subagents that an answer started, by their keys."""
    parts = said.parts if isinstance(said, ModelTurn) else ()
    keys = [part.child for part in parts if isinstance(part, ToolCall) and part.child]
    return {key: telling.subagents[key] for key in keys if key in telling.subagents}


def _head(session: Session) -> Json:
    agent: Json = {"name": session.agent, "version": agent_version(session) or UNKNOWN}
    if session.models:
        agent["model_name"] = session.models[0]
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": session.native_id or session.key,
        "trajectory_id": session.key,
        "agent": agent,
    }


def _tail(
    session: Session, choice: ExportOptions, steps: int, usages: list[Totals], gone: Counter[str]
) -> Json:
    """Return what is told of a trajectory as a whole."""
    cost = {} if session.cost_usd is None else {"total_cost_usd": float(session.cost_usd)}
    tail: Json = {
        "final_metrics": {**sums(usages or [session.usage]), **cost, "total_steps": steps},
        "extra": _session_extra(session, choice),
    }
    told = [f"{number} {fate}" for fate, number in sorted(gone.items()) if number]
    if told:
        tail["notes"] = (
            f"Messages that are not among the steps, because they were taken back or replaced: {', '.join(told)}."
            " What they cost is in total_cost_usd, their tokens are in no total."
        )
    return tail


def _session_extra(session: Session, choice: ExportOptions) -> Json:
    told = {
        "title": session.title,
        "kind": session.kind,
        "status": session.status,
        "parent": session.parent,
        "project_root": session.project.root,
        "started_at": time_text(session.started_at) if session.started_at else None,
        "ended_at": time_text(session.ended_at) if session.ended_at else None,
        "tags": list(session.tags) or None,
        "redacted": choice.is_redacted,
    }
    return {name: value for name, value in told.items() if value is not None}
