"""A thread's files to one timeline: what was ever said, each once, with what became of it.

Evidence: `docs/formats/codex.md`, section 9.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from retold.agents.codex.pairing import finish
from retold.agents.codex.rollouts import Rollout
from retold.agents.codex.state import State, copied
from retold.agents.codex.tokens import settle
from retold.agents.codex.turns import thread_start
from retold.agents.codex.versions import superseded
from retold.agents.codex.words import as_injected
from retold.model.session import Entry, Fate, Message

_EPOCH = datetime.fromtimestamp(0, UTC)


def timeline(rollouts: Sequence[Rollout]) -> tuple[Entry, ...]:
    """Return the entries of the files of one thread, in the order in which the files were begun."""
    only = rollouts[0]
    if len(rollouts) == 1 and only.base is None and only.own_from is None and not only.state.cuts:
        return tuple([entry for entry in _completed(only.state).entries if entry is not None])
    files = _all_files(rollouts)
    tip = max(rollouts, key=_order)
    ends = _ends(tip, files)
    entries: list[Entry | None] = []
    fates: dict[int, Fate] = {}
    unmarked = _Unmarked()
    for rollout in sorted(files.values(), key=_order):
        start, state = len(entries), _completed(rollout.state)
        entries += _marked(state, rollout, tip.thread)
        kept = _kept(state, ends.get(rollout.id, 0))
        for cut in state.cuts:
            if cut.at < kept:
                first = start + cut.start if cut.fate == "rewound" else 0
                fates.update((place, cut.fate) for place in unmarked.taken(first, start + cut.at))
        fates.update((place, "rewound") for place in unmarked.taken(start + kept, len(entries)))
    copies = [_completed(rollout.state) for rollout in rollouts if files[rollout.id] is not rollout]
    return (*_with_fates(entries, fates), *superseded(entries, copies))


class _Unmarked:
    """The places without a fate. Each is taken once, so that many cuts over the same places take linear time."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        """For a place that was taken, one behind it; to follow these leads to the next that was not."""

    def taken(self, first: int, end: int) -> Iterator[int]:
        """Take the places of a range that nobody has taken."""
        place = self._after(first)
        while place < end:
            yield place
            self._next[place] = place + 1
            place = self._after(place)

    def _after(self, place: int) -> int:
        path = []
        while (following := self._next.get(place)) is not None:
            path.append(place)
            place = following
        self._next.update(dict.fromkeys(path, place))
        return place


def _all_files(rollouts: Sequence[Rollout]) -> dict[str | None, Rollout]:
    """Return the files by id, with those that they go on from; of copies, the one that was read furthest."""
    files: dict[str | None, Rollout] = {}
    for rollout in rollouts:
        if rollout.id not in files or files[rollout.id].state.records < rollout.state.records:
            files[rollout.id] = rollout
    for rollout in rollouts:
        base = rollout.base
        while base is not None:
            files.setdefault(base.id, base)
            base = base.base
    return files


def _order(rollout: Rollout) -> tuple[datetime, int]:
    return thread_start(rollout.state.meta) or _EPOCH, rollout.state.records


def _ends(tip: Rollout, files: dict[str | None, Rollout]) -> dict[str | None, int | None]:
    """Return the files that Codex would load, each with the ordinal at which the next goes on."""
    ends: dict[str | None, int | None] = {tip.id: None}
    rollout = tip
    while type(found := rollout.state.meta.get("history_base")) is dict:
        base = files.get(found.get("thread_id"))
        end = found.get("end_ordinal_exclusive")
        if base is None or base.id in ends or type(end) is not int:
            break
        ends[base.id] = end
        rollout = base
    return ends


def _kept(state: State, end: int | None) -> int:
    """Return how many entries stand before an ordinal."""
    return len(state.entries) if end is None else sum([place < end for place in state.places])


def _completed(state: State) -> State:
    """Return a state in which nothing waits any more: what has not come by now is not there."""
    has_doubts = state.has_spoken_events and state.unconfirmed
    if not state.waiting and state.meter.ahead is None and not has_doubts:
        return state
    state = copied(state)
    settle(state, state.last_at)
    finish(state)
    for index in state.unconfirmed if state.has_spoken_events else ():
        entry = state.entries[index]
        if type(entry) is Message:
            # Every turn that a human began has an event; this one is Codex's own, under a name that is not listed.
            state.entries[index] = msgspec.structs.replace(entry, prompt=None, parts=as_injected(entry.parts))
    return state


def _marked(state: State, rollout: Rollout, thread: str | None) -> list[Entry | None]:
    """Return the entries, with those marked that are another thread's: nobody said them here."""
    own_from = rollout.own_from
    if rollout.thread == thread and own_from is None:
        return state.entries
    is_foreign = rollout.thread != thread
    return [
        entry if not is_foreign and (own_from is None or place >= own_from) else _foreign(entry)
        for entry, place in zip(state.entries, state.places, strict=True)
    ]


def _foreign(entry: Entry | None) -> Entry | None:
    if entry is None:
        return None
    if type(entry) is Message:
        return msgspec.structs.replace(entry, own=False, prompt=None)
    return msgspec.structs.replace(entry, own=False)


def _with_fates(entries: Sequence[Entry | None], fates: dict[int, Fate]) -> list[Entry]:
    if not fates:
        return [entry for entry in entries if entry is not None]
    return [
        msgspec.structs.replace(entry, fate=fates[place]) if place in fates else entry
        for place, entry in enumerate(entries)
        if entry is not None
    ]
