"""The operations in a session file, folded: what the CLI would hold now, and everything it ever held.

The fold can be continued: `replay(replay(start, first_lines), later_lines)` is `replay(start, all_lines)`. So a file
that grew, a file that is being watched and a file read whole take one path.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from retold.agents.gemini.copies import copied_from
from retold.agents.gemini.raw import (
    SNAPSHOT,
    Record,
    is_message,
    is_resumable,
    is_truthy,
    loader_takes,
    loader_text,
    looks_said,
    plain_text,
)
from retold.agents.gemini.usual import ConversationRecord
from retold.model.entries import Fate
from retold.model.problem import Problem, problem
from retold.reading.lines import Line

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


def as_state(found: State | Plain) -> State:
    """Return what a file's records amount to."""
    if isinstance(found, State):
        return found
    return document(found.path, msgspec.to_builtins(found.record))


def replay(state: State, lines: Iterable[Line | Problem]) -> State:
    """Fold more lines into the state."""
    fold = _Fold(state)
    for line in lines:
        if isinstance(line, Problem):
            fold.problems.append(line)
            fold.lines = max(fold.lines, line.line or 0)
        else:
            fold.take(line)
    return fold.state()


def document(path: str, record: Record, *, is_strict: bool = True) -> State:
    """Return the state of a whole-file JSON: its list is what the CLI holds, and all there ever was.

    One that only we could read is nothing to the CLI.
    """
    fold = _Fold(State(path))
    fold.metadata = {key: value for key, value in record.items() if key != "messages"}
    fold.starts = (record.get("startTime"),)
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
        fold.state(), verbatim=tuple(messages), is_whole=is_strict and "sessionId" in record
    )


def with_fallback(state: State, record: Any) -> State:
    """Return what the loader makes of a file whose lines gave it no ids, but which as a whole is one JSON object."""
    if type(record) is not dict or "sessionId" not in record:
        return state
    messages = record.get("messages")
    if type(messages) is not list and messages is not None:
        return state
    return msgspec.structs.replace(state, verbatim=tuple(messages or ()))


