"""A file to readings: its shape found, its records folded."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from retold.agents.gemini import discovery
from retold.agents.gemini.context import find_outputs
from retold.agents.gemini.discovery import Origin, origin, project_hash
from retold.agents.gemini.other_files import Captured, History, Typed, is_logged
from retold.agents.gemini.raw import ConversationRecord, Record, is_turn, looks_said, usual_conversation
from retold.agents.gemini.replay import document, replay
from retold.agents.gemini.session import Recorded
from retold.agents.gemini.state import Plain, State, is_loadable, with_fallback
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.model.session import Kind
from retold.reading.disk import LONGEST, Disk, FileBytes, read_lines, remove_nuls, too_long
from retold.reading.json_decode import (
    Decoded,
    Salvage,
    Undecodable,
    as_json_text,
    as_text,
    decode,
    salvage,
    value_at,
)
from retold.reading.jsonl import JsonLine, count_lines, decode_lines

_SHARE_HEADING = re.compile(r"\A\ufeff?\s*(?:## (?:USER|MODEL) \S+|\S+ ## (?:USER|MODEL))\s*$", re.MULTILINE)
_OBJECT_LINE = re.compile(r"^\{", re.MULTILINE)
LISTS = ("messages", "clientHistory", "history")
"""Under which name a document holds its list."""
STREAM_TYPES = ("init", "message", "tool_use", "tool_result", "error", "result")
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n\x00]*")
_LINE_END = re.compile(rb"[\r\n]")
_BRACKET = 4
"""How long the first line of a pretty-printed document is at the most: a bracket, and blanks."""
_PROBE_LINES = 64
"""How many lines are looked at before a file counts as something else: captured output has stray lines."""


class Lines(msgspec.Struct, frozen=True):
    """JSON lines of a session."""


class Stream(msgspec.Struct, frozen=True):
    """JSON lines of `--output-format stream-json`."""


class Usual(msgspec.Struct, frozen=True):
    """A session in a whole-file JSON whose every field is known to be of its kind."""

    record: ConversationRecord


class Document(msgspec.Struct, frozen=True):
    """One JSON value, mended or not."""

    value: Any
    strict: bool
    problems: tuple[Problem, ...] = ()


class Markdown(msgspec.Struct, frozen=True):
    """What `/chat share` writes as Markdown."""

    text: str
    problems: tuple[Problem, ...] = ()


def shape(file: FileBytes, path: str) -> Lines | Stream | Usual | Document | Markdown | Problem:
    """Return the shape of a file's content, or the Problem that it has none."""
    data = file.data
    start = _blank_until(data, 0)
    if start == len(data):
        return problem("not-a-session", "the file is empty", path)
    first_end = _LINE_END.search(data, start)
    end = first_end.start() if first_end else len(data)
    is_one_line = _blank_until(data, end) == len(data)
    if not is_one_line and _is_json(memoryview(data)[start:end]):
        return _lines(data, path) or problem("not-a-session", "JSON lines of no known kind", path)
    if len(data) > LONGEST:
        return too_long(file)
    text, skipped = remove_nuls(file)
    usual = None if is_one_line or skipped else usual_conversation(text)
    if usual is not None:
        return Usual(usual)
    whole = decode(text)
    if isinstance(whole, Decoded):
        if is_one_line and _is_record(whole.value):
            return Lines()
        problems = tuple(problem(code, message, path) for code, message in whole.mended)
        return Document(whole.value, whole.strict and not skipped, (*skipped, *problems))
    saved = _salvaged(text, path, whole)
    if isinstance(saved, Document) and _has_elements(saved.value):
        return msgspec.structs.replace(saved, problems=(*skipped, *saved.problems))
    return _lines(data, path) or _markdown(data, path) or _embedded(data, path) or saved


def _has_elements(value: Any) -> bool:
    """Tell whether a saved document has elements in its list: then it was one document, and not lines."""
    return bool(value) if type(value) is list else any(value.get(key) for key in LISTS)


def _blank_until(data: bytes, position: int) -> int:
    match = _BLANK.match(data, position)
    return match.end() if match else position


def _is_json(line: memoryview) -> bool:
    """Tell whether a line is a value by itself; the lone bracket that opens a document need not be tried."""
    is_bracket = len(line) <= _BRACKET and bytes(line).strip() in (b"{", b"[")
    return not is_bracket and isinstance(decode(line), Decoded)


