"""Normalises results of tools: text, status, exit code, attachments and duration. Evidence: `docs/formats/codex.md`, section 7."""

import re
from typing import Any

import msgspec

from retold.agents.codex.prompt_text import make_attachment
from retold.agents.codex.raw import Record
from retold.model.session import Attachment, Status
from retold.reading.diagnostics import duration_ms
from retold.reading.json_decode import DECODER, JsonValue, decode

_WALL_TIME = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$", re.MULTILINE)


def event_ms(event: Record) -> int | None:
    """Return the `duration` of an event or a completed item, or the time between its start and end (0.166)."""
    match event:
        case {"duration": {"secs": int(seconds), "nanos": int(nanos)}}:
            return duration_ms(seconds * 1000 + nanos // 1_000_000)
        case {"started_at_ms": int(start), "completed_at_ms": int(end)}:
            return duration_ms(end - start)
        case _:
            return None


def metadata_ms(duration: Any) -> int | None:
    """Return the duration beside a JSON output, from its `duration_seconds`."""
    return duration_ms(duration * 1000) if type(duration) in (int, float) else None


def wall_time_ms(header: str) -> int | None:
    """Return the duration in the header lines that Codex puts before an output."""
    match = _WALL_TIME.search(header)
    return duration_ms(float(match[1]) * 1000) if match else None


_HEADER_OPENINGS = ("Chunk ID: ", "Command: ", "Exit code: ", "Wall time: ", "Process exited ")
_OUTPUT = "\nOutput:"
"""The end of the header lines that Codex puts before the output of a command."""
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})$", re.MULTILINE)
_FAILURE = re.compile(
    r"(?P<cancelled>aborted by user\b|aborted$|(?:exec command|patch) rejected by user"
    r"|Wall time: [\d.]+ seconds\naborted by user)"
    r"|(?:\w+ )?(?:verification )?failed(?: for [^:\n]*)?: |failed to parse function arguments"
    r"|unsupported (?:custom tool )?call|execution error: |Script failed\n"
)


class Result(msgspec.Struct, frozen=True, gc=False):
    """The recorded result of a tool."""

    text: str | None = None
    status: Status = "success"
    exit_code: int | None = None
    attachments: tuple[Attachment, ...] = ()
    rest: Record | None = None
    """The other fields of the output, under Codex's own names."""
    took_ms: int | None = None
    """The duration, if the output states it."""


class JsonOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An output that is a text with JSON."""

    output: str
    metadata: Record | None = None


_JSON_OUTPUT = msgspec.json.Decoder(JsonOutput)


def normalise_result(output: Any) -> Result:
    """Return the result in an `output`: a text, a text with JSON, a list of parts, or the object of the first versions."""
    if type(output) is str:  # nearly always
        return _json_text_result(output) if output.startswith('{"output"') else _text_result(output)
    match output:
        case list():
            return _parts_result(output)
        case {"content": str(content), **rest}:
            found = _text_result(content)
            is_failed = rest.get("success") is False and found.status == "success"
            return msgspec.structs.replace(found, status="error") if is_failed else found
        case dict():
            return _parts_result([output])
        case None:
            return Result(None, "unknown")
    return Result(None, "unknown", rest={"output": output})


def decode_object(text: str) -> Record | None:
    """Return the JSON object in a text, if it is one."""
    if not text.startswith("{"):
        return None
    try:
        value = DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = decode(text.encode(errors="replace"))
        value = found.value if isinstance(found, JsonValue) else None
    return value if type(value) is dict else None


def _text_result(text: str) -> Result:
    if not text.startswith(_HEADER_OPENINGS):
        return Result(text, status_of(text, None))
    end = text.find(_OUTPUT)
    header = text if end < 0 else text[:end]
    match = _EXIT_CODE.search(header)
    exit_code = int(match[1]) if match else None
    return Result(text, status_of(text, exit_code), exit_code, took_ms=wall_time_ms(header))


def _json_text_result(text: str) -> Result:
    """Return the result of shell and patch tools up to 0.14x: JSON with the output and the exit code."""
    try:
        found = _JSON_OUTPUT.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _text_result(text)
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


def _parts_result(items: list[Any]) -> Result:
    texts: list[str] = []
    attached: list[Attachment] = []
    others: list[Any] = []
    for item in items:
        text = item.get("text") if type(item) is dict else None
        found = make_attachment(item) if type(item) is dict and type(text) is not str else None
        if type(text) is str:
            texts.append(text)
        elif found is not None:
            attached.append(found)
        else:
            others.append(item)
    text = "\n".join(texts) if texts else None
    outcome = _text_result(text) if text is not None else Result()
    rest = {"output": others} if others else None
    return Result(outcome.text, outcome.status, outcome.exit_code, tuple(attached), rest, outcome.took_ms)


def status_of(text: str, exit_code: int | None) -> Status:
    """Return how a call ended; Codex itself calls a command failed if its exit code is not 0."""
    if exit_code is not None:
        return "success" if exit_code == 0 else "error"
    match = _FAILURE.match(text)
    if match is None:
        return "success"
    return "cancelled" if match["cancelled"] else "error"
