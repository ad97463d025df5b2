"""The shapes that nearly all messages have, checked all at once.

msgspec checks every field of an answer in the time in which Python looks at three. What does not fit exactly, down to an
unknown key, is read the careful way, field by field: both ways give the same (`test_usual.py`).
"""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Response(msgspec.Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True):
    """What a tool gave back."""

    output: str | None = None
    error: str | None = None


class FunctionResponse(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True, rename="camel"
):
    """The envelope around it."""

    response: Response
    id: str | None = None
    name: str | None = None


class ResultPart(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    """The one part of a usual result."""

    function_response: FunctionResponse


class ToolCallRecord(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True, rename="camel"
):
    """A tool call with a result of one part."""

    id: str
    name: str
    args: dict[str, Any]
    status: str
    timestamp: Time
    result: Annotated[list[ResultPart], msgspec.Meta(min_length=1, max_length=1)]
    display_name: str | None = None
    description: str | None = None
    render_output_as_markdown: bool = False
    result_display: Any = None
    agent_id: str | None = None


class ThoughtRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True):
    """A thought."""

    description: str
    subject: str | None = None
    timestamp: Time | None = None


class TokensRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The tokens of a response, all six."""

    input: int
    output: int
    cached: int
    thoughts: int
    tool: int
    total: int


class Said(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel", tag_field="type", omit_defaults=True
):
    """What every message has."""

    id: str
    timestamp: Time


class AnswerRecord(Said, tag="gemini"):
    """A message of the model."""

    content: str
    thoughts: list[ThoughtRecord] | None = None
    tokens: TokensRecord | None = None
    model: str | None = None
    tool_calls: list[ToolCallRecord] | None = None


class UserRecord(Said, tag="user"):
    """A message of the human, or in the human's place."""

    content: Any = None
    display_content: Any = None


class InfoRecord(Said, tag="info"):
    """A notice; an empty one marks a compaction."""

    content: str


class WarningRecord(Said, tag="warning"):
    """A notice of something odd."""

    content: str


class ErrorRecord(Said, tag="error"):
    """A notice of something that failed."""

    content: str


MessageRecord = AnswerRecord | UserRecord | InfoRecord | WarningRecord | ErrorRecord


class ConversationRecord(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel", omit_defaults=True
):
    """A session in a whole-file JSON."""

    session_id: str
    messages: list[MessageRecord]
    project_hash: str | None = None
    start_time: str | None = None
    last_updated: str | None = None
    summary: str | None = None
    kind: str | None = None
    directories: Any = None
    memory_scratchpad: Any = None


def has_utc_times(record: MessageRecord) -> bool:
    """Tell whether every time in a message is in UTC, as the CLI writes them; others may lie outside the calendar."""
    if record.timestamp.tzinfo is not UTC:
        return False
    if type(record) is not AnswerRecord:
        return True
    for thought in record.thoughts or ():
        if thought.timestamp is not None and thought.timestamp.tzinfo is not UTC:
            return False
    return all([call.timestamp.tzinfo is UTC for call in record.tool_calls or ()])


_CONVERSATION = msgspec.json.Decoder(ConversationRecord)


def usual_conversation(data: bytes) -> ConversationRecord | None:
    """Return a whole-file JSON, checked; None if it is anything but usual, or holds an id twice."""
    try:
        record = _CONVERSATION.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    ids = {message.id for message in record.messages}
    is_usual = len(ids) == len(record.messages) and all(map(has_utc_times, record.messages))
    return record if is_usual else None
