"""What the lines of a rollout amount to so far: the working memory of the fold, copied before a tail is tried on it."""

import copy
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import msgspec

from retold.agents.codex.raw import Record, text_or_none
from retold.model.session import Entry, Kind, Message, Project, root_hash
from retold.model.usage import Usage
from retold.reading.diagnostics import ReaderNotes

Role = Literal["user", "assistant"]
Figures = tuple[int, int, int, int, int, int]
"""Input, cached, written to the cache, output with reasoning, reasoning, total: as Codex counts."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A call whose result has not come: all that its message will say, and what events said of it meanwhile."""

    call_id: str
    name: str
    arguments: Record
    native_status: str | None
    odd: Record | None
    """What stands in place of the arguments."""
    id: str | None
    at: datetime | None
    model: str | None
    response: str
    extra: Record | None
    usage: Usage | None = None
    ends: tuple["End", ...] = ()


class End(msgspec.Struct, frozen=True):
    """What an event says of a call: the same call in other words, or one that a script made."""

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
    """Words that were recorded once so far: as an item, or as an event."""

    role: Role
    text: str
    index: int


class Meter(msgspec.Struct):
    """The running total, and which messages belong to the response that is being recorded."""

    rollout: str
    """The id under which responses are numbered that have none of their own."""
    response: str
    is_of_thread: bool = False
    """Whether that is the id of the thread: the file itself tells it better than its name, which may be a copy's."""
    totals: Figures | None = None
    is_unset: bool = False
    """Whether nothing was counted when it was last told: up to 0.60 a resume begins the total anew."""
    starts_from_last: bool = False
    """For a fork without copied lines: its total begins at the parent's."""
    has_records: bool = False
    closed: set[str] = msgspec.field(default_factory=set)
    count: int = 0
    open: list[int] = msgspec.field(default_factory=list)
    ahead: Usage | None = None
    """Tokens of a response whose items have not come: up to 0.60 the count stands before them."""
    ahead_place: int = 0
    """The place of the count that is ahead: it may be a copied line while the next line is the thread's own."""
    told: int | None = None
    """The last answer since the last count that is known only as an event."""
    claimant: int | None = None
    """Such an answer before the count that is ahead: its tokens, if no item takes its place."""


class Cut(msgspec.Struct, frozen=True):
    """At one place of the timeline, what stood from another on was left behind."""

    at: int
    start: int
    fate: Literal["rewound", "compacted"]


class State(msgspec.Struct):
    """A rollout, as far as it was read."""

    notes: ReaderNotes
    meter: Meter
    entries: list[Entry | None] = msgspec.field(default_factory=list)
    """None where a call waits for its result, and where an event's words came again as an item's."""
    places: list[int] = msgspec.field(default_factory=list)
    place: int = 0
    """Where the line stands: its ordinal, else its number from 0."""
    records: int = 0
    last_at: datetime | None = None
    meta: Record = {}
    latest: dict[str, Record] = msgspec.field(default_factory=dict)
    """The last record of each kind that is repeated whether or not anything changed."""
    limits: Record | None = None
    """How full the limits of the account were when they were last told."""
    window: Any = None
    """How many tokens the model can take in."""
    model: str | None = None
    name: str | None = None
    answer: str | None = None
    """What the model said last."""
    is_subagent: bool = False
    asked: dict[str, int] = msgspec.field(default_factory=dict)
    waiting: dict[int, Asked] = msgspec.field(default_factory=dict)
    unnamed: list[int] = msgspec.field(default_factory=list)
    """Calls without an id that wait for a result."""
    scripts: list[int] = msgspec.field(default_factory=list)
    """Calls that run scripts; those in front may have their result."""
    inner: dict[str, int] = msgspec.field(default_factory=dict)
    """Calls that only events tell of."""
    said: list[Twin] = msgspec.field(default_factory=list)
    """Items whose words no event has told yet."""
    told: list[Twin] = msgspec.field(default_factory=list)
    """Events whose words no item has held yet."""
    thoughts: dict[str, int | None] = msgspec.field(default_factory=dict)
    """The thoughts of this turn: the place of an event's, None where an item holds them."""
    unconfirmed: dict[int, None] = msgspec.field(default_factory=dict)
    """Messages that look typed, and of which no event said so."""
    has_spoken_events: bool = False
    turns: list[int] = msgspec.field(default_factory=list)
    cuts: list[Cut] = msgspec.field(default_factory=list)
    texts: set[str] = msgspec.field(default_factory=set)
    texts_until: int = 0
    """Of how many entries `texts` holds the texts."""
    copied_from: str | None = None
    """The thread whose lines this one begins with."""
    is_copying: bool = False
    """While the lines are still that thread's."""
    has_turn_ids: bool = False
    own_from: int | None = None
    """The place of the first line that is this thread's own; None where all are."""

    def move(self, number: int, ordinal: int | None, at: datetime) -> None:
        """Turn to the next record, at its line."""
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
        """Keep a place for an entry that is not known yet, and return its index."""
        self.entries.append(None)
        self.places.append(self.place)
        return len(self.entries) - 1

    def put_back(self, index: int, entry: Entry) -> None:
        """Replace an entry by one that says more."""
        self.entries[index] = entry
        if index < self.texts_until:
            self.texts.update(_texts(entry))

    def all_texts(self) -> set[str]:
        """Return the texts of all messages so far; each entry is read once, however often this is asked."""
        for index in range(self.texts_until, len(self.entries)):
            self.texts.update(_texts(self.entries[index]))
        self.texts_until = len(self.entries)
        return self.texts

    def changed(self, kind: str, record: Record) -> Record:
        """Return what is new in a record that is written again and again."""
        before = self.latest.get(kind, {})
        self.latest[kind] = record
        return {key: value for key, value in record.items() if key not in before or before[key] != value}


