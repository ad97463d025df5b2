"""A file to readings: told by its content, then folded line by line."""

from collections.abc import Sequence
from typing import Any

from retold.agents.claude.beside import KNOWN, TITLES
from retold.agents.claude.places import origin
from retold.agents.claude.replay import replay, replay_torn
from retold.agents.claude.sessions import Recorded, places_by_chain
from retold.agents.claude.state import State
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.reading.disk import Disk
from retold.reading.jsonl import START, JsonLine, LineFile, decode_line, open_lines

FORMAT = "claude-jsonl"
_TELLING = 64
"""How many lines are looked at to tell whose file it is."""
_NAMED = frozenset(("parentUuid", "isSidechain", "sessionId", "leafUuid", "messageId"))
_ASIDE = KNOWN | TITLES.keys() | {"system", "attachment", "queue-operation", "last-prompt"}


def read(source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
    """Read a transcript; given what an earlier call returned, only what was appended since."""
    before: Recorded | None = earlier[0].state if earlier else None
    file = open_lines(source.path, before.mark if before is not None else START, source.disk)
    if isinstance(file, Problem):
        return file
    with file:
        if file.mark == START or before is None or before.settled is None:
            if source.home is None and not _is_transcript(file, source.shown):
                return problem("not-a-session", "no transcript of Claude Code", source.shown)
            settled = State(source.shown, origin(source.path))
        else:
            settled = before.settled.copied()
        state = _read_on(settled, file, source.disk)
    chains = places_by_chain(state)
    if not chains:
        return problem("not-a-session", "nothing was said in it", source.shown)
    first = next(iter(chains))
    return tuple(
        _reading(source, file, Recorded(state, chain, chain == first, settled, file.mark, places))
        for chain, places in chains.items()
    )


def _read_on(settled: State, file: LineFile, disk: Disk) -> State:
    """Fold all whole lines into the state; return the one at the end of the file, where one may be still being written."""
    tail = replay(settled, file.pieces(), disk)
    if tail is None:
        return settled
    state = settled.copied()
    replay_torn(state, tail, disk)
    return state


def _is_transcript(file: LineFile, path: str) -> bool:
    """Tell whether one of the first lines is Claude Code's."""
    for number, raw, _ in file.pieces():
        if number > _TELLING:
            return False
        if any(
            isinstance(line, JsonLine) and _is_ours(line.value) for line in decode_line(raw, number, path)
        ):
            return True
    return False


def _is_ours(record: Any) -> bool:
    if type(record) is not dict or not _NAMED & record.keys():
        return False
    message = record.get("message")
    if record.get("type") in ("user", "assistant"):
        return type(message) is dict and type(message.get("content")) in (str, list)
    kind = record.get("type")
    return type(kind) is str and kind in _ASIDE


def _reading(source: Source, file: LineFile, found: Recorded) -> Reading:
    return Reading(
        source, FORMAT, found.agent_id or found.state.native_id, file.size, file.modified_at, found, ()
    )
