"""Makes the Session of a transcript, or of a subagent within it; merges copies and resolves fates."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

import msgspec
from msgspec.structs import replace

from retold.agents.bookmarks import ReadWholeError
from retold.agents.claude.discovery import is_session_id
from retold.agents.claude.raw import Record
from retold.agents.claude.state import MAIN, EarlierPart, Node, PreservedLines, State
from retold.agents.claude.tool_calls import STARTS_AGENT
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, assemble_session, estimate_usage, status_after
from retold.model.problem import Problem, problem
from retold.model.serialization import allow_deep_values
from retold.model.session import (
    Attachment,
    Context,
    Coverage,
    Entry,
    Fate,
    Message,
    Project,
    Session,
    SessionStatus,
    ToolCall,
    View,
    root_hash,
)
from retold.reading.jsonl import FILE_START, FileMark

LARGEST_GAP = timedelta(seconds=5)
"""The largest age difference to a line that replaces a lost parent."""
_LOOK_BACK = 64
"""How many lines are considered in place of a lost parent."""


def group_key(reading: Reading) -> str | None:
    """Return a key of the ids of session and subagent. An id that is no UUID may name many sessions; the file's folder is added to it."""
    found: Transcript = reading.state
    name = f"{found.state.session_id}:{found.agent_id or ''}"
    return name if is_session_id(found.state.session_id) else f"{reading.source.path.parent}:{name}"


def log_folder(_reading: Reading) -> str | None:
    """Return None: no log of prompts is read."""
    return None


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one conversation."""
    ordered = sorted(readings, key=lambda reading: reading.source.display_path)
    with allow_deep_values():
        found = ordered[0].state if len(ordered) == 1 else merge_copies(ordered)
        return assemble_session(make_draft(found, ordered), view)


class BookmarkPlace(msgspec.Struct, frozen=True):
    """A place for a bookmark."""

    mark: FileMark
    state: State
    """The state there, without lines and ids."""
    nodes: int
    """The number of lines before it."""
    ids: tuple[int, ...]
    """The number of ids of each kind before it."""


class Transcript(msgspec.Struct, frozen=True):
    """A replayed transcript: its own conversation, or the chain of a subagent in it."""

    state: State
    chain: int = MAIN
    is_first: bool = True
    """Whether this conversation also has the side records and the problems of the file."""
    places: Sequence[int] = ()
    """The places of its lines and of its side records."""
    mark: FileMark = FILE_START
    """The place of the bookmark from which it was read."""
    earlier: EarlierPart | None = None
    bookmark_places: tuple[BookmarkPlace, ...] = ()

    @property
    def agent_id(self) -> str | None:
        """The id of the subagent; 1.x has none, so the first line's id is used."""
        if self.chain == MAIN:
            return self.state.agent_id
        return (self.state.nodes[self.chain].entry.id or str(self.chain))[:8]


def places_by_chain(state: State) -> dict[int, list[int]]:
    """Return the places of the lines of each chain with a message; the first chain also has the lines without one."""
    chains: dict[int, list[int]] = {}
    for place, node in enumerate(state.nodes):
        chains.setdefault(node.chain, []).append(place)
    spoken = {node.chain for node in state.nodes if isinstance(node.entry, Message)}
    found = {chain: chains[chain] for chain in sorted(spoken)}
    if found and MAIN not in found:
        first = next(iter(found))
        found[first] = sorted(
            [*found[first], *(place for place in chains.get(MAIN, ()) if not state.nodes[place].is_chained)]
        )
    return found


def _check_later_part(state: State, earlier: EarlierPart) -> None:
    """Raise ReadWholeError if the lines behind a bookmark concern those before it."""
    for name in state.retracted_ids - earlier.retracted_ids:
        earlier.known.check(name)
    if state.early_results or state.preserved or state.is_leaf_explicit or state.owner != earlier.owner:
        raise ReadWholeError("results of earlier calls, a compaction, or another session")
    for node in islice(state.nodes, 1, None):
        is_attached = not node.is_chained or (node.parent is not None and node.parent in state.places)
        if node.chain != MAIN or not is_attached:
            raise ReadWholeError("a line that does not hang on the last one")
        if isinstance(node.entry, Message):
            earlier.known.check(node.entry.response)


