"""The records that Gemini CLI writes, in its own words, and how to recognise them.

Evidence: `docs/formats/gemini.md`; `chatRecordingService.js` of `@google/gemini-cli-core` 0.61.0 for the loader.
"""

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

Record = dict[str, Any]
ENVIRONMENT_ID = hashlib.sha256(b"environment-context").hexdigest()[:32]
"""The id under which 0.44 and later record `<session_context>`."""
RESPONSE_SUFFIX = "_response"
"""The end of the ids of tool results that a resume repeats (0.44 and later)."""
RESULTS_SUFFIX = "-retold-results"
"""The end of the ids of tool results in a session that retold restored."""
SNAPSHOT = "<state_snapshot>"
"""The opening of the summary that replaces the history after `/compress`."""
SPOKEN_TYPES = ("user", "gemini")
NOTICES = ("info", "warning", "error")
MESSAGE_TYPES = (*SPOKEN_TYPES, *NOTICES)
METADATA_KEYS = frozenset(
    (
        "sessionId", "projectHash", "startTime", "lastUpdated", "messages", "summary", "directories", "kind",
        "memoryScratchpad",
        "retold",  # the mark of a restore
        # added by `/export-session`
        "messageCount", "userMessageCount", "firstUserMessage", "hasResumableContent", "memoryScratchpadIsStale",
    )
)  # fmt: skip
MESSAGE_KEYS = frozenset(
    ("id", "timestamp", "type", "content", "displayContent", "toolCalls", "thoughts", "tokens", "model")
)
USER_KEYS = frozenset(("id", "timestamp", "type", "content", "displayContent"))
THOUGHT_KEYS = frozenset(("subject", "description", "timestamp"))
ANSWER_KEYS = MESSAGE_KEYS - {"displayContent"}
TOOL_CALL_KEYS = frozenset(
    (
        "id", "name", "args", "result", "status", "timestamp", "displayName", "description",
        "renderOutputAsMarkdown", "resultDisplay", "agentId",
    )
)  # fmt: skip
TOKEN_KEYS = ("input", "cached", "output", "thoughts", "tool", "total")


def is_message(value: Any) -> bool:
    """Return whether the CLI takes a value for a message: an object with a text `id`."""
    return type(value) is dict and type(value.get("id")) is str


def looks_like_message(value: Any) -> bool:
    """Return whether a value is surely a message of Gemini CLI, with or without an id."""
    return (
        type(value) is dict
        and value.get("type") in MESSAGE_TYPES
        and ("content" in value or "timestamp" in value)
    )


def is_turn(value: Any) -> bool:
    """Return whether a value is a turn of a client history."""
    return type(value) is dict and type(value.get("role")) is str and "parts" in value


def text_parts(content: Any) -> list[Any]:
    """Return content as a list of parts; it is recorded as a text, as a part, or as a list of either."""
    if content is None or content == "":
        return []
    return content if type(content) is list else [content]


def plain_text(content: Any) -> str:
    """Return the text of content without thoughts."""
    if type(content) is str:
        return content
    texts = []
    for part in text_parts(content):
        if type(part) is str:
            texts.append(part)
        elif type(part) is dict and type(part.get("text")) is str and part.get("thought") is not True:
            texts.append(part["text"])
    return "".join(texts)


Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Response(msgspec.Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True):
    """The output or the error of a tool."""

    output: str | None = None
    error: str | None = None


class FunctionResponse(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, omit_defaults=True, rename="camel"
):
    """A response with the id and the name of its call."""

    response: Response
    id: str | None = None
    name: str | None = None


class ResultPart(msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel"):
    """The only part of a usual result."""

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
    """A thought of the model."""

    description: str
    subject: str | None = None
    timestamp: Time | None = None


class TokensRecord(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The tokens of a response: all six counts."""

    input: int
    output: int
    cached: int
    thoughts: int
    tool: int
    total: int


class BaseRecord(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel", tag_field="type", omit_defaults=True
):
    """The fields of every message."""

    id: str
    timestamp: Time


class AnswerRecord(BaseRecord, tag="gemini"):
    """A message of the model."""

    content: str
    thoughts: list[ThoughtRecord] | None = None
    tokens: TokensRecord | None = None
    model: str | None = None
    tool_calls: list[ToolCallRecord] | None = None


class UserRecord(BaseRecord, tag="user"):
    """A message of a person, or of the CLI in a person's place."""

    content: Any = None
    display_content: Any = None


class InfoRecord(BaseRecord, tag="info"):
    """A notice; an empty one marks a compaction."""

    content: str


class WarningRecord(BaseRecord, tag="warning"):
    """A notice of a warning."""

    content: str


class ErrorRecord(BaseRecord, tag="error"):
    """A notice of an error."""

    content: str


MessageRecord = AnswerRecord | UserRecord | InfoRecord | WarningRecord | ErrorRecord


class ConversationRecord(
    msgspec.Struct, forbid_unknown_fields=True, gc=False, rename="camel", omit_defaults=True
):
    """A session in a single JSON document."""

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
    """Return whether all times of a message are in UTC, as the CLI writes them; others may lie outside the calendar."""
    if record.timestamp.tzinfo is not UTC:
        return False
    if type(record) is not AnswerRecord:
        return True
    for thought in record.thoughts or ():
        if thought.timestamp is not None and thought.timestamp.tzinfo is not UTC:
            return False
    return all([call.timestamp.tzinfo is UTC for call in record.tool_calls or ()])


_CONVERSATION = msgspec.json.Decoder(ConversationRecord)


def decode_conversation(data: bytes) -> ConversationRecord | None:
    """Return a single-document session, checked; None if a field is unusual or an id occurs twice."""
    try:
        record = _CONVERSATION.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    ids = {message.id for message in record.messages}
    is_usual = len(ids) == len(record.messages) and all(map(has_utc_times, record.messages))
    return record if is_usual else None


def is_log_entry(value: Any) -> bool:
    """Return whether a value is an entry of `logs.json`."""
    return (
        type(value) is dict
        and type(value.get("sessionId")) is str
        and "messageId" in value
        and "message" in value
    )
