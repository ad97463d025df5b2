"""The values that are read from a file: a session's state, its message versions and fates, and other kinds of files."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from retold.agents.bookmarks import KnownIds
from retold.agents.gemini.discovery import Origin
from retold.agents.gemini.raw import SPOKEN_TYPES, ConversationRecord, Record, text_parts
from retold.agents.gemini.tool_results import OutputFiles
from retold.model.builder import Beginning
from retold.model.problem import Problem
from retold.model.session import Fate, Kind
from retold.reading.diagnostics import ReaderNotes
from retold.reading.jsonl import FILE_START, FileMark, JsonLine

Place = tuple[int, int]
"""The place of a record: its line, and its index in a list on that line (0 if it is the line)."""
Version = tuple[Any, Place]
"""A record at one time, and its place."""
Key = str | tuple[Any, int]
"""A message's id; for a message without an id, a unique stand-in."""
_MOST_COMPARED = 64
"""How many versions of a message a new one is compared with: a file may repeat an id without end."""


class State(msgspec.Struct, frozen=True):
    """A session as replayed. A value: the fold copies it before it goes on."""

    path: str
    metadata: Record = {}
    starts: tuple[Any, ...] = ()
    live: dict[str, Record] = {}
    """The messages that the CLI would load, by id, in order of first appearance."""
    document_messages: tuple[Any, ...] | None = None
    """The list of a single-document session, which the CLI takes as it is, with or without ids."""
    versions: dict[Key, tuple[Version, ...]] = {}
    """Every version of every message by id, in order of first appearance; messages without an id by their place."""
    fates: dict[str, Fate] = {}
    """The reasons why ids are not live any more."""
    copies: dict[str, str] = {}
    """Ids that only repeat an earlier message, with that message's id."""
    is_whole: bool = True
    """False for a document that a strict parser rejects, or that has no `sessionId`."""
    loader_keys: frozenset[str] = frozenset()
    """Which of `sessionId` and `projectHash` the loader has seen: without both it rejects the file."""
    lines: int = 0
    records: int = 0
    problems: tuple[Problem, ...] = ()
    loaded_keys: frozenset[Key] | None = None
    """For merged files: the keys in `versions` of the file that the CLI would load."""


class CleanDocument(msgspec.Struct, frozen=True):
    """A single-document session whose fields were all checked: each message once, in order."""

    path: str
    record: ConversationRecord


def add_version(versions: list[Version], record: Any, place: Place) -> None:
    """Add a version of a message in place of those that it contains, unless a known one contains it."""
    recent = versions[-_MOST_COMPARED:]
    if any(contains_all(known, record) for known, _ in recent if known != record):
        return
    first = versions[0][1] if versions else place
    versions[-_MOST_COMPARED:] = [version for version in recent if not contains_all(record, version[0])]
    versions.append((record, place if versions else first))


def contains_all(whole: Any, part: Any) -> bool:
    """Return whether a record holds every field of another, unchanged."""
    if type(whole) is dict and type(part) is dict:
        return part.items() <= whole.items()
    return bool(whole == part)


def merge_copies(known: dict[str, str], others: dict[str, str]) -> dict[str, str]:
    """Return two maps of copies merged, each copy with the first original of its chain."""
    copies = dict(known)
    fold_copies(copies, others)
    return copies


def fold_copies(copies: dict[str, str], others: dict[str, str]) -> None:
    """Add copies, each with the first original of its chain; that is no copy, so no cycle can arise."""
    for copy, original in others.items():
        first = original
        while first in copies:
            first = copies[first]
        if first != copy:
            copies.setdefault(copy, first)


def apply_fallback(state: State, record: Any) -> State:
    """Return the loader's state of a file whose lines have no ids, but which as a whole is one JSON object."""
    if type(record) is not dict or "sessionId" not in record:
        return state
    messages = record.get("messages")
    if type(messages) is not list and messages is not None:
        return state
    return msgspec.structs.replace(state, document_messages=tuple(messages or ()))


def is_loadable(state: State) -> bool:
    """Return whether the CLI's loader can open the file."""
    if state.document_messages is not None:
        return (
            state.is_whole
            and None not in state.document_messages
            and survives_fallback(state.document_messages)
        )
    return {"sessionId", "projectHash"} <= state.loader_keys


def survives_fallback(messages: Iterable[Any]) -> bool:
    """Return whether the CLI loads a document: it asks each message for its type, then for its text until one is resumable."""
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
    return tuple(state.live.values()) if state.document_messages is None else state.document_messages


