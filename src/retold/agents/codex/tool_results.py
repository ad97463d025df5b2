"""What came back from a tool: the text, whether it failed, the exit code, and what was attached.

Evidence: `docs/formats/codex.md`, section 7.
"""

import re
from typing import Any

import msgspec

from retold.agents.codex.prompt_text import attachment
from retold.agents.codex.raw import Record
from retold.model.session import Attachment, Status
from retold.reading.diagnostics import duration_ms
from retold.reading.json_decode import DECODER, Decoded, decode

_WALL_TIME = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$", re.MULTILINE)


def event_ms(told: Record) -> int | None:
    """Return the `duration` of an event or a completed item, else what lies between its times (0.166)."""
    match told:
        case {"duration": {"secs": int(seconds), "nanos": int(nanos)}}:
            return duration_ms(seconds * 1000 + nanos // 1_000_000)
        case {"started_at_ms": int(start), "completed_at_ms": int(end)}:
            return duration_ms(end - start)
        case _:
            return None


def metadata_ms(told: Any) -> int | None:
    """Return what stands beside an output in JSON as `duration_seconds`."""
    return duration_ms(told * 1000) if type(told) in (int, float) else None


def wall_time_ms(dress: str) -> int | None:
    """Return what the lines that Codex puts before an output say."""
    match = _WALL_TIME.search(dress)
    return duration_ms(float(match[1]) * 1000) if match else None


_DRESSED = ("Chunk ID: ", "Command: ", "Exit code: ", "Wall time: ", "Process exited ")
_OUTPUT = "\nOutput:"
"""Ends the lines that Codex puts before the output of a command."""
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})$", re.MULTILINE)
_UNDONE = re.compile(
    r"(?P<cancelled>aborted by user\b|aborted$|(?:exec command|patch) rejected by user"
    r"|Wall time: [\d.]+ seconds\naborted by user)"
    r"|(?:\w+ )?(?:verification )?failed(?: for [^:\n]*)?: |failed to parse function arguments"
    r"|unsupported (?:custom tool )?call|execution error: |Script failed\n"
)


class Result(msgspec.Struct, frozen=True, gc=False):
    """What a tool gave back, as far as it was recorded."""

    text: str | None = None
    status: Status = "success"
    exit_code: int | None = None
    attachments: tuple[Attachment, ...] = ()
    rest: Record | None = None
    """What else the output held, under Codex's own names."""
    took_ms: int | None = None
    """How long it ran, where the output says so."""


class Wrapped(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An output that is JSON in a text."""

    output: str
    metadata: Record | None = None


_WRAPPED = msgspec.json.Decoder(Wrapped)


def result(output: Any) -> Result:
    """Read an `output`: a text, JSON in a text, a list of parts, or the object of the first versions."""
    if type(output) is str:  # nearly always
        return _wrapped(output) if output.startswith('{"output"') else _plain(output)
    match output:
        case list():
            return _listed(output)
        case {"content": str(content), **rest}:
            found = _plain(content)
            is_failed = rest.get("success") is False and found.status == "success"
            return msgspec.structs.replace(found, status="error") if is_failed else found
        case dict():
            return _listed([output])
        case None:
            return Result(None, "unknown")
    return Result(None, "unknown", rest={"output": output})


def as_object(text: str) -> Record | None:
    """Return the JSON object that a text is, if it is one."""
    if not text.startswith("{"):
        return None
    try:
        value = DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = decode(text.encode(errors="replace"))
        value = found.value if isinstance(found, Decoded) else None
    return value if type(value) is dict else None


def as_json(value: Any) -> str:
    """Return a value as text."""
    try:
        return msgspec.json.encode(value).decode()
    except (OverflowError, RecursionError):  # an integer of more than 64 bits
        return str(value)


def _plain(text: str) -> Result:
    if not text.startswith(_DRESSED):
        return Result(text, status_of(text, None))
    end = text.find(_OUTPUT)
    dress = text if end < 0 else text[:end]
    match = _EXIT_CODE.search(dress)
    exit_code = int(match[1]) if match else None
    return Result(text, status_of(text, exit_code), exit_code, took_ms=wall_time_ms(dress))


def _wrapped(text: str) -> Result:
    """Read what shell and patch tools gave up to 0.14x: the output in JSON, with the exit code beside it."""
    try:
        found = _WRAPPED.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _plain(text)
    metadata = found.metadata
    if metadata is None:
        return Result(found.output, status_of(found.output, None))
    exit_code = metadata.get("exit_code")
    exit_code = exit_code if type(exit_code) is int else None
    return Result(
        found.output,
        status_of(found.output, exit_code),
        exit_code,
        rest={"metadata": metadata},
        took_ms=metadata_ms(metadata.get("duration_seconds")),
    )


def _listed(items: list[Any]) -> Result:
    texts: list[str] = []
    attached: list[Attachment] = []
    others: list[Any] = []
    for item in items:
        text = item.get("text") if type(item) is dict else None
        found = attachment(item) if type(item) is dict and type(text) is not str else None
        if type(text) is str:
            texts.append(text)
        elif found is not None:
            attached.append(found)
        else:
            others.append(item)
    text = "\n".join(texts) if texts else None
    told = _plain(text) if text is not None else Result()
    rest = {"output": others} if others else None
    return Result(told.text, told.status, told.exit_code, tuple(attached), rest, told.took_ms)


def status_of(text: str, exit_code: int | None) -> Status:
    """Return how a call ended; Codex itself calls a command failed whose exit code is not 0."""
    if exit_code is not None:
        return "success" if exit_code == 0 else "error"
    match = _UNDONE.match(text)
    if match is None:
        return "success"
    return "cancelled" if match["cancelled"] else "error"
