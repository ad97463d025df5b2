"""Ghosts: files without conversation that a resume leaves beside the real one, and that take it with them.

A resume in another minute begins a file `session-<now>-<short id>.jsonl` in which nothing is ever said. At the next start of
any session of the project 0.42, 0.43, 0.47 and later find it not worth keeping, and delete every file of that short id.
Evidence: `docs/formats/gemini.md`, section 4.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from retold.agents.gemini.loader import active_records, is_resumable
from retold.agents.gemini.places import find
from retold.agents.gemini.raw import ENVIRONMENT_ID
from retold.agents.gemini.read import read
from retold.agents.gemini.replay import as_state
from retold.agents.gemini.sessions import Recorded
from retold.agents.gemini.state import State
from retold.agents.protocol import AgentHome, Ghost, Source
from retold.model.problem import Problem


def ghosts(home: AgentHome) -> Iterator[Ghost]:
    """Yield the files in which nothing was said, beside files of the same session in which something was.

    Only where several files share a short id is anything read.
    """
    beside: defaultdict[tuple[str, str], list[Source]] = defaultdict(list)
    for source in find(home):
        if isinstance(source, Source) and source.path.parent.name == "chats" and source.cluster:
            beside[str(source.path.parent), source.cluster].append(source)
    for sources in beside.values():
        if len(sources) > 1:
            yield from _among(sources)


def _among(sources: Sequence[Source]) -> Iterator[Ghost]:
    by_id: defaultdict[object, list[tuple[Source, State]]] = defaultdict(list)
    for source in sources:
        readings = read(source)
        if isinstance(readings, Problem):
            continue
        for reading in readings:
            if isinstance(reading.state, Recorded) and reading.native_id is not None:
                by_id[reading.native_id].append((source, as_state(reading.state.state)))
    for native_id, found in by_id.items():
        real = [source.path for source, state in found if _is_conversation(state)]
        for source, state in found:
            if real and _is_empty(state):
                yield Ghost(source, str(native_id), tuple(real))


def _is_conversation(state: State) -> bool:
    return any(type(record) is dict and is_resumable(record) for record in active_records(state))


def _is_empty(state: State) -> bool:
    """Tell whether nothing was ever said in a file: what the CLI writes itself when it starts is all there is."""
    return not state.problems and all(key == ENVIRONMENT_ID for key in state.ever)
