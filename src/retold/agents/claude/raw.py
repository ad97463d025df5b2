"""The lines of a transcript as Claude Code writes them, in its own words.

The two kinds of lines that hold the conversation are checked whole by msgspec, in the time in which Python looks at
three fields. What does not fit, down to an unknown key, is taken apart field by field (`fields.py`) and comes out as the
same values.
"""

from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any

import msgspec

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
