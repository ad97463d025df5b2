"""How the CLI's own loader takes a file: which messages it stores, and when it gives the file up.

Evidence: `loadConversationRecord` in `chatRecordingService.js` of `@google/gemini-cli-core` 0.61.0; the conformance suite
asks that function itself.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from retold.agents.gemini.raw import SAID, Record
from retold.agents.gemini.state import State


def with_fallback(state: State, record: Any) -> State:
    """Return what the loader makes of a file whose lines gave it no ids, but which as a whole is one JSON object."""
    if type(record) is not dict or "sessionId" not in record:
        return state
    messages = record.get("messages")
    if type(messages) is not list and messages is not None:
        return state
    return msgspec.structs.replace(state, verbatim=tuple(messages or ()))


def is_loadable(state: State) -> bool:
    """Tell whether the CLI's loader can open the file at all."""
    if state.verbatim is not None:
        return state.is_whole and None not in state.verbatim and survives_fallback(state.verbatim)
    return {"sessionId", "projectHash"} <= state.seen_by_loader


def survives_fallback(messages: Iterable[Any]) -> bool:
    """For a whole-file JSON the CLI asks each message for its type, then for its text until one is resumable."""
    for message in messages:
        if type(message) is dict:
            if loader_text(message.get("content"), message.get("type")) is None:
                return False
            if is_resumable(message):
                return True
    return True


def active_records(state: State) -> tuple[Any, ...]:
    """Return exactly what the CLI's loader returns for the file, in its order."""
    if not is_loadable(state):
        return ()
    return tuple(state.live.values()) if state.verbatim is None else state.verbatim


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
