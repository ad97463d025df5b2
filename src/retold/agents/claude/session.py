"""A replayed transcript to a draft of its session, or of one of the subagents that older versions kept in it."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from retold.agents.claude.discovery import is_session_id
from retold.agents.claude.raw import Record
from retold.agents.claude.state import MAIN, Node, Preserved, State
from retold.agents.claude.tool_calls import STARTS_AGENT
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, assembled, estimated
from retold.model.problem import Problem, problem
from retold.model.serialization import room_for_depth
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
from retold.reading.jsonl import START, FileMark

BRIDGED = timedelta(seconds=5)
"""How much older a line may be for another to go on from it whose own parent is lost."""
_LOOKED_AT = 64
"""How many lines are looked at for one to go on from."""


def became(state: State) -> tuple[list[int], list[Fate]]:
    """Return where the lines stand that would be loaded, in their order then, and the fate of every line."""
    parents = _parents(state)
    path = _path(parents, _leaf(state, parents))
    live = _with_preserved(state, sorted({*path, *_recovered(state, path)}), path)
    kept, root = set(live), path[-1] if path else 0
    heads = _branches(parents, kept)
    left = _left_by_a_human(state.nodes, heads)
    return live, [
        _fate(state, place, is_kept=place in kept, is_before=place < root, is_left=head in left)
        for place, head in enumerate(heads)
    ]


def became_of_subagent(state: State, places: Sequence[int]) -> tuple[list[int], dict[int, Fate]]:
    """Return the same for the lines of a subagent in a main file: all but those that later ones stand in place of."""
    fates: dict[int, Fate] = {
        place: "superseded" if _is_superseded(state, place) else "live" for place in places
    }
    return [place for place in places if fates[place] == "live"], fates


def _is_superseded(state: State, place: int) -> bool:
    """Tell whether a line was retracted, or another line with its name stands in its place."""
    node = state.nodes[place]
    name = node.entry.id if node.is_chained else None
    return name is not None and (name in state.retracted or state.places[name] != place)


def _fate(state: State, place: int, *, is_kept: bool, is_before: bool, is_left: bool) -> Fate:
    node = state.nodes[place]
    if is_kept or node.chain != MAIN or not node.is_chained:
        return "live"
    if _is_superseded(state, place):
        return "superseded"
    if is_before:
        return "compacted"
    return "rewound" if is_left or isinstance(node.entry, Message) else "live"


def _parents(state: State) -> list[int | None]:
    return [_parent(state, place) for place in range(len(state.nodes))]


def _parent(state: State, place: int) -> int | None:
    """Return where the parent of a line stands; if it is lost, the newest line that is a little older."""
    node = state.nodes[place]
    if node.parent is None:
        return None
    parent = state.places.get(node.parent)
    if parent is not None:
        return None if parent == place else parent
    near = [
        other for other in range(max(place - _LOOKED_AT, 0), place) if _is_just_before(state, other, place)
    ]
    return max(near, key=lambda other: (str(state.nodes[other].entry.at), other), default=None)


def _is_just_before(state: State, other: int, place: int) -> bool:
    node, at, then = state.nodes[other], state.nodes[place].entry.at, state.nodes[other].entry.at
    if not node.is_chained or node.chain != MAIN or at is None or then is None:
        return False
    return timedelta() <= at - then <= BRIDGED


def _leaf(state: State, parents: Sequence[int | None]) -> int | None:
    """Return the line from which the conversation goes on: the last, unless it does not come from the one named."""
    named = state.places.get(state.leaf) if state.leaf is not None else None
    if state.is_leaf_explicit and (named is not None or state.leaf is None):
        return named
    places = range(len(state.nodes) - 1, -1, -1)
    last = next((place for place in places if _can_be_leaf(state, place)), None)
    return last if named is None or named in _path(parents, last) else named


def _can_be_leaf(state: State, place: int) -> bool:
    node = state.nodes[place]
    return node.chain == MAIN and node.is_chained and state.places.get(node.entry.id or "") == place


def _path(parents: Sequence[int | None], leaf: int | None) -> list[int]:
    """Return the lines from the leaf back to the root; a circle ends where it closes."""
    path: dict[int, None] = {}
    while leaf is not None and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(path)


def _recovered(state: State, path: Sequence[int]) -> Iterator[int]:
    """Yield the other blocks of the responses on the path, and the results of their calls, wherever they hang."""
    entries = [state.nodes[place].entry for place in path]
    responses = {entry.response for entry in entries if isinstance(entry, Message) and entry.response}
    blocks = [
        place
        for place, node in enumerate(state.nodes)
        if isinstance(node.entry, Message) and node.entry.response in responses and _can_be_leaf(state, place)
    ]
    yield from blocks
    calls = {part.id for place in blocks for part in _parts(state.nodes[place]) if isinstance(part, ToolCall)}
    for call, places in state.results.items():
        if call in calls:
            yield from places


def _parts(node: Node) -> Sequence[object]:
    return node.entry.parts if isinstance(node.entry, Message) else ()


def _with_preserved(state: State, places: list[int], path: Sequence[int]) -> list[int]:
    """Return the lines with those that a compaction left as they were, behind the summary that they are told with."""
    for place in path:
        kept = state.preserved.get(state.nodes[place].entry.id or "")
        if kept is not None:
            names = kept.names or _segment(kept, state)
            moved = [state.places[name] for name in names if name in state.places]
            apart, anchor = set(moved), state.places.get(kept.anchor)
            rest = [other for other in places if other not in apart]
            behind = rest.index(anchor) + 1 if anchor in rest else 1
            return [*rest[:behind], *moved, *rest[behind:]]
    return places


def _segment(kept: Preserved, state: State) -> list[str]:
    """Return the lines from the last back to the first, in the order in which they were said."""
    names: dict[str, None] = {}
    name = kept.tail
    while name is not None and name not in names:
        names[name] = None
        place = state.places.get(name)
        name = None if place is None or name == kept.head else state.nodes[place].parent
    return list(reversed(names))


def _branches(parents: Sequence[int | None], kept: set[int]) -> list[int]:
    """Return for each line the one that begins its branch: the first that is not kept, or a root of its own."""
    heads: list[int] = []
    for place, parent in enumerate(parents):
        if parent is None or parent in kept or parent >= place:
            heads.append(place)
        else:
            heads.append(heads[parent])
    return heads


def _left_by_a_human(nodes: Sequence[Node], heads: Sequence[int]) -> set[int]:
    """Return the branches in which a person speaks."""
    return {
        head
        for node, head in zip(nodes, heads, strict=True)
        if isinstance(node.entry, Message) and node.entry.prompt is not None
    }


class Recorded(msgspec.Struct, frozen=True):
    """A transcript, replayed: its own conversation, or the chain in it that is a subagent's."""

    state: State
    chain: int = MAIN
    is_first: bool = True
    """Whether this is the conversation that tells what stands beside it, and what went wrong."""
    settled: State | None = None
    """The state at the last line end: from here a file that has grown is read on."""
    mark: FileMark = START
    places: Sequence[int] = ()
    """Where its lines stand, and what is told with them."""

    @property
    def agent_id(self) -> str | None:
        """The id of the subagent whose conversation this is; 1.x gave it none but that of its first line."""
        if self.chain == MAIN:
            return self.state.agent_id
        return (self.state.nodes[self.chain].entry.id or str(self.chain))[:8]


