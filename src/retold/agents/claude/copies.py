"""Several files of one conversation as one: a backup, another machine's copy, a project that was moved."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from retold.agents.claude.sessions import Recorded, places_by_chain
from retold.agents.claude.state import MAIN, Node, State
from retold.agents.protocol import Reading
from retold.model.session import Attachment, Entry, Message, ToolCall


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
