"""Several files of one conversation as one: a backup, another machine's copy, a project that was moved."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from retold.agents.claude.sessions import Recorded, places_by_chain
from retold.agents.claude.state import MAIN, Node, State
from retold.agents.protocol import Reading
from retold.model.entries import Entry, Message
from retold.model.parts import Attachment, ToolCall
from retold.model.usage import Usage


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
    is_more = [
        _add_missing(state, other.state.state, is_newer=other.modified_at > first.modified_at)
        for other in others
    ]
    if not any(is_more):
        return msgspec.structs.replace(found, state=state)
    places = _put_in_order(state)
    chain = found.chain if found.chain == MAIN else places[found.chain]
    return msgspec.structs.replace(found, state=state, chain=chain, places=places_by_chain(state)[chain])


def _add_missing(state: State, other: State, *, is_newer: bool) -> bool:
    """Add the lines and the versions of lines that only the other copy has; tell whether there were any."""
    state.problems += [told for told in other.problems if told not in state.problems]
    state.titles = other.titles | state.titles
    unnamed = {msgspec.json.encode(node.entry) for node in state.nodes if not node.is_chained}
    chains, added = {MAIN: MAIN}, dict[int, int]()
    versions, superseded = list[tuple[int, Node]](), _superseded_words(state)
    for place, node in enumerate(other.nodes):
        known = state.places.get(node.entry.id or "") if node.is_chained else None
        if place == node.chain:
            chains[place] = len(state.nodes) if known is None else state.nodes[known].chain
        chain = chains.get(node.chain, MAIN)
        if known is None and (node.is_chained or msgspec.json.encode(node.entry) not in unnamed):
            added[place] = state.add(msgspec.structs.replace(node, chain=chain))
        elif known is not None and not _is_held(node.entry, state.nodes[known].entry, superseded):
            versions.append((known, msgspec.structs.replace(node, chain=chain)))
    _add_versions(state, versions, is_newer=is_newer)
    for call, places in other.results.items():
        new = tuple(added[place] for place in places if place in added)
        state.results[call] = (*state.results.get(call, ()), *new)
    state.answered |= {chains[chain] for chain in other.answered}
    state.billed |= {chains[chain] for chain in other.billed}
    state.calls = {call: added[place] for call, place in other.calls.items() if place in added} | state.calls
    return bool(added or versions)


def _add_versions(state: State, versions: Sequence[tuple[int, Node]], *, is_newer: bool) -> None:
    """Add other versions of known lines; a request that another line tells is not told by a superseded one."""
    if not versions:
        return
    for known, node in versions:
        state.nodes.append(node)
        if is_newer:
            state.nodes[known], state.nodes[-1] = state.nodes[-1], state.nodes[known]
    told = {usage.request for node in state.nodes[: -len(versions)] if (usage := _usage(node.entry))}
    for place in range(len(state.nodes) - len(versions), len(state.nodes)):
        entry = state.nodes[place].entry
        if isinstance(entry, Message) and entry.usage is not None:
            if entry.usage.request in told:
                state.put(place, msgspec.structs.replace(entry, usage=None))
            told.add(entry.usage.request)


def _usage(entry: Entry) -> Usage | None:
    return entry.usage if isinstance(entry, Message) else None


def _superseded_words(state: State) -> dict[str | None, set[str]]:
    """Return what superseded versions of lines say, by the ids of the lines."""
    found: dict[str | None, set[str]] = {}
    for place, node in enumerate(state.nodes):
        if node.is_chained and state.places.get(node.entry.id or "", place) != place:
            found.setdefault(node.entry.id, set()).update(_words(node.entry))
    return found


def _is_held(entry: Entry, known: Entry, superseded: dict[str | None, set[str]]) -> bool:
    """Tell whether a known line and its superseded versions say all that another version says, or more of the same."""
    if entry == known:
        return True
    held = {*_words(known), *superseded.get(entry.id, ())}
    return all(word in held or any(text.startswith(word) for text in held) for word in _words(entry))


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