def places_by_chain(state: State) -> dict[int, list[int]]:
    """Return where the lines of each chain stand in which something was said; the first also tells what has no chain."""
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


def session_draft(found: Recorded, readings: Sequence[Reading]) -> Draft:
    """Return the draft of a conversation."""
    state, agent_id = found.state, found.agent_id
    entries, active = _timelines(found)
    full = tuple(entries.values())
    started_at, ended_at = _span(full)
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
        problems=(*state.problems, *_orphans(state)) if found.is_first else (),
        extra=_extra(state),
        full=full,
        active=tuple([entries[place] for place in active]),
    )


def _timelines(found: Recorded) -> tuple[dict[int, Entry], list[int]]:
    """Return everything of one conversation, by where it stands, and the places of what would be loaded of it."""
    state, owner = found.state, found.state.owner
    live, fates = became(state) if found.chain == MAIN else became_of_subagent(state, found.places)
    entries = {
        place: _told(
            state.nodes[place].entry,
            fates[place],
            is_own=state.nodes[place].session in (owner, None),
        )
        for place in found.places
    }
    entries |= _orphans_whole(state, entries)
    if found.chain in state.answered and found.chain not in state.billed:
        entries = dict(zip(entries, estimated(tuple(entries.values()), state.session_id), strict=True))
    return entries, [place for place in live if place in entries and state.nodes[place].is_chained]


