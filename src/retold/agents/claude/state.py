"""What a transcript's lines amount to: the value that replaying makes of them, line after line."""

from datetime import datetime
from typing import Any, Self

import msgspec

from retold.agents.claude.discovery import Origin, is_session_id
from retold.agents.claude.prompt_text import said
from retold.agents.claude.raw import Record
from retold.agents.claude.tool_results import Result
from retold.model.problem import Problem
from retold.model.session import Entry, Event, Message

FACTS = ("cwd", "version", "gitBranch", "userType", "entrypoint", "slug")
"""What every line says about its session."""
_MOST_RESULTS = 200
"""Results that one call may hold: to hold them all would take quadratic time."""
MAIN = -1
"""The chain of the conversation itself; subagents of 1.x stand in chains of their own, named by where they begin."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """An entry, and how it hangs together with others: its own name is the entry's id."""

    entry: Entry
    parent: str | None = None
    session: str | None = None
    """The session whose line this is: another one's lines are copies."""
    chain: int = MAIN
    is_chained: bool = False
    """Whether other lines can name it as their parent; what stands beside the conversation has no name."""
    is_stop: bool = False
    """Whether a person broke off here what the agent was doing."""


class Preserved(msgspec.Struct, frozen=True, gc=False):
    """Lines that a compaction left as they were, and the line behind which they stand from then on."""

    anchor: str
    head: str | None = None
    tail: str | None = None
    names: tuple[str, ...] = ()


class State(msgspec.Struct):
    """A transcript, as far as it was read. Only the fold that owns it changes it."""

    path: str
    origin: Origin
    nodes: list[Node] = []
    places: dict[str, int] = {}
    """Where in `nodes` each line stands, by its id."""
    seals: dict[str, int] = {}
    """A hash of each line's bytes, by its id: to know a copy."""
    calls: dict[str, int] = {}
    """Where each call stands, by its id."""
    early: dict[str, tuple[int, Result]] = {}
    """Results whose call was not met yet, and where they stand."""
    responses: dict[str, tuple[int, int, int]] = {}
    """Which line of a response carries its tokens, how much output it tells, and a hash of what it says."""
    answered: set[int] = set()
    """The chains in which a model answered, and not only Claude Code in its place."""
    billed: set[int] = set()
    """The chains that record tokens: nothing has to be guessed from what is said in them."""
    results: dict[str, tuple[int, ...]] = {}
    """Where the results of each call stand, as far as the call holds them."""
    indexes: dict[int, dict[str, list[int]]] = {}
    """Where the parts of each call stand in messages that have many, by the place of the message; made when it is asked for."""
    queue: dict[tuple[str, int], int] = {}
    """Where words stand that were typed while the agent was busy, and were not met again: by them and a number."""
    queued: dict[str, tuple[int, int]] = {}
    """The first number under which such words still stand in the queue, and the next."""
    facts: dict[str, dict[str, None]] = {}
    """What the lines say about the session, each value once."""
    setting: tuple[Any, ...] = ()
    """The facts of the last line: they seldom change."""
    beside: dict[str, Record] = {}
    """The last line of each kind that stands beside the conversation."""
    titles: dict[str, str] = {}
    leaf: str | None = None
    """The line that was last named as the one from which the conversation goes on."""
    is_leaf_explicit: bool = False
    """Whether somebody went back to it: then what came after it does not count."""
    preserved: dict[str, Preserved] = {}
    """What a compaction left as it was, by its boundary."""
    retracted: set[str] = set()
    """Lines that later ones stand in place of."""
    said: str = ""
    """What the human said last."""
    sessions: dict[str, None] = {}
    """The ids of the sessions whose lines these are, the last one last."""
    agent_id: str | None = None
    """Set in the transcript of a subagent."""
    records: int = 0
    opaque: int = 0
    problems: list[Problem] = []

    def copied(self) -> Self:
        """Return a state that can be gone on with while this one stays."""
        changed = {
            field: value.copy()
            for field in self.__struct_fields__
            if type(value := getattr(self, field)) in (list, dict, set)
        }
        return msgspec.structs.replace(self, **changed)

    def add(self, node: Node) -> int:
        """Add a node, and return its place: of lines with the same name the last counts, where the first stands."""
        name, place = node.entry.id, len(self.nodes)
        if node.is_chained and name is not None:
            known = self.places.setdefault(name, place)
            if known != place:
                self._move_to_end(known)
                self.nodes[known] = node
                return known
        self.nodes.append(node)
        return place

    def _move_to_end(self, place: int) -> None:
        """Move a node to the end, and with it the tokens of the response that it carries."""
        node = self.nodes[place]
        usage = node.entry.usage if isinstance(node.entry, Message) else None
        bearer = None if usage is None else self.responses.get(usage.request)
        if usage is not None and bearer is not None and bearer[0] == place:
            self.responses[usage.request] = (len(self.nodes), *bearer[1:])
        self.nodes.append(node)

    def is_copy(self, name: str, seal: int) -> bool:
        """Tell whether a line was met before to the byte, and remember it."""
        if self.seals.get(name) == seal:
            return True
        self.seals[name] = seal
        return False

    def has_room(self, call_id: str, before: int = 0) -> bool:
        """Tell whether a call may hold one more result, where its line has some before it."""
        return len(self.results.get(call_id, ())) + before < _MOST_RESULTS

    def chain_of(self, name: str | None, parent: str | None) -> int:
        """Return the chain of a subagent's line: its own, if it was met before, else that of the line it hangs on."""
        place = self.places.get(name or "", self.places.get(parent or ""))
        return MAIN if place is None else self.nodes[place].chain

    def note(self, setting: tuple[Any, ...]) -> None:
        """Take note of what a line says about the session, each value once."""
        self.setting = setting
        for name, value in zip(FACTS, setting, strict=True):
            if type(value) is str:
                self.facts.setdefault(name, {})[value] = None

    def put(self, place: int, entry: Entry) -> None:
        """Put another entry in place of one."""
        self.nodes[place] = msgspec.structs.replace(self.nodes[place], entry=entry)

    @property
    def native_id(self) -> str | None:
        """The id of the session: by it the CLI finds the file again, whatever the lines say; else the owner's."""
        if self.origin.agent_id is None and is_session_id(self.origin.stem):
            return self.origin.stem
        return self.owner

    @property
    def owner(self) -> str | None:
        """The session whose lines are no copies: the one of the file's name, else that of the last line."""
        is_named = self.origin.agent_id is None and self.origin.stem in self.sessions
        return self.origin.stem if is_named else next(reversed(self.sessions), None)

    @property
    def session_id(self) -> str:
        """The id of the session, in which a subagent may have been at work."""
        return self.origin.parent_id or self.native_id or self.origin.stem


