"""Lines that a thread copied from another: how far they reach.

Evidence: `docs/formats/codex.md`, section 9.
"""

import sys
from typing import Any

from retold.agents.codex.packed import pieces_of
from retold.agents.codex.places import find_rollout
from retold.agents.codex.state import State
from retold.agents.protocol import Source
from retold.reading.diagnostics import ReaderNotes
from retold.reading.json_decode import Decoded, decode

NOWHERE = sys.maxsize
"""Behind every place: a copy of which no line is its own yet."""


def own_from(state: State, source: Source) -> int | None:
    """Return where a copied thread begins to be its own: by its turns' ids, else by comparison with its parent."""
    if not state.is_copying:
        return state.own_from
    if state.has_turn_ids:
        return NOWHERE
    path = find_rollout(state.copied_from, source) if state.copied_from else None
    if path is None:
        return None
    notes = ReaderNotes(source.shown)
    mine, theirs = (pieces_of(file, notes, source.disk) for file in (source.path, path))
    next(mine, None)
    place = 1
    for (_, own, _), (_, copied, _) in zip(mine, theirs, strict=False):
        if _without_time(own) != _without_time(copied):
            break
        place += 1
    return place


def _without_time(raw: bytes | memoryview) -> Any:
    """Return a line without its time, of which a copy has its own."""
    found = decode(raw)
    value = found.value if isinstance(found, Decoded) else bytes(raw)
    return {key: value[key] for key in value if key != "timestamp"} if type(value) is dict else value