def resolve_fates(state: State) -> tuple[list[int], list[Fate]]:
    """Return the places of the lines that would be loaded, in that order, and the fate of every line."""
    parents = find_parents(state)
    path = path_to_root(parents, _find_leaf(state, parents))
    live = _move_preserved(state, sorted({*path, *_find_detached(state, path)}), path)
    live_places, root = set(live), path[-1] if path else 0
    heads = _branch_heads(parents, live_places)
    left = _branches_with_prompts(state.nodes, heads)
    return live, [
        _fate(state, place, is_live=place in live_places, is_before=place < root, is_left=head in left)
        for place, head in enumerate(heads)
    ]


def resolve_subagent_fates(state: State, places: Sequence[int]) -> tuple[list[int], dict[int, Fate]]:
    """Return the same for the lines of a subagent in a main file: all lines that were not superseded are live."""
    fates: dict[int, Fate] = {
        place: "superseded" if _is_superseded(state, place) else "live" for place in places
    }
    return [place for place in places if fates[place] == "live"], fates


def _is_superseded(state: State, place: int) -> bool:
    """Return whether a line was retracted, or replaced by another line with its id."""
    node = state.nodes[place]
    name = node.entry.id if node.is_chained else None
    return name is not None and (name in state.retracted_ids or state.places[name] != place)


def _fate(state: State, place: int, *, is_live: bool, is_before: bool, is_left: bool) -> Fate:
    node = state.nodes[place]
    if is_live or node.chain != MAIN or not node.is_chained:
        return "live"
    if _is_superseded(state, place):
        return "superseded"
    if is_before:
        return "compacted"
    return "rewound" if is_left or isinstance(node.entry, Message) else "live"


def find_parents(state: State) -> list[int | None]:
    """Return the place of each line's parent."""
    return [_find_parent(state, place) for place in range(len(state.nodes))]


def _find_parent(state: State, place: int) -> int | None:
    """Return the place of a line's parent; if that is lost, of the newest slightly older line."""
    node = state.nodes[place]
    if node.parent is None:
        return None
    parent = state.places.get(node.parent)
    if parent is not None:
        return None if parent == place else parent
    candidates = [
        other for other in range(max(place - _LOOK_BACK, 0), place) if _is_just_before(state, other, place)
    ]
    return max(candidates, key=lambda other: (str(state.nodes[other].entry.at), other), default=None)


def _is_just_before(state: State, other: int, place: int) -> bool:
    node, at, then = state.nodes[other], state.nodes[place].entry.at, state.nodes[other].entry.at
    if not node.is_chained or node.chain != MAIN or at is None or then is None:
        return False
    return timedelta() <= at - then <= LARGEST_GAP


def _find_leaf(state: State, parents: Sequence[int | None]) -> int | None:
    """Return the line that the conversation continues from: the named one, or the last one if it descends from the named one."""
    named = state.places.get(state.leaf) if state.leaf is not None else None
    if state.is_leaf_explicit and (named is not None or state.leaf is None):
        return named
    places = range(len(state.nodes) - 1, -1, -1)
    last = next((place for place in places if can_be_leaf(state, place)), None)
    return last if named is None or named in path_to_root(parents, last) else named


def can_be_leaf(state: State, place: int) -> bool:
    """Return whether the conversation may go on from a line."""
    node = state.nodes[place]
    return node.chain == MAIN and node.is_chained and state.places.get(node.entry.id or "") == place


def path_to_root(parents: Sequence[int | None], leaf: int | None) -> list[int]:
    """Return the lines from the leaf back to the root; a cycle ends where it closes."""
    path: dict[int, None] = {}
    while leaf is not None and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(path)


