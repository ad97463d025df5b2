"""Trajectories in the Agent Trajectory Interchange Format, version 1.8: one JSON document per line and conversation.

The format has no branches: the steps are the final path, and `notes` counts the messages that were rewound or replaced.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from retold.export.formats.dialogue import (
    SPOKEN,
    DialogueItem,
    ModelTurn,
    agent_version,
    dialogue_items,
    parts_text,
    result_text,
)
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.serialization import encode_tree, format_utc
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
    Totals,
)

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Media types that the format supports."""
DEEPEST = 64
"""Levels of nesting above which a value is written as JSON text: the format's own validator fails on deeper values."""
_EVENT_TEXTS = {"compaction": "The conversation was compressed here."}
"""Texts of events that have none."""

Json = dict[str, Any]


def step(item: DialogueItem, number: int, subagents: Collection[str]) -> Json:
    """Return a step. `subagents` are the keys of those whose trajectories are included."""
    match item:
        case ModelTurn():
            fields = _answer(item, subagents)
        case Event():
            fields = {"source": "system", "message": item.text or _EVENT_TEXTS.get(item.kind, item.kind)}
        case Message():
            fields = {"source": _source(item), "message": _message(item.parts)}
    first = item.messages[0] if isinstance(item, ModelTurn) else item
    extra = _extra(item)
    when: Json = {} if first.at is None else {"timestamp": format_utc(first.at)}
    if not first.own:
        when["is_copied_context"] = True
    return {"step_id": number, **when, **fields, **({"extra": extra} if extra else {})}


def sum_tokens(usages: Sequence[Totals]) -> Json:
    """Return the tokens of all steps, without the figures that no step has."""
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    steps = [_metrics(usage) for usage in usages]
    known = {name: [figures[name] for figures in steps if name in figures] for name in names}
    return {f"total_{name}": sum(figures) for name, figures in known.items() if figures}


def _extra(item: DialogueItem) -> Json:
    """Return facts that the format has no field for: the event's kind, the fate, and values that no reader understands."""
    extra: Json = {"kind": item.kind} if isinstance(item, Event) else {}
    if item.fate != "live":
        extra["fate"] = item.fate
    parts: Iterable[Part | None] = (item.opaque,) if isinstance(item, Event) else item.parts
    opaque = [_limit_depth(part.value) for part in parts if isinstance(part, Opaque)]
    return {**extra, "opaque": opaque} if opaque else extra


def _source(message: Message) -> str:
    """Return who wrote a message; text that the agent added belongs to the system."""
    spoken = any(
        isinstance(part, Text | Attachment) or (isinstance(part, Context) and part.kind in SPOKEN)
        for part in message.parts
    )
    return "user" if message.role == "user" and spoken else "system"


def _answer(answer: ModelTurn, subagents: Collection[str]) -> Json:
    fields: Json = {"source": "agent", "message": _message(answer.parts)}
    if answer.model:
        fields["model_name"] = answer.model
    thoughts = [part for part in answer.parts if isinstance(part, Thinking)]
    if thoughts:
        texts = ("\n".join(text for text in (one.subject, one.text) if text) for one in thoughts)
        fields["reasoning_content"] = "\n\n".join(texts)
    calls = _by_unique_id(part for part in answer.parts if isinstance(part, ToolCall))
    if calls:
        fields["tool_calls"] = [_call(call, name) for name, call in calls.items()]
        results = [_result(call, name, subagents) for name, call in calls.items() if _is_done(call)]
        fields |= {"observation": {"results": results}} if results else {}
    if answer.usage is not None:
        fields |= {"metrics": _metrics(answer.usage), "llm_call_count": answer.usage.requests}
    return fields


def _by_unique_id(calls: Iterable[ToolCall]) -> dict[str, ToolCall]:
    """Return calls by id; repeated ids are numbered, since a transcript may repeat them in one step."""
    counts: Counter[str] = Counter()
    by_id: dict[str, ToolCall] = {}
    for call in calls:
        counts[call.id] += 1
        by_id[call.id if counts[call.id] == 1 else f"{call.id}~{counts[call.id]}"] = call
    return by_id


def _call(call: ToolCall, name: str) -> Json:
    extra: Json = {"canonical": call.canonical, "category": call.category}
    if call.server:
        extra["server"] = call.server
    return {
        "tool_call_id": name,
        "function_name": call.name,
        "arguments": _limit_depth(call.arguments),
        "extra": extra,
    }


def _is_done(call: ToolCall) -> bool:
    return call.result is not None or call.error is not None or call.status != "unknown" or bool(call.child)