class _Fold:
    """The state while it is being folded."""

    def __init__(self, state: State) -> None:
        self.path = state.path
        self.metadata = dict(state.metadata)
        self.starts = state.starts
        self.live = dict(state.live)
        self.ever = dict(state.ever)
        self.gone = dict(state.gone)
        self.copies = dict(state.copies)
        self.seen_by_loader = set(state.seen_by_loader)
        self.lines = state.lines
        self.records = state.records
        self.problems = list(state.problems)

    def state(self) -> State:
        return State(
            path=self.path,
            metadata=self.metadata,
            starts=self.starts,
            live=self.live,
            ever=self.ever,
            gone=self.gone,
            copies=self.copies,
            seen_by_loader=frozenset(self.seen_by_loader),
            lines=self.lines,
            records=self.records,
            problems=tuple(self.problems),
        )

    def take(self, line: Line) -> None:
        """Classify one record in the CLI's own order, and apply it."""
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
            if line.strict and loader_takes(record):
                self.live[record["id"]] = record
                self.gone.pop(record["id"], None)
        elif type(record.get("$set")) is dict:
            self.update(record["$set"], line)
        elif type(record.get("$set")) is list:
            self.keep_unknown(record, (line.number, 0))  # the loader merges nothing from it
        elif type(record.get("sessionId")) is str and "message" not in record:
            self.begin(record, line)
        elif looks_said(record):
            self.see(record, (line.number, 0))  # without an id the loader skips it
        else:
            self.keep_unknown(record, (line.number, 0))

    def see(self, record: Any, place: Place) -> None:
        """Remember this version of the message."""
        key = record.get("id", place) if type(record) is dict else place
        if type(key) is not str:
            key = place
        versions = self.ever.get(key)
        self.ever[key] = ((record, place),) if versions is None else with_version(versions, record, place)

    def see_all(self, messages: Sequence[Any]) -> bool:
        """Remember a list at once, if it is nothing but messages with an id each; tell whether it was."""
        try:
            ever: dict[Key, tuple[Version, ...]] = {
                record["id"]: ((record, (0, place)),) for place, record in enumerate(messages)
            }
        except (TypeError, KeyError):
            return False
        if len(ever) != len(messages) or {type(key) for key in ever} != {str}:
            return False
        self.ever = ever
        return True

    def keep_unknown(self, record: Any, place: Place) -> None:
        """Keep what is no known record where it stands."""
        self.see(record, place)
        self.problems.append(problem("unknown-record", _shape(record), self.path, place[0]))

    def see_listed(self, messages: Sequence[Any], number: int) -> None:
        """Remember the messages of a list on a line."""
        for index, message in enumerate(messages):
            known = is_message(message) or looks_said(message)
            (self.see if known else self.keep_unknown)(message, (number, index))

    def rewind(self, target: str, number: int) -> None:
        """Drop the target and everything after it; everything, if it is not there."""
        if target not in self.live:
            self.problems.append(problem("rewind-target-missing", target, self.path, number))
        dropped = None
        while self.live and dropped != target:
            dropped, _ = self.live.popitem()
            self.gone[dropped] = "rewound"

    def update(self, changes: Record, line: Line) -> None:
        """Apply a `$set`: a list of messages replaces the live ones, other keys are merged."""
        messages = changes.get("messages", [])
        if type(messages) is not list:
            self.keep_unknown({"$set": {"messages": messages}}, (line.number, 0))
        is_merged = (
            self.replace(messages, line) if "messages" in changes and type(messages) is list else line.strict
        )
        self.merge(changes, is_loaded=is_merged)

    def replace(self, messages: list[Any], line: Line) -> bool:
        """Make these the live messages; return whether the loader gets to the end of the list."""
        survives = line.strict
        if survives:
            before = self.live
            taken = _taken(messages)
            survives = len(taken) == sum(map(is_message, messages))
            self.copies = folded_copies(self.copies, copied_from(taken, self.ever, before))
            self.live = {message["id"]: message for message in taken}
            self.retire(before, "compacted" if any(map(_is_snapshot, taken)) else "superseded")
        self.see_listed(messages, line.number)
        return survives

    def retire(self, before: dict[str, Record], fate: Fate) -> None:
        """Remember why the messages that are not live any more went."""
        for message_id in before:
            if message_id not in self.live:
                self.gone[message_id] = fate
        for message_id in self.live:
            self.gone.pop(message_id, None)

    def begin(self, record: Record, line: Line) -> None:
        """Apply a metadata line; it may be a whole session on one line."""
        is_loaded = line.strict and type(record.get("projectHash")) is str
        self.merge(record, is_loaded=is_loaded)
        self.starts = (*self.starts, record.get("startTime"))
        messages = record.get("messages")
        if type(messages) is not list:
            return
        self.records += len(messages)
        self.see_listed(messages, line.number)
        if is_loaded:
            self.live |= {message["id"]: message for message in _taken(messages)}

    def merge(self, changes: Record, *, is_loaded: bool) -> None:
        """Merge metadata, and note what of it the CLI's loader gets to see."""
        self.metadata.update(changes)
        self.metadata.pop("messages", None)
        if is_loaded and ("sessionId" in changes or "projectHash" in changes):
            for key in {"sessionId", "projectHash"} & changes.keys():
                (self.seen_by_loader.add if is_truthy(changes[key]) else self.seen_by_loader.discard)(key)


def with_version(versions: tuple[Version, ...], record: Any, place: Place) -> tuple[Version, ...]:
    """Add a version of a message: in place of those of which it says all, unless one of them says more."""
    old, recent = versions[:-_COMPARED], versions[-_COMPARED:]
    kept = old + tuple([version for version in recent if not says_all(record, version[0])])
    if any(says_all(known, record) for known, _ in recent if known != record):
        return versions
    return (*kept, (record, place if kept else versions[0][1]))


def says_all(whole: Any, part: Any) -> bool:
    """Tell whether a record holds every field of another, unchanged."""
    if type(whole) is dict and type(part) is dict:
        return part.items() <= whole.items()
    return bool(whole == part)


def folded_copies(known: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    """Add copies, each by the first of its line: that is no copy itself, so no line can close a circle."""
    copies = dict(known)
    for copy, original in found.items():
        first = original
        while first in copies:
            first = copies[first]
        if first != copy:
            copies.setdefault(copy, first)
    return copies


def _taken(messages: Sequence[Any]) -> list[Record]:
    """Return the messages of a list that the loader gets to store: it stops at the first that makes it throw."""
    return list(takewhile(loader_takes, filter(is_message, messages)))


def _is_snapshot(message: Record) -> bool:
    return plain_text(message.get("content")).lstrip().startswith(SNAPSHOT)


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


def _shape(record: Any) -> str:
    if type(record) is dict:
        return "an object with " + (", ".join(sorted(record)[:8]) or "nothing")
    return f"a {type(record).__name__} on a line of its own"
