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
RESULTS_SUFFIX = "-retold-results"
"""Ends the id of tool results in a session that we wrote back."""
SNAPSHOT = "<state_snapshot>"
"""Opens the summary that `/compress` puts in place of the history."""

SAID = ("user", "gemini")
NOTICES = ("info", "warning", "error")
MESSAGE_TYPES = (*SAID, *NOTICES)

METADATA_KEYS = frozenset(
    (
        "sessionId", "projectHash", "startTime", "lastUpdated", "messages", "summary", "directories", "kind",
        "memoryScratchpad",
        "retold",  # what we leave in a file that we wrote back
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