def _find_detached(state: State, path: Sequence[int]) -> Iterator[int]:
    """Yield the other blocks of the responses on the path and the results of their calls, whatever their parents."""
    entries = [state.nodes[place].entry for place in path]
    responses = {entry.response for entry in entries if isinstance(entry, Message) and entry.response}
    blocks = [
        place
        for place, node in enumerate(state.nodes)
        if isinstance(node.entry, Message) and node.entry.response in responses and can_be_leaf(state, place)
    ]
    yield from blocks
    calls = {part.id for place in blocks for part in _parts(state.nodes[place]) if isinstance(part, ToolCall)}
    for call, places in state.results.items():
        if call in calls:
            yield from places


def _parts(node: Node) -> Sequence[object]:
    return node.entry.parts if isinstance(node.entry, Message) else ()


def _move_preserved(state: State, places: list[int], path: Sequence[int]) -> list[int]:
    """Return the lines with those that a compaction preserved, behind its summary."""
    for place in path:
        preserved = state.preserved.get(state.nodes[place].entry.id or "")
        if preserved is not None:
            names = preserved.names or _preserved_ids(preserved, state)
            moved = [state.places[name] for name in names if name in state.places]
            apart, anchor = set(moved), state.places.get(preserved.anchor)
            rest = [other for other in places if other not in apart]
            behind = rest.index(anchor) + 1 if anchor in rest else 1
            return [*rest[:behind], *moved, *rest[behind:]]
    return places


def _preserved_ids(preserved: PreservedLines, state: State) -> list[str]:
    """Return the preserved lines in order, found by following parents from the last to the first."""
    names: dict[str, None] = {}
    name = preserved.tail
    while name is not None and name not in names:
        names[name] = None
        place = state.places.get(name)
        name = None if place is None or name == preserved.head else state.nodes[place].parent
    return list(reversed(names))


def _branch_heads(parents: Sequence[int | None], live: set[int]) -> list[int]:
    """Return the head of each line's branch: its first line that is not live, or a root of its own."""
    heads: list[int] = []
    for place, parent in enumerate(parents):
        if parent is None or parent in live or parent >= place:
            heads.append(place)
        else:
            heads.append(heads[parent])
    return heads


def _branches_with_prompts(nodes: Sequence[Node], heads: Sequence[int]) -> set[int]:
    return {
        head
        for node, head in zip(nodes, heads, strict=True)
        if isinstance(node.entry, Message) and node.entry.prompt is not None
    }


def make_draft(transcript: Transcript, readings: Sequence[Reading]) -> Draft:
    """Return the draft of a conversation."""
    state, agent_id, earlier = transcript.state, transcript.agent_id, transcript.earlier
    if earlier is not None:
        _check_later_part(state, earlier)
    entries, active = _make_timelines(transcript)
    full = tuple(entries.values())
    started_at, ended_at = _time_span(full)
    if earlier is not None:
        if not any(isinstance(entries[place], Message) for place in active):
            raise ReadWholeError("nothing is said")
        times = [
            earlier.started_at,
            earlier.ended_at,
            *(entry.at for entry in full if entry.at and entry.own),
        ]
        started_at, ended_at = min(times), max(times)
    modified_at = min(reading.modified_at for reading in readings)
    session_key = f"claude:{state.session_id}"
    return Draft(
        key=f"{session_key}/{agent_id}" if agent_id else session_key,
        agent="claude",
        native_id=agent_id or state.native_id,
        kind="subagent" if agent_id else "main",
        project=_project(state),
        summary=None if agent_id else _title(state),
        started_at=started_at or modified_at,
        ended_at=ended_at or modified_at,
        are_times_derived=started_at is None,
        status=_status([state.nodes[place] for place in reversed(active)]),
        parent=session_key if agent_id else None,
        sources=tuple(source_file(reading) for reading in readings),
        coverage=Coverage(state.records, state.opaque),
        problems=(*state.problems, *_orphan_problems(state)) if transcript.is_first else (),
        extra=_extra(state),
        full=full,
        active=tuple([entries[place] for place in active]),
        beginning=None if earlier is None else earlier.beginning,
    )


