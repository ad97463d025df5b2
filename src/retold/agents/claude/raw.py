"""The lines of a transcript, in the words of Claude Code.

msgspec checks the two kinds of lines of the conversation as a whole, in the time in which Python looks at three fields. A line
that does not fit, down to an unknown key, is converted field by field to the same values.
"""

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, TypeGuard, get_args, get_type_hints

import msgspec

from retold.model.serialization import short_repr
from retold.reading.diagnostics import ReaderNotes
from retold.reading.json_decode import JsonValue, decode

Record = dict[str, Any]
Time = Annotated[datetime, msgspec.Meta(tz=True)]


class TextBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="text"):
    """A text."""

    text: str


class ThinkingBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="thinking"):
    """A thought of the model; newer models leave its text empty and only sign it."""

    thinking: str
    signature: str | None = None


class ToolUseBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="tool_use"):
    """A call."""

    id: str
    name: str
    input: dict[str, Any] = {}
    caller: Any = None


class ToolResultBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="tool_result"):
    """The result of a call, as the model saw it."""

    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


class ImageBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False, tag="image"):
    """A picture."""

    source: dict[str, Any]


Block = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock
BLOCKS: dict[str, type[Block]] = {str(shape.__struct_config__.tag): shape for shape in get_args(Block)}
"""The shapes of blocks by their type; another block stays as it is."""