def is_loadable_message(record: Record) -> bool:
    """Return whether the CLI's loader survives this message: it drops one whose content makes it throw."""
    content = record.get("content")
    return type(content) is str or content is None or loader_text(content, record.get("type")) is not None


def is_resumable(record: Record) -> bool:
    """Return whether the CLI finds a message worth resuming, like its `isResumableMessageRecord`."""
    text = loader_text(record.get("content"), record.get("type"))
    words = (text or "").strip()
    if record.get("type") == "user":
        return bool(words) and not words.startswith(("/", "?", "<session_context>", "<hook_context>"))
    lists = (record.get("toolCalls"), record.get("thoughts"))
    return record.get("type") == "gemini" and (
        bool(words) or any(type(items) is list and items for items in lists)
    )


def has_conversation(state: State) -> bool:
    """Return whether the CLI would load a message worth resuming."""
    return any(type(record) is dict and is_resumable(record) for record in active_records(state))


def loader_text(content: Any, message_type: Any) -> str | None:
    """Return content as text like the CLI's `partToString`; None if that throws.

    It throws for a null in place of an object, and, when it trims, for a lone part whose text is no text.
    """
    if type(content) is dict and not any(kind in content for kind in _KINDS):
        text = content.get("text")
        if text is not None and type(text) is not str:
            return None if message_type in SPOKEN_TYPES else ""
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
    """Return a value as JavaScript converts it to text."""
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
    """Return whether a value is truthy in JavaScript: an empty list and an empty object are."""
    return value is not None and value is not False and not (type(value) in (str, int, float) and not value)


class Notes(ReaderNotes):
    """The problems and the number of opaque things of a file, and facts for later steps."""

    def __init__(self, path: str, pointer: str = "") -> None:
        """Take the file's path, and the pointer to its list of records if it is one document."""
        super().__init__(path, pointer)
        self.has_results = False
        """Whether a tool's result was seen in a record of its own."""
        self.has_agents = False
        """Whether a call was seen that starts a subagent."""
        self.may_lack_tokens = False
        """Whether an answer was seen without tokens, or with calls that were done at several times."""


class RecordContext(msgspec.Struct, frozen=True):
    """Context for normalising a record: session id, key and side files."""

    notes: Notes
    native_id: str
    key: str
    is_subagent: bool = False
    outputs: OutputFiles = OutputFiles()

    def child_key(self, agent_id: str | None) -> str | None:
        """Return the key of the subagent that a call started."""
        return None if agent_id is None else f"{self.key}/{agent_id}"


class History(msgspec.Struct, frozen=True):
    """A list of turns, with the other fields of its file."""

    origin: Origin
    kind: Kind
    turns: tuple[Any, ...]
    pointer: str = ""
    """The JSON pointer to the list in the file."""
    other_fields: Record = {}
    project_hash: str | None = None


class CaptureFile(msgspec.Struct, frozen=True):
    """The objects of a captured output with their lines; `-o json` has one."""

    origin: Origin
    objects: tuple[JsonLine, ...]
    is_stream: bool


class PromptLog(msgspec.Struct, frozen=True):
    """The logged prompts of one session, each with its index in the file."""

    origin: Origin
    project_hash: str | None
    prompts: tuple[JsonLine, ...]


class EarlierPart(msgspec.Struct, frozen=True):
    """The part of a session before a bookmark."""

    beginning: Beginning
    known: KnownIds
    """The ids of its messages and calls."""
    problems: tuple[Problem, ...]
    """Those that were found in its messages."""
    opaque: int
    responses: int
    """The responses of the model, and those with recorded tokens."""
    counted: int


class Transcript(msgspec.Struct, frozen=True):
    """A replayed session file."""

    origin: Origin
    state: State | CleanDocument
    outputs: OutputFiles = OutputFiles()
    mark: FileMark = FILE_START
    """The place of the bookmark from which it was read."""
    earlier: EarlierPart | None = None
    places: tuple[tuple[FileMark, State], ...] = ()
    """Places for bookmarks, each with the state there."""


_RICH_KEYS = ("toolCalls", "thoughts", "tokens", "model", "displayContent")
_FEW_WORDS = 200
_COUNT_KEYS = ("tokens", "model")
"""Of these fields the last version counts: the tokens of a response are complete at its end."""