def _make_timelines(transcript: Transcript) -> tuple[dict[int, Entry], list[int]]:
    """Return all entries of a conversation by place, and the places of those that would be loaded."""
    state, owner = transcript.state, transcript.state.owner
    live, fates = (
        resolve_fates(state) if transcript.chain == MAIN else resolve_subagent_fates(state, transcript.places)
    )
    entries = {
        place: _with_fate(
            state.nodes[place].entry, fates[place], is_own=state.nodes[place].session in (owner, None)
        )
        for place in transcript.places
    }
    entries |= _complete_orphans(state, entries)
    if transcript.chain in state.answered_chains and transcript.chain not in state.billed_chains:
        entries = dict(zip(entries, estimate_usage(tuple(entries.values()), state.session_id), strict=True))
    return entries, [place for place in live if place in entries and state.nodes[place].is_chained]


def _complete_orphans(state: State, entries: dict[int, Entry]) -> dict[int, Entry]:
    """Return the lines of results without a call, with the fields that the call would hold."""
    whole: dict[int, Entry] = {}
    for place, result in state.early_results.values():
        fields = {"toolUseResult": result.twin, "content": result.rest}
        beyond = {name: value for name, value in fields.items() if value}
        if beyond and place in entries:
            entry = whole.get(place, entries[place])
            whole[place] = replace(entry, extra=(entry.extra or {}) | beyond)
    return whole


def _with_fate(entry: Entry, fate: Fate, *, is_own: bool) -> Entry:
    if fate == "live" and is_own:
        return entry
    return replace(entry, fate=fate, own=is_own)


def _time_span(entries: Sequence[Entry]) -> tuple[datetime | None, datetime | None]:
    """Return the times of the first and the last entry; those of copies only if there are no others."""
    times = [entry.at for entry in entries if entry.at is not None and entry.own]
    times = times or [entry.at for entry in entries if entry.at is not None]
    return min(times, default=None), max(times, default=None)


def _project(state: State) -> Project:
    """Return the project in which the session began; it may go on in a worktree, and the folder's name gives no root."""
    root = next(iter(state.facts.get("cwd", ())), None)
    if root is None:
        return Project(None, state.origin.project_key, None, "none")
    return Project(root, state.origin.project_key, root_hash(root), "recorded")


def _title(state: State) -> str | None:
    """Return the title: the user's, the model's, or that of a summary of this conversation."""
    summaries = [
        title
        for name, title in state.titles.items()
        if name.startswith("summary of ") and name.removeprefix("summary of ") in state.places
    ]
    own = (state.titles.get(kind) for kind in ("custom-title", "ai-title", "agent-name"))
    return next((title for title in (*own, *reversed(summaries)) if title), None)


def _status(latest: Sequence[Node]) -> SessionStatus:
    """Return how the session ended, by its last message, error or interruption."""
    ends = (
        node.entry
        for node in latest
        if node.is_stop or isinstance(node.entry, Message) or node.entry.kind == "error"
    )
    return status_after(next(ends, None))


def _orphan_problems(state: State) -> Iterator[Problem]:
    for call_id in state.early_results:
        yield problem("orphan-tool-result", f"no call {call_id}", state.path)


def _extra(state: State) -> Record:
    return {name: list(values) for name, values in state.facts.items()}


def merge_copies(readings: Sequence[Reading]) -> Transcript:
    """Return the richest copy with the lines that only others have, in the order of time.

    A transcript only grows, so that one copy is nearly always the start of another. A line that differs in another copy has two
    versions: that of the file modified last counts, the other is superseded.
    """
    # Subagents in one file whose ids have the same beginning are several readings with one state.
    distinct = dict[int, Reading]()
    for reading in readings:
        distinct.setdefault(id(reading.state.state), reading)
    first, *others = sorted(
        distinct.values(), key=lambda one: (-len(one.state.state.nodes), one.state.state.path)
    )
    found: Transcript = first.state
    state = found.state.copy()
    whole = _CopyMerger(state)
    is_more = [
        whole.add(other.state.state, is_newer=other.modified_at > first.modified_at) for other in others
    ]
    if not any(is_more):
        return replace(found, state=state)
    places = _sort_by_time(state)
    chain = found.chain if found.chain == MAIN else places[found.chain]
    return replace(found, state=state, chain=chain, places=places_by_chain(state)[chain])


