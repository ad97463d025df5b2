"""Reads a file: detects its shape and folds its records into readings."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from retold.agents.bookmarks import ReadWholeError, find_places
from retold.agents.gemini.bookmarks import is_place, reject_unusual
from retold.agents.gemini.discovery import Origin, find_project_hash, native_id_of, origin_of
from retold.agents.gemini.raw import (
    ConversationRecord,
    Record,
    decode_conversation,
    is_log_entry,
    is_turn,
    looks_like_message,
)
from retold.agents.gemini.replay import replay, replay_document
from retold.agents.gemini.state import (
    CaptureFile,
    CleanDocument,
    History,
    PromptLog,
    State,
    Transcript,
    apply_fallback,
    is_loadable,
)
from retold.agents.gemini.tool_results import find_outputs
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.model.session import Kind
from retold.reading.disk import LONGEST, Disk, FileBytes, read_lines, remove_nuls, too_long_problem
from retold.reading.json_decode import (
    JsonFailure,
    JsonValue,
    Salvage,
    decode,
    decode_json_text,
    decode_text,
    repair_problems,
    salvage,
    text_or_none,
    value_at,
)
from retold.reading.jsonl import FileMark, JsonLine, count_lines, decode_lines

_SHARE_HEADING = re.compile(r"\A\ufeff?\s*(?:## (?:USER|MODEL) \S+|\S+ ## (?:USER|MODEL))\s*$", re.MULTILINE)
_OBJECT_LINE = re.compile(r"^\{", re.MULTILINE)
LISTS = ("messages", "clientHistory", "history")
"""The names of the list in a document."""
STREAM_TYPES = ("init", "message", "tool_use", "tool_result", "error", "result")
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n\x00]*")
_LINE_END = re.compile(rb"[\r\n]")
_BRACKET = 4
"""The longest first line of a pretty-printed document: a bracket and blanks."""
_PROBE_LINES = 64
"""How many lines are probed for a known record; captured output has stray lines."""


class Lines(msgspec.Struct, frozen=True):
    """JSON lines of a session."""


class Stream(msgspec.Struct, frozen=True):
    """JSON lines of `--output-format stream-json`."""


class CheckedDocument(msgspec.Struct, frozen=True):
    """A single-document session whose fields were all checked."""

    record: ConversationRecord


class Document(msgspec.Struct, frozen=True):
    """One JSON value, decoded strictly or mended."""

    value: Any
    strict: bool
    problems: tuple[Problem, ...] = ()


class Markdown(msgspec.Struct, frozen=True):
    """The Markdown of `/chat share`."""

    text: str
    problems: tuple[Problem, ...] = ()


def detect_shape(
    file: FileBytes, path: str
) -> Lines | Stream | CheckedDocument | Document | Markdown | Problem:
    """Return the shape of a file's content, or a Problem if it has none."""
    data = file.data
    start = _blank_until(data, 0)
    if start == len(data):
        return problem("not-a-session", "the file is empty", path)
    first_end = _LINE_END.search(data, start)
    end = first_end.start() if first_end else len(data)
    is_one_line = _blank_until(data, end) == len(data)
    if not is_one_line and _is_json(memoryview(data)[start:end]):
        return _detect_lines(data, path) or problem("not-a-session", "JSON lines of no known kind", path)
    if len(data) > LONGEST:
        return too_long_problem(file)
    text, skipped = remove_nuls(file)
    usual = None if is_one_line or skipped else decode_conversation(text)
    if usual is not None:
        return CheckedDocument(usual)
    whole = decode(text)
    if isinstance(whole, JsonValue):
        if is_one_line and _is_record(whole.value):
            return Lines()
        problems = repair_problems(whole.repairs, path)
        return Document(whole.value, whole.strict and not skipped, (*skipped, *problems))
    saved = _salvage_document(text, path, whole)
    if isinstance(saved, Document) and _has_elements(saved.value):
        return msgspec.structs.replace(saved, problems=(*skipped, *saved.problems))
    return (
        _detect_lines(data, path)
        or _detect_markdown(data, path)
        or _find_embedded_answer(data, path)
        or saved
    )


def _has_elements(value: Any) -> bool:
    """Return whether the list of a salvaged document has elements: then the file is a document and no lines."""
    return bool(value) if type(value) is list else any(value.get(key) for key in LISTS)


def _blank_until(data: bytes, position: int) -> int:
    match = _BLANK.match(data, position)
    return match.end() if match else position


