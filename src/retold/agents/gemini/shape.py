"""Which of Gemini CLI's file shapes some content has: found by content, never by name."""

import re
from itertools import islice
from typing import Any

import msgspec

from retold.agents.gemini.raw import is_turn, looks_said
from retold.agents.gemini.usual import ConversationRecord, usual_conversation
from retold.model.problem import Problem, problem
from retold.reading.disk import LONGEST, FileBytes, remove_nuls, too_long
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
from retold.reading.jsonl import JsonLine, decode_lines

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
