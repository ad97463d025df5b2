"""What a script caught of a headless run: `--output-format json`, and `stream-json` with stray lines between."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import msgspec

from retold.agents.gemini.context import Notes, Setting
from retold.agents.gemini.discovery import Origin
from retold.agents.gemini.normalise import normalise_entry, reconcile
from retold.agents.gemini.raw import Record, is_turn, text_parts
from retold.agents.gemini.tool_calls import STATUSES, Placed, built, paired
from retold.agents.gemini.tool_results import Result
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, estimated
from retold.model.session import (
    Coverage,
    Entry,
    Event,
    EventKind,
    Kind,
    Message,
    Opaque,
    Part,
    Project,
    Role,
    SessionStatus,
    Text,
    ToolCall,
)
from retold.model.usage import Totals
from retold.reading.diagnostics import elapsed_ms, parse_time
from retold.reading.jsonl import JsonLine

RESTORE_POINTER = "/clientHistory"
"""Where the turns of a restore point stand."""
_TYPES = {"model": "gemini", "gemini": "gemini", "user": "user"}


class History(msgspec.Struct, frozen=True):
    """A list of turns, with what stood beside it in the file."""

    origin: Origin
    kind: Kind
    turns: tuple[Any, ...]
    pointer: str = ""
    """Where in the file the list stands."""
    beside: Record = {}
    project_hash: str | None = None


def history_draft(reading: Reading) -> Draft:
    """Return the draft of a client history: both views are the same, all of it."""
    found: History = reading.state
    notes = Notes(reading.source.shown, found.pointer)
    setting = Setting(notes, found.origin.stem, _key(found))
    placed = []
    for index, record in enumerate(_records(found.turns)):
        notes.place = (0, index)
        placed.append(Placed(normalise_entry(record, "live", setting), notes.place))
    timeline = estimated(paired(placed, notes), found.origin.stem)
    derived = found.origin.named_at or reading.modified_at
    summary = found.beside.get("summary")
    return Draft(
        key=_key(found),
        agent="gemini",
        native_id=reading.native_id,
        kind=found.kind,
        project=Project(None, found.origin.project_key, found.project_hash, "none"),
        summary=summary if type(summary) is str else None,
        started_at=derived,
        ended_at=derived,
        are_times_derived=True,
        status=status_of_timeline(timeline),
        sources=(source_file(reading),),
        coverage=Coverage(max(len(found.turns), 1), notes.opaque),
        problems=(*reading.problems, *notes.problems),
        extra=found.beside,
        full=timeline,
        active=timeline,
    )


def status_of_timeline(timeline: Sequence[Entry]) -> SessionStatus:
    """Return how a conversation ended, by its last entry."""
    last = timeline[-1] if timeline else None
    if not isinstance(last, Message) or last.role != "assistant":
        return "interrupted"
    failed = any(isinstance(part, ToolCall) and part.status == "error" for part in last.parts)
    return "failure" if failed else "success"


def _key(found: History) -> str:
    name = found.origin.stem
    if found.kind != "checkpoint":
        return f"gemini:{name}"
    project = found.origin.project_key or "unknown"
    is_tag = found.origin.is_saved and found.pointer != RESTORE_POINTER and not name.startswith("checkpoint-")
    return f"gemini:{project}/{'checkpoint-' if is_tag else ''}{unquote(name)}"


def _records(turns: Sequence[Any]) -> Iterator[Any]:
    """Yield the turns as records of the session form, every call with an id and every result with its call's."""
    numbers: dict[str, int] = defaultdict(int)
    waiting: dict[str, list[str]] = defaultdict(list)
    for turn in turns:
        if not is_turn(turn):
            yield turn
            continue
        parts = [_identified(part, numbers, waiting) for part in text_parts(turn["parts"])]
        rest = {key: value for key, value in turn.items() if key not in ("role", "parts")}
        yield {**rest, "type": _TYPES.get(turn["role"], turn["role"]), "content": parts}


