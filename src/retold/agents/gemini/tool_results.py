"""Normalises results of tools: text, error, attachments, display, the shell's exit code, and outputs moved to files."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.gemini.discovery import Origin, safe_id
from retold.agents.gemini.raw import Record, text_parts
from retold.model.problem import Problem
from retold.model.session import (
    AgentDisplay,
    Attachment,
    DiffDisplay,
    Display,
    FilesDisplay,
    OpaqueDisplay,
    TextDisplay,
    Todo,
    TodosDisplay,
)
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk, files_in, read_bytes
from retold.reading.json_decode import to_json

_EXIT_CODE = re.compile(r"Exit Code: (-?\d{1,10})$", re.MULTILINE)


class Result(msgspec.Struct, frozen=True, gc=False):
    """The recorded result of a tool."""

    text: str | None = None
    error: str | None = None
    attachments: tuple[Attachment, ...] = ()
    rest: Record | None = None
    """The other fields of the response."""


NOTHING = Result()
_MOST_KEYS = 3  # id, name, response


def normalise_result(value: Any, call_id: str) -> Result:
    """Return a call's `result`; since 0.44 it may hold the responses of all calls of the same request."""
    if type(value) is list and len(value) == 1 and type(value[0]) is dict and len(value[0]) == 1:
        only = value[0].get("functionResponse")
        if type(only) is dict:
            return normalise_response(only)
    parts = text_parts(value)
    found = _own_response(parts, call_id)
    own = NOTHING if found is None else normalise_response(found)
    # Other responses belong to other calls; without a response of this call they are kept here.
    siblings = [
        part for part in parts if found is None or not (type(part) is dict and "functionResponse" in part)
    ]
    return _with_siblings(own, siblings)


def _own_response(parts: list[Any], call_id: str) -> Record | None:
    responses = [
        part["functionResponse"]
        for part in parts
        if type(part) is dict and type(part.get("functionResponse")) is dict
    ]
    own = [found for found in responses if found.get("id") == call_id]
    candidates = own or (responses if len(responses) == 1 else [])
    return candidates[0] if candidates else None


def normalise_response(found: Record) -> Result:
    """Return the result in one `functionResponse`."""
    holder = found.get("response")
    if len(found) <= _MOST_KEYS and type(holder) is dict and len(holder) == 1:
        output = holder.get("output")
        if type(output) is str:
            return Result(output)
        error = holder.get("error")
        if type(error) is str:
            return Result(None, error)
    nested = found.get("parts")
    attached = (
        tuple(map(make_attachment, nested)) if type(nested) is list and all(map(_is_data, nested)) else ()
    )
    rest = {
        key: value
        for key, value in found.items()
        if key not in ("id", "name", "response") and not (key == "parts" and attached)
    }
    if type(holder) is dict:
        return _other_response(holder, attached, rest)
    return Result(_as_text(holder), None, attached, rest or None)


def _other_response(holder: Record, attached: tuple[Attachment, ...], rest: Record) -> Result:
    """Return the result in a response of any shape: output, `content` as text, `content.error`, or another object."""
    content = holder.get("content")
    error = holder.get("error", content.get("error") if type(content) is dict else None)
    text = holder.get("output", content if type(content) is str else None)
    used = {"output", "error"} | ({"content"} if type(content) is str else set())
    others = {key: value for key, value in holder.items() if key not in used}
    if text is None and error is None and others:
        text = to_json(holder)
    if others:
        rest = {**rest, "response": others}
    return Result(_as_text(text), _as_text(error), attached, rest or None)


def _with_siblings(own: Result, siblings: list[Any]) -> Result:
    """Return a response joined with the parts beside it: up to 0.2x these hold the real output."""
    texts = [part if type(part) is str else part["text"] for part in siblings if _is_text(part)]
    attached = tuple(make_attachment(part) for part in siblings if _is_data(part))
    others = [part for part in siblings if not _is_text(part) and not _is_data(part)]
    if own.text is not None:
        texts.insert(0, own.text)
    rest = {**(own.rest or {}), "parts": others} if others else own.rest
    return Result("\n".join(texts) if texts else None, own.error, own.attachments + attached, rest)


def _is_text(part: Any) -> bool:
    return type(part) is str or (type(part) is dict and type(part.get("text")) is str)


def _is_data(part: Any) -> bool:
    return type(part) is dict and (type(part.get("inlineData")) is dict or type(part.get("fileData")) is dict)


def make_attachment(part: Record) -> Attachment:
    """Return an `inlineData` or `fileData` part as an attachment."""
    holders = [holder for kind in ("inlineData", "fileData") if type(holder := part.get(kind)) is dict]
    holder = holders[0] if holders else {}
    return Attachment(
        path=_text_or_none(holder.get("fileUri", holder.get("displayName"))),
        media_type=_text_or_none(holder.get("mimeType")),
        data=_text_or_none(holder.get("data")),
    )


def exit_code(text: str) -> int | None:
    """Return the exit code in the shell tool's output; the call itself succeeds even if the command fails."""
    start = text.rfind("\nExit Code: ")
    if start < 0 and not text.startswith("Exit Code: "):
        return None
    match = _EXIT_CODE.match(text, start + 1)
    return int(match[1]) if match else None


def _text_or_none(value: Any) -> str | None:
    return value if type(value) is str else None


def _as_text(value: Any) -> str | None:
    return value if value is None or type(value) is str else to_json(value)


