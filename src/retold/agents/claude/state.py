"""The state of a transcript while its lines are folded, and the queue of prompts typed meanwhile. A place is an index in `State.nodes`."""

from datetime import datetime
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from retold.agents.bookmarks import KnownIds
from retold.agents.claude.discovery import Origin, is_session_id
from retold.agents.claude.prompt_text import split_prompt
from retold.agents.claude.raw import Record
from retold.agents.claude.tool_results import Result
from retold.model.builder import Beginning
from retold.model.problem import Problem
from retold.model.session import Entry, Event, Message

FACTS = ("cwd", "version", "gitBranch", "userType", "entrypoint", "slug")
"""The fields of every line about its session."""
_MOST_RESULTS = 200
"""How many results one call may hold: more would take quadratic time."""
MAIN = -1
"""The chain of the conversation itself; subagents of 1.x have chains of their own, named by their first place."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """An entry with its links; the entry's id is the id of the line."""

    entry: Entry
    parent: str | None = None
    session: str | None = None
    """The session of the line: lines of another session are copies."""
    chain: int = MAIN
    is_chained: bool = False
    """Whether other lines can name this one as their parent."""
    is_stop: bool = False
    """Whether a person interrupted the agent here."""


class PreservedLines(msgspec.Struct, frozen=True, gc=False):
    """Lines that a compaction preserved, and the line behind which they are placed."""

    anchor: str
    head: str | None = None
    tail: str | None = None
    names: tuple[str, ...] = ()


class EarlierPart(msgspec.Struct, frozen=True):
    """The part of a transcript before a bookmark. Of its lines, the state has only the one on which the next one hangs."""

    beginning: Beginning
    known: KnownIds
    """The ids of its lines, calls and responses."""
    retracted_ids: frozenset[str]
    owner: str | None
    started_at: datetime
    """The times of its own first and last line."""
    ended_at: datetime


class State(msgspec.Struct):
    """A transcript as far as it was read. Only the fold that owns it changes it."""

    path: str
    origin: Origin
    nodes: list[Node] = []
    places: dict[str, int] = {}
    """The place of each line by its id."""
    line_hashes: dict[str, int] = {}
    """A hash of each line's bytes by its id, to recognise copies."""
    calls: dict[str, int] = {}
    """The place of each call by its id."""
    early_results: dict[str, tuple[int, Result]] = {}
    """Results whose call was not met yet, with their places."""
    responses: dict[str, tuple[int, int, int]] = {}
    """For each response the place of the line with its tokens, the recorded output, and a hash of its content."""
    answered_chains: set[int] = set()
    """The chains in which a model answered, and not only Claude Code in its place."""
    billed_chains: set[int] = set()
    """The chains with recorded tokens, for which nothing is estimated."""
    results: dict[str, tuple[int, ...]] = {}
    """The places of the results of each call, as far as the call holds them."""
    indexes: dict[int, dict[str, list[int]]] = {}
    """The indexes of the parts of each call in messages with many parts, by the message's place; filled on demand."""
    queue: dict[tuple[str, int], int] = {}
    """The places of words that were typed while the agent was busy and did not occur again, by the words and a number."""
    queue_numbers: dict[str, tuple[int, int]] = {}
    """The first number of such words in the queue, and the next free one."""
    facts: dict[str, dict[str, None]] = {}
    """The facts about the session, each value once."""
    last_facts: tuple[Any, ...] = ()
    """The facts of the last line: they seldom change."""
    last_side_records: dict[str, Record] = {}
    """The last side record of each type."""
    titles: dict[str, str] = {}
    leaf: str | None = None
    """The line that was last named as the one that the conversation continues from."""
    is_leaf_explicit: bool = False
    """Whether a person went back to it: then later lines do not count."""
    preserved: dict[str, PreservedLines] = {}
    """The lines that compactions preserved, by the boundary."""
    retracted_ids: set[str] = set()
    """Lines that later ones replace."""
    last_prompt: str = ""
    """The person's last words."""
    sessions: dict[str, None] = {}
    """The ids of the sessions of these lines, the last one last."""
    agent_id: str | None = None
    """The id of the subagent, if the transcript is a subagent's."""
    records: int = 0
    opaque: int = 0
    problems: list[Problem] = []

    def copy(self) -> Self:
        """Return a state that can change while this one stays."""
        changed = {
            field: value.copy()
            for field in self.__struct_fields__
            if type(value := getattr(self, field)) in (list, dict, set)
        }
        return replace(self, **changed)

    def add(self, node: Node) -> int:
        """Add a node and return its place: of lines with one id the last counts, at the place of the first."""
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
        """Move a node to the end, with the tokens of its response."""
        node = self.nodes[place]
        usage = node.entry.usage if isinstance(node.entry, Message) else None
        bearer = None if usage is None else self.responses.get(usage.request)
        if usage is not None and bearer is not None and bearer[0] == place:
            self.responses[usage.request] = (len(self.nodes), *bearer[1:])
        self.nodes.append(node)

    def is_copy(self, name: str, seal: int) -> bool:
        """Return whether a line was met before, byte for byte, and remember it."""
        if self.line_hashes.get(name) == seal:
            return True
        self.line_hashes[name] = seal
        return False

    def has_room(self, call_id: str, before: int = 0) -> bool:
        """Return whether a call may hold another result, after `before` results on the same line."""
        return len(self.results.get(call_id, ())) + before < _MOST_RESULTS

    def chain_of(self, name: str | None, parent: str | None) -> int:
        """Return the chain of a subagent's line: its own if it was met before, else its parent's."""
        place = self.places.get(name or "", self.places.get(parent or ""))
        return MAIN if place is None else self.nodes[place].chain

    def note_facts(self, facts: tuple[Any, ...]) -> None:
        """Note the facts of a line, each value once."""
        self.last_facts = facts
        for name, value in zip(FACTS, facts, strict=True):
            if type(value) is str:
                self.facts.setdefault(name, {})[value] = None

    def replace_entry(self, place: int, entry: Entry) -> None:
        """Replace the entry at a place."""
        self.nodes[place] = replace(self.nodes[place], entry=entry)

    @property
    def native_id(self) -> str | None:
        """The id of the session: that in the file's name, by which the CLI finds it, else the owner's."""
        if self.origin.agent_id is None and is_session_id(self.origin.stem):
            return self.origin.stem
        return self.owner

    @property
    def owner(self) -> str | None:
        """The session whose lines are no copies: that in the file's name, else that of the last line."""
        is_named = self.origin.agent_id is None and self.origin.stem in self.sessions
        return self.origin.stem if is_named else next(reversed(self.sessions), None)

    @property
    def session_id(self) -> str:
        """The id of the session, also for a subagent's transcript."""
        return self.origin.parent_id or self.native_id or self.origin.stem


