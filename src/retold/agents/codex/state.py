"""The state of a rollout while its lines are folded."""

import copy
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import msgspec

from retold.agents.bookmarks import KnownIds
from retold.agents.codex.raw import Record
from retold.model.builder import Beginning
from retold.model.session import Entry, Kind, Message, Project, Usage, root_hash
from retold.reading.diagnostics import ReaderNotes
from retold.reading.json_decode import text_or_none

Role = Literal["user", "assistant"]
Figures = tuple[int, int, int, int, int, int]
"""Input, cached, written to the cache, output with reasoning, reasoning, total: Codex's counts."""


class PendingCall(msgspec.Struct, frozen=True, gc=False):
    """A call without a result so far: the fields of its message, and the outcomes in events."""

    call_id: str
    name: str
    arguments: Record
    native_status: str | None
    odd: Record | None
    """A value in place of the arguments."""
    id: str | None
    at: datetime | None
    model: str | None
    response: str
    extra: Record | None
    usage: Usage | None = None
    ends: tuple["CallOutcome", ...] = ()


class CallOutcome(msgspec.Struct, frozen=True):
    """The outcome of a call in an event: the same call in other words, or one made by a script."""

    status: str | None = None
    exit_code: int | None = None
    server: str | None = None
    server_tool: str | None = None
    child: str | None = None
    result: str | None = None
    error: str | None = None
    extra: Record = {}
    took_ms: int | None = None


class Twin(msgspec.Struct, frozen=True, gc=False):
    """Words that were recorded once so far, as an item or as an event."""

    role: Role
    text: str
    index: int


class TokenMeter(msgspec.Struct):
    """The running total, and the messages of the current response."""

    rollout: str
    """The id that numbers responses without an id of their own."""
    response: str
    is_of_thread: bool = False
    """Whether it is the thread's id: the file itself knows that better than its name, which may be a copy's."""
    totals: Figures | None = None
    is_reset: bool = False
    """Whether the last count was empty: up to 0.60 a resume restarts the total."""
    starts_from_last: bool = False
    """Whether this is a fork without copied lines: its total begins at the parent's."""
    has_records: bool = False
    closed: set[str] = msgspec.field(default_factory=set)
    count: int = 0
    open: list[int] = msgspec.field(default_factory=list)
    ahead: Usage | None = None
    """Tokens of a response whose items have not come: up to 0.60 the count stands before them."""
    ahead_place: int = 0
    """The place of the early count: it may be a copied line while the next line is the thread's own."""
    event_answer: int | None = None
    """The last answer since the last count, if only an event holds it."""
    claimant: int | None = None
    """Such an answer before the early count: it gets the tokens if no item replaces it."""


class TimelineCut(msgspec.Struct, frozen=True):
    """A place of the timeline at which the entries since another place were left behind."""

    at: int
    start: int
    fate: Literal["rewound", "compacted"]


class EarlierPart(msgspec.Struct, frozen=True):
    """The part of a rollout before a bookmark."""

    beginning: Beginning
    known: KnownIds
    """The ids of its calls and responses."""
    problems: int
    """The number of problems in it."""
    is_unconfirmed: bool
    """Whether a prompt in it depends on an event that may still come."""