def normalise_display(value: Any) -> Display | None:
    """Return a display in the shapes of the model; an unknown shape stays as it is."""
    if type(value) is str:
        return TextDisplay(value) if value else None
    if value is None:
        return None
    if type(value) is dict:
        for key, shape in _SHAPES.items():
            if key in value:
                return shape(value) or OpaqueDisplay(value)
        return OpaqueDisplay(value)
    return (_screen_display(value) if type(value) is list else None) or OpaqueDisplay(value)


def _screen_display(lines: list[Any]) -> Display | None:
    """Return a terminal's screen as text: lines of tokens, padded with spaces on the right."""
    rows = []
    for line in lines:
        if type(line) is not list:
            return None
        tokens = [token["text"] for token in line if type(token) is dict and type(token.get("text")) is str]
        if len(tokens) != len(line):
            return None
        rows.append("".join(tokens).rstrip())
    return TextDisplay("\n".join(rows))


def _diff_display(value: Record) -> Display | None:
    path = value.get("filePath", value.get("fileName"))
    texts = (path, value.get("fileDiff"), value.get("originalContent"), value.get("newContent"))
    is_new = value.get("isNewFile")
    if not {type(text) for text in texts} <= _TEXT_OR_NONE or type(is_new) not in (bool, type(None)):
        return None
    known = ("fileDiff", "filePath", "originalContent", "newContent", "isNewFile")
    return DiffDisplay(*texts, is_new, _rest(value, known))


def _todos_display(value: Record) -> Display | None:
    todos = value["todos"]
    if type(todos) is not list or not all(
        type(todo) is dict
        and todo.keys() == {"description", "status"}
        and all(type(v) is str for v in todo.values())
        for todo in todos
    ):
        return None
    return TodosDisplay(
        tuple(Todo(todo["description"], todo["status"]) for todo in todos), _rest(value, ("todos",))
    )


def _agent_display(value: Record) -> Display | None:
    texts = (value.get("agentName"), value.get("state"), value.get("result"))
    activity = value.get("recentActivity", [])
    if not all(text is None or type(text) is str for text in texts) or not _is_list_of(dict, activity):
        return None
    known = ("isSubagentProgress", "agentName", "state", "result", "recentActivity")
    return AgentDisplay(*texts, tuple(activity), _rest(value, known))


def _files_display(value: Record) -> Display | None:
    summary, files, matches = value["summary"], value.get("files", []), value.get("matches", [])
    if type(summary) is not str or not _is_list_of(str, files) or not _is_list_of(dict, matches):
        return None
    return FilesDisplay(summary, tuple(files), tuple(matches), _rest(value, ("summary", "files", "matches")))


def _is_list_of(kind: type, value: Any) -> bool:
    return type(value) is list and all(type(item) is kind for item in value)


def _rest(value: Record, known: tuple[str, ...]) -> Record | None:
    return {key: field for key, field in value.items() if key not in known} or None


_TEXT_OR_NONE = {str, type(None)}
_SHAPES: dict[str, Callable[[Record], Display | None]] = {
    "fileDiff": _diff_display,
    "todos": _todos_display,
    "isSubagentProgress": _agent_display,
    "summary": _files_display,
}


# Compiled at the first use, as few sessions have such outputs.
_REFERENCE = (
    r"(?:For full output see|The full output has been saved to|[Ff]ull output available at|Full (?:output|string) saved to)"
    r": ?(?P<path>[^\n]+?)\]?(?:\n|$)"
)
EXTRACT_OPENINGS = (
    "Output too large.",
    "Tool output was too large",
    "<tool_output_masked>",
    "[Message Normalized: Tool output exceeded size limit]",
)
"""Openings of texts that are extracts of an output."""
_WINDOW = 2_000
"""The reference is near the start or the end of an extract."""


class OutputFiles(msgspec.Struct, frozen=True):
    """The outputs that the CLI moved out of a session, by file name."""

    texts: Mapping[str, str] = {}

    def full_text(self, text: str, notes: ReaderNotes) -> str | None:
        """Return the whole output of an extract, which begins with one of `EXTRACT_OPENINGS`."""
        match = re.search(_REFERENCE, text[:_WINDOW]) or re.search(_REFERENCE, text[-_WINDOW:])
        if match is None:
            return None
        name = re.split(r"[/\\]", match["path"].strip())[-1]
        full = self.texts.get(name)
        if full is None:
            notes.add("missing-output", name)
        return full


def find_outputs(origin: Origin, disk: Disk, *known: str | None) -> OutputFiles:
    """Return the outputs moved out of a session with these ids: only regular files below its own `tool-outputs` folder."""
    ids = dict.fromkeys(session_id for session_id in (*known, origin.parent_id) if session_id is not None)
    folder = origin.project_folder + os.sep + "tool-outputs"
    return OutputFiles(dict(pair for session_id in ids for pair in _files(folder, session_id, disk)))


def _files(folder: str, session_id: str, disk: Disk) -> Iterator[tuple[str, str]]:
    own = folder + os.sep + "session-" + safe_id(session_id)
    # Most sessions have none. No link is followed: it may lead out of the home.
    if not disk.is_folder(own) or disk.is_link(folder) or disk.is_link(own):
        return
    for file in files_in(Path(own), disk):
        content = read_bytes(Path(file.path), disk)
        if not isinstance(content, Problem):
            yield file.name, content.data.decode(errors="replace")
