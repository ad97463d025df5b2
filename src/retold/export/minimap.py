"""A session as a thin strip: a block for each turn, as long as what was said and done in it."""

from collections.abc import Iterator, Sequence

import msgspec

from retold.ingest.slices import Turn

LENGTH = 1000
"""Of the strip."""
MOST = 200
"""Blocks: of a session with more turns, some are told in one."""
_KINDS = ("turn", "compacted", "failed", "taken")
"""The later ones win where several turns are one block."""


class Block(msgspec.Struct, frozen=True):
    """One or several turns."""

    place: int
    """Of the first, in the timeline."""
    begin: float
    length: float
    kind: str
    """`turn`, `compacted`, `failed` for one in which a call failed, `taken` for one that was taken back or replaced."""
    text: str
    """What the person said."""


def blocks(turns: Sequence[Turn], total: int) -> tuple[Block, ...]:
    """Return the strip of a session with so many entries."""
    return tuple(_blocks(turns, total)) if total else ()


def _blocks(turns: Sequence[Turn], total: int) -> Iterator[Block]:
    step = -(-len(turns) // MOST) or 1
    for place in range(0, len(turns), step):
        held = turns[place : place + step]
        end = turns[place + step].place if place + step < len(turns) else total
        begin = held[0].place
        kind = max(map(kind_of, held), key=_KINDS.index)
        length = (end - begin) * LENGTH / total
        yield Block(begin, round(begin * LENGTH / total, 2), round(length, 2), kind, held[0].text)


def kind_of(turn: Turn) -> str:
    """Return what became of a turn."""
    if turn.fate in ("rewound", "superseded"):
        return "taken"
    if turn.errors:
        return "failed"
    return "compacted" if turn.fate == "compacted" else "turn"