def fold_queue_operation(record: Record, at: datetime | None, state: State) -> None:
    """Fold an operation on the queue."""
    content, session = record.get("content"), record.get("sessionId")
    text = content if type(content) is str else ""
    owner = session if type(session) is str else None
    prompt, parts = split_prompt(text)
    if record.get("operation") == "enqueue" and prompt is not None:
        extra = _extra(record)
        message = Message(None, "user", at, "live", prompt, None, None, tuple(parts), extra=extra)
        first, after = state.queue_numbers.get(prompt.strip(), (0, 0))
        state.queue_numbers[prompt.strip()] = (first, after + 1)
        state.queue[prompt.strip(), after] = state.add(Node(message, session=owner))
        return
    if record.get("operation") == "popAll":
        _return_to_editor(state, text if prompt is None else prompt)
    state.add(Node(Event(None, "notice", at, "live", "", extra=record), session=owner))


def _extra(record: Record) -> Record:
    return {key: value for key, value in record.items() if key not in ("content", "timestamp", "sessionId")}


def remove_from_queue(state: State, prompt: str) -> None:
    """Remove queued words that occur again: there they have their place in the conversation."""
    first, after = state.queue_numbers.get(prompt.strip(), (0, 0))
    if first < after:
        state.queue_numbers[prompt.strip()] = (first + 1, after)
        _make_notice(state, state.queue.pop((prompt.strip(), first)), "")


def _return_to_editor(state: State, text: str) -> None:
    """Return queued words to the editor, all of them if no text is named: they were not said, or will be."""
    for words in [text.strip()] if text.strip() else list(state.queue_numbers):
        for number in range(*state.queue_numbers.pop(words, (0, 0))):
            _make_notice(state, state.queue.pop((words, number)), words)


def _make_notice(state: State, place: int, text: str) -> None:
    entry = state.nodes[place].entry
    state.replace_entry(place, Event(None, "notice", entry.at, "live", text, extra=entry.extra))
