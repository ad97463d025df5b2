"""Lines that are not quite usual, taken apart field by field: what fits is taken, what does not is kept beside it."""

from collections.abc import Collection
from typing import Any, get_type_hints

import msgspec

from retold.agents.claude.raw import (
    BLOCKS,
    AnswerLine,
    AnswerRecord,
    Block,
    Record,
    SaidLine,
    SaidRecord,
    UsageRecord,
    Usual,
)
from retold.agents.claude.spread import gather_message
from retold.reading.diagnostics import ReaderNotes

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