class _CopyMerger:
    """A copy to which the lines of others are added; its words are indexed once for all of them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._unnamed = {msgspec.json.encode(node.entry) for node in state.nodes if not node.is_chained}
        self._requests = Counter(_request(node.entry) for node in state.nodes)
        """The number of lines with each request."""
        self._superseded: dict[str | None, list[str]] = {}
        """The words of superseded versions of lines by the lines' ids, sorted."""
        for place, node in enumerate(state.nodes):
            if node.is_chained and state.places.get(node.entry.id or "", place) != place:
                self._supersede(node.entry)

    def add(self, other: State, *, is_newer: bool) -> bool:
        """Add the lines and the versions of lines that only another copy has; return whether there were any."""
        state = self._state
        state.problems += [one for one in other.problems if one not in state.problems]
        state.titles = other.titles | state.titles
        chains, added, versions = {MAIN: MAIN}, dict[int, int](), list[tuple[int, Node]]()
        for place, node in enumerate(other.nodes):
            known = state.places.get(node.entry.id or "") if node.is_chained else None
            if place == node.chain:
                chains[place] = len(state.nodes) if known is None else state.nodes[known].chain
            copied = replace(node, chain=chains.get(node.chain, MAIN))
            if known is None and (node.is_chained or msgspec.json.encode(node.entry) not in self._unnamed):
                added[place] = state.add(copied)
            elif known is not None and self._is_held(node.entry, state.nodes[known].entry):
                self._take_usage(known, node.entry)
            elif known is not None:
                versions.append((known, copied))
        for place in added.values():
            self._note(state.nodes[place])
        self._add_versions(versions, is_newer=is_newer)
        for call, places in other.results.items():
            new = tuple(added[place] for place in places if place in added)
            state.results[call] = (*state.results.get(call, ()), *new)
        state.answered_chains |= {chains[chain] for chain in other.answered_chains}
        state.billed_chains |= {chains[chain] for chain in other.billed_chains}
        calls = {call: added[place] for call, place in other.calls.items() if place in added}
        state.calls = calls | state.calls
        return bool(added or versions)

    def _take_usage(self, known: int, other: Entry) -> None:
        """Give a line the token counts of another version of it, unless a line already counts that request."""
        request, entry = _request(other), self._state.nodes[known].entry
        if not isinstance(other, Message) or not isinstance(entry, Message):
            return
        if request is not None and entry.usage is None and not self._requests[request]:
            self._state.replace_entry(known, replace(entry, usage=other.usage))
            self._requests[request] += 1

    def _note(self, node: Node) -> None:
        """Index a line that was added."""
        if not node.is_chained:
            self._unnamed.add(msgspec.json.encode(node.entry))
        self._requests[_request(node.entry)] += 1

    def _add_versions(self, versions: Sequence[tuple[int, Node]], *, is_newer: bool) -> None:
        """Add other versions of known lines; a superseded version has no request that another line has."""
        nodes = self._state.nodes
        start = len(nodes)
        for known, node in versions:
            nodes.append(node)
            if is_newer:
                self._requests[_request(nodes[known].entry)] -= 1
                self._note(node)
                nodes[known], nodes[-1] = nodes[-1], nodes[known]
        for place in range(start, len(nodes)):
            entry = nodes[place].entry
            request = _request(entry)
            if isinstance(entry, Message) and request is not None and self._requests[request] > 0:
                self._state.replace_entry(place, replace(entry, usage=None))
            else:
                self._requests[request] += 1
            self._supersede(entry)

    def _supersede(self, entry: Entry) -> None:
        known = self._superseded.setdefault(entry.id, [])
        for word in _words(entry):
            insort(known, word)

    def _is_held(self, entry: Entry, known: Entry) -> bool:
        """Return whether a known line with its superseded versions holds all of another version, or more."""
        if entry == known:
            return True
        held, superseded = tuple(_words(known)), self._superseded.get(entry.id, ())
        return all(
            any(text.startswith(word) for text in held) or _is_prefix_of_any(word, superseded)
            for word in _words(entry)
        )


def _is_prefix_of_any(word: str, ordered: Sequence[str]) -> bool:
    """Return whether a text is the beginning of one of the sorted texts."""
    place = bisect_left(ordered, word)
    return place < len(ordered) and ordered[place].startswith(word)


