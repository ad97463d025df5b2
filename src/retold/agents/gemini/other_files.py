"""Makes drafts of files that are no sessions: checkpoints, captured output (`--output-format`), and logs of prompts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import msgspec

from retold.agents.gemini.messages import check_total, normalise_entry
from retold.agents.gemini.raw import Record, is_turn, text_parts
from retold.agents.gemini.state import CaptureFile, History, Notes, PromptLog, RecordContext
from retold.agents.gemini.tool_calls import STATUSES, LocatedEntry, make_call, pair_results
from retold.agents.gemini.tool_results import Result
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, estimate_usage, status_after
from retold.model.session import (
    Coverage,
    Entry,
    Event,
    EventKind,
    Message,
    Opaque,
    Part,
    Project,
    Role,
    Text,
    Totals,
)
from retold.reading.diagnostics import elapsed_ms, parse_time
from retold.reading.jsonl import JsonLine

RESTORE_POINTER = "/clientHistory"
"""The place of the turns in a restore point."""
_TYPES = {"model": "gemini", "gemini": "gemini", "user": "user"}


def make_history_draft(reading: Reading) -> Draft:
    """Return the draft of a client history; both views show all of it."""
    history: History = reading.state
    notes = Notes(reading.source.display_path, history.pointer)
    context = RecordContext(notes, history.origin.stem, _key(history))
    placed = []
    for index, record in enumerate(_as_records(history.turns)):
        notes.place = (0, index)
        placed.append(LocatedEntry(normalise_entry(record, "live", context), notes.place))
    timeline = estimate_usage(pair_results(placed, notes), history.origin.stem)
    derived = history.origin.time_in_name or reading.modified_at
    summary = history.other_fields.get("summary")
    return Draft(
        key=_key(history),
        agent="gemini",
        native_id=reading.native_id,
        kind=history.kind,
        project=Project(None, history.origin.project_key, history.project_hash, "none"),
        summary=summary if type(summary) is str else None,
        started_at=derived,
        ended_at=derived,
        are_times_derived=True,
        status=status_after(timeline[-1] if timeline else None),
        sources=(source_file(reading),),
        coverage=Coverage(max(len(history.turns), 1), notes.opaque),
        problems=(*reading.problems, *notes.problems),
        extra=history.other_fields,
        full=timeline,
        active=timeline,
    )


def _key(found: History) -> str:
    name = found.origin.stem
    if found.kind != "checkpoint":
        return f"gemini:{name}"
    project = found.origin.project_key or "unknown"
    is_tag = found.origin.is_saved and found.pointer != RESTORE_POINTER and not name.startswith("checkpoint-")
    return f"gemini:{project}/{'checkpoint-' if is_tag else ''}{unquote(name)}"


def _as_records(turns: Sequence[Any]) -> Iterator[Any]:
    """Yield the turns as records of a session; every call has an id, and every result the id of its call."""
    numbers: dict[str, int] = defaultdict(int)
    waiting: dict[str, list[str]] = defaultdict(list)
    for turn in turns:
        if not is_turn(turn):
            yield turn
            continue
        parts = [_with_id(part, numbers, waiting) for part in text_parts(turn["parts"])]
        rest = {key: value for key, value in turn.items() if key not in ("role", "parts")}
        yield {**rest, "type": _TYPES.get(turn["role"], turn["role"]), "content": parts}


def _with_id(part: Any, numbers: dict[str, int], waiting: dict[str, list[str]]) -> Any:
    """Return a part with the id of its call: calls and results match by id, else by name and order; a call without an id gets `<name>-<n>`."""
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


def make_capture_draft(reading: Reading) -> Draft:
    """Return the draft of a captured run."""
    capture: CaptureFile = reading.state
    notes = Notes(reading.source.display_path)
    timeline = tuple(
        _stream_entries(capture, notes) if capture.is_stream else _answer_entries(capture.objects[0].value)
    )
    last = capture.objects[-1].value if capture.objects else {}
    stats = last.get("stats") if type(last) is dict else None
    usage = _usage(stats) if type(stats) is dict else None
    if usage is not None:
        _check_totals(usage, notes)
    else:
        timeline = estimate_usage(timeline, reading.native_id or capture.origin.stem)
    times = [at for line in capture.objects if (at := _at(line.value)) is not None]
    derived = capture.origin.time_in_name or reading.modified_at
    return Draft(
        key=f"gemini:{capture.origin.stem}",
        agent="gemini",
        native_id=reading.native_id,
        kind="capture",
        project=Project(None, None, None, "none"),
        started_at=min(times, default=derived),
        ended_at=max(times, default=derived),
        are_times_derived=not times,
        status=status_after(timeline[-1] if timeline else None),
        usage=usage,
        sources=(source_file(reading),),
        coverage=Coverage(len(capture.objects), notes.opaque),
        problems=(*reading.problems, *notes.problems),
        extra={
            name: value for name, value in (("stats", stats), ("model", _model(capture))) if value is not None
        },
        full=timeline,
        active=timeline,
    )


def _model(found: CaptureFile) -> str | None:
    models = (line.value.get("model") for line in found.objects if _kind(line.value) == "init")
    return next((model for model in models if type(model) is str), None)


def _at(value: Any) -> datetime | None:
    return parse_time(value.get("timestamp"))[0] if type(value) is dict else None


def _answer_entries(value: Record) -> Iterator[Entry]:
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


def _stream_entries(found: CaptureFile, notes: Notes) -> Iterator[Entry]:
    """Yield the entries of a stream: an answer is the text up to the next prompt, with its calls."""
    values = [line.value for line in found.objects]
    results = {value["tool_id"]: value for value in values if _is_tool(value, "tool_result")}
    called = {value["tool_id"] for value in values if _is_tool(value, "tool_use")}
    model = _model(found)
    answer: list[Record] = []
    for line in found.objects:
        notes.place = (line.number, 0)
        kind = _kind(line.value)
        if _is_tool(line.value, "tool_result") and line.value["tool_id"] in called:
            continue  # its call holds it
        is_said = kind == "tool_use" or (kind == "message" and line.value.get("role") == "assistant")
        if answer and (not is_said or (kind == "message" and _kind(answer[-1]) == "tool_use")):
            yield _make_answer(answer, results, model, notes)
            answer = []
        if is_said:
            answer.append(line.value)
        elif kind != "init":
            yield from _other_entries(line.value, notes)
        yield from _unknown_key_events(line.value, notes)
    if answer:
        yield _make_answer(answer, results, model, notes)


def _is_tool(value: Any, kind: str) -> bool:
    return _kind(value) == kind and type(value.get("tool_id")) is str


def _unknown_key_events(value: Any, notes: Notes) -> Iterator[Entry]:
    known = EVENT_KEYS.get(_kind(value) if type(_kind(value)) is str else "")
    unknown = {key: field for key, field in value.items() if key not in known} if known else {}
    if unknown:
        notes.add_opaque("unknown-part", "unknown keys in an event: " + ", ".join(sorted(unknown)))
        yield Event(None, "notice", None, "live", "", Opaque(unknown))


def _kind(value: Any) -> Any:
    return value.get("type") if type(value) is dict else None


def _other_entries(value: Any, notes: Notes) -> Iterator[Entry]:
    match value:
        case {"type": "message", "role": "user", "content": str(text)}:
            at = notes.parse_time(value.get("timestamp"))
            yield Message(None, "user", at, "live", text.strip() or None, None, None, (Text(text),))
        case {"type": "error", "message": str(text)}:
            kind: EventKind = "warning" if value.get("severity") == "warning" else "error"
            yield Event(None, kind, notes.parse_time(value.get("timestamp")), "live", text)
        case {"type": "result"}:
            if value.get("error") is not None:
                at = notes.parse_time(value.get("timestamp"))
                yield Event(None, "error", at, "live", _error_text(value["error"]), Opaque(value["error"]))
        case {"type": "tool_result", "tool_id": str(call_id)}:
            notes.add("orphan-tool-result", call_id)
            yield Event(None, "notice", notes.parse_time(value.get("timestamp")), "live", "", Opaque(value))
        case _:
            notes.add_opaque("unknown-record", "no event of a known type")
            yield Event(None, "notice", None, "live", "", Opaque(value))


def _make_answer(
    values: list[Record], results: dict[str, Record], model: str | None, notes: Notes
) -> Message:
    parts: list[Part] = []
    text = "".join(value["content"] for value in values if type(value.get("content")) is str)
    if text:
        parts.append(Text(text))
    used = [value for value in values if _kind(value) == "tool_use"]
    parts.extend(_make_tool_call(value, results.get(str(value.get("tool_id"))), notes) for value in used)
    at = notes.parse_time(values[0].get("timestamp"))
    return Message(None, "assistant", at, "live", None, model, None, tuple(parts))


def _make_tool_call(value: Record, result: Record | None, notes: Notes) -> Part:
    name, arguments = value.get("tool_name"), value.get("parameters")
    if type(name) is not str:
        notes.add_opaque("unexpected-shape", "a tool_use without a name")
        return Opaque(value)
    output = result.get("output") if result else None
    error = result.get("error") if result else None
    status = result.get("status") if result else None
    if status is not None and type(status) is not str:
        notes.add("unexpected-shape", f"a tool_result whose status is {status!r:.40}")
    done_at = notes.parse_time(result.get("timestamp")) if result else None
    return make_call(
        value["tool_id"] if type(value.get("tool_id")) is str else notes.make_call_id(name),
        name,
        arguments if type(arguments) is dict else {},
        Result(output if type(output) is str else None, _error_text(error) if error is not None else None),
        STATUSES.get(status, "unknown") if type(status) is str else "unknown",
        native_status=status if type(status) is str else None,
        at=done_at,
        elapsed=elapsed_ms(_at(value), done_at),
    )


def _error_text(error: Any) -> str:
    message = error.get("message") if type(error) is dict else error
    return message if type(message) is str else str(error)


def _usage(stats: Record) -> Totals | None:
    """Return the totals that the CLI printed: per model in `-o json`, summed in a stream."""
    models = stats.get("models")
    if type(models) is dict and models and all(type(model) is dict for model in models.values()):
        counts = [model["tokens"] for model in models.values() if type(model.get("tokens")) is dict]
        if counts:
            requests = sum(_count(model.get("api"), "totalRequests") or 0 for model in models.values())
            figures = {name: _sum_counts(counts, key) for name, key in _JSON_FIGURES.items()}
            return Totals(**figures, cache_write=0, requests=requests, estimated=False)
    if "input_tokens" in stats:
        figures = {name: _count(stats, key) for name, key in _STREAM_FIGURES.items()}
        return Totals(**figures, cache_write=0, reasoning=None, tool=None, requests=0, estimated=False)
    return None


def _check_totals(usage: Totals, notes: Notes) -> None:
    """Add a problem if the totals do not add up; a stream omits the thoughts, which its total includes."""
    parts = (usage.input, usage.output, usage.reasoning, usage.tool)
    if usage.total is not None and None not in parts:
        check_total(usage.total, sum(part for part in parts if part is not None), notes)


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


def _count(holder: Any, key: str) -> int | None:
    value = holder.get(key) if type(holder) is dict else None
    return value if type(value) is int else None


def _sum_counts(holders: list[Record], key: str) -> int | None:
    numbers = [number for number in (_count(holder, key) for holder in holders) if number is not None]
    return sum(numbers) if numbers else None


LOG_KEYS = frozenset(("sessionId", "messageId", "type", "message", "timestamp"))


def make_prompts_draft(readings: Sequence[Reading]) -> Draft:
    """Return the draft of a session of which only the prompts are known, and perhaps an empty file."""
    first = readings[0]
    notes = Notes(first.source.display_path)
    timeline = tuple(_prompt_entry(line, notes) for line in _unique_prompts(readings))
    times = [entry.at for entry in timeline if entry.at is not None]
    log: PromptLog = first.state
    return Draft(
        key=f"gemini:lost-{first.native_id}",
        agent="gemini",
        native_id=first.native_id,
        kind="prompts-only",
        project=Project(None, log.origin.project_key, log.project_hash, "none"),
        started_at=min(times, default=first.modified_at),
        ended_at=max(times, default=first.modified_at),
        are_times_derived=not times,
        status="interrupted",
        sources=tuple(source_file(reading) for reading in readings),
        coverage=Coverage(len(timeline), notes.opaque),
        problems=(*(problem for reading in readings for problem in reading.problems), *notes.problems),
        full=timeline,
        active=timeline,
    )


def _unique_prompts(readings: Iterable[Reading]) -> Iterator[JsonLine]:
    """Yield each prompt once: a copied project folder repeats them all."""
    seen: set[bytes] = set()
    for reading in readings:
        for line in reading.state.prompts if isinstance(reading.state, PromptLog) else ():
            name = msgspec.json.encode(
                [str(line.value.get(key)) for key in ("messageId", "timestamp", "message")]
            )
            if name not in seen:
                seen.add(name)
                yield line


def _prompt_entry(line: JsonLine, notes: Notes) -> Entry:
    notes.place, record = (0, line.number), line.value
    at = notes.parse_time(record.get("timestamp"))
    text = record["message"]
    parts: tuple[Part, ...] = (Text(text),) if type(text) is str else (Opaque(text),)
    if not record.keys() <= LOG_KEYS:
        unknown = {key: value for key, value in record.items() if key not in LOG_KEYS}
        notes.add_opaque("unknown-part", "unknown keys in a logged prompt: " + ", ".join(sorted(unknown)))
        parts = (*parts, Opaque(unknown))
    is_typed = record.get("type") == "user" and type(text) is str
    role: Role = "user" if record.get("type") == "user" else "assistant"
    return Message(None, role, at, "live", text.strip() or None if is_typed else None, None, None, parts)
