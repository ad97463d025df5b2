"""A replayed transcript to a draft of its session, or of one of the subagents that older versions kept in it."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from retold.agents.claude.raw import Record
from retold.agents.claude.state import MAIN, Node, State
from retold.agents.claude.tree import became, became_of_subagent
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, estimated
from retold.model.problem import Problem, problem
from retold.model.session import Coverage, Entry, Fate, Message, Project, SessionStatus, ToolCall, root_hash
from retold.reading.jsonl import START, FileMark


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