def _lines(data: bytes, path: str) -> Lines | Stream | Problem | None:
    """Look at the first lines: one that is surely Gemini's decides."""
    for line in islice(decode_lines(data, path), _PROBE_LINES):
        if isinstance(line, JsonLine) and type(line.value) is dict:
            if _is_record(line.value):
                return Lines()
            if _is_streamed(line.value):
                return Stream()
            if is_qwen(line.value):
                return problem("foreign-format", "a session of Qwen Code", path, line.number)
    return None


def _is_record(value: Any) -> bool:
    """Tell whether a line is surely a record of a session."""
    if type(value) is not dict or "message" in value:
        return False
    return (
        type(value.get("$rewindTo")) is str
        or type(value.get("$set")) is dict
        or (type(value.get("id")) is str and looks_said(value))
        or (type(value.get("sessionId")) is str and ("projectHash" in value or "startTime" in value))
    )


def _is_streamed(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return kind in STREAM_TYPES and (
        (kind == "init" and type(value.get("session_id")) is str)
        or (kind == "message" and "role" in value and type(value.get("content")) is str)
        or (kind in ("tool_use", "tool_result") and type(value.get("tool_id")) is str)
        or (kind == "result" and "status" in value)
    )


def is_qwen(value: Any) -> bool:
    """Tell whether this is a record of Qwen Code, which grew out of Gemini CLI and keeps its parts."""
    return (
        type(value) is dict
        and "sessionId" in value
        and type(value.get("message")) is dict
        and type(value["message"].get("parts")) is list
    )


def is_captured(value: Any) -> bool:
    """Tell whether a document is what `-o json` prints: an answer with statistics, or an error."""
    if type(value) is not dict or "messages" in value or "history" in value:
        return False
    return ("response" in value and "stats" in value) or (
        "session_id" in value and type(value.get("error")) is dict
    )


def _markdown(data: bytes, path: str) -> Markdown | None:
    text, mended = as_text(data)
    problems = tuple(problem(code, message, path) for code, message in mended)
    return Markdown(text, problems) if _SHARE_HEADING.match(text) else None


def _embedded(data: bytes, path: str) -> Document | None:
    """Return the answer that `-o json` printed between lines of another hand: warnings reach the same terminal."""
    text, mended = as_json_text(data)
    for match in islice(_OBJECT_LINE.finditer(text), _PROBE_LINES):
        found = value_at(text, match.start())
        if found is not None and is_captured(found[0]):
            line = text.count("\n", 0, match.start())
            stray = problem("malformed-json", "lines that are not of the answer", path, line or line + 2)
            told = (problem(code, message, path) for code, message in mended)
            return Document(found[0], strict=False, problems=(stray, *told))
    return None


def _salvaged(data: bytes, path: str, failure: Undecodable) -> Document | Problem:
    """Return what is whole of a JSON document that is cut or damaged."""
    text, mended = as_json_text(data)
    for key in (*LISTS, None):
        found = salvage(text, key, _is_said_or_turn)
        if found is not None and (found.elements or _is_begun(found)):
            line = text.count("\n", 0, found.broken_at) + 1
            code = "truncated-tail" if found.is_cut else failure.code
            told = f"{failure.message}; {len(found.elements)} whole elements"
            value = found.elements if key is None else {**found.fields, key: found.elements}
            replaced = (problem(code, message, path) for code, message in mended)
            return Document(value, strict=False, problems=(problem(code, told, path, line), *replaced))
    return problem("not-a-session", f"neither JSON nor a transcript: {failure.message}", path)


def _is_said_or_turn(value: Any) -> bool:
    return looks_said(value) or is_turn(value)


def _is_begun(found: Salvage) -> bool:
    return type(found.fields.get("sessionId")) is str


_SEAL_SAMPLE = 4096


def read(source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
    """Read a file; given what an earlier call returned, only what was appended since."""
    file = read_lines(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    if len(earlier) == 1 and _only_grew(earlier[0], file.data):
        return (_read_on(earlier[0].state, source, file),)
    path = source.shown
    match shape(file, path):
        case Problem() as refused:
            return refused
        case Lines():
            place = origin(source)
            empty = Recorded(place, State(path))
            return (_read_on(empty, source, file),)
        case Stream():
            return (_stream(source, file),)
        case Markdown(text, problems):
            history = History(origin(source), "capture", tuple(turns(text)))
            return (_reading(source, file, "gemini-share-markdown", None, history, problems),)
        case Usual(record):
            place = origin(source)
            plain = Recorded(
                place, Plain(path, record), outputs=find_outputs(place, source.disk, record.session_id)
            )
            return (_reading(source, file, "gemini-json", record.session_id or None, plain),)
        case Document() as found:
            return _document(found, source, file)


def _reading(  # noqa: PLR0913 - a Reading has as many fields
    source: Source,
    file: FileBytes,
    form: str,
    native_id: str | None,
    state: Any,
    problems: Sequence[Problem] = (),
) -> Reading:
    told = (*file.problems, *problems)
    return Reading(source, form, native_id, file.size, file.modified_at, state, told)


def _read_on(found: Recorded, source: Source, file: FileBytes) -> Reading:
    """Fold what stands behind `found.offset` into its settled state."""
    data, path = file.data, source.shown
    settled_end = data.rfind(b"\n") + 1
    if settled_end > found.offset:
        before = found.settled or State(path)
        passed = count_lines(data, 0, found.offset)
        lines = decode_lines(data, path, found.offset, passed, settled_end, file.cuts)
        settled = replay(before, lines)
    else:
        settled_end, settled = found.offset, found.settled or State(path)
    state = settled
    if settled_end < len(data):
        passed = count_lines(data, 0, settled_end)
        state = replay(settled, decode_lines(data, path, settled_end, passed, cuts=file.cuts))
    if not is_loadable(state) and state.lines <= 1:
        whole = decode(data)
        state = with_fallback(state, whole.value) if isinstance(whole, Decoded) and whole.strict else state
    native_id = discovery.native_id(state.metadata)
    outputs = find_outputs(found.origin, source.disk, native_id, _text(state.metadata.get("sessionId")))
    recorded = Recorded(found.origin, state, outputs, settled, settled_end, _seal(data, settled_end))
    return _reading(source, file, "gemini-jsonl", native_id, recorded)


def _text(value: Any) -> str | None:
    return value if type(value) is str and value else None


def _seal(data: bytes, end: int) -> bytes:
    sample = data[: min(_SEAL_SAMPLE, end)] + data[max(end - _SEAL_SAMPLE, 0) : end]
    return hashlib.blake2b(sample, digest_size=16).digest()


def _only_grew(earlier: Reading, data: bytes) -> bool:
    found = earlier.state
    if not isinstance(found, Recorded) or not 0 < found.offset <= len(data):
        return False
    return _seal(data, found.offset) == found.seal


def _stream(source: Source, file: FileBytes) -> Reading:
    objects: list[JsonLine] = []
    problems: list[Problem] = []
    for line in decode_lines(file.data, source.shown, cuts=file.cuts):
        if isinstance(line, Problem):
            problems.append(line)
        else:
            objects.append(line)
    ids = [line.value.get("session_id") for line in objects if type(line.value) is dict]
    native_id = next((found for found in ids if type(found) is str), None)
    captured = Captured(origin(source), tuple(objects), is_stream=True)
    return _reading(source, file, "gemini-stream-json", native_id, captured, problems)


def _document(found: Document, source: Source, file: FileBytes) -> Sequence[Reading] | Problem:
    """Read one JSON value, by what it holds."""
    place = origin(source)
    readings: Sequence[Reading] | None = None
    if type(found.value) is dict:
        readings = _object(found, source, file, place)
    elif type(found.value) is list:
        readings = _list(found, source, file, place)
    if readings is not None:
        return readings
    first = found.value[0] if type(found.value) is list and found.value else found.value
    if is_qwen(first):
        return problem("foreign-format", "a session of Qwen Code", source.shown)
    return problem("not-a-session", "JSON, but no conversation in a known form", source.shown)


def _object(found: Document, source: Source, file: FileBytes, place: Origin) -> Sequence[Reading] | None:
    value = found.value
    if _is_session(value):
        return (_session(found, source, file, place),)
    if is_captured(value):
        native_id = value.get("session_id")
        known = native_id if type(native_id) is str else None
        captured = Captured(place, (JsonLine(1, value),), is_stream=False)
        return (_reading(source, file, "gemini-json-output", known, captured, found.problems),)
    key = "clientHistory" if "clientHistory" in value else "history"
    if not _is_list_of(value.get(key), is_turn):
        return None
    beside = {name: kept for name, kept in value.items() if name != key}
    known_hash = _known_hash(place, source.disk)
    if key == "history" and place.stem.startswith("session-") and not place.is_saved:
        session = History(place, "main", tuple(value[key]), f"/{key}", beside, known_hash)
        return (_reading(source, file, "gemini-history", place.stem, session, found.problems),)
    form = "gemini-restore-point" if key == "clientHistory" else "gemini-checkpoint"
    history = History(place, "checkpoint", tuple(value[key]), f"/{key}", beside, known_hash)
    return (_reading(source, file, form, None, history, found.problems),)


def _list(found: Document, source: Source, file: FileBytes, place: Origin) -> Sequence[Reading] | None:
    if not found.value:
        # A log in which nothing was typed yet; any other empty list is no conversation.
        return () if place.stem == "logs" else None
    if _is_list_of(found.value, is_turn):
        is_checkpoint = place.is_saved or place.stem.startswith("checkpoint")
        kind: Kind = "checkpoint" if is_checkpoint else "capture"
        history = History(place, kind, tuple(found.value), project_hash=_known_hash(place, source.disk))
        form = "gemini-checkpoint" if kind == "checkpoint" else "gemini-share-json"
        return (_reading(source, file, form, None, history, found.problems),)
    if _is_list_of(found.value, is_logged):
        return _logs(found.value, source, file, place, found.problems)
    return None


def _known_hash(place: Origin, disk: Disk) -> str | None:
    return project_hash(place.project_folder, disk) if place.project_key else None


def _is_session(value: Record) -> bool:
    messages = value.get("messages")
    if "sessionId" in value and "projectHash" in value:
        return True
    return type(messages) is list and ("sessionId" in value or any(map(looks_said, messages)))


def _is_list_of(value: Any, is_kind: Callable[[Any], bool]) -> bool:
    """Tell whether a list is of this kind: what any element surely is, damaged ones beside it may be not."""
    return type(value) is list and (not value or any(map(is_kind, value)))


def _session(found: Document, source: Source, file: FileBytes, place: Origin) -> Reading:
    path, record = source.shown, found.value
    state = document(path, record, is_strict=found.strict)
    known = discovery.native_id(record)
    recorded = Recorded(place, state, find_outputs(place, source.disk, known))
    return _reading(source, file, "gemini-json", known, recorded, found.problems)


def _logs(
    value: list[Any], source: Source, file: FileBytes, place: Origin, problems: Sequence[Problem]
) -> Sequence[Reading]:
    known_hash = _known_hash(place, source.disk)
    by_session: dict[str, list[tuple[int, Record]]] = defaultdict(list)
    told = list(problems)
    for number, record in enumerate(value):
        if is_logged(record):
            by_session[record["sessionId"]].append((number, record))
        else:
            told.append(problem("unexpected-shape", "no logged prompt", source.shown, pointer=f"/{number}"))
    return tuple(
        _reading(source, file, "gemini-logs", session_id, Typed(place, known_hash, tuple(prompts)), told)
        for session_id, prompts in by_session.items()
    )


_BLOCK = re.compile(r"(?:\A\ufeff?\s*|\n\n---\n\n)(?:## (USER|MODEL) \S+|\S+ ## (USER|MODEL))\n\n")
_TOOL = re.compile(r"\*\*Tool (Command|Response)\*\*:\n```json\n")
_FENCE = "\n```"


def turns(text: str) -> list[dict[str, Any]]:
    """Return the turns that were shared."""
    text = text.replace("\r\n", "\n")
    heads = list(_BLOCK.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    return [
        {"role": (head[1] or head[2]).lower(), "parts": list(_parts(text[head.end() : end]))}
        for head, end in zip(heads, ends, strict=True)
    ]


def _parts(block: str) -> Iterator[dict[str, Any]]:
    position = 0
    while (match := _TOOL.search(block, position)) and (ends := block.find(_FENCE, match.end())) >= 0:
        yield from _text_part(block[position : match.start()])
        yield _tool(match[1], block[match.end() : ends], block[match.start() : ends + len(_FENCE)])
        position = ends + len(_FENCE)
    yield from _text_part(block[position:])


def _text_part(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"text": text.strip("\n")}


def _tool(label: str, fenced: str, whole: str) -> dict[str, Any]:
    decoded = decode(fenced.encode(errors="replace"))
    if isinstance(decoded, Decoded) and type(decoded.value) is dict:
        return {"functionCall" if label == "Command" else "functionResponse": decoded.value}
    return {"text": whole}
