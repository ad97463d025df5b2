"""Makes the Session of a thread from its files."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from retold.agents.bookmarks import ReadWholeError
from retold.agents.codex.prompt_text import as_context
from retold.agents.codex.raw import Record
from retold.agents.codex.reader import Rollout
from retold.agents.codex.state import EarlierPart, State, copy_state, kind_of, parent_of, project_of
from retold.agents.codex.thread_lists import make_lost_draft, thread_name
from retold.agents.codex.tokens import assign_early_tokens, thread_start
from retold.agents.codex.tool_calls import finish_calls
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, assemble_session, estimate_usage, status_after
from retold.model.problem import Problem, problem
from retold.model.serialization import allow_deep_values
from retold.model.session import Coverage, Entry, Fate, Message, Part, Session, ToolCall, View
from retold.reading.diagnostics import ReaderNotes


def select_superseded(entries: Sequence[Entry | None], copies: Iterable[State]) -> Iterator[Entry]:
    """Yield the entries of copies with words that no other entry has."""
    own_entries = [entry for entry in entries if entry is not None]
    known = {word for entry in own_entries for word in _words(entry)}
    requests = {entry.usage.request for entry in own_entries if isinstance(entry, Message) and entry.usage}
    for copy in copies:
        for entry in copy.entries:
            words = set(_words(entry)) if entry is not None else set()
            if entry is not None and not words <= known:
                known |= words
                yield _without_usage(replace(entry, fate="superseded"), requests)


def _without_usage(entry: Entry, requests: set[str]) -> Entry:
    """Return an entry without the tokens of a request that is counted elsewhere: only its number identifies it."""
    if not isinstance(entry, Message) or entry.usage is None or entry.usage.request not in requests:
        return entry
    return replace(entry, usage=None)


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


def make_timeline(rollouts: Sequence[Rollout]) -> tuple[Entry, ...]:
    """Return the entries of the files of a thread, in the order in which the files were begun."""
    only = rollouts[0]
    if len(rollouts) == 1 and only.base is None and only.own_start is None and not only.state.cuts:
        return tuple([entry for entry in _complete_state(only.state).entries if entry is not None])
    files = _all_files(rollouts)
    tip = max(rollouts, key=_order)
    ends = _find_ends(tip, files)
    entries: list[Entry | None] = []
    fates: dict[int, Fate] = {}
    free_places = _PlacesWithoutFate()
    for rollout in sorted(files.values(), key=_order):
        start, state = len(entries), _complete_state(rollout.state)
        entries += _mark_copies(state, rollout, tip.thread)
        end = _count_before(state, ends.get(rollout.id, 0))
        for cut in state.cuts:
            if cut.at < end:
                first = start + cut.start if cut.fate == "rewound" else 0
                fates.update((place, cut.fate) for place in free_places.take(first, start + cut.at))
        fates.update((place, "rewound") for place in free_places.take(start + end, len(entries)))
    copies = [_complete_state(rollout.state) for rollout in rollouts if files[rollout.id] is not rollout]
    return (*_apply_fates(entries, fates), *select_superseded(entries, copies))


class _PlacesWithoutFate:
    """The places that have no fate yet. Each is taken once, so that many cuts over the same places take linear time."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        """For a taken place, a later one; following these leads to the next free place."""

    def take(self, first: int, end: int) -> Iterator[int]:
        """Yield the free places of a range, and mark them as taken."""
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
    """Return the files by id, with those that they continue; of copies, the one that was read furthest."""
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


def _find_ends(tip: Rollout, files: dict[str | None, Rollout]) -> dict[str | None, int | None]:
    """Return the files that Codex would load, each with the ordinal at which the next one continues it."""
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


def _count_before(state: State, end: int | None) -> int:
    return len(state.entries) if end is None else sum([place < end for place in state.places])


def _complete_state(state: State) -> State:
    """Return a state in which no call or token count is pending: what is missing by now will not come."""
    has_doubts = state.has_spoken_events and state.unconfirmed
    if not state.pending_calls and state.meter.ahead is None and not has_doubts:
        return state
    state = copy_state(state)
    assign_early_tokens(state, state.last_at)
    finish_calls(state)
    for index in state.unconfirmed if state.has_spoken_events else ():
        entry = state.entries[index]
        if type(entry) is Message:
            # Every turn of a person has an event; this prompt is Codex's own, under an unknown opening.
            state.entries[index] = replace(entry, prompt=None, parts=as_context("environment", entry.parts))
    return state


def _mark_copies(state: State, rollout: Rollout, thread: str | None) -> list[Entry | None]:
    """Return the entries, those of another thread marked as copies."""
    own_from = rollout.own_start
    if rollout.thread == thread and own_from is None:
        return state.entries
    is_foreign = rollout.thread != thread
    return [
        entry if not is_foreign and (own_from is None or place >= own_from) else _as_copy(entry)
        for entry, place in zip(state.entries, state.places, strict=True)
    ]


def _as_copy(entry: Entry | None) -> Entry | None:
    if entry is None:
        return None
    if type(entry) is Message:
        return replace(entry, own=False, prompt=None)
    return replace(entry, own=False)


def _apply_fates(entries: Sequence[Entry | None], fates: dict[int, Fate]) -> list[Entry]:
    if not fates:
        return [entry for entry in entries if entry is not None]
    return [
        replace(entry, fate=fates[place]) if place in fates else entry
        for place, entry in enumerate(entries)
        if entry is not None
    ]


_KNOWN_KEYS = frozenset(("id", "timestamp", "cwd"))
"""Fields of a thread's record that Session has."""