def _orphans_whole(state: State, entries: dict[int, Entry]) -> dict[int, Entry]:
    """Return the lines whose results found no call, with everything that else the call would tell."""
    whole: dict[int, Entry] = {}
    for place, result in state.early.values():
        told = {"toolUseResult": result.twin, "content": result.rest}
        beyond = {name: value for name, value in told.items() if value}
        if beyond and place in entries:
            entry = whole.get(place, entries[place])
            whole[place] = msgspec.structs.replace(entry, extra=(entry.extra or {}) | beyond)
    return whole


def _told(entry: Entry, fate: Fate, *, is_own: bool) -> Entry:
    if fate == "live" and is_own:
        return entry
    return msgspec.structs.replace(entry, fate=fate, own=is_own)


def _span(entries: Sequence[Entry]) -> tuple[datetime | None, datetime | None]:
    """Return when the first and the last thing happened; copies from another session only if there is nothing else."""
    times = [entry.at for entry in entries if entry.at is not None and entry.own]
    times = times or [entry.at for entry in entries if entry.at is not None]
    return min(times, default=None), max(times, default=None)


def _project(state: State) -> Project:
    """Return where the session began: it may go on elsewhere, in a worktree; the folder's name leads nowhere."""
    root = next(iter(state.facts.get("cwd", ())), None)
    if root is None:
        return Project(None, state.origin.project_key, None, "none")
    return Project(root, state.origin.project_key, root_hash(root), "recorded")


def _title(state: State) -> str | None:
    """Return the title: the human's own, the model's, or that of a summary of this very conversation."""
    summaries = [
        title
        for name, title in state.titles.items()
        if name.startswith("summary of ") and name.removeprefix("summary of ") in state.places
    ]
    own = (state.titles.get(kind) for kind in ("custom-title", "ai-title", "agent-name"))
    return next((title for title in (*own, *reversed(summaries)) if title), None)


def _status(latest: Sequence[Node]) -> SessionStatus:
    """The last that was said tells how it ended, or that it was broken off; other notices do not count."""
    ends = (
        node.entry
        for node in latest
        if node.is_stop or isinstance(node.entry, Message) or node.entry.kind == "error"
    )
    last = next(ends, None)
    if not isinstance(last, Message) or last.role != "assistant":
        return "interrupted"
    failed = any(isinstance(part, ToolCall) and part.status == "error" for part in last.parts)
    return "failure" if failed else "success"


def _orphans(state: State) -> Iterator[Problem]:
    for call_id in state.early:
        yield problem("orphan-tool-result", f"no call {call_id}", state.path)


def _extra(state: State) -> Record:
    """Return what the lines say about the session, the words of the file for names."""
    return {name: list(values) for name, values in state.facts.items()}


def merged(readings: Sequence[Reading]) -> Recorded:
    """Return the copy that says most, with what only others say, in the order of time.

    A transcript only grows, so that one copy is nearly always the beginning of another. A line that says something else in
    another copy has two versions: the one in the file that was modified last stands, and the other is superseded.
    """
    # Subagents in one file whose ids begin alike are several readings with one state.
    distinct = dict[int, Reading]()
    for reading in readings:
        distinct.setdefault(id(reading.state.state), reading)
    first, *others = sorted(
        distinct.values(), key=lambda one: (-len(one.state.state.nodes), one.state.state.path)
    )
    found: Recorded = first.state
    state = found.state.copied()
    whole = _Whole(state)
    is_more = [
        whole.add(other.state.state, is_newer=other.modified_at > first.modified_at) for other in others
    ]
    if not any(is_more):
        return msgspec.structs.replace(found, state=state)
    places = _put_in_order(state)
    chain = found.chain if found.chain == MAIN else places[found.chain]
    return msgspec.structs.replace(found, state=state, chain=chain, places=places_by_chain(state)[chain])