def _is_json(line: memoryview) -> bool:
    """Return whether a line is a JSON value by itself; the lone bracket that opens a document is not tried."""
    is_bracket = len(line) <= _BRACKET and bytes(line).strip() in (b"{", b"[")
    return not is_bracket and isinstance(decode(line), JsonValue)


def _detect_lines(data: bytes, path: str) -> Lines | Stream | Problem | None:
    """Return the kind of lines by the first certain record; None if no line is certain."""
    for line in islice(decode_lines(data, path), _PROBE_LINES):
        if isinstance(line, JsonLine) and type(line.value) is dict:
            if _is_record(line.value):
                return Lines()
            if _is_stream_event(line.value):
                return Stream()
            if is_qwen(line.value):
                return problem("foreign-format", "a session of Qwen Code", path, line.number)
    return None


def _is_record(value: Any) -> bool:
    if type(value) is not dict or "message" in value:
        return False
    return (
        type(value.get("$rewindTo")) is str
        or type(value.get("$set")) is dict
        or (type(value.get("id")) is str and looks_like_message(value))
        or (type(value.get("sessionId")) is str and ("projectHash" in value or "startTime" in value))
    )


def _is_stream_event(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return kind in STREAM_TYPES and (
        (kind == "init" and type(value.get("session_id")) is str)
        or (kind == "message" and "role" in value and type(value.get("content")) is str)
        or (kind in ("tool_use", "tool_result") and type(value.get("tool_id")) is str)
        or (kind == "result" and "status" in value)
    )


def is_qwen(value: Any) -> bool:
    """Return whether a value is a record of Qwen Code, a fork of Gemini CLI that keeps its parts."""
    return (
        type(value) is dict
        and "sessionId" in value
        and type(value.get("message")) is dict
        and type(value["message"].get("parts")) is list
    )


def is_captured_answer(value: Any) -> bool:
    """Return whether a document is the output of `-o json`: an answer with statistics, or an error."""
    if type(value) is not dict or "messages" in value or "history" in value:
        return False
    return ("response" in value and "stats" in value) or (
        "session_id" in value and type(value.get("error")) is dict
    )


def _detect_markdown(data: bytes, path: str) -> Markdown | None:
    text, repairs = decode_text(data)
    return Markdown(text, repair_problems(repairs, path)) if _SHARE_HEADING.match(text) else None


def _find_embedded_answer(data: bytes, path: str) -> Document | None:
    """Return the answer that `-o json` printed between other lines, such as warnings in the same terminal."""
    text, repairs = decode_json_text(data)
    for match in islice(_OBJECT_LINE.finditer(text), _PROBE_LINES):
        found = value_at(text, match.start())
        if found is not None and is_captured_answer(found[0]):
            line = text.count("\n", 0, match.start())
            stray = problem("malformed-json", "lines that are not of the answer", path, line or line + 2)
            return Document(found[0], strict=False, problems=(stray, *repair_problems(repairs, path)))
    return None


def _salvage_document(data: bytes, path: str, failure: JsonFailure) -> Document | Problem:
    """Return the whole elements of a JSON document that is cut or damaged."""
    text, repairs = decode_json_text(data)
    for key in (*LISTS, None):
        rescued = salvage(text, key, _is_message_or_turn)
        if rescued is not None and (rescued.elements or _is_begun(rescued)):
            line = text.count("\n", 0, rescued.broken_at) + 1
            code = "truncated-tail" if rescued.is_cut else failure.code
            description = f"{failure.message}; {len(rescued.elements)} whole elements"
            value = rescued.elements if key is None else {**rescued.fields, key: rescued.elements}
            return Document(
                value,
                strict=False,
                problems=(problem(code, description, path, line), *repair_problems(repairs, path)),
            )
    return problem("not-a-session", f"neither JSON nor a transcript: {failure.message}", path)


def _is_message_or_turn(value: Any) -> bool:
    return looks_like_message(value) or is_turn(value)


def _is_begun(rescued: Salvage) -> bool:
    return type(rescued.fields.get("sessionId")) is str


def read(source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
    """Read a file; given the reading of its beginning, read only what follows."""
    file = read_lines(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    if earlier:
        if file.gaps:
            raise ReadWholeError("offsets in the file are not those in its data")
        return (_read_lines(earlier[0].state, source, file),)
    path = source.display_path
    match detect_shape(file, path):
        case Problem() as refused:
            return refused
        case Lines():
            return (_read_lines(Transcript(origin_of(source), State(path)), source, file),)
        case Stream():
            return (_read_stream(source, file),)
        case Markdown(text, problems):
            history = History(origin_of(source), "capture", tuple(parse_shared_turns(text)))
            return (_make_reading(source, file, "gemini-share-markdown", None, history, problems),)
        case CheckedDocument(record):
            origin = origin_of(source)
            outputs = find_outputs(origin, source.disk, record.session_id)
            transcript = Transcript(origin, CleanDocument(path, record), outputs)
            return (_make_reading(source, file, "gemini-json", record.session_id or None, transcript),)
        case Document() as found:
            return _read_document(found, source, file)


def _make_reading(  # noqa: PLR0913 - a Reading has as many fields
    source: Source,
    file: FileBytes,
    form: str,
    native_id: str | None,
    state: Any,
    problems: Sequence[Problem] = (),
) -> Reading:
    found = (*file.problems, *problems)
    return Reading(source, form, native_id, file.size, file.modified_at, state, found)


def _read_lines(transcript: Transcript, source: Source, file: FileBytes) -> Reading:
    """Fold the lines behind the transcript's mark into its state."""
    data, path, origin, earlier = file.data, source.display_path, transcript.origin, transcript.earlier
    state, mark = transcript.state, transcript.mark
    assert isinstance(state, State)  # noqa: S101 - a document has no lines
    places: list[tuple[FileMark, State]] = []
    ends = find_places(_part_of(data), mark.offset, len(data), is_place) if source.is_growing else ()
    for end in (*(() if file.gaps else ends), None):
        lines = decode_lines(data, path, mark.offset, mark.lines, end, file.gaps)
        state = replay(state, lines if earlier is None else reject_unusual(lines, earlier.known))
        if end is not None:
            mark = FileMark(end, mark.lines + count_lines(data, mark.offset, end))
            places.append((mark, state))
    if not is_loadable(state) and state.lines <= 1:
        whole = decode(data)
        state = apply_fallback(state, whole.value) if isinstance(whole, JsonValue) and whole.strict else state
    native_id = native_id_of(state.metadata)
    outputs = transcript.outputs
    if earlier is None:
        outputs = find_outputs(origin, source.disk, native_id, text_or_none(state.metadata.get("sessionId")))
    recorded = Transcript(origin, state, outputs, transcript.mark, earlier, tuple(places))
    return _make_reading(source, file, "gemini-jsonl", native_id, recorded)


def _part_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda start, size: data[start : start + size]


def _read_stream(source: Source, file: FileBytes) -> Reading:
    objects: list[JsonLine] = []
    problems: list[Problem] = []
    for line in decode_lines(file.data, source.display_path, gaps=file.gaps):
        if isinstance(line, Problem):
            problems.append(line)
        else:
            objects.append(line)
    ids = [line.value.get("session_id") for line in objects if type(line.value) is dict]
    native_id = next((found for found in ids if type(found) is str), None)
    captured = CaptureFile(origin_of(source), tuple(objects), is_stream=True)
    return _make_reading(source, file, "gemini-stream-json", native_id, captured, problems)


def _read_document(document: Document, source: Source, file: FileBytes) -> Sequence[Reading] | Problem:
    origin = origin_of(source)
    readings: Sequence[Reading] | None = None
    if type(document.value) is dict:
        readings = _read_object(document, source, file, origin)
    elif type(document.value) is list:
        readings = _read_list(document, source, file, origin)
    if readings is not None:
        return readings
    first = document.value[0] if type(document.value) is list and document.value else document.value
    if is_qwen(first):
        return problem("foreign-format", "a session of Qwen Code", source.display_path)
    return problem("not-a-session", "JSON, but no conversation in a known form", source.display_path)


def _read_object(
    document: Document, source: Source, file: FileBytes, origin: Origin
) -> Sequence[Reading] | None:
    value = document.value
    if _is_session(value):
        return (_read_session(document, source, file, origin),)
    if is_captured_answer(value):
        native_id = value.get("session_id")
        known = native_id if type(native_id) is str else None
        captured = CaptureFile(origin, (JsonLine(1, value),), is_stream=False)
        return (_make_reading(source, file, "gemini-json-output", known, captured, document.problems),)
    key = "clientHistory" if "clientHistory" in value else "history"
    if not _is_list_of(value.get(key), is_turn):
        return None
    other_fields = {name: field for name, field in value.items() if name != key}
    known_hash = _project_hash(origin, source.disk)
    if key == "history" and origin.stem.startswith("session-") and not origin.is_saved:
        session = History(origin, "main", tuple(value[key]), f"/{key}", other_fields, known_hash)
        return (_make_reading(source, file, "gemini-history", origin.stem, session, document.problems),)
    form = "gemini-restore-point" if key == "clientHistory" else "gemini-checkpoint"
    history = History(origin, "checkpoint", tuple(value[key]), f"/{key}", other_fields, known_hash)
    return (_make_reading(source, file, form, None, history, document.problems),)


def _read_list(
    document: Document, source: Source, file: FileBytes, origin: Origin
) -> Sequence[Reading] | None:
    if not document.value:
        # A log without prompts; any other empty list is no conversation.
        return () if origin.stem == "logs" else None
    if _is_list_of(document.value, is_turn):
        is_checkpoint = origin.is_saved or origin.stem.startswith("checkpoint")
        kind: Kind = "checkpoint" if is_checkpoint else "capture"
        history = History(
            origin, kind, tuple(document.value), project_hash=_project_hash(origin, source.disk)
        )
        form = "gemini-checkpoint" if kind == "checkpoint" else "gemini-share-json"
        return (_make_reading(source, file, form, None, history, document.problems),)
    if _is_list_of(document.value, is_log_entry):
        return _read_logs(document.value, source, file, origin, document.problems)
    return None


def _project_hash(origin: Origin, disk: Disk) -> str | None:
    return find_project_hash(origin.project_folder, disk) if origin.project_key else None


def _is_session(value: Record) -> bool:
    messages = value.get("messages")
    if "sessionId" in value and "projectHash" in value:
        return True
    return type(messages) is list and ("sessionId" in value or any(map(looks_like_message, messages)))


def _is_list_of(value: Any, is_kind: Callable[[Any], bool]) -> bool:
    """Return whether any element of a list is surely of this kind; the others may be damaged."""
    return type(value) is list and (not value or any(map(is_kind, value)))


def _read_session(document: Document, source: Source, file: FileBytes, origin: Origin) -> Reading:
    path, record = source.display_path, document.value
    state = replay_document(path, record, is_strict=document.strict)
    known = native_id_of(record)
    recorded = Transcript(origin, state, find_outputs(origin, source.disk, known))
    return _make_reading(source, file, "gemini-json", known, recorded, document.problems)


def _read_logs(
    value: list[Any], source: Source, file: FileBytes, origin: Origin, problems: Sequence[Problem]
) -> Sequence[Reading]:
    known_hash = _project_hash(origin, source.disk)
    by_session: dict[str, list[JsonLine]] = defaultdict(list)
    all_problems = list(problems)
    for number, record in enumerate(value):
        if is_log_entry(record):
            by_session[record["sessionId"]].append(JsonLine(number, record))
        else:
            all_problems.append(
                problem("unexpected-shape", "no logged prompt", source.display_path, pointer=f"/{number}")
            )
    return tuple(
        _make_reading(
            source,
            file,
            "gemini-logs",
            session_id,
            PromptLog(origin, known_hash, tuple(prompts)),
            all_problems,
        )
        for session_id, prompts in by_session.items()
    )


_BLOCK = re.compile(r"(?:\A\ufeff?\s*|\n\n---\n\n)(?:## (USER|MODEL) \S+|\S+ ## (USER|MODEL))\n\n")
_TOOL = re.compile(r"\*\*Tool (Command|Response)\*\*:\n```json\n")
_FENCE = "\n```"


def parse_shared_turns(text: str) -> list[dict[str, Any]]:
    """Return the turns of a Markdown page from `/chat share`."""
    text = text.replace("\r\n", "\n")
    heads = list(_BLOCK.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    return [
        {"role": (head[1] or head[2]).lower(), "parts": list(_shared_parts(text[head.end() : end]))}
        for head, end in zip(heads, ends, strict=True)
    ]


def _shared_parts(block: str) -> Iterator[dict[str, Any]]:
    position = 0
    while (match := _TOOL.search(block, position)) and (ends := block.find(_FENCE, match.end())) >= 0:
        yield from _text_part(block[position : match.start()])
        yield _shared_tool(match[1], block[match.end() : ends], block[match.start() : ends + len(_FENCE)])
        position = ends + len(_FENCE)
    yield from _text_part(block[position:])


def _text_part(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"text": text.strip("\n")}


def _shared_tool(label: str, fenced: str, whole: str) -> dict[str, Any]:
    decoded = decode(fenced.encode(errors="replace"))
    if isinstance(decoded, JsonValue) and type(decoded.value) is dict:
        return {"functionCall" if label == "Command" else "functionResponse": decoded.value}
    return {"text": whole}
