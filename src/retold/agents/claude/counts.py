"""What is counted of a line, as Claude Code writes it: all else is passed over without being made a value.

Anything that is not of these shapes is read as a whole.
"""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Raw, UnsetType

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Sums of these are what an archive stores as they stand."""
Time = Annotated[datetime, msgspec.Meta(tz=True)]
_NOTHING = Raw(b"null")


class CacheCreation(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What was written to the cache, by how long it lasts."""

    ephemeral_5m_input_tokens: Count = 0
    ephemeral_1h_input_tokens: Count = 0


class Details(msgspec.Struct, gc=False):
    """How much of the output was thinking."""

    thinking_tokens: Count | None = None


class UsageRecord(msgspec.Struct, gc=False):
    """The tokens of a response."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: Details | None = None


class AnswerRecord(msgspec.Struct, gc=False):
    """What is counted of a message."""

    spread: Raw | UnsetType = msgspec.field(default=UNSET, name="0")
    """The first character of a message that is spread over keys: only reading tells its tokens."""

    content: Raw = _NOTHING
    id: str | None = None
    model: str | None = None
    usage: UsageRecord | None = None


class LineRecord(msgspec.Struct, gc=False, rename="camel"):
    """What is counted of a line."""

    type: str
    uuid: str | None = None
    timestamp: Time | None = None
    session_id: str | None = None
    parent_uuid: str | None = None
    is_sidechain: bool = False
    cwd: str | None = None
    agent_id: str | None = None
    request_id: str | None = None
    is_api_error_message: bool = False
    message: AnswerRecord | None = None


decode = msgspec.json.Decoder(LineRecord).decode