def merge_versions(versions: Sequence[Version]) -> tuple[Record, tuple[Version, ...]]:
    """Return the message with the fields of all versions, and the versions that say more."""
    if len(versions) == 1:
        return versions[0][0], ()
    records = [record for record, _ in versions]
    whole = dict(_best(records))
    for record in records:
        for key in _RICH_KEYS:
            if record.get(key) and (key in _COUNT_KEYS or not whole.get(key)):
                whole[key] = record[key]
        if not whole.get("content") and not whole.get("toolCalls"):
            whole["content"] = record.get("content")
    times = [record["timestamp"] for record in records if type(record.get("timestamp")) is str]
    if times:
        whole["timestamp"] = min(times)
    return whole, _select_other_versions(whole, versions)


def _select_other_versions(whole: Record, versions: Sequence[Version]) -> tuple[Version, ...]:
    """Return the versions that say something new, each compared with everything before it."""
    known = {*_words(whole), *_rendered_thoughts(whole)}
    others: list[Version] = []
    for version in versions:
        words = set(_words(version[0]))
        if not all(_is_contained(word, known) for word in words):
            others.append(version)
            known |= words
    return tuple(others)


def sorted_json(value: Any) -> str:
    """Return a value as JSON text with sorted keys, for comparisons."""
    return json.dumps(value, sort_keys=True, default=repr)


def _best(records: Sequence[Record]) -> Record:
    """Return the richest record; of equals the last, unless it only repeats the words in a form for the model."""
    best = records[0]
    for record in records[1:]:
        more = _richness(record) - _richness(best)
        if more > 0 or (more == 0 and not _contains_words(best, record)):
            best = record
    return best


def _richness(record: Record) -> int:
    return sum(bool(record.get(key)) for key in _RICH_KEYS)


def _contains_words(whole: Record, other: Record) -> bool:
    known = {*_words(whole), *_rendered_thoughts(whole)}
    return all(_is_contained(word, known) for word in _words(other))


def _is_contained(word: str, texts: set[str]) -> bool:
    """Return whether a text is among others, or, if these are few, within one of them."""
    return word in texts or (len(texts) <= _FEW_WORDS and any(word in one for one in texts))


def _words(record: Record) -> Iterator[str]:
    for key in ("content", "displayContent"):
        for part in text_parts(record.get(key)):
            yield from _words_of(part)
    for thought in _thoughts(record):
        for key in ("subject", "description"):
            if type(thought.get(key)) is str and thought[key]:
                yield thought[key]


def _words_of(part: Any) -> Iterator[str]:
    """Yield the text of a part; a part without text as a whole, but no call, since calls are compared by their ids."""
    text = part.get("text") if type(part) is dict else part
    if type(text) is str:
        if text:
            yield text
    elif type(part) is dict and "functionCall" not in part:
        yield sorted_json(part)


def _rendered_thoughts(record: Record) -> Iterator[str]:
    """Yield thoughts in the form in which a resume writes them into content: `**subject** description`."""
    for thought in _thoughts(record):
        yield f"**{thought.get('subject', '')}** {thought.get('description', '')}"


def _thoughts(record: Record) -> list[Any]:
    thoughts = record.get("thoughts")
    return [thought for thought in thoughts if type(thought) is dict] if type(thoughts) is list else []


def resolve_fates(state: State) -> dict[Key, Fate]:
    """Return the fate of each message, copies left out."""
    copied, copies = state.copies, _copies_by_original(state)
    is_all_live = state.document_messages is not None and state.loaded_keys is None
    live = state.live if state.loaded_keys is None else state.loaded_keys
    return {
        key: "live" if is_all_live or key in live else _fate(key, state, copies)
        for key in state.versions
        if key not in copied
    }


def _copies_by_original(state: State) -> dict[str, list[str]]:
    originals: dict[str, list[str]] = defaultdict(list)
    for copy in state.copies:
        original = copy
        while original in state.copies:
            original = state.copies[original]
        originals[original].append(copy)
    return originals


def _fate(key: Key, state: State, copies: dict[str, list[str]]) -> Fate:
    """Return the fate of a message: live if it or a copy of it is live, else that of the last of them.

    The loader skips a message without an id. A compression or clearing left behind what only other files hold.
    """
    names = (key, *copies.get(key, ())) if type(key) is str else (key,)
    live = state.live if state.loaded_keys is None else state.loaded_keys
    if any(name in live for name in names):
        return "live"
    otherwise: Fate = "superseded" if state.loaded_keys is None else "compacted"
    return next((state.fates[name] for name in reversed(names) if name in state.fates), otherwise)