class _Whole:
    """One copy, and what was added to it from others; what it says is looked through once, however many there are."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._unnamed = {msgspec.json.encode(node.entry) for node in state.nodes if not node.is_chained}
        self._requests = Counter(_request(node.entry) for node in state.nodes)
        """How many lines tell each request, and how many none."""
        self._superseded: dict[str | None, list[str]] = {}
        """What superseded versions of lines say, by the ids of the lines, in the order of the texts."""
        for place, node in enumerate(state.nodes):
            if node.is_chained and state.places.get(node.entry.id or "", place) != place:
                self._supersede(node.entry)

    def add(self, other: State, *, is_newer: bool) -> bool:
        """Add the lines and the versions of lines that only another copy has; tell whether there were any."""
        state = self._state
        state.problems += [told for told in other.problems if told not in state.problems]
        state.titles = other.titles | state.titles
        chains, added, versions = {MAIN: MAIN}, dict[int, int](), list[tuple[int, Node]]()
        for place, node in enumerate(other.nodes):
            known = state.places.get(node.entry.id or "") if node.is_chained else None
            if place == node.chain:
                chains[place] = len(state.nodes) if known is None else state.nodes[known].chain
            made = msgspec.structs.replace(node, chain=chains.get(node.chain, MAIN))
            if known is None and (node.is_chained or msgspec.json.encode(node.entry) not in self._unnamed):
                added[place] = state.add(made)
            elif known is not None and not self._is_held(node.entry, state.nodes[known].entry):
                versions.append((known, made))
        for place in added.values():
            self._note(state.nodes[place])
        self._add_versions(versions, is_newer=is_newer)
        for call, places in other.results.items():
            new = tuple(added[place] for place in places if place in added)
            state.results[call] = (*state.results.get(call, ()), *new)
        state.answered |= {chains[chain] for chain in other.answered}
        state.billed |= {chains[chain] for chain in other.billed}
        calls = {call: added[place] for call, place in other.calls.items() if place in added}
        state.calls = calls | state.calls
        return bool(added or versions)

    def _note(self, node: Node) -> None:
        """Take note of a line that was added."""
        if not node.is_chained:
            self._unnamed.add(msgspec.json.encode(node.entry))
        self._requests[_request(node.entry)] += 1

    def _add_versions(self, versions: Sequence[tuple[int, Node]], *, is_newer: bool) -> None:
        """Add other versions of known lines; a request that another line tells is not told by a superseded one."""
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
                self._state.put(place, msgspec.structs.replace(entry, usage=None))
            else:
                self._requests[request] += 1
            self._supersede(entry)

    def _supersede(self, entry: Entry) -> None:
        known = self._superseded.setdefault(entry.id, [])
        for word in _words(entry):
            insort(known, word)

    def _is_held(self, entry: Entry, known: Entry) -> bool:
        """Tell whether a known line and its superseded versions say all that another version says, or more of the same."""
        if entry == known:
            return True
        held, superseded = tuple(_words(known)), self._superseded.get(entry.id, ())
        return all(
            any(text.startswith(word) for text in held) or _begins_one(word, superseded)
            for word in _words(entry)
        )


def _begins_one(word: str, ordered: Sequence[str]) -> bool:
    """Tell whether a word is the beginning of one of some texts in their order."""
    place = bisect_left(ordered, word)
    return place < len(ordered) and ordered[place].startswith(word)


def _request(entry: Entry) -> str | None:
    return entry.usage.request if isinstance(entry, Message) and entry.usage is not None else None


def _words(entry: Entry) -> Iterator[str]:
    """Yield what an entry says, what its calls were given and gave back, and its pictures."""
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


def _put_in_order(state: State) -> dict[int, int]:
    """Put the lines of several copies in the order of time; return where each of them stands now."""
    times = list(_times(state.nodes))
    order = sorted(range(len(times)), key=lambda place: (times[place] is not None, times[place], place))
    now = {place: where for where, place in enumerate(order)}
    state.nodes = [
        msgspec.structs.replace(state.nodes[place], chain=now.get(state.nodes[place].chain, MAIN))
        for place in order
    ]
    state.answered = {now.get(chain, MAIN) for chain in state.answered}
    state.billed = {now.get(chain, MAIN) for chain in state.billed}
    state.places = {name: now[place] for name, place in state.places.items()}
    state.calls = {call: now[place] for call, place in state.calls.items()}
    state.early = {call: (now[place], result) for call, (place, result) in state.early.items()}
    state.results = {call: tuple(now[place] for place in places) for call, places in state.results.items()}
    return now


def _times(nodes: Sequence[Node]) -> list[datetime | None]:
    """Return the time of each line; where none is recorded, that of the one before it."""
    times: list[datetime | None] = []
    for node in nodes:
        times.append(node.entry.at or (times[-1] if times else None))
    return times


def group(reading: Reading) -> str | None:
    """Return what all readings of one conversation share: the session's id, and the subagent's.

    An id that is no UUID may name many sessions; then the place of the file tells them apart.
    """
    found: Recorded = reading.state
    name = f"{found.state.session_id}:{found.agent_id or ''}"
    return name if is_session_id(found.state.session_id) else f"{reading.source.path.parent}:{name}"


def log_folder(_reading: Reading) -> str | None:
    """Return no folder: no log of prompts is read."""
    return None


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one conversation."""
    ordered = sorted(readings, key=lambda reading: reading.source.shown)
    with room_for_depth():
        found = ordered[0].state if len(ordered) == 1 else merged(ordered)
        return assembled(session_draft(found, ordered), view)


