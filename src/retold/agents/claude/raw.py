"""The lines of a transcript as Claude Code writes them, in its own words.

The two kinds of lines that hold the conversation are checked whole by msgspec, in the time in which Python looks at
three fields. What does not fit, down to an unknown key, is taken apart field by field (`fields.py`) and comes out as the
same values.
"""

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, TypeGuard, get_type_hints

import msgspec

from retold.model.serialization import shown_value
from retold.reading.diagnostics import ReaderNotes
from retold.reading.json_decode import Decoded, decode

Record = dict[str, Any]
Time = Annotated[datetime, msgspec.Meta(tz=True)]


class TextBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="text"):
    """Words."""

    text: str


class ThinkingBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="thinking"):
    """What the model thought; newer models leave the text empty and sign only."""

    thinking: str
    signature: str | None = None


class ToolUseBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="tool_use"):
    """A call."""

    id: str
    name: str
    input: dict[str, Any] = {}
    caller: Any = None


class ToolResultBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="tool_result"):
    """What a call gave back, as the model saw it."""

    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


class ImageBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="image"):
    """A picture."""

    source: dict[str, Any]


Block = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock
BLOCKS: dict[str, type[Block]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "tool_use": ToolUseBlock,
    "tool_result": ToolResultBlock,
    "image": ImageBlock,
}
"""Blocks, and what is none of the known ones as it stands."""


