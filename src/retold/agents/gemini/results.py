"""What came back from a tool: the text, the error, what was attached, and the shell's exit code."""

import re
from typing import Any

import msgspec

from retold.agents.gemini.raw import Record, text_parts
from retold.model.session import Attachment

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