def _identified(part: Any, numbers: dict[str, int], waiting: dict[str, list[str]]) -> Any:
    """Pair calls and results by id, else by name and order; a call without an id gets `<name>-<n>`."""
    match part:
        case {"functionCall": {"name": str(name), "id": str(call_id)}}:
            waiting[name].append(call_id)
        case {"functionCall": {"name": str(name)} as call}:
            numbers[name] += 1
            call_id = f"{name}-{numbers[name]}"
            waiting[name].append(call_id)
            return {**part, "functionCall": {**call, "id": call_id}}
        case {"functionResponse": {"name": str(name)} as response} if waiting[name]:
            own = response.get("id")
            if own in waiting[name]:
                waiting[name].remove(own)
            else:
                return {**part, "functionResponse": {**response, "id": waiting[name].pop(0)}}
    return part


_ALL_EVENTS = ("type", "timestamp")
EVENT_KEYS = {
    "init": (*_ALL_EVENTS, "session_id", "model"),
    "message": (*_ALL_EVENTS, "role", "content", "delta"),
    "tool_use": (*_ALL_EVENTS, "tool_name", "tool_id", "parameters"),
    "tool_result": (*_ALL_EVENTS, "tool_id", "status", "output", "error"),
    "error": (*_ALL_EVENTS, "severity", "message"),
    "result": (*_ALL_EVENTS, "status", "error", "stats"),
}


class Captured(msgspec.Struct, frozen=True):
    """The objects of a captured output, with their lines; `-o json` is one object."""

    origin: Origin
    objects: tuple[JsonLine, ...]
    is_stream: bool


def capture_draft(reading: Reading) -> Draft:
    """Return the draft of a captured run."""
    found: Captured = reading.state
    notes = Notes(reading.source.shown)
    timeline = tuple(_stream(found, notes) if found.is_stream else _answer(found.objects[0].value))
    last = found.objects[-1].value if found.objects else {}
    stats = last.get("stats") if type(last) is dict else None
    usage = _usage(stats) if type(stats) is dict else None
    if usage is not None:
        _reconcile(usage, notes)
    else:
        timeline = estimated(timeline, reading.native_id or found.origin.stem)
    times = [at for line in found.objects if (at := _at(line.value)) is not None]
    derived = found.origin.named_at or reading.modified_at
    return Draft(
        key=f"gemini:{found.origin.stem}",
        agent="gemini",
        native_id=reading.native_id,
        kind="capture",
        project=Project(None, None, None, "none"),
        started_at=min(times, default=derived),
        ended_at=max(times, default=derived),
        are_times_derived=not times,
        status=status_of_timeline(timeline),
        usage=usage,
        sources=(source_file(reading),),
        coverage=Coverage(len(found.objects), notes.opaque),
        problems=(*reading.problems, *notes.problems),
        extra={
            name: value for name, value in (("stats", stats), ("model", _model(found))) if value is not None
        },
        full=timeline,
        active=timeline,
    )


def _model(found: Captured) -> str | None:
    """Return the model that a stream names at its start."""
    models = (line.value.get("model") for line in found.objects if _kind(line.value) == "init")
    return next((model for model in models if type(model) is str), None)


def _at(value: Any) -> datetime | None:
    return parse_time(value.get("timestamp"))[0] if type(value) is dict else None


def _answer(value: Record) -> Iterator[Entry]:
    response, error, warnings = value.get("response"), value.get("error"), value.get("warnings")
    for warning in warnings if type(warnings) is list else ():
        yield Event(None, "warning", None, "live", warning if type(warning) is str else str(warning))
    if type(response) is str:
        stats = value.get("stats")
        models = stats.get("models") if type(stats) is dict else None
        model = next(iter(models)) if type(models) is dict and len(models) == 1 else None
        yield Message(None, "assistant", None, "live", None, model, None, (Text(response),))
    if error is not None:
        yield Event(None, "error", None, "live", _error_text(error), Opaque(error))


def _stream(found: Captured, notes: Notes) -> Iterator[Entry]:
    """Yield the entries of a stream: an answer is the text up to the next prompt, with the calls made in it."""
    values = [line.value for line in found.objects]
    results = {value["tool_id"]: value for value in values if _is_tool(value, "tool_result")}
    called = {value["tool_id"] for value in values if _is_tool(value, "tool_use")}
    model = _model(found)
    answer: list[Record] = []
    for line in found.objects:
        notes.place = (line.number, 0)
        kind = _kind(line.value)
        if _is_tool(line.value, "tool_result") and line.value["tool_id"] in called:
            continue  # told with its call
        is_said = kind == "tool_use" or (kind == "message" and line.value.get("role") == "assistant")
        if answer and (not is_said or (kind == "message" and _kind(answer[-1]) == "tool_use")):
            yield _answered(answer, results, model, notes)
            answer = []
        if is_said:
            answer.append(line.value)
        elif kind != "init":
            yield from _other(line.value, notes)
        yield from _unknown_keys(line.value, notes)
    if answer:
        yield _answered(answer, results, model, notes)


