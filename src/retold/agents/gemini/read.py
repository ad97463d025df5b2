"""A file to readings: its shape found, its records folded."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from retold.agents.gemini import restored
from retold.agents.gemini.captures import Captured
from retold.agents.gemini.histories import History
from retold.agents.gemini.loader import is_loadable, with_fallback
from retold.agents.gemini.outputs import find_outputs
from retold.agents.gemini.places import Origin, origin, project_hash
from retold.agents.gemini.prompts import Typed, is_logged
from retold.agents.gemini.raw import Record, is_turn, looks_said
from retold.agents.gemini.replay import document, replay
from retold.agents.gemini.sessions import Recorded
from retold.agents.gemini.shape import Document, Lines, Markdown, Stream, Usual, is_captured, is_qwen, shape
from retold.agents.gemini.state import Plain, State
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.model.session import Kind
from retold.reading.disk import Disk, FileBytes, read_lines
from retold.reading.json_decode import Decoded, decode
from retold.reading.jsonl import JsonLine, count_lines, decode_lines

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
            from retold.agents.gemini.shares import turns  # noqa: PLC0415 - few conversations are shared as pages

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
    native_id = restored.native_id(state.metadata)
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
    known = restored.native_id(record)
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
