"""Folds the operations of a session file into a state: what the CLI would load, and everything that was ever recorded.

The fold can be continued: `replay(replay(start, first_lines), later_lines)` equals `replay(start, all_lines)`. A file that
grew, a watched file and a file read at once take the same path.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from retold.agents.gemini.raw import (
    ENVIRONMENT_ID,
    SNAPSHOT,
    SPOKEN_TYPES,
    Record,
    is_message,
    looks_like_message,
    plain_text,
    text_parts,
)
from retold.agents.gemini.state import (
    CleanDocument,
    Key,
    Place,
    State,
    Version,
    add_version,
    contains_all,
    fold_copies,
    is_loadable_message,
    is_truthy,
)
from retold.model.problem import Problem, problem
from retold.model.session import Fate
from retold.reading.jsonl import JsonLine

Signature = tuple[str, str, tuple[str, ...]]
CONTEXT_OPENS, CONTEXT_ENDS = "<session_context>", "</session_context>"


def find_copies(
    block: Sequence[Record], seen: Mapping[Any, Any], before: Mapping[str, Record]
) -> dict[str, str]:
    """Return copy id to original id, for a `$set.messages` block that replaces the list `before`.

    `seen` has every id so far in order of first appearance: only a new id can be a copy's.
    """
    listed = {record["id"] for record in block}
    pushed = _find_pushed(listed, seen, before)
    fresh = [record for record in block if record["id"] not in seen or record["id"] in pushed]
    if not fresh:
        return {}
    originals = [
        record
        for record in before.values()
        if record["id"] not in listed
        and record.get("type") in SPOKEN_TYPES
        and record["id"] != ENVIRONMENT_ID
    ]
    return _match_originals(fresh, originals)


def _find_pushed(listed: set[str], seen: Mapping[Any, Any], before: Mapping[str, Record]) -> set[str]:
    """Return the ids written just before the block, if they are a repeated history."""
    run: list[Record] = []
    for message_id in (name for name in reversed(seen) if type(name) is str):
        if message_id not in listed or message_id not in before:
            break
        run.append(before[message_id])
    if any(_is_synthetic(record) or _has_merged_context(record) for record in run):
        return {record["id"] for record in run}
    return set()


def _is_synthetic(record: Record) -> bool:
    """Return whether a gemini message has neither model nor calls: then it was not written from a live response."""
    return record.get("type") == "gemini" and not record.get("model") and not record.get("toolCalls")


def _has_merged_context(record: Record) -> bool:
    if record.get("type") != "user" or record["id"] == ENVIRONMENT_ID:
        return False
    text = plain_text(record.get("content")).lstrip()
    return text.startswith(CONTEXT_OPENS) and not text.rstrip().endswith(CONTEXT_ENDS)


def _match_originals(fresh: Sequence[Record], originals: Sequence[Record]) -> dict[str, str]:
    """Pair each fresh record with the latest equal original, keeping their order."""
    places: dict[Signature, list[int]] = defaultdict(list)
    for place, record in enumerate(originals):
        places[_signature(record)].append(place)
    copies: dict[str, str] = {}
    limit = len(originals)
    for record in reversed(fresh):
        if record.get("model") or record.get("type") not in SPOKEN_TYPES:
            continue
        candidates = places.get(_signature(record), [])
        found = bisect_left(candidates, limit) - 1
        if found >= 0:
            limit = candidates[found]
            copies[record["id"]] = originals[limit]["id"]
    return copies


def _signature(record: Record) -> Signature:
    """Return what a copy has in common with its original: the speaker, the words, and the ids of calls or results."""
    words = plain_text(record.get("content")).strip()
    if words.startswith(CONTEXT_OPENS):
        words = words.partition(CONTEXT_ENDS)[2].strip()
    return str(record.get("type")), words, tuple(sorted(_call_ids(record)))


def _call_ids(record: Record) -> set[str]:
    ids: set[str] = set()
    for part in text_parts(record.get("content")):
        if type(part) is dict:
            ids |= _ids(part.get("functionCall"), part.get("functionResponse"))
    calls = record.get("toolCalls")
    return ids | _ids(*calls) if type(calls) is list else ids


def _ids(*holders: Any) -> set[str]:
    return {holder["id"] for holder in holders if type(holder) is dict and type(holder.get("id")) is str}


def to_state(replayed: State | CleanDocument) -> State:
    """Return the state of a file's records."""
    if isinstance(replayed, State):
        return replayed
    return replay_document(replayed.path, msgspec.to_builtins(replayed.record))