def _is_tool(value: Any, kind: str) -> bool:
    return _kind(value) == kind and type(value.get("tool_id")) is str


def _unknown_keys(value: Any, notes: Notes) -> Iterator[Entry]:
    known = EVENT_KEYS.get(_kind(value) if type(_kind(value)) is str else "")
    unknown = {key: kept for key, kept in value.items() if key not in known} if known else {}
    if unknown:
        notes.kept("unknown-part", "unknown keys in an event: " + ", ".join(sorted(unknown)))
        yield Event(None, "notice", None, "live", "", Opaque(unknown))


def _kind(value: Any) -> Any:
    return value.get("type") if type(value) is dict else None


def _other(value: Any, notes: Notes) -> Iterator[Entry]:
    match value:
        case {"type": "message", "role": "user", "content": str(text)}:
            at = notes.time(value.get("timestamp"))
            yield Message(None, "user", at, "live", text.strip() or None, None, None, (Text(text),))
        case {"type": "error", "message": str(text)}:
            kind: EventKind = "warning" if value.get("severity") == "warning" else "error"
            yield Event(None, kind, notes.time(value.get("timestamp")), "live", text)
        case {"type": "result"}:
            if value.get("error") is not None:
                at = notes.time(value.get("timestamp"))
                yield Event(None, "error", at, "live", _error_text(value["error"]), Opaque(value["error"]))
        case {"type": "tool_result", "tool_id": str(call_id)}:
            notes.add("orphan-tool-result", call_id)
            yield Event(None, "notice", notes.time(value.get("timestamp")), "live", "", Opaque(value))
        case _:
            notes.kept("unknown-record", "no event of a known type")
            yield Event(None, "notice", None, "live", "", Opaque(value))


def _answered(values: list[Record], results: dict[str, Record], model: str | None, notes: Notes) -> Message:
    parts: list[Part] = []
    text = "".join(value["content"] for value in values if type(value.get("content")) is str)
    if text:
        parts.append(Text(text))
    used = [value for value in values if _kind(value) == "tool_use"]
    parts.extend(_call(value, results.get(str(value.get("tool_id"))), notes) for value in used)
    at = notes.time(values[0].get("timestamp"))
    return Message(None, "assistant", at, "live", None, model, None, tuple(parts))


def _call(value: Record, ended: Record | None, notes: Notes) -> Part:
    name, arguments = value.get("tool_name"), value.get("parameters")
    if type(name) is not str:
        notes.kept("unexpected-shape", "a tool_use without a name")
        return Opaque(value)
    output = ended.get("output") if ended else None
    error = ended.get("error") if ended else None
    status = ended.get("status") if ended else None
    if status is not None and type(status) is not str:
        notes.add("unexpected-shape", f"a tool_result whose status is {status!r:.40}")
    done_at = notes.time(ended.get("timestamp")) if ended else None
    return built(
        value["tool_id"] if type(value.get("tool_id")) is str else notes.call_id(name),
        name,
        arguments if type(arguments) is dict else {},
        Result(output if type(output) is str else None, _error_text(error) if error is not None else None),
        STATUSES.get(status, "unknown") if type(status) is str else "unknown",
        native_status=status if type(status) is str else None,
        at=done_at,
        took=elapsed_ms(_at(value), done_at),
    )


def _error_text(error: Any) -> str:
    message = error.get("message") if type(error) is dict else error
    return message if type(message) is str else str(error)