class State(msgspec.Struct):
    """A rollout as far as it was read."""

    notes: ReaderNotes
    meter: TokenMeter
    entries: list[Entry | None] = msgspec.field(default_factory=list)
    """None for a pending call, and for an event whose words an item repeated."""
    places: list[int] = msgspec.field(default_factory=list)
    place: int = 0
    """The place of the line: its ordinal, else its number from 0."""
    records: int = 0
    last_at: datetime | None = None
    meta: Record = {}
    latest: dict[str, Record] = msgspec.field(default_factory=dict)
    """The last record of each type that is written repeatedly."""
    limits: Record | None = None
    """The last report on the limits of the account."""
    window: Any = None
    """The size of the model's context window."""
    model: str | None = None
    name: str | None = None
    answer: str | None = None
    """The model's last text."""
    is_subagent: bool = False
    call_places: dict[str, int] = msgspec.field(default_factory=dict)
    pending_calls: dict[int, PendingCall] = msgspec.field(default_factory=dict)
    calls_without_id: list[int] = msgspec.field(default_factory=list)
    """Calls without an id that wait for a result."""
    scripts: list[int] = msgspec.field(default_factory=list)
    """Calls that run scripts; the first ones may have their result."""
    event_calls: dict[str, int] = msgspec.field(default_factory=dict)
    """Calls known only from events."""
    items_without_event: list[Twin] = msgspec.field(default_factory=list)
    """Items whose words no event has repeated yet."""
    events_without_item: list[Twin] = msgspec.field(default_factory=list)
    """Events whose words no item has repeated yet."""
    thoughts: dict[str, int | None] = msgspec.field(default_factory=dict)
    """The thoughts of this turn: the place of an event's, None if an item holds them."""
    unconfirmed: dict[int, None] = msgspec.field(default_factory=dict)
    """Messages that look typed, but that no event has confirmed."""
    has_spoken_events: bool = False
    turns: list[int] = msgspec.field(default_factory=list)
    cuts: list[TimelineCut] = msgspec.field(default_factory=list)
    texts: set[str] = msgspec.field(default_factory=set)
    texts_until: int = 0
    """The number of entries whose texts are in `texts`."""
    copied_from: str | None = None
    """The thread whose lines this one begins with."""
    is_copying: bool = False
    """Whether the lines are still that thread's."""
    has_turn_ids: bool = False
    own_start: int | None = None
    """The place of the first line of this thread's own; None if all are."""

    def move(self, number: int, ordinal: int | None, at: datetime) -> None:
        """Move to the next record, at its line."""
        self.records += 1
        self.notes.place = (number, -1)
        self.place = number - 1 if ordinal is None else ordinal
        self.last_at = at

    def put(self, entry: Entry) -> int:
        """Append an entry and return its index."""
        self.entries.append(entry)
        self.places.append(self.place)
        return len(self.entries) - 1

    def reserve(self) -> int:
        """Reserve the place of a later entry, and return its index."""
        self.entries.append(None)
        self.places.append(self.place)
        return len(self.entries) - 1

    def replace(self, index: int, entry: Entry) -> None:
        """Replace an entry."""
        self.entries[index] = entry
        if index < self.texts_until:
            self.texts.update(_texts(entry))

    def all_texts(self) -> set[str]:
        """Return the texts of all messages so far; each entry is read once."""
        for index in range(self.texts_until, len(self.entries)):
            self.texts.update(_texts(self.entries[index]))
        self.texts_until = len(self.entries)
        return self.texts

    def take_changes(self, kind: str, record: Record) -> Record:
        """Return the changed fields of a record that is written repeatedly, and remember the record."""
        before = self.latest.get(kind, {})
        self.latest[kind] = record
        return {key: value for key, value in record.items() if key not in before or before[key] != value}


def _texts(entry: Entry | None) -> list[str]:
    if type(entry) is not Message:
        return []
    return [text for part in entry.parts if (text := getattr(part, "text", None))]


def copy_state(state: State) -> State:
    """Return a state that can change while the first stays."""
    notes = copy.copy(state.notes)
    notes.problems, notes.unnamed = list(notes.problems), notes.unnamed.copy()
    meter = msgspec.structs.replace(state.meter, **_own_containers(state.meter))
    return msgspec.structs.replace(state, **{**_own_containers(state), "notes": notes, "meter": meter})


def _own_containers(value: State | TokenMeter) -> dict[str, Any]:
    values = {name: getattr(value, name) for name in value.__struct_fields__}
    return {name: found.copy() for name, found in values.items() if isinstance(found, list | dict | set)}


Handler = Callable[[State, Record, datetime | None], None]
"""Folds a payload with its time."""


def is_subagent(meta: Record) -> bool:
    """Return whether an agent started this thread."""
    source = meta.get("source")
    return (type(source) is dict and "subagent" in source) or meta.get("thread_source") == "subagent"


def kind_of(meta: Record) -> Kind:
    """Return the kind of a thread."""
    if is_subagent(meta):
        return "subagent"
    return "fork" if text_or_none(meta.get("forked_from_id")) else "main"


def parent_of(meta: Record) -> str | None:
    """Return the key of the thread that started this one, else of the one it was forked from."""
    source = meta.get("source")
    spawned = source.get("subagent") if type(source) is dict else None
    thread = spawned.get("thread_spawn") if type(spawned) is dict else None
    named = thread.get("parent_thread_id") if type(thread) is dict else None
    known = (named, meta.get("parent_thread_id"), meta.get("forked_from_id"))
    return next((f"codex:{parent}" for parent in known if text_or_none(parent)), None)


def project_of(meta: Record) -> Project:
    """Return the project in which a thread was started."""
    root = text_or_none(meta.get("cwd"))
    return Project(root, None, root_hash(root) if root else None, "recorded" if root else "none")


MOST_TWINS = 32
"""How many words wait for their twin, which is written within moments."""


def take_twin(twins: list[Twin], role: Role, text: str) -> Twin | None:
    """Remove the twin of some words and return it, None if there is none."""
    if not twins:
        return None
    for is_same in (str.__eq__, _is_within) if role == "user" else (str.__eq__,):
        for place, twin in enumerate(twins):
            if twin.role == role and is_same(twin.text, text):
                del twins[place]
                return twin
    return None


def add_twin(twins: list[Twin], role: Role, text: str, index: int) -> None:
    """Add words that wait for their twin."""
    twins.append(Twin(role, text, index))
    if len(twins) > MOST_TWINS:
        del twins[0]


def _is_within(one: str, other: str) -> bool:
    """Return whether one record of typed words contains the other: an item has labels of images around them."""
    short, long = sorted((one.strip(), other.strip()), key=len)
    return bool(short) and short in long
