"""Which lines Claude Code would load again, in its order, and what became of the others.

What it loads was asked of the real CLI, by resuming edited transcripts (`tests/agents/claude/test_real_claude.py`).
Branching alone is no fork: the blocks of one response, and the results of parallel calls, branch too. A person who goes
back and says something else leaves a branch behind in which a person speaks.
Evidence: `docs/formats/claude.md`, section 5.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from retold.agents.claude.state import MAIN, Node, Preserved, State
from retold.model.session import Fate, Message, ToolCall

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
