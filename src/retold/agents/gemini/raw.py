"""The shapes that Gemini CLI writes, in its own words, and how its loader tells them apart.

Evidence: `docs/formats/gemini.md`; `chatRecordingService.js` of `@google/gemini-cli-core` 0.61.0 for the loader.
"""

import hashlib
from typing import Any

Record = dict[str, Any]

ENVIRONMENT_ID = hashlib.sha256(b"environment-context").hexdigest()[:32]
"""The id under which 0.44 and later record `<session_context>`."""
RESPONSE_SUFFIX = "_response"
"""Ends the id of the tool results that a resume writes once more (0.44 and later)."""
SNAPSHOT = "<state_snapshot>"
"""Opens the summary that `/compress` puts in place of the history."""

SAID = ("user", "gemini")
NOTICES = ("info", "warning", "error")
MESSAGE_TYPES = (*SAID, *NOTICES)

METADATA_KEYS = frozenset(
    (
        "sessionId", "projectHash", "startTime", "lastUpdated", "messages", "summary", "directories", "kind",
        "memoryScratchpad",
        # what `/export-session` adds
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
    """Tell whether the CLI takes this for a message: anything with a text `id`."""
    return type(value) is dict and type(value.get("id")) is str


def looks_said(value: Any) -> bool:
    """Tell whether this is surely a message of Gemini CLI, with or without an id."""
    return (
        type(value) is dict
        and value.get("type") in MESSAGE_TYPES
        and ("content" in value or "timestamp" in value)
    )


def is_turn(value: Any) -> bool:
    """Tell whether this is a turn of a client history."""
    return type(value) is dict and type(value.get("role")) is str and "parts" in value


def text_parts(content: Any) -> list[Any]:
    """Return content as a list of parts: it is recorded as text, as one part, or as a list of either."""
    if content is None or content == "":
        return []
    return content if type(content) is list else [content]


def plain_text(content: Any) -> str:
    """Return the text of content, thoughts left out."""
    if type(content) is str:
        return content
    texts = []
    for part in text_parts(content):
        if type(part) is str:
            texts.append(part)
        elif type(part) is dict and type(part.get("text")) is str and part.get("thought") is not True:
            texts.append(part["text"])
    return "".join(texts)


def loader_takes(record: Record) -> bool:
    """Tell whether the CLI's loader survives this message: it drops one whose content makes it throw."""
    content = record.get("content")
    return type(content) is str or content is None or loader_text(content, record.get("type")) is not None


def is_resumable(record: Record) -> bool:
    """Tell whether the CLI finds a message worth resuming, as its `isResumableMessageRecord` does."""
    text = loader_text(record.get("content"), record.get("type"))
    words = (text or "").strip()
    if record.get("type") == "user":
        return bool(words) and not words.startswith(("/", "?", "<session_context>", "<hook_context>"))
    lists = (record.get("toolCalls"), record.get("thoughts"))
    return record.get("type") == "gemini" and (
        bool(words) or any(type(items) is list and items for items in lists)
    )


def loader_text(content: Any, message_type: Any) -> str | None:
    """Return content as text in the way of the CLI's `partToString`; None where that throws.

    It throws for a null where an object is due, and then trims: a lone part's text that is no text throws too.
    """
    if type(content) is dict and not any(kind in content for kind in _KINDS):
        text = content.get("text")
        if text is not None and type(text) is not str:
            return None if message_type in SAID else ""
    texts: list[str] = []
    pending = [content]
    while pending:
        value = pending.pop()
        if type(value) is list:
            pending.extend(reversed(value))
        elif type(value) is str:
            texts.append(value)
        elif type(value) is dict:
            text = _part_text(value)
            if text is None:
                return None
            texts.append(text)
    return "".join(texts)


_QUIET_KINDS = ("videoMetadata", "thought", "codeExecutionResult", "executableCode", "fileData")
_KINDS = (*_QUIET_KINDS, "functionCall", "functionResponse", "inlineData")


def _part_text(part: Record) -> str | None:
    for kind in _KINDS:
        if kind in part:
            value = part[kind]
            if kind in _QUIET_KINDS:
                return f"[{kind}]"
            if kind == "inlineData" and type(value) is dict:
                media_type = value.get("mimeType")
                return None if media_type is not None and type(media_type) is not str else "[inlineData]"
            return None if value is None else f"[{kind}]"
    return _as_text(part.get("text"))


def _as_text(value: Any) -> str:
    """Return a value as JavaScript writes it where text is due."""
    texts: list[str] = []
    pending = [value]
    while pending:
        match pending.pop():
            case str(text):
                texts.append(text)
            case None:
                pass
            case bool(truth):
                texts.append(str(truth).lower())
            case list(items):
                pending.extend(reversed(items))
            case dict():
                texts.append("[object Object]")
            case number:
                texts.append(str(number))
    return ",".join(texts)


def is_truthy(value: Any) -> bool:
    """Tell what JavaScript takes for true: an empty list and an empty object are."""
    return value is not None and value is not False and not (type(value) in (str, int, float) and not value)