def operation(record: Record, at: datetime | None, state: State) -> None:
    """Fold an operation on the queue in."""
    content, session = record.get("content"), record.get("sessionId")
    text = content if type(content) is str else ""
    owner = session if type(session) is str else None
    prompt, parts = said(text)
    if record.get("operation") == "enqueue" and prompt is not None:
        extra = _beyond(record)
        message = Message(None, "user", at, "live", prompt, None, None, tuple(parts), extra=extra)
        first, after = state.queued.get(prompt.strip(), (0, 0))
        state.queued[prompt.strip()] = (first, after + 1)
        state.queue[prompt.strip(), after] = state.add(Node(message, session=owner))
        return
    if record.get("operation") == "popAll":
        _take_back(state, text if prompt is None else prompt)
    state.add(Node(Event(None, "notice", at, "live", "", extra=record), session=owner))


def _beyond(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in ("content", "timestamp", "sessionId")}


def delivered(state: State, prompt: str) -> None:
    """Take words out of the queue that are met again: there they stand with their place in the conversation."""
    first, after = state.queued.get(prompt.strip(), (0, 0))
    if first < after:
        state.queued[prompt.strip()] = (first + 1, after)
        _retire(state, state.queue.pop((prompt.strip(), first)), "")


def _take_back(state: State, text: str) -> None:
    """Give what is in the queue back to the editor, all of it if no text is named: it was not said, or will be."""
    for words in [text.strip()] if text.strip() else list(state.queued):
        for number in range(*state.queued.pop(words, (0, 0))):
            _retire(state, state.queue.pop((words, number)), words)


def _retire(state: State, place: int, text: str) -> None:
    entry = state.nodes[place].entry
    state.put(place, Event(None, "notice", entry.at, "live", text, extra=entry.extra))