def _result(call: ToolCall, name: str, subagents: Collection[str]) -> Json:
    extra: Json = {"status": call.status}
    if call.exit_code is not None:
        extra["exit_code"] = call.exit_code
    if call.at is not None:
        extra["at"] = format_utc(call.at)
    fields = {
        "source_call_id": name,
        "content": _content(result_text(call), call.attachments),
        "extra": extra,
    }
    if call.child in subagents:
        fields["subagent_trajectory_ref"] = [{"trajectory_id": call.child}]
    return fields


def _message(parts: Sequence[Part]) -> str | list[Json]:
    return _content(parts_text(parts), [part for part in parts if isinstance(part, Attachment)])


def _content(text: str, files: Iterable[Attachment]) -> str | list[Json]:
    """Return text alone, or a list of the text and the attachments."""
    attached = [_file(file) for file in files]
    return [*([{"type": "text", "text": text}] if text else []), *attached] if attached else text


def _file(file: Attachment) -> Json:
    """Return a picture as an image, any other attachment as text with its name."""
    media = file.media_type
    if media in IMAGES and (file.data is not None or file.path):
        path = f"data:{media};base64,{file.data}" if file.data is not None else file.path
        return {"type": "image", "source": {"media_type": media, "path": path}}
    return {"type": "text", "text": f"[attached: {file.path or media or 'a file'}]"}


def _metrics(usage: Totals) -> Json:
    """Return the tokens of a step; completion tokens include those of thoughts."""
    completion = [figure for figure in (usage.output, usage.reasoning) if figure is not None]
    fields = {
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
    metrics: Json = {name: figure for name, figure in fields.items() if figure is not None}
    more = {name: figure for name, figure in extra.items() if figure is not None}
    return {**metrics, "extra": more} if more else metrics


def _limit_depth(value: Any) -> Any:
    """Return a value, or its JSON as text if it is nested too deep."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    return {"json": encode_tree(value).decode()}


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


SCHEMA_VERSION = "ATIF-v1.8"
UNKNOWN = "unknown"
_GONE = ("rewound", "superseded")


def encode_sessions(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield each trajectory on one line, with those of its subagents inside."""
    for export in exports:
        yield from _trajectory(export, options)
        yield b"\n"


def _trajectory(export: ExportSession, options: ExportOptions) -> Iterator[bytes]:
    """Yield a trajectory step by step, and its totals after them."""
    session = export.session
    yield encode_tree(_head(session))[:-1] + b',"steps":['
    number, gone = 0, Counter[str]()
    usages: list[Totals] = []
    children: dict[str, ExportSession] = {}
    for item in dialogue_items(session, options):
        if item.fate in _GONE:
            gone[item.fate] += isinstance(item, Message | ModelTurn)
            continue
        number += 1
        usages += [item.usage] if isinstance(item, ModelTurn) and item.usage else []
        started = _started(item, export)
        children |= started
        yield (b"," if number > 1 else b"") + encode_tree(step(item, number, started))
    yield b"]," + encode_tree(_tail(session, options, number, usages, gone))[1:-1]
    yield from _children(children.values(), options)
    yield b"}"


def _children(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    for place, export in enumerate(exports):
        yield b"," if place else b',"subagent_trajectories":['
        yield from _trajectory(export, options)
    if exports:
        yield b"]"


def _started(item: DialogueItem, export: ExportSession) -> dict[str, ExportSession]:
    """Return the subagents that an answer started, by key."""
    parts = item.parts if isinstance(item, ModelTurn) else ()
    keys = [part.child for part in parts if isinstance(part, ToolCall) and part.child]
    return {key: export.subagents[key] for key in keys if key in export.subagents}


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
    session: Session, options: ExportOptions, steps: int, usages: list[Totals], gone: Counter[str]
) -> Json:
    """Return the fields of a trajectory that need all its steps."""
    cost = {} if session.cost_usd is None else {"total_cost_usd": float(session.cost_usd)}
    tail: Json = {
        "final_metrics": {**sum_tokens(usages or [session.usage]), **cost, "total_steps": steps},
        "extra": _session_extra(session, options),
    }
    fields = [f"{number} {fate}" for fate, number in sorted(gone.items()) if number]
    if fields:
        tail["notes"] = (
            f"Messages that are not among the steps, because they were taken back or replaced: {', '.join(fields)}."
            " What they cost is in total_cost_usd, their tokens are in no total."
        )
    return tail


def _session_extra(session: Session, options: ExportOptions) -> Json:
    fields = {
        "title": session.title,
        "kind": session.kind,
        "status": session.status,
        "parent": session.parent,
        "project_root": session.project.root,
        "started_at": format_utc(session.started_at) if session.started_at else None,
        "ended_at": format_utc(session.ended_at) if session.ended_at else None,
        "tags": list(session.tags) or None,
        "redacted": options.is_redacted,
    }
    return {name: value for name, value in fields.items() if value is not None}