class CacheCreation(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Tokens written to the cache, by their lifetime."""

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
    """A piece of a response of the API: usually one block, with the id and the tokens of the whole response."""

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


class UserRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A message of a person, or of Claude Code in a person's place."""

    content: str | list[Block]
    role: str | None = None


class ConversationLine(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel", tag_field="type", kw_only=True
):
    """The fields of every line of the conversation; `parent_uuid` links it to the line before."""

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


class AnswerLine(ConversationLine, tag="assistant"):
    """A line of the model."""

    message: AnswerRecord
    request_id: str | None = None
    is_api_error_message: bool = False
    # Fields of newer versions about the origin of a line.
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


class UserLine(ConversationLine, tag="user"):
    """A line of a person, or of Claude Code in a person's place."""

    message: UserRecord
    tool_use_result: Any = None
    is_meta: bool = False
    prompt_id: str | None = None
    permission_mode: str | None = None
    source_tool_assistant_uuid: str | None = msgspec.field(name="sourceToolAssistantUUID", default=None)
    # Fields of newer versions about the origin of a line.
    origin: Any = None
    permission_decision: Any = None
    prompt_source: Any = None
    queue_skip_attachments: Any = None
    sandboxed: Any = None
    turn_origin: Any = None
    turn_position: Any = None


MessageLine = AnswerLine | UserLine
DECODER: msgspec.json.Decoder[MessageLine] = msgspec.json.Decoder(MessageLine)


class ExtraFields:
    """Fields of a line that are kept as they are, under their own names."""

    def __init__(self, shape: type[Any], *fields: str) -> None:
        """Take the shape, and the names of its fields in Python."""
        own = {field.name: field.encode_name for field in msgspec.structs.fields(shape)}
        self._names = [own[field] for field in fields]
        self._values = attrgetter(*fields)
        self._nothing = (None,) * len(fields)

    def of(self, line: Any) -> Record:
        """Return the fields with a value; most lines have few, and one comparison detects lines without any."""
        values = self._values(line)
        if values == self._nothing:
            return {}
        return {name: value for name, value in zip(self._names, values, strict=True) if value is not None}


USER_EXTRA = ExtraFields(
    UserLine, "prompt_id", "permission_mode", "origin", "permission_decision", "prompt_source",
    "queue_skip_attachments", "request_session_id", "sandboxed", "turn_origin", "turn_position",
)  # fmt: skip
ANSWER_EXTRA = ExtraFields(
    AnswerLine, "api_block_index", "attribution_agent", "effort", "made_by", "per_turn_effort",
    "prompt_cache_requested", "request_ref", "request_session_id", "requested_model", "thinking_display",
    "thinking_duration_ms", "tool_input_stream_ms",
)  # fmt: skip
RESPONSE_EXTRA = ExtraFields(
    AnswerRecord,
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "context_management",
    "container",
    "diagnostics",
)
USAGE_EXTRA = ExtraFields(
    UsageRecord, "service_tier", "inference_geo", "speed", "iterations", "server_tool_use", "fallback_credit"
)
FIRST_CHARACTER_KEY = "0"
"""A key of every spread string, and of no other message."""
_DELTA_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""The growing field of a block by the type of a delta, which has it under the same name."""
_IGNORED_EVENTS = ("ping", "content_block_stop", "message_stop")
_SURROGATE_HALVES = re.compile(
    rb'("(\d{1,9})": ?"\\u[dD][89abAB][0-9a-fA-F]{2})",( ?"(\d{1,9})": ?")(\\u[dD][c-fC-F][0-9a-fA-F]{2})"'
)


def join_surrogates(raw: bytes | memoryview) -> bytes | memoryview:
    """Return a line with both halves of each character under the key of the first.

    JavaScript spreads a string by units of UTF-16: an emoji is two of them, and neither is a character.
    """
    line = bytes(raw)
    if b'"0":' not in line or b"\\u" not in line:
        return raw
    return _SURROGATE_HALVES.sub(_join_pair, line)


def _join_pair(found: re.Match[bytes]) -> bytes:
    first, number, second_key, second_number, second = found.groups()
    return first + second + b'",' + second_key + b'"' if int(second_number) == int(number) + 1 else found[0]


def join_spread_message(record: Record, notes: ReaderNotes) -> Record:
    """Return a line with a spread message joined, or the line itself if it has none."""
    message = record.get("message")
    if type(message) is dict and FIRST_CHARACTER_KEY in message:
        text, rest = _join_characters(message)
        return record if text is None else {**record, "message": _decode_message(text, rest, notes)}
    if message is None and FIRST_CHARACTER_KEY in record:
        text, rest = _join_characters(record)
        return record if text is None else {**rest, "message": _decode_message(text, {}, notes)}
    return record


def is_spread_message(record: Any) -> bool:
    """Return whether a line without a type may be a spread message."""
    return (
        type(record) is dict
        and FIRST_CHARACTER_KEY in record
        and record.keys().isdisjoint(("type", "message"))
    )


def _join_characters(record: Record) -> tuple[str | None, Record]:
    """Return the string that is spread over an object, None if there is none, and the other fields."""
    characters: list[str] = []
    while _is_character(found := record.get(str(len(characters)))):
        characters.append(found)
    rest = {key: value for key, value in record.items() if not key.isdecimal()}
    is_whole = len(rest) + len(characters) == len(record)
    return ("".join(characters), rest) if is_whole else (None, record)


def _is_character(value: Any) -> TypeGuard[str]:
    return type(value) is str and len(value) <= 1


def _decode_message(text: str, rest: Record, notes: ReaderNotes) -> Record:
    """Return the message in a string, with the other fields if the string lacks them."""
    stream = _Stream(notes)
    for event in _decode_events(text):
        stream.take(event)
    if not stream.message:
        notes.add_opaque(
            "unexpected-shape", f"a message of {len(text)} characters, each under a key of its own"
        )
        return {**rest, "content": rest.get("content") or text}
    return {**rest, **stream.message, "content": rest.get("content") or list(stream.blocks())}


def _decode_events(text: str) -> Iterator[Any]:
    """Yield the data of server-sent events: JSON on lines that begin with `data:`."""
    for line in text.split("\n"):  # not `splitlines`: JSON strings may hold other line ends
        if line.startswith("data:"):
            found = decode(line.removeprefix("data:").strip().encode("utf-8", "replace"))
            yield found.value if isinstance(found, JsonValue) else None


class _Stream:
    """A message during the decoding of its events."""

    def __init__(self, notes: ReaderNotes) -> None:
        self.message: Record = {}
        self._notes = notes
        self._blocks: dict[Any, Record] = {}
        self._inputs: dict[Any, list[str]] = {}
        """Pieces of a call's input as JSON, by the index of its block."""
        self._texts: dict[tuple[Any, str], list[str]] = {}
        """Pieces of a text field, by the index of the block and the field."""

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
            case {"type": kind} if kind in _IGNORED_EVENTS:
                pass
            case _:
                kind = event.get("type") if type(event) is dict else None
                self._notes.add_opaque("unknown-part", f"an event of type {short_repr(kind)} in a stream")

    def _grow(self, place: int, delta: Record) -> None:
        kind = delta.get("type")
        block = self._blocks.setdefault(place, {"type": "text", "text": ""})
        field = _DELTA_FIELDS.get(kind) if type(kind) is str else None
        if field is not None and type(delta.get(field)) is str:
            before = block.get(field)
            pieces = self._texts.setdefault((place, field), [before] if type(before) is str else [])
            pieces.append(delta[field])
        elif kind == "input_json_delta" and type(delta.get("partial_json")) is str:
            self._inputs.setdefault(place, []).append(delta["partial_json"])
        else:
            self._notes.add_opaque("unknown-part", f"a delta of type {short_repr(kind)} in a stream")

    def _count(self, usage: Any) -> None:
        """Add the counts at the end of a response: they replace those at its start."""
        if type(usage) is dict:
            before = self.message.get("usage")
            told = {name: count for name, count in usage.items() if count is not None}
            self.message["usage"] = {**(before if type(before) is dict else {}), **told}

    def blocks(self) -> Iterator[Record]:
        """Yield the blocks in order, calls with their input."""
        for (place, field), pieces in self._texts.items():
            self._blocks[place][field] = "".join(pieces)
        for place, block in sorted(self._blocks.items()):
            given = "".join(self._inputs.get(place, ()))
            found = decode(given.encode("utf-8", "replace")) if given else None
            if found is None:
                yield block
            elif isinstance(found, JsonValue) and type(found.value) is dict:
                yield {**block, "input": found.value}
            else:  # the stream ended within the call
                yield {**block, "input": {"partial_json": given}}


KNOWN_KEYS = frozenset(
    ("apiErrorStatus", "apiErrorType", "attributionMcpServer", "attributionMcpTool", "attributionPlugin",
     "attributionSkill", "classifierMetaLines", "costUSD", "durationMs", "error", "errorDetails",
     "failedResponseHadNoToolCall", "forkedFrom", "imagePasteIds", "interruptedByShutdown", "interruptedMessageId",
     "isAbortedMidStream", "isCompactSummary", "isVisibleInTranscriptOnly", "mcpMeta", "planContent",
     "sessionKind", "session_id", "sourceToolUseID", "supersedesUuids", "teamName", "thinkingMetadata", "todos",
     "toolDenialKind", "toolEndsTurn", "turnCompanion")
)  # fmt: skip
"""Known rare keys, which are kept under their own names."""
_MOST_NAMED = 8
"""How many unknown keys of an object a problem names."""
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_LINE_SHAPES: dict[str, tuple[type[Any], type[Any]]] = {
    "user": (UserLine, UserRecord),
    "assistant": (AnswerLine, AnswerRecord),
}


class _Fields:
    """The names of a shape's fields in the file, and their types."""

    def __init__(self, shape: type[Any]) -> None:
        hints = get_type_hints(shape, include_extras=True)
        self.names = {field.encode_name: field.name for field in msgspec.structs.fields(shape)}
        self.types = {name: hints[name] for name in self.names.values()}


_SHAPES = {
    shape: _Fields(shape)
    for shape in (UserLine, UserRecord, AnswerLine, AnswerRecord, UsageRecord, *BLOCKS.values())
}


def convert_line(record: Record, notes: ReaderNotes) -> tuple[MessageLine, Record] | None:
    """Return a line of the conversation with its other fields; None if it has no content."""
    line_shape, said_shape = _LINE_SHAPES[record["type"]]
    record = join_spread_message(record, notes)
    message = record.get("message")
    if type(message) is not dict or type(message.get("content")) not in (str, list):
        return None
    taken, extra = _convert_fields(line_shape, record, notes, apart=("message", "timestamp", "type"))
    said, beyond = _convert_fields(said_shape, message, notes, apart=("content", "usage"))
    content = message["content"]
    if said_shape is AnswerRecord:
        content = [{"type": "text", "text": content}] if type(content) is str else content
        said["usage"], beyond["usage"] = _convert_usage(message.get("usage"), notes)
    if type(content) is list:
        content, beyond["content"] = _convert_blocks(content, notes)
    said["content"] = content
    _note_unknown_keys("a line", extra.keys() - _SHAPES[line_shape].names.keys() - KNOWN_KEYS, notes)
    _note_unknown_keys("a message", beyond.keys() - _SHAPES[said_shape].names.keys(), notes)
    extra |= {key: value for key, value in beyond.items() if value not in (None, {})}
    at = notes.parse_time(record.get("timestamp"))
    return line_shape(**taken, timestamp=at, message=said_shape(**said)), extra


def _convert_fields(
    shape: type[Any], record: Record, notes: ReaderNotes, apart: tuple[str, ...]
) -> tuple[Record, Record]:
    """Return the fields that fit, by their names in Python, and the others by their own."""
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
                notes.add_opaque("unexpected-shape", f"{key} is a {type(value).__name__}")
    return taken, extra


def _convert_usage(value: Any, notes: ReaderNotes) -> tuple[UsageRecord | None, Record | None]:
    """Return the tokens that are whole numbers, and the other fields."""
    if type(value) is not dict:
        if value is not None:
            notes.add_opaque("unexpected-shape", "usage is no object")
        return None, value
    taken, extra = _convert_fields(UsageRecord, value, notes, apart=())
    return (UsageRecord(**taken) if taken.keys() & set(_COUNTS) else None), extra


def _convert_blocks(content: list[Any], notes: ReaderNotes) -> tuple[list[Block | Any], Record]:
    """Return the blocks of content, and the unknown fields in them by the index of the block."""
    blocks: list[Block | Any] = []
    beyond: Record = {}
    for place, item in enumerate(content):
        found, extra = convert_block(item, notes)
        blocks.append(found)
        if extra:
            _note_unknown_keys("a block", extra.keys() - _SHAPES[type(found)].names.keys(), notes)
            beyond[str(place)] = extra
    return blocks, beyond


def convert_block(item: Any, notes: ReaderNotes) -> tuple[Block | Any, Record]:
    """Return a block of content with its unknown fields; an unknown block stays as it is."""
    shape = BLOCKS.get(item["type"]) if type(item) is dict and type(item.get("type")) is str else None
    if shape is None:
        return item, {}
    taken, extra = _convert_fields(shape, item, notes, apart=("type",))
    try:
        return shape(**taken), extra
    except TypeError:  # a required field is missing
        return item, {}


def _note_unknown_keys(of: str, keys: Collection[str], notes: ReaderNotes) -> None:
    if keys:
        named = ", ".join([f"{key:.60}" for key in sorted(keys)[:_MOST_NAMED]])
        more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
        notes.add_opaque("unknown-part", f"unknown keys in {of}: {named}{more}")