def _usage(stats: Record) -> Totals | None:
    """Return the totals that the CLI printed: per model in `-o json`, summed in a stream."""
    models = stats.get("models")
    if type(models) is dict and models and all(type(model) is dict for model in models.values()):
        counted = [model["tokens"] for model in models.values() if type(model.get("tokens")) is dict]
        if counted:
            requests = sum(_number(model.get("api"), "totalRequests") or 0 for model in models.values())
            figures = {name: _sum(counted, key) for name, key in _JSON_FIGURES.items()}
            return Totals(**figures, cache_write=0, requests=requests, estimated=False)
    if "input_tokens" in stats:
        figures = {name: _number(stats, key) for name, key in _STREAM_FIGURES.items()}
        return Totals(**figures, cache_write=0, reasoning=None, tool=None, requests=0, estimated=False)
    return None


def _reconcile(usage: Totals, notes: Notes) -> None:
    """Look whether the totals add up; a stream does not tell the thoughts, which are in its total."""
    parts = (usage.input, usage.output, usage.reasoning, usage.tool)
    if usage.total is not None and None not in parts:
        reconcile(usage.total, sum(part for part in parts if part is not None), notes)


_JSON_FIGURES = {
    "input": "prompt", "cached": "cached", "output": "candidates", "reasoning": "thoughts", "tool": "tool",
    "total": "total",
}  # fmt: skip
_STREAM_FIGURES = {
    "input": "input_tokens",
    "cached": "cached",
    "output": "output_tokens",
    "total": "total_tokens",
}


def _number(holder: Any, key: str) -> int | None:
    value = holder.get(key) if type(holder) is dict else None
    return value if type(value) is int else None


def _sum(holders: list[Record], key: str) -> int | None:
    numbers = [number for number in (_number(holder, key) for holder in holders) if number is not None]
    return sum(numbers) if numbers else None


LOG_KEYS = frozenset(("sessionId", "messageId", "type", "message", "timestamp"))


class Typed(msgspec.Struct, frozen=True):
    """The prompts of one session, each with its place in the file."""

    origin: Origin
    project_hash: str | None
    prompts: tuple[tuple[int, Record], ...]


def is_logged(value: Any) -> bool:
    """Tell whether this is an entry of `logs.json`."""
    return (
        type(value) is dict
        and type(value.get("sessionId")) is str
        and "messageId" in value
        and "message" in value
    )


def prompts_draft(readings: Sequence[Reading]) -> Draft:
    """Return the draft of a session of which only the prompts are known, and perhaps an empty file."""
    first = readings[0]
    notes = Notes(first.source.shown)
    timeline = tuple(_entry(place, record, notes) for place, record in _typed(readings))
    times = [entry.at for entry in timeline if entry.at is not None]
    found: Typed = first.state
    return Draft(
        key=f"gemini:lost-{first.native_id}",
        agent="gemini",
        native_id=first.native_id,
        kind="prompts-only",
        project=Project(None, found.origin.project_key, found.project_hash, "none"),
        started_at=min(times, default=first.modified_at),
        ended_at=max(times, default=first.modified_at),
        are_times_derived=not times,
        status="interrupted",
        sources=tuple(source_file(reading) for reading in readings),
        coverage=Coverage(len(timeline), notes.opaque),
        problems=(*(told for reading in readings for told in reading.problems), *notes.problems),
        full=timeline,
        active=timeline,
    )


def _typed(readings: Iterable[Reading]) -> Iterator[tuple[int, Record]]:
    """Yield each prompt once: a copied project folder holds them all again."""
    seen: set[bytes] = set()
    for reading in readings:
        for place, record in reading.state.prompts if isinstance(reading.state, Typed) else ():
            name = msgspec.json.encode(
                [str(record.get(key)) for key in ("messageId", "timestamp", "message")]
            )
            if name not in seen:
                seen.add(name)
                yield place, record


def _entry(place: int, record: Record, notes: Notes) -> Entry:
    notes.place = (0, place)
    at = notes.time(record.get("timestamp"))
    text = record["message"]
    parts: tuple[Part, ...] = (Text(text),) if type(text) is str else (Opaque(text),)
    if not record.keys() <= LOG_KEYS:
        unknown = {key: value for key, value in record.items() if key not in LOG_KEYS}
        notes.kept("unknown-part", "unknown keys in a logged prompt: " + ", ".join(sorted(unknown)))
        parts = (*parts, Opaque(unknown))
    is_typed = record.get("type") == "user" and type(text) is str
    role: Role = "user" if record.get("type") == "user" else "assistant"
    return Message(None, role, at, "live", text.strip() or None if is_typed else None, None, None, parts)
