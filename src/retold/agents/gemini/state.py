"""What a file's records amount to: the values that replaying makes, and how they grow."""

from collections.abc import Iterable
from typing import Any

import msgspec

from retold.agents.gemini.raw import SAID, ConversationRecord, Record
from retold.model.problem import Problem
from retold.model.session import Fate

Place = tuple[int, int]
"""Where a record stands: its line, and its place in a list on that line (0 where it is the line)."""
Version = tuple[Any, Place]
"""A record as it was at one time."""


Key = str | tuple[Any, int]
"""A message's id; for what has none, something that tells it apart."""


_COMPARED = 64
"""How many versions of a message a new one is compared with: a file may repeat an id without end."""


class State(msgspec.Struct, frozen=True):
    """What a file's records amount to. A value: the fold copies it before it goes on."""

    path: str
    metadata: Record = {}
    starts: tuple[Any, ...] = ()
    live: dict[str, Record] = {}
    """What the CLI holds: by id, in the place where the id came first."""
    verbatim: tuple[Any, ...] | None = None
    """The list of a whole-file JSON, which the CLI takes as it is, ids or none."""
    ever: dict[Key, tuple[Version, ...]] = {}
    """Every version of every message by id, in order of first appearance; what has no id, by its place."""
    gone: dict[str, Fate] = {}
    """Why an id is no longer live."""
    copies: dict[str, str] = {}
    """Ids that only repeat an earlier message, and that message's id."""
    is_whole: bool = True
    """False for a whole-file JSON that a strict parser rejects, or that has no `sessionId`."""
    seen_by_loader: frozenset[str] = frozenset()
    """Which of `sessionId` and `projectHash` the loader has met: without both it gives the file up."""
    lines: int = 0
    records: int = 0
    problems: tuple[Problem, ...] = ()
    listed: frozenset[Key] | None = None
    """For several files as one: the keys in `ever` that the file holds which the CLI would load."""


class Plain(msgspec.Struct, frozen=True):
    """A whole-file JSON in which everything is usual: its messages once each, in their order."""

    path: str
    record: ConversationRecord


def add_version(versions: list[Version], record: Any, place: Place) -> None:
    """Add a version of a message: in place of those of which it says all, unless one of them says more."""
    recent = versions[-_COMPARED:]
    if any(says_all(known, record) for known, _ in recent if known != record):
        return
    first = versions[0][1] if versions else place
    versions[-_COMPARED:] = [version for version in recent if not says_all(record, version[0])]
    versions.append((record, place if versions else first))


def says_all(whole: Any, part: Any) -> bool:
    """Tell whether a record holds every field of another, unchanged."""
    if type(whole) is dict and type(part) is dict:
        return part.items() <= whole.items()
    return bool(whole == part)


def folded_copies(known: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    """Return copies with others, each by the first of its line."""
    copies = dict(known)
    fold_copies(copies, found)
    return copies


def fold_copies(copies: dict[str, str], found: dict[str, str]) -> None:
    """Add copies, each by the first of its line: that is no copy itself, so no line can close a circle."""
    for copy, original in found.items():
        first = original
        while first in copies:
            first = copies[first]
        if first != copy:
            copies.setdefault(copy, first)


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
