"""A thread's files to a draft of its session."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from retold.agents.codex.prompt_text import as_injected
from retold.agents.codex.raw import Record
from retold.agents.codex.reader import Rollout
from retold.agents.codex.state import State, copied, kind_of, parent_of, project_of
from retold.agents.codex.thread_lists import lost_draft, name_in
from retold.agents.codex.tokens import settle, thread_start
from retold.agents.codex.tool_calls import finish
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, assembled, estimated
from retold.model.problem import Problem, problem
from retold.model.serialization import room_for_depth
from retold.model.session import Coverage, Entry, Fate, Message, Part, Session, SessionStatus, ToolCall, View
from retold.reading.diagnostics import ReaderNotes


def superseded(entries: Sequence[Entry | None], copies: Iterable[State]) -> Iterator[Entry]:
    """Yield the entries of copies that say something which is not among the others."""
    told = [entry for entry in entries if entry is not None]
    known = {word for entry in told for word in _words(entry)}
    requests = {entry.usage.request for entry in told if isinstance(entry, Message) and entry.usage}
    for copy in copies:
        for entry in copy.entries:
            words = set(_words(entry)) if entry is not None else set()
            if entry is not None and not words <= known:
                known |= words
                yield _without_usage(msgspec.structs.replace(entry, fate="superseded"), requests)


def _without_usage(entry: Entry, requests: set[str]) -> Entry:
    """Return an entry without the figures of a request that is counted: such requests are known by their number only."""
    if not isinstance(entry, Message) or entry.usage is None or entry.usage.request not in requests:
        return entry
    return msgspec.structs.replace(entry, usage=None)


def _words(entry: Entry) -> Iterator[str]:
    if not isinstance(entry, Message):
        if entry.text:
            yield entry.text
        return
    for part in entry.parts:
        yield from _part_words(part)


def _part_words(part: Part) -> Iterator[str]:
    if isinstance(part, ToolCall):
        yield f"{part.name} {part.arguments}"
        yield from (text for text in (part.result, part.error) if text)
    else:
        yield getattr(part, "text", None) or repr(part)


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


_TOLD = frozenset(("id", "timestamp", "cwd"))
"""What of a thread's own record has a field of ours."""


def recorded_draft(readings: Sequence[Reading], lists: Sequence[Reading], view: View) -> Draft:
    """Return the draft of a thread; `lists` may know its name."""
    rollouts: list[Rollout] = [reading.state for reading in readings]
    first = min(rollouts, key=lambda rollout: (str(rollout.state.meta.get("timestamp")), rollout.id or ""))
    meta, path = first.state.meta, readings[0].source
    thread = first.thread or path.path.name.partition(".")[0]
    notes = ReaderNotes(path.shown)
    full = timeline(rollouts)
    if all(entry.usage is None for entry in full if type(entry) is Message):
        full = estimated(full, thread)
    started_at, ended_at, are_derived = _times(readings, notes.time(meta.get("timestamp")), full)
    return Draft(
        key=f"codex:{thread}",
        agent="codex",
        native_id=first.thread,
        kind=kind_of(meta),
        project=project_of(meta),
        summary=_name(rollouts) or name_in(lists),
        started_at=started_at,
        ended_at=ended_at,
        are_times_derived=are_derived,
        status=_status(full),
        parent=parent_of(meta),
        sources=tuple(map(source_file, readings)),
        coverage=_coverage(rollouts),
        problems=(*_problems(readings), *notes.problems),
        extra=_extra(meta, rollouts),
        full=full,
        active=full if view == "full" else tuple([entry for entry in full if entry.fate == "live"]),
    )


def _name(rollouts: Sequence[Rollout]) -> str | None:
    return next((rollout.state.name for rollout in reversed(rollouts) if rollout.state.name), None)


def _times(
    readings: Sequence[Reading], started_at: datetime | None, timeline: Sequence[Entry]
) -> tuple[datetime | None, datetime | None, bool]:
    times = [reading.state.state.last_at for reading in readings]
    if started_at is None:
        started_at = next((entry.at for entry in timeline if entry.at is not None), None)
    ended_at = max((at for at in times if at is not None), default=started_at)
    if ended_at is None:
        modified_at = min(reading.modified_at for reading in readings)
        return modified_at, modified_at, True
    return started_at or ended_at, ended_at, False


def _status(timeline: Sequence[Entry]) -> SessionStatus:
    """Tell how it ended by who had the last word that Codex still knows."""
    live = (entry for entry in reversed(timeline) if type(entry) is Message and entry.fate == "live")
    last = next(live, None)
    if last is None or last.role != "assistant":
        return "interrupted"
    failed = any(type(part) is ToolCall and part.status == "error" for part in last.parts)
    return "failure" if failed else "success"


def _coverage(rollouts: Sequence[Rollout]) -> Coverage:
    records = sum(rollout.state.records for rollout in rollouts)
    return Coverage(max(records, 1), sum(rollout.state.notes.opaque for rollout in rollouts))


def _problems(readings: Sequence[Reading]) -> Iterator[Problem]:
    for reading in readings:
        found: Rollout = reading.state
        yield from reading.problems
        yield from found.state.notes.problems
        if not found.state.meta:
            yield problem("no-metadata", "the file does not say whose it is", reading.source.shown)
        if found.base is None and "history_base" in found.state.meta:
            yield problem(
                "missing-base", "the rollout that this one goes on from is not there", reading.source.shown
            )


def _extra(meta: Record, rollouts: Sequence[Rollout]) -> Record:
    """Return what Codex recorded of the thread besides, and how full its limits were at the end."""
    state = rollouts[-1].state
    told: Record = {**meta, "model_context_window": state.window, "rate_limits": state.limits}
    extra: dict[str, Any] = {
        key: value for key, value in told.items() if key not in _TOLD and value is not None
    }
    if any(rollout.is_archived for rollout in rollouts):
        extra["archived"] = True
    return extra


def group(reading: Reading) -> str | None:
    """Return what all readings of one thread share: its id."""
    return reading.native_id


def log_folder(_reading: Reading) -> str | None:
    """Return no folder: a thread's id is the same in every list."""
    return None


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one thread."""
    ordered = sorted(readings, key=lambda reading: reading.source.shown)
    rollouts = [reading for reading in ordered if isinstance(reading.state, Rollout)]
    lists = [reading for reading in ordered if not isinstance(reading.state, Rollout)]
    with room_for_depth():
        return assembled(recorded_draft(rollouts, lists, view) if rollouts else lost_draft(lists), view)


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions as they are: parents and children have ids, and so clusters, of their own."""
    return sessions
