"""Several files of one conversation as one: copies, twins, splits, ghosts and fragments.

Every record once, in order of first appearance, whatever the order in which the files were found. What is live is what
`--resume` of the newest CLI would load: the resumable file that was updated last. What only other files hold was left
behind by a compression or a clearing.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from typing import Any

import msgspec

from retold.agents.gemini.loader import active_records, is_resumable
from retold.agents.gemini.outputs import Outputs
from retold.agents.gemini.raw import Record
from retold.agents.gemini.replay import as_state
from retold.agents.gemini.restored import WRITTEN, Mark, mark_of
from retold.agents.gemini.sessions import Recorded
from retold.agents.gemini.state import Key, Place, State, Version, add_version, folded_copies


def merged(files: Sequence[Recorded]) -> Recorded:
    """Return the files of one conversation as if they were one file; of several contents of a file the last stands."""
    ordered = sorted(files, key=_order)
    states = [as_state(file.state) for file in ordered]
    names = _everything(states)[1]
    ever = _everything(_as_said(states))[0]
    latest_first = reversed(list(zip(states, names, strict=True)))
    active, own_names = max(latest_first, key=lambda pair: _recency(pair[0]))
    listed = own_names if active.verbatim is not None else frozenset(active.live)
    outputs = {name: text for file in ordered for name, text in file.outputs.texts.items()}
    state = State(
        path=active.path,
        metadata=_metadata(states),
        starts=tuple(start for state in states for start in state.starts),
        live=active.live,
        verbatim=active.verbatim,
        ever=ever,
        gone=active.gone,
        copies=reduce(folded_copies, (state.copies for state in states)),
        is_whole=active.is_whole,
        seen_by_loader=active.seen_by_loader,
        records=sum(state.records for state in states),
        problems=tuple(dict.fromkeys(problem for state in states for problem in state.problems)),
        listed=listed,
    )
    # Where it was written back to says nothing of where it took place.
    own = [
        file.origin for file, state in zip(ordered, states, strict=True) if mark_of(state.metadata) is None
    ]
    first, *_ = origins = own or [file.origin for file in ordered]
    # A copied folder keeps the hash as its name, the newer one has a name of its own.
    keys = sorted({origin.project_key or "" for origin in origins}, key=lambda key: (len(key), key))
    named = msgspec.structs.replace(first, project_key=keys[0] or first.project_key)
    return Recorded(named, state, Outputs(outputs))


def _order(file: Recorded) -> tuple[str, str, str]:
    """Earlier files first; of twins the older form, so that the newer one adds to it."""
    state = as_state(file.state)
    starts = [start for start in state.starts if type(start) is str]
    return min(starts, default=file.origin.stem.removeprefix("session-")), file.origin.stem, state.path


def _recency(state: State) -> tuple[bool, bool, str, str]:
    """What the CLI's session list prefers: a file that can be resumed, updated last.

    One that we wrote back, and in which nothing was said since, only repeats another.
    """
    can_resume = any(is_resumable(record) for record in active_records(state) if type(record) is dict)
    mark, updated = mark_of(state.metadata), state.metadata.get("lastUpdated")
    has_more = mark is None or bool(_added(state, mark))
    return can_resume, has_more, updated if type(updated) is str else "", state.path


def _as_said(states: Sequence[State]) -> list[State]:
    """Return the states without what we wrote back, if what it was made of is there: that is as it was said."""
    marks = [mark_of(state.metadata) for state in states]
    if not any(mark is None and state.ever for mark, state in zip(marks, states, strict=True)):
        return list(states)
    return [
        state if mark is None else msgspec.structs.replace(state, ever=_added(state, mark))
        for mark, state in zip(marks, states, strict=True)
    ]


def _added(state: State, mark: Mark) -> dict[Key, tuple[Version, ...]]:
    """Return what was added to a file behind what we wrote."""
    later = {
        key: tuple(version for version in versions if _is_added(version[1], mark))
        for key, versions in state.ever.items()
    }
    return {key: versions for key, versions in later.items() if versions}


def _is_added(place: Place, mark: Mark) -> bool:
    line, index = place
    return line > mark.messages + 1 if line else index >= mark.messages  # a document has no lines


def _metadata(states: Sequence[State]) -> Record:
    """Return what the files say of the session; of two answers, that of the file updated last."""
    known: Record = {}
    has_original = any(mark_of(state.metadata) is None for state in states)
    for state in sorted(states, key=lambda state: str(state.metadata.get("lastUpdated") or "")):
        is_ours = has_original and mark_of(state.metadata) is not None
        known |= {
            key: value
            for key, value in state.metadata.items()
            if value is not None and not (is_ours and key in WRITTEN)
        }
    return known


def _everything(states: Sequence[State]) -> tuple[dict[Key, tuple[Version, ...]], list[frozenset[Key]]]:
    """Return every version of every message, and the names that each file has for its own.

    What has no id is named by its content, and counts as often as in the file that has it most.
    """
    ever: dict[Key, tuple[Version, ...]] = {}
    names: list[frozenset[Key]] = []
    for state in states:
        seen: dict[bytes, int] = defaultdict(int)
        own = {
            key: key if type(key) is str else _name(versions[0][0], seen)
            for key, versions in state.ever.items()
        }
        for key, versions in state.ever.items():
            ever[own[key]] = _joined(ever.get(own[key], ()), versions)
        names.append(frozenset(own.values()))
    return ever, names


def _name(record: Any, seen: dict[bytes, int]) -> Key:
    try:
        content = msgspec.json.encode(record, order="sorted")
    except (OverflowError, RecursionError):  # an integer of more than 64 bits
        content = repr(record).encode(errors="replace")
    seen[content] += 1
    return content, seen[content]


def _joined(known: tuple[Version, ...], more: tuple[Version, ...]) -> tuple[Version, ...]:
    if not known and len(more) == 1:
        return more
    versions = list(known)
    for record, place in more:
        add_version(versions, record, place)
    return tuple(versions)
