"""What came back from a tool: the text, the error, what was attached, and the shell's exit code."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from retold.agents.gemini.raw import Record, text_parts
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

_EXIT_CODE = re.compile(r"Exit Code: (-?\d{1,10})$", re.MULTILINE)


class Result(msgspec.Struct, frozen=True, gc=False):
    """A tool's result, as far as it was recorded."""

    text: str | None = None
    error: str | None = None
    attachments: tuple[Attachment, ...] = ()
    rest: Record | None = None
    """What else the response held."""


NOTHING = Result()
_USUAL_KEYS = 3  # id, name, response


def result(value: Any, call_id: str) -> Result:
    """Read a call's `result`: since 0.44 it may hold the responses of all calls made beside this one."""
    if type(value) is list and len(value) == 1 and type(value[0]) is dict and len(value[0]) == 1:
        only = value[0].get("functionResponse")
        if type(only) is dict:
            return response(only)
    parts = text_parts(value)
    found = _own_response(parts, call_id)
    own = NOTHING if found is None else response(found)
    # The other responses belong to the other calls; where none is this call's own, nobody else keeps them.
    beside = [
        part for part in parts if found is None or not (type(part) is dict and "functionResponse" in part)
    ]
    return _with_siblings(own, beside)


def _own_response(parts: list[Any], call_id: str) -> Record | None:
    responses = [
        part["functionResponse"]
        for part in parts
        if type(part) is dict and type(part.get("functionResponse")) is dict
    ]
    own = [found for found in responses if found.get("id") == call_id]
    candidates = own or (responses if len(responses) == 1 else [])
    return candidates[0] if candidates else None


def response(found: Record) -> Result:
    """Read one `functionResponse`."""
    holder = found.get("response")
    if len(found) <= _USUAL_KEYS and type(holder) is dict and len(holder) == 1:
        output = holder.get("output")
        if type(output) is str:
            return Result(output)
        error = holder.get("error")
        if type(error) is str:
            return Result(None, error)
    nested = found.get("parts")
    attached = tuple(map(attachment, nested)) if type(nested) is list and all(map(_is_data, nested)) else ()
    rest = {
        key: value
        for key, value in found.items()
        if key not in ("id", "name", "response") and not (key == "parts" and attached)
    }
    if type(holder) is dict:
        return _passthrough(holder, attached, rest)
    return Result(_as_text(holder), None, attached, rest or None)


def _passthrough(holder: Record, attached: tuple[Attachment, ...], rest: Record) -> Result:
    """Read a response of any shape: output, `content` as text, `content.error`, or whatever a tool returned."""
    content = holder.get("content")
    error = holder.get("error", content.get("error") if type(content) is dict else None)
    text = holder.get("output", content if type(content) is str else None)
    used = {"output", "error"} | ({"content"} if type(content) is str else set())
    others = {key: value for key, value in holder.items() if key not in used}
    if text is None and error is None and others:
        text = _as_json(holder)
    if others:
        rest = {**rest, "response": others}
    return Result(_as_text(text), _as_text(error), attached, rest or None)


def _with_siblings(own: Result, beside: list[Any]) -> Result:
    """Join the parts that stand beside the response: up to 0.2x they hold the real output."""
    texts = [part if type(part) is str else part["text"] for part in beside if _is_text(part)]
    attached = tuple(attachment(part) for part in beside if _is_data(part))
    others = [part for part in beside if not _is_text(part) and not _is_data(part)]
    if own.text is not None:
        texts.insert(0, own.text)
    rest = {**(own.rest or {}), "parts": others} if others else own.rest
    return Result("\n".join(texts) if texts else None, own.error, own.attachments + attached, rest)


def _is_text(part: Any) -> bool:
    return type(part) is str or (type(part) is dict and type(part.get("text")) is str)


def _is_data(part: Any) -> bool:
    return type(part) is dict and (type(part.get("inlineData")) is dict or type(part.get("fileData")) is dict)


