"""A session as a thin strip: a block for each turn, as long as what was said and done in it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from retold.sessions.pages import SessionTurn

WIDTH, LENGTH = 10, 1000
"""Of the strip."""
MOST = 200
"""Blocks: of a session with more turns, some are told in one."""
_KINDS = ("turn", "compacted", "failed", "taken")
"""The later ones win where several turns are one block."""


class MinimapBlock(msgspec.Struct, frozen=True):
    """One or several turns."""

    begin: float
    length: float
    kind: str
    """`turn`, `compacted`, `failed` for one in which a call failed, `taken` for one that was taken back or replaced."""


def paths(turns: Sequence[SessionTurn], total: int) -> tuple[tuple[str, str], ...]:
    """Return the strip of a session with so many entries: for each kind of blocks, all of them as one SVG path."""
    drawn: dict[str, list[str]] = defaultdict(list)
    for block in blocks(turns, total):
        drawn[block.kind].append(f"M0 {block.begin:g}h{WIDTH}v{block.length:g}h-{WIDTH}z")
    return tuple((kind, "".join(drawn[kind])) for kind in _KINDS if kind in drawn)


def blocks(turns: Sequence[SessionTurn], total: int) -> Iterator[MinimapBlock]:
    """Yield the blocks of a session with so many entries."""
    step = -(-len(turns) // MOST) or 1
    for place in range(0, len(turns), step):
        held = turns[place : place + step]
        end = turns[place + step].place if place + step < len(turns) else total
        kind = max(map(kind_of, held), key=_KINDS.index)
        yield MinimapBlock(held[0].place * LENGTH / total, (end - held[0].place) * LENGTH / total, kind)


def kind_of(turn: SessionTurn) -> str:
    """Return what became of a turn."""
    if turn.fate in ("rewound", "superseded"):
        return "taken"
    if turn.errors:
        return "failed"
    return "compacted" if turn.fate == "compacted" else "turn"