def replay(state: State, lines: Iterable[JsonLine | Problem]) -> State:
    """Fold more lines into the state."""
    fold = _Fold(state)
    for line in lines:
        if isinstance(line, Problem):
            fold.problems.append(line)
            fold.lines = max(fold.lines, line.line or 0)
        else:
            fold.take(line)
    return fold.state()


def replay_document(path: str, record: Record, *, is_strict: bool = True) -> State:
    """Return the state of a single-document session: its list is both what the CLI loads and everything ever recorded.

    The CLI does not load a document that only retold could decode.
    """
    fold = _Fold(State(path))
    fold.metadata = {key: value for key, value in record.items() if key != "messages"}
    fold.starts = [record.get("startTime")]
    messages = record.get("messages", [])
    if type(messages) is not list:
        fold.problems.append(problem("unexpected-shape", "messages is no list", path, pointer="/messages"))
        fold.see(messages, (0, 0))
        return fold.state()
    fold.records = len(messages) + 1
    if not fold.see_all(messages):
        for place, message in enumerate(messages):
            fold.see(message, (0, place))
    return msgspec.structs.replace(
        fold.state(), document_messages=tuple(messages), is_whole=is_strict and "sessionId" in record
    )


class _Fold:
    """A state while it changes."""

    def __init__(self, state: State) -> None:
        self.path = state.path
        self.metadata = dict(state.metadata)
        self.starts = list(state.starts)
        self.live = dict(state.live)
        self.versions = dict(state.versions)
        self.grown: dict[Key, list[Version]] = {}
        """The messages with more than one version, as lists: a tuple would be copied for each version."""
        self.fates = dict(state.fates)
        self.copies = dict(state.copies)
        self.loader_keys = set(state.loader_keys)
        self.lines = state.lines
        self.records = state.records
        self.problems = list(state.problems)

    def state(self) -> State:
        return State(
            path=self.path,
            metadata=self.metadata,
            starts=tuple(self.starts),
            live=self.live,
            versions=self.versions | {key: tuple(versions) for key, versions in self.grown.items()},
            fates=self.fates,
            copies=self.copies,
            loader_keys=frozenset(self.loader_keys),
            lines=self.lines,
            records=self.records,
            problems=tuple(self.problems),
        )

    def take(self, line: JsonLine) -> None:
        """Classify one record in the CLI's order, and apply it."""
        self.lines = line.number
        self.records += 1
        record = line.value
        if type(record) is not dict:
            self.keep_unknown(record, (line.number, 0))
        elif type(record.get("$rewindTo")) is str:
            if line.strict:
                self.rewind(record["$rewindTo"], line.number)
        elif type(record.get("id")) is str:
            self.see(record, (line.number, 0))
            if line.strict and is_loadable_message(record):
                self.live[record["id"]] = record
                self.fates.pop(record["id"], None)
        elif type(record.get("$set")) is dict:
            self.update(record["$set"], line)
        elif type(record.get("$set")) is list:
            self.keep_unknown(record, (line.number, 0))  # the loader merges nothing from it
        elif type(record.get("sessionId")) is str and "message" not in record:
            self.begin(record, line)
        elif looks_like_message(record):
            self.see(record, (line.number, 0))  # the loader skips it without an id
        else:
            self.keep_unknown(record, (line.number, 0))

    def see(self, record: Any, place: Place) -> None:
        """Add this version of the message."""
        key = record.get("id", place) if type(record) is dict else place
        if type(key) is not str:
            key = place
        versions = self.versions.get(key)
        if versions is None:
            self.versions[key] = ((record, place),)
        elif len(versions) == 1 and key not in self.grown and contains_all(record, versions[0][0]):
            self.versions[key] = ((record, versions[0][1]),)  # nearly always: the same message, grown
        else:
            if key not in self.grown:
                self.grown[key] = list(versions)
            add_version(self.grown[key], record, place)

    def see_all(self, messages: Sequence[Any]) -> bool:
        """Add a list at once if it holds only messages with ids of their own; return whether it did."""
        try:
            ever: dict[Key, tuple[Version, ...]] = {
                record["id"]: ((record, (0, place)),) for place, record in enumerate(messages)
            }
        except (TypeError, KeyError):
            return False
        if len(ever) != len(messages) or {type(key) for key in ever} != {str}:
            return False
        self.versions = ever
        return True

    def keep_unknown(self, record: Any, place: Place) -> None:
        """Keep an unknown record at its place."""
        self.see(record, place)
        self.problems.append(problem("unknown-record", _describe_shape(record), self.path, place[0]))

    def see_listed(self, messages: Sequence[Any], number: int) -> None:
        """Add the messages of a list on a line."""
        for index, message in enumerate(messages):
            known = is_message(message) or looks_like_message(message)
            (self.see if known else self.keep_unknown)(message, (number, index))

    def rewind(self, target: str, number: int) -> None:
        """Drop the target and everything after it; drop everything if the target is missing."""
        if target not in self.live:
            self.problems.append(problem("rewind-target-missing", target, self.path, number))
        dropped = None
        while self.live and dropped != target:
            dropped, _ = self.live.popitem()
            self.fates[dropped] = "rewound"

    def update(self, changes: Record, line: JsonLine) -> None:
        """Apply a `$set`: a list of messages replaces the live ones, other keys are merged."""
        messages = changes.get("messages", [])
        if type(messages) is not list:
            self.keep_unknown({"$set": {"messages": messages}}, (line.number, 0))
        is_merged = (
            self.replace(messages, line) if "messages" in changes and type(messages) is list else line.strict
        )
        self.merge(changes, is_loaded=is_merged)

    def replace(self, messages: list[Any], line: JsonLine) -> bool:
        """Make these the live messages; return whether the loader reaches the end of the list."""
        survives = line.strict
        if survives:
            before = self.live
            taken = _loadable_messages(messages)
            survives = len(taken) == sum(map(is_message, messages))
            fold_copies(self.copies, find_copies(taken, self.versions, before))
            self.live = {message["id"]: message for message in taken}
            self.retire(before, "compacted" if any(map(_is_snapshot, taken)) else "superseded")
        self.see_listed(messages, line.number)
        return survives

    def retire(self, before: dict[str, Record], fate: Fate) -> None:
        """Set the fate of messages that are not live any more."""
        for message_id in before:
            if message_id not in self.live:
                self.fates[message_id] = fate
        for message_id in self.live:
            self.fates.pop(message_id, None)

    def begin(self, record: Record, line: JsonLine) -> None:
        """Apply a metadata line, which may hold a whole session."""
        is_loaded = line.strict and type(record.get("projectHash")) is str
        self.merge(record, is_loaded=is_loaded)
        self.starts.append(record.get("startTime"))
        messages = record.get("messages")
        if type(messages) is not list:
            return
        self.records += len(messages)
        self.see_listed(messages, line.number)
        if is_loaded:
            self.live |= {message["id"]: message for message in _loadable_messages(messages)}

    def merge(self, changes: Record, *, is_loaded: bool) -> None:
        """Merge metadata, and note the keys that the CLI's loader sees."""
        self.metadata.update(changes)
        self.metadata.pop("messages", None)
        if is_loaded and ("sessionId" in changes or "projectHash" in changes):
            for key in {"sessionId", "projectHash"} & changes.keys():
                (self.loader_keys.add if is_truthy(changes[key]) else self.loader_keys.discard)(key)


def _loadable_messages(messages: Sequence[Any]) -> list[Record]:
    """Return the messages that the loader stores: it stops at the first that makes it throw."""
    return list(takewhile(is_loadable_message, filter(is_message, messages)))


def _is_snapshot(message: Record) -> bool:
    return plain_text(message.get("content")).lstrip().startswith(SNAPSHOT)


def _describe_shape(record: Any) -> str:
    if type(record) is dict:
        return "an object with " + (", ".join(sorted(record)[:8]) or "nothing")
    return f"a {type(record).__name__} on a line of its own"