def attachment(part: Record) -> Attachment:
    """Return an `inlineData` or `fileData` part as an attachment."""
    holders = [holder for kind in ("inlineData", "fileData") if type(holder := part.get(kind)) is dict]
    holder = holders[0] if holders else {}
    return Attachment(
        path=_text_or_none(holder.get("fileUri", holder.get("displayName"))),
        media_type=_text_or_none(holder.get("mimeType")),
        data=_text_or_none(holder.get("data")),
    )


def exit_code(text: str) -> int | None:
    """Return the exit code that the shell tool wrote into its output: a failing command is a tool's success."""
    start = text.rfind("\nExit Code: ")
    if start < 0 and not text.startswith("Exit Code: "):
        return None
    match = _EXIT_CODE.match(text, start + 1)
    return int(match[1]) if match else None


def _text_or_none(value: Any) -> str | None:
    return value if type(value) is str else None


def _as_text(value: Any) -> str | None:
    return value if value is None or type(value) is str else _as_json(value)


def _as_json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (OverflowError, RecursionError):  # an integer of more than 64 bits
        return str(value)


def display(value: Any) -> Display | None:
    """Return the display in our shapes; what has no known shape stays as it is."""
    if type(value) is str:
        return TextDisplay(value) if value else None
    if value is None:
        return None
    if type(value) is dict:
        for key, shape in _SHAPES.items():
            if key in value:
                return shape(value) or OpaqueDisplay(value)
        return OpaqueDisplay(value)
    return (_screen(value) if type(value) is list else None) or OpaqueDisplay(value)


def _screen(lines: list[Any]) -> Display | None:
    """A terminal's screen: lines of tokens, padded with spaces on the right."""
    rows = []
    for line in lines:
        if type(line) is not list:
            return None
        tokens = [token["text"] for token in line if type(token) is dict and type(token.get("text")) is str]
        if len(tokens) != len(line):
            return None
        rows.append("".join(tokens).rstrip())
    return TextDisplay("\n".join(rows))


def _diff(value: Record) -> Display | None:
    path = value.get("filePath", value.get("fileName"))
    texts = (path, value.get("fileDiff"), value.get("originalContent"), value.get("newContent"))
    is_new = value.get("isNewFile")
    if not {type(text) for text in texts} <= _TEXT_OR_NONE or type(is_new) not in (bool, type(None)):
        return None
    known = ("fileDiff", "filePath", "originalContent", "newContent", "isNewFile")
    return DiffDisplay(*texts, is_new, _rest(value, known))


def _todos(value: Record) -> Display | None:
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


def _progress(value: Record) -> Display | None:
    texts = (value.get("agentName"), value.get("state"), value.get("result"))
    activity = value.get("recentActivity", [])
    if not all(text is None or type(text) is str for text in texts) or not _is_list_of(dict, activity):
        return None
    known = ("isSubagentProgress", "agentName", "state", "result", "recentActivity")
    return AgentDisplay(*texts, tuple(activity), _rest(value, known))


def _summary(value: Record) -> Display | None:
    summary, files, matches = value["summary"], value.get("files", []), value.get("matches", [])
    if type(summary) is not str or not _is_list_of(str, files) or not _is_list_of(dict, matches):
        return None
    return FilesDisplay(summary, tuple(files), tuple(matches), _rest(value, ("summary", "files", "matches")))


def _is_list_of(kind: type, value: Any) -> bool:
    return type(value) is list and all(type(item) is kind for item in value)


def _rest(value: Record, known: tuple[str, ...]) -> Record | None:
    return {key: kept for key, kept in value.items() if key not in known} or None


_TEXT_OR_NONE = {str, type(None)}
_SHAPES: dict[str, Callable[[Record], Display | None]] = {
    "fileDiff": _diff,
    "todos": _todos,
    "isSubagentProgress": _progress,
    "summary": _summary,
}