def make_draft(readings: Sequence[Reading], lists: Sequence[Reading], view: View) -> Draft:
    """Return the draft of a thread; `lists` may hold its name."""
    rollouts: list[Rollout] = [reading.state for reading in readings]
    first = min(rollouts, key=lambda rollout: (str(rollout.state.meta.get("timestamp")), rollout.id or ""))
    meta, path = first.state.meta, readings[0].source
    thread = first.thread or path.path.name.partition(".")[0]
    notes = ReaderNotes(path.display_path)
    full, earlier = make_timeline(rollouts), first.earlier
    if earlier is not None:
        _check_later_part(first.state, earlier, full)
    elif all(entry.usage is None for entry in full if type(entry) is Message):
        full = estimate_usage(full, thread)
    started_at, ended_at, are_derived = _times(readings, notes.parse_time(meta.get("timestamp")), full)
    live_messages = (entry for entry in reversed(full) if type(entry) is Message and entry.fate == "live")
    return Draft(
        key=f"codex:{thread}",
        agent="codex",
        native_id=first.thread,
        kind=kind_of(meta),
        project=project_of(meta),
        summary=_name(rollouts) or thread_name(lists),
        started_at=started_at,
        ended_at=ended_at,
        are_times_derived=are_derived,
        status=status_after(next(live_messages, None)),
        parent=parent_of(meta),
        sources=tuple(map(source_file, readings)),
        coverage=_coverage(rollouts),
        problems=(*_problems(readings), *notes.problems),
        extra=_extra(meta, rollouts),
        full=full,
        active=full if view == "full" else tuple([entry for entry in full if entry.fate == "live"]),
        beginning=None if earlier is None else earlier.beginning,
    )


def _check_later_part(state: State, earlier: EarlierPart, timeline: Sequence[Entry]) -> None:
    """Raise ReadWholeError if the lines behind a bookmark concern those before it."""
    for response in state.meter.closed:
        earlier.known.check(response)
    problems = state.notes.problems[earlier.problems :]
    if state.cuts or any(one.code == "orphan-tool-result" for one in problems):
        raise ReadWholeError("a rollback, a compaction, or a result of an earlier call")
    if state.has_spoken_events and earlier.is_unconfirmed:
        raise ReadWholeError("an earlier prompt is none")
    if all(type(entry) is not Message for entry in timeline):
        raise ReadWholeError("nothing is said")


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


def _coverage(rollouts: Sequence[Rollout]) -> Coverage:
    records = sum(rollout.state.records for rollout in rollouts)
    return Coverage(max(records, 1), sum(rollout.state.notes.opaque for rollout in rollouts))


def _problems(readings: Sequence[Reading]) -> Iterator[Problem]:
    for reading in readings:
        found: Rollout = reading.state
        yield from reading.problems
        yield from found.state.notes.problems
        if not found.state.meta:
            yield problem("no-metadata", "the file does not say whose it is", reading.source.display_path)
        if found.base is None and "history_base" in found.state.meta:
            yield problem(
                "missing-base",
                "the rollout that this one goes on from is not there",
                reading.source.display_path,
            )


def _extra(meta: Record, rollouts: Sequence[Rollout]) -> Record:
    """Return the other fields of the thread's record, and the final state of its limits."""
    state = rollouts[-1].state
    fields: Record = {**meta, "model_context_window": state.window, "rate_limits": state.limits}
    extra: dict[str, Any] = {
        key: value for key, value in fields.items() if key not in _KNOWN_KEYS and value is not None
    }
    if any(rollout.is_archived for rollout in rollouts):
        extra["archived"] = True
    return extra


def group_key(reading: Reading) -> str | None:
    """Return the id of the thread."""
    return reading.native_id


def log_folder(_reading: Reading) -> str | None:
    """Return None: a thread's id is the same in every list."""
    return None


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one thread."""
    ordered = sorted(readings, key=lambda reading: reading.source.display_path)
    rollouts = [reading for reading in ordered if isinstance(reading.state, Rollout)]
    lists = [reading for reading in ordered if not isinstance(reading.state, Rollout)]
    with allow_deep_values():
        return assemble_session(
            make_draft(rollouts, lists, view) if rollouts else make_lost_draft(lists), view
        )


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions unchanged: parents and children have clusters of their own."""
    return sessions