def _texts(entry: Entry | None) -> list[str]:
    if type(entry) is not Message:
        return []
    return [text for part in entry.parts if (text := getattr(part, "text", None))]


def copied(state: State) -> State:
    """Return a state that can go on without touching the first."""
    notes = copy.copy(state.notes)
    notes.problems, notes.unnamed = list(notes.problems), notes.unnamed.copy()
    meter = msgspec.structs.replace(state.meter, **_own_containers(state.meter))
    return msgspec.structs.replace(state, **{**_own_containers(state), "notes": notes, "meter": meter})


def _own_containers(value: State | Meter) -> dict[str, Any]:
    held = {name: getattr(value, name) for name in value.__struct_fields__}
    return {name: found.copy() for name, found in held.items() if type(found) in (list, dict, set)}


Handler = Callable[[State, Record, datetime | None], None]
"""Takes a payload down, at its time."""


def is_subagent(meta: Record) -> bool:
    """Tell whether an agent started this thread."""
    source = meta.get("source")
    return (type(source) is dict and "subagent" in source) or meta.get("thread_source") == "subagent"


def kind_of(meta: Record) -> Kind:
    """Return what a thread is to others."""
    if is_subagent(meta):
        return "subagent"
    return "fork" if text_or_none(meta.get("forked_from_id")) else "main"


def parent_of(meta: Record) -> str | None:
    """Return the key of the thread that this one comes from: who started it, else what it was forked from."""
    source = meta.get("source")
    spawned = source.get("subagent") if type(source) is dict else None
    thread = spawned.get("thread_spawn") if type(spawned) is dict else None
    named = thread.get("parent_thread_id") if type(thread) is dict else None
    known = (named, meta.get("parent_thread_id"), meta.get("forked_from_id"))
    return next((f"codex:{parent}" for parent in known if text_or_none(parent)), None)


def project_of(meta: Record) -> Project:
    """Return where a thread was started."""
    root = text_or_none(meta.get("cwd"))
    return Project(root, None, root_hash(root) if root else None, "recorded" if root else "none")


NEAR = 32
"""How many words wait for their twin: the two are written within moments of each other."""


def taken(twins: list[Twin], role: Role, text: str) -> Twin | None:
    """Return the twin of some words among those that wait, and let it wait no longer."""
    if not twins:
        return None
    for is_same in (str.__eq__, _is_within) if role == "user" else (str.__eq__,):
        for place, twin in enumerate(twins):
            if twin.role == role and is_same(twin.text, text):
                del twins[place]
                return twin
    return None


def wait(twins: list[Twin], role: Role, text: str, index: int) -> None:
    """Let words wait for their twin."""
    twins.append(Twin(role, text, index))
    if len(twins) > NEAR:
        del twins[0]


def _is_within(one: str, other: str) -> bool:
    """Tell whether one record of typed words holds the other: an item has labels of images around them."""
    short, long = sorted((one.strip(), other.strip()), key=len)
    return bool(short) and short in long