class CacheCreation(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What was written to the cache, by how long it lasts."""

    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: int = 0


class UsageRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The tokens of a response; the four counts do not overlap."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    service_tier: str | None = None
    inference_geo: str | None = None
    speed: str | None = None
    server_tool_use: dict[str, int] | None = None
    iterations: Any = None
    output_tokens_details: Any = None
    fallback_credit: Any = None


class AnswerRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A piece of a response of the API: usually one block, with the id and the tokens of the whole."""

    content: list[Block]
    id: str | None = None
    model: str | None = None
    role: str | None = None
    type: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None
    usage: UsageRecord | None = None
    context_management: Any = None
    container: Any = None
    diagnostics: Any = None


class SaidRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What a person said, or what stands in a person's place."""

    content: str | list[Block]
    role: str | None = None


class Chained(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel", tag_field="type", kw_only=True
):
    """What every line of the conversation has; `parent_uuid` chains it to the one before."""

    uuid: str | None = None
    timestamp: Time | None = None
    session_id: str | None = None
    parent_uuid: str | None = None
    is_sidechain: bool = False
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    user_type: str | None = None
    entrypoint: str | None = None
    slug: str | None = None
    agent_id: str | None = None
    request_session_id: str | None = None


class AnswerLine(Chained, tag="assistant"):
    """A line of the model."""

    message: AnswerRecord
    request_id: str | None = None
    is_api_error_message: bool = False
    # What newer versions write on every line, about how it came to be.
    api_block_index: Any = None
    attribution_agent: Any = None
    effort: Any = None
    made_by: Any = None
    per_turn_effort: Any = None
    prompt_cache_requested: Any = None
    request_ref: Any = None
    requested_model: Any = None
    thinking_display: Any = None
    thinking_duration_ms: Any = None
    tool_input_stream_ms: Any = None


class SaidLine(Chained, tag="user"):
    """A line of the human, or in the human's place."""

    message: SaidRecord
    tool_use_result: Any = None
    is_meta: bool = False
    prompt_id: str | None = None
    permission_mode: str | None = None
    source_tool_assistant_uuid: str | None = msgspec.field(name="sourceToolAssistantUUID", default=None)
    # What newer versions write on every line, about how it came to be.
    origin: Any = None
    permission_decision: Any = None
    prompt_source: Any = None
    queue_skip_attachments: Any = None
    sandboxed: Any = None
    turn_origin: Any = None
    turn_position: Any = None


Usual = AnswerLine | SaidLine
DECODER: msgspec.json.Decoder[Usual] = msgspec.json.Decoder(Usual)


class Aside:
    """The fields of a line that are kept as they are, under their own names."""

    def __init__(self, shape: type[Any], *fields: str) -> None:
        """Take the shape, and our names of its fields."""
        own = {field.name: field.encode_name for field in msgspec.structs.fields(shape)}
        self._names = [own[field] for field in fields]
        self._values = attrgetter(*fields)
        self._nothing = (None,) * len(fields)

    def of(self, line: Any) -> Record:
        """Return what is there: on most lines little, and told by one comparison where there is nothing."""
        values = self._values(line)
        if values == self._nothing:
            return {}
        return {name: value for name, value in zip(self._names, values, strict=True) if value is not None}


SAID_ASIDE = Aside(
    SaidLine, "prompt_id", "permission_mode", "origin", "permission_decision", "prompt_source",
    "queue_skip_attachments", "request_session_id", "sandboxed", "turn_origin", "turn_position",
)  # fmt: skip
ANSWER_ASIDE = Aside(
    AnswerLine, "api_block_index", "attribution_agent", "effort", "made_by", "per_turn_effort",
    "prompt_cache_requested", "request_ref", "request_session_id", "requested_model", "thinking_display",
    "thinking_duration_ms", "tool_input_stream_ms",
)  # fmt: skip
RESPONSE_ASIDE = Aside(
    AnswerRecord,
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "context_management",
    "container",
    "diagnostics",
)
USAGE_ASIDE = Aside(
    UsageRecord, "service_tier", "inference_geo", "speed", "iterations", "server_tool_use", "fallback_credit"
)


FIRST = "0"
"""The key that every spread string has, and no other message."""
_GROWN = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""The field of a block that grows, by the type of a delta; the deltas have it under the same name."""
_SILENT = ("ping", "content_block_stop", "message_stop")


_HALVES = re.compile(
    rb'("(\d{1,9})": ?"\\u[dD][89abAB][0-9a-fA-F]{2})",( ?"(\d{1,9})": ?")(\\u[dD][c-fC-F][0-9a-fA-F]{2})"'
)


def join_halves(raw: bytes | memoryview) -> bytes | memoryview:
    """Return a line in which both halves of a character stand under the first of their keys.

    JavaScript spreads a string by units of UTF-16: an emoji is two of them, and neither is a character.
    """
    line = bytes(raw)
    if b'"0":' not in line or b"\\u" not in line:
        return raw
    return _HALVES.sub(_joined, line)


def _joined(found: re.Match[bytes]) -> bytes:
    first, number, second_key, second_number, second = found.groups()
    return first + second + b'",' + second_key + b'"' if int(second_number) == int(number) + 1 else found[0]


def gather_message(record: Record, notes: ReaderNotes) -> Record:
    """Return a line whose message is whole; the line itself if nothing in it is spread."""
    message = record.get("message")
    if type(message) is dict and FIRST in message:
        text, rest = _gather(message)
        return record if text is None else {**record, "message": _message(text, rest, notes)}
    if message is None and FIRST in record:
        text, rest = _gather(record)
        return record if text is None else {**rest, "message": _message(text, {}, notes)}
    return record


def is_spread(record: Any) -> bool:
    """Tell whether a line without a type may be a spread message."""
    return type(record) is dict and FIRST in record and record.keys().isdisjoint(("type", "message"))


def _gather(record: Record) -> tuple[str | None, Record]:
    """Return the string that is spread over an object, None if there is none, and the other fields."""
    characters: list[str] = []
    while _is_character(found := record.get(str(len(characters)))):
        characters.append(found)
    rest = {key: value for key, value in record.items() if not key.isdecimal()}
    is_whole = len(rest) + len(characters) == len(record)
    return ("".join(characters), rest) if is_whole else (None, record)


def _is_character(value: Any) -> TypeGuard[str]:
    return type(value) is str and len(value) <= 1


def _message(text: str, rest: Record, notes: ReaderNotes) -> Record:
    """Return the message that a string holds, with the other fields where the string does not tell them."""
    stream = _Stream(notes)
    for event in _events(text):
        stream.take(event)
    if not stream.message:
        notes.kept("unexpected-shape", f"a message of {len(text)} characters, each under a key of its own")
        return {**rest, "content": rest.get("content") or text}
    return {**rest, **stream.message, "content": rest.get("content") or list(stream.blocks())}


def _events(text: str) -> Iterator[Any]:
    """Yield the data of server-sent events: JSON on lines that begin with `data:`."""
    for line in text.split("\n"):  # not `splitlines`: JSON strings may hold other line ends
        if line.startswith("data:"):
            found = decode(line.removeprefix("data:").strip().encode("utf-8", "replace"))
            yield found.value if isinstance(found, Decoded) else None


class _Stream:
    """A message while its events are taken in."""

    def __init__(self, notes: ReaderNotes) -> None:
        self.message: Record = {}
        self._notes = notes
        self._blocks: dict[Any, Record] = {}
        self._inputs: dict[Any, list[str]] = {}
        """Pieces of the JSON that is the input of a call, by the place of its block."""
        self._texts: dict[tuple[Any, str], list[str]] = {}
        """Pieces of what a field of a block says, by the place of the block and the field."""

    def take(self, event: Any) -> None:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self.message = {**message}
            case {"type": "content_block_start", "index": int(place), "content_block": dict(block)}:
                self._blocks[place] = {**block}
            case {"type": "content_block_delta", "index": int(place), "delta": dict(delta)}:
                self._grow(place, delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                self.message |= delta
                self._count(event.get("usage"))
            case {"type": kind} if kind in _SILENT:
                pass
            case _:
                kind = event.get("type") if type(event) is dict else None
                self._notes.kept("unknown-part", f"an event of type {shown_value(kind)} in a stream")

    def _grow(self, place: int, delta: Record) -> None:
        kind = delta.get("type")
        block = self._blocks.setdefault(place, {"type": "text", "text": ""})
        field = _GROWN.get(kind) if type(kind) is str else None
        if field is not None and type(delta.get(field)) is str:
            before = block.get(field)
            pieces = self._texts.setdefault((place, field), [before] if type(before) is str else [])
            pieces.append(delta[field])
        elif kind == "input_json_delta" and type(delta.get("partial_json")) is str:
            self._inputs.setdefault(place, []).append(delta["partial_json"])
        else:
            self._notes.kept("unknown-part", f"a delta of type {shown_value(kind)} in a stream")

    def _count(self, usage: Any) -> None:
        """Take in the counts at the end of a response: they replace those at its start."""
        if type(usage) is dict:
            before = self.message.get("usage")
            told = {name: count for name, count in usage.items() if count is not None}
            self.message["usage"] = {**(before if type(before) is dict else {}), **told}

    def blocks(self) -> Iterator[Record]:
        """Yield the blocks in their order, calls with their input."""
        for (place, field), pieces in self._texts.items():
            self._blocks[place][field] = "".join(pieces)
        for place, block in sorted(self._blocks.items()):
            given = "".join(self._inputs.get(place, ()))
            found = decode(given.encode("utf-8", "replace")) if given else None
            if found is None:
                yield block
            elif isinstance(found, Decoded) and type(found.value) is dict:
                yield {**block, "input": found.value}
            else:  # the stream broke off within the call
                yield {**block, "input": {"partial_json": given}}


KNOWN = frozenset(
    ("apiErrorStatus", "apiErrorType", "attributionMcpServer", "attributionMcpTool", "attributionPlugin",
     "attributionSkill", "classifierMetaLines", "costUSD", "durationMs", "error", "errorDetails",
     "failedResponseHadNoToolCall", "forkedFrom", "imagePasteIds", "interruptedByShutdown", "interruptedMessageId",
     "isAbortedMidStream", "isCompactSummary", "isVisibleInTranscriptOnly", "mcpMeta", "planContent",
     "sessionKind", "session_id", "sourceToolUseID", "supersedesUuids", "teamName", "thinkingMetadata", "todos",
     "toolDenialKind", "toolEndsTurn", "turnCompanion")
)  # fmt: skip
"""Keys that are met now and then, and kept under their own names."""
_NAMED = 8
"""How many unknown keys of one object a problem names."""
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_KINDS: dict[str, tuple[type[Any], type[Any]]] = {
    "user": (SaidLine, SaidRecord),
    "assistant": (AnswerLine, AnswerRecord),
}


class _Fields:
    """How the fields of a shape are called in the file, and what each may hold."""

    def __init__(self, shape: type[Any]) -> None:
        hints = get_type_hints(shape, include_extras=True)
        self.names = {field.encode_name: field.name for field in msgspec.structs.fields(shape)}
        self.types = {name: hints[name] for name in self.names.values()}


_SHAPES = {
    shape: _Fields(shape)
    for shape in (SaidLine, SaidRecord, AnswerLine, AnswerRecord, UsageRecord, *BLOCKS.values())
}


def known_line(record: Record, notes: ReaderNotes) -> tuple[Usual, Record] | None:
    """Return a line of the conversation, and what it holds besides; None if nothing is said in it."""
    line_shape, said_shape = _KINDS[record["type"]]
    record = gather_message(record, notes)
    message = record.get("message")
    if type(message) is not dict or type(message.get("content")) not in (str, list):
        return None
    taken, extra = _taken(line_shape, record, notes, apart=("message", "timestamp", "type"))
    said, beyond = _taken(said_shape, message, notes, apart=("content", "usage"))
    content = message["content"]
    if said_shape is AnswerRecord:
        content = [{"type": "text", "text": content}] if type(content) is str else content
        said["usage"], beyond["usage"] = _usage(message.get("usage"), notes)
    if type(content) is list:
        content, beyond["content"] = _blocks(content, notes)
    said["content"] = content
    _tell_unknown("a line", extra.keys() - _SHAPES[line_shape].names.keys() - KNOWN, notes)
    _tell_unknown("a message", beyond.keys() - _SHAPES[said_shape].names.keys(), notes)
    extra |= {key: value for key, value in beyond.items() if value not in (None, {})}
    at = notes.time(record.get("timestamp"))
    return line_shape(**taken, timestamp=at, message=said_shape(**said)), extra


def _taken(
    shape: type[Any], record: Record, notes: ReaderNotes, apart: tuple[str, ...]
) -> tuple[Record, Record]:
    """Return the fields that fit, by our names, and everything else by its own."""
    fields, taken, extra = _SHAPES[shape], {}, {}
    for key, value in record.items():
        if key in apart:
            continue
        name = fields.names.get(key)
        if name is None:
            if value is not None:
                extra[key] = value
            continue
        try:
            taken[name] = msgspec.convert(value, fields.types[name])
        except msgspec.ValidationError:
            if value is not None:
                extra[key] = value
                notes.kept("unexpected-shape", f"{key} is a {type(value).__name__}")
    return taken, extra


def _usage(value: Any, notes: ReaderNotes) -> tuple[UsageRecord | None, Record | None]:
    """Return the tokens as far as they are whole numbers, and what else stands there."""
    if type(value) is not dict:
        if value is not None:
            notes.kept("unexpected-shape", "usage is no object")
        return None, value
    taken, extra = _taken(UsageRecord, value, notes, apart=())
    return (UsageRecord(**taken) if taken.keys() & set(_COUNTS) else None), extra


def _blocks(content: list[Any], notes: ReaderNotes) -> tuple[list[Block | Any], Record]:
    """Return the blocks of content, and what stands in them that no field of theirs tells, by their places."""
    blocks: list[Block | Any] = []
    beyond: Record = {}
    for place, item in enumerate(content):
        found, extra = block(item, notes)
        blocks.append(found)
        if extra:
            _tell_unknown("a block", extra.keys() - _SHAPES[type(found)].names.keys(), notes)
            beyond[str(place)] = extra
    return blocks, beyond


def block(item: Any, notes: ReaderNotes) -> tuple[Block | Any, Record]:
    """Return a block of content, and what it holds besides; as it stands, if it is of no known shape."""
    shape = BLOCKS.get(item["type"]) if type(item) is dict and type(item.get("type")) is str else None
    if shape is None:
        return item, {}
    taken, extra = _taken(shape, item, notes, apart=("type",))
    try:
        return shape(**taken), extra
    except TypeError:  # what it cannot be without is missing
        return item, {}


def _tell_unknown(of: str, keys: Collection[str], notes: ReaderNotes) -> None:
    if keys:
        named = ", ".join([f"{key:.60}" for key in sorted(keys)[:_NAMED]])
        more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
        notes.kept("unknown-part", f"unknown keys in {of}: {named}{more}")