Waiting = dict[str | None, list[Session]]


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions of one cluster with parents and children named."""
    return [_as_parent(session, sessions) if session.kind == "main" else session for session in sessions]


def _as_parent(session: Session, sessions: Sequence[Session]) -> Session:
    """Return a session with its children named, and each of them by the call that started it."""
    found = sorted(
        (child for child in sessions if child.parent == session.key),
        key=lambda child: (str(child.started_at), child.key),
    )
    named = set(_named(session))
    waiting = _by_task([child for child in found if child.key not in named])
    timeline = tuple(_linked(entry, waiting) for entry in session.timeline) if waiting else session.timeline
    return msgspec.structs.replace(session, children=tuple(child.key for child in found), timeline=timeline)


def _named(session: Session) -> Iterator[str]:
    messages = (entry for entry in session.timeline if isinstance(entry, Message))
    parts = (part for message in messages for part in message.parts)
    return (part.child for part in parts if isinstance(part, ToolCall) and part.child)


def _by_task(children: Sequence[Session]) -> Waiting:
    """Return the subagents that no call names, by what they were asked to do; the latest first."""
    waiting: Waiting = {}
    for child in reversed(children):
        waiting.setdefault(_task(child), []).append(child)
    return waiting


def _task(child: Session) -> str | None:
    parts = (part for entry in child.timeline if isinstance(entry, Message) for part in entry.parts)
    return next((part.text for part in parts if isinstance(part, Context) and part.kind == "task"), None)


def _linked(entry: Entry, waiting: Waiting) -> Entry:
    """Give each call that started a subagent the first one with its prompt."""
    if not isinstance(entry, Message):
        return entry
    parts = tuple(_with_child(part, waiting) if isinstance(part, ToolCall) else part for part in entry.parts)
    return msgspec.structs.replace(entry, parts=parts)


def _with_child(call: ToolCall, waiting: Waiting) -> ToolCall:
    task = call.arguments.get("prompt")
    if call.child is not None or call.name not in STARTS_AGENT or type(task) is not str:
        return call
    children = waiting.get(task)
    return msgspec.structs.replace(call, child=children.pop().key) if children else call