def _request(entry: Entry) -> str | None:
    return entry.usage.request if isinstance(entry, Message) and entry.usage is not None else None


def _words(entry: Entry) -> Iterator[str]:
    if not isinstance(entry, Message):
        yield entry.text
        return
    for part in entry.parts:
        if isinstance(part, ToolCall):
            yield f"{part.name} {part.arguments}"
            yield from (text for text in (part.result, part.error) if text)
            yield from (one.data for one in part.attachments if one.data)
        elif isinstance(part, Attachment):
            yield part.data or part.path or ""
        elif text := getattr(part, "text", None):
            yield text


def _sort_by_time(state: State) -> dict[int, int]:
    """Sort the lines of several copies by time; return the new place of each."""
    times = list(_times(state.nodes))
    order = sorted(range(len(times)), key=lambda place: (times[place] is not None, times[place], place))
    now = {place: where for where, place in enumerate(order)}
    state.nodes = [
        replace(state.nodes[place], chain=now.get(state.nodes[place].chain, MAIN)) for place in order
    ]
    state.answered_chains = {now.get(chain, MAIN) for chain in state.answered_chains}
    state.billed_chains = {now.get(chain, MAIN) for chain in state.billed_chains}
    state.places = {name: now[place] for name, place in state.places.items()}
    state.calls = {call: now[place] for call, place in state.calls.items()}
    state.early_results = {
        call: (now[place], result) for call, (place, result) in state.early_results.items()
    }
    state.results = {call: tuple(now[place] for place in places) for call, places in state.results.items()}
    return now


def _times(nodes: Sequence[Node]) -> list[datetime | None]:
    """Return the time of each line; without a time, that of the line before."""
    times: list[datetime | None] = []
    for node in nodes:
        times.append(node.entry.at or (times[-1] if times else None))
    return times


ChildrenByTask = dict[str | None, list[Session]]


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions of one cluster with parents and children linked."""
    return [_link_children(session, sessions) if session.kind == "main" else session for session in sessions]


def _link_children(session: Session, sessions: Sequence[Session]) -> Session:
    """Return a session with its children, each linked to the call that started it."""
    found = sorted(
        (child for child in sessions if child.parent == session.key),
        key=lambda child: (str(child.started_at), child.key),
    )
    named = set(_named_children(session))
    waiting = _group_by_task([child for child in found if child.key not in named])
    timeline = (
        tuple(_link_calls(entry, waiting) for entry in session.timeline) if waiting else session.timeline
    )
    return replace(session, children=tuple(child.key for child in found), timeline=timeline)


def _named_children(session: Session) -> Iterator[str]:
    messages = (entry for entry in session.timeline if isinstance(entry, Message))
    parts = (part for message in messages for part in message.parts)
    return (part.child for part in parts if isinstance(part, ToolCall) and part.child)


def _group_by_task(children: Sequence[Session]) -> ChildrenByTask:
    """Return the subagents that no call names, by their task; the latest first."""
    waiting: ChildrenByTask = {}
    for child in reversed(children):
        waiting.setdefault(_task(child), []).append(child)
    return waiting


def _task(child: Session) -> str | None:
    parts = (part for entry in child.timeline if isinstance(entry, Message) for part in entry.parts)
    return next((part.text for part in parts if isinstance(part, Context) and part.kind == "task"), None)


def _link_calls(entry: Entry, waiting: ChildrenByTask) -> Entry:
    """Return an entry with each call that started a subagent linked to the first one with its prompt."""
    if not isinstance(entry, Message):
        return entry
    parts = tuple(_link_call(part, waiting) if isinstance(part, ToolCall) else part for part in entry.parts)
    return replace(entry, parts=parts)


def _link_call(call: ToolCall, waiting: ChildrenByTask) -> ToolCall:
    task = call.arguments.get("prompt")
    if call.child is not None or call.name not in STARTS_AGENT or type(task) is not str:
        return call
    children = waiting.get(task)
    return replace(call, child=children.pop().key) if children else call
