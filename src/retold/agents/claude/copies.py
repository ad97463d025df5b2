"""Several files of one conversation as one: a backup, another machine's copy, a project that was moved."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from retold.agents.claude.sessions import Recorded, places_by_chain
from retold.agents.claude.state import MAIN, Node, State


def merged(files: Sequence[Recorded]) -> Recorded:
    """Return the copy that says most, with what only others say, in the order of time.

    A transcript only grows, so that one copy is nearly always the beginning of another.
    """
    first, *others = sorted(files, key=lambda file: (-len(file.state.nodes), file.state.path))
    state = first.state.copied()
    is_more = [_add_missing(state, other.state) for other in others]
    if not any(is_more):
        return msgspec.structs.replace(first, state=state)
    places = _put_in_order(state)
    chain = first.chain if first.chain == MAIN else places[first.chain]
    return msgspec.structs.replace(first, state=state, chain=chain, places=places_by_chain(state)[chain])


def _add_missing(state: State, other: State) -> bool:
    """Add the lines that only the other copy has; tell whether there were any."""
    state.problems += [told for told in other.problems if told not in state.problems]
    state.titles = other.titles | state.titles
    unnamed = {msgspec.json.encode(node.entry) for node in state.nodes if not node.is_chained}
    chains, added = {MAIN: MAIN}, dict[int, int]()
    for place, node in enumerate(other.nodes):
        known = state.places.get(node.entry.id or "") if node.is_chained else None
        if place == node.chain:
            chains[place] = len(state.nodes) if known is None else state.nodes[known].chain
        if known is None and (node.is_chained or msgspec.json.encode(node.entry) not in unnamed):
            chain = chains.get(node.chain, MAIN)
            added[place] = state.add(msgspec.structs.replace(node, chain=chain))
    for call, places in other.results.items():
        new = tuple(added[place] for place in places if place in added)
        state.results[call] = (*state.results.get(call, ()), *new)
    state.answered |= {chains[chain] for chain in other.answered}
    state.billed |= {chains[chain] for chain in other.billed}
    state.calls = {call: added[place] for call, place in other.calls.items() if place in added} | state.calls
    return bool(added)


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
