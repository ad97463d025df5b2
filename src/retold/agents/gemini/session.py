"""Recorded sessions, of one file or the whole: from a replayed state to a draft."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import reduce
from typing import Any

import msgspec

from retold.agents.gemini.context import Notes, Outputs, Setting
from retold.agents.gemini.discovery import WRITTEN, Mark, Origin, mark_of
from retold.agents.gemini.raw import METADATA_KEYS, AnswerRecord, Record
from retold.agents.gemini.replay import as_state
from retold.agents.gemini.state import (
    Key,
    Place,
    Plain,
    State,
    Version,
    active_records,
    add_version,
    folded_copies,
    is_loadable,
    is_resumable,
    survives_fallback,
)
from retold.agents.gemini.timeline import active_timeline, full_timeline, responses
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, estimated
from retold.model.problem import Problem, problem
from retold.model.session import Coverage, Entry, Message, Project, SessionStatus, View


class Recorded(msgspec.Struct, frozen=True):
    """A session file, replayed."""

    origin: Origin
    state: State | Plain
    outputs: Outputs = Outputs()
    settled: State | None = None
    """The state at the last line end: from here a file that has grown is read on."""
    offset: int = 0
    seal: bytes = b""
    """Tells whether the file still begins with what was read up to `offset`."""


def recorded_draft(found: Recorded, readings: Sequence[Reading], view: View) -> Draft:
    """Return the draft of a session that was read from one file, or from several as one."""
    about = _about(found.state)
    notes = Notes(found.state.path, "/messages")
    native_id = next((reading.native_id for reading in readings if reading.native_id is not None), None)
    is_subagent = found.origin.parent_id is not None or about.metadata.get("kind") == "subagent"
    parent = _parent(found.origin)
    key = f"{parent}/{found.origin.stem}" if parent else f"gemini:{found.origin.stem}"
    setting = Setting(notes, native_id or found.origin.stem, key, is_subagent, found.outputs)
    full = full_timeline(found.state, setting)
    if all(entry.usage is None for entry in full if type(entry) is Message):
        full = estimated(full, setting.native_id)
    modified_at = min(reading.modified_at for reading in readings)
    started_at, ended_at, are_derived = _times(found, about, full, notes, modified_at)
    extra = _extra(about, notes)
    told = [problem for reading in readings for problem in reading.problems]
    project_hash = _text(about.metadata.get("projectHash")) or found.origin.named_hash
    return Draft(
        key=key,
        agent="gemini",
        native_id=native_id,
        kind="subagent" if is_subagent else "main",
        project=Project(None, found.origin.project_key, project_hash, "none"),
        summary=_text(about.metadata.get("summary")),
        started_at=started_at,
        ended_at=ended_at,
        are_times_derived=are_derived,
        status=about.status,
        parent=parent,
        sources=tuple(source_file(reading) for reading in readings),
        coverage=Coverage(max(about.records, 1), notes.opaque + about.opaque),
        problems=(
            *told,
            *about.problems,
            *notes.problems,
            *_warnings(found, native_id, about),
            *(_uncounted(found, full) if notes.may_lack_tokens else ()),
        ),
        extra=extra,
        full=full,
        active=full if view == "full" else _active(found, setting),
    )


class About(msgspec.Struct, frozen=True, gc=False):
    """What a file says besides its messages."""

    metadata: Record
    starts: tuple[Any, ...]
    records: int
    opaque: int
    problems: tuple[Problem, ...]
    is_loadable: bool
    status: SessionStatus


def _about(found: State | Plain) -> About:
    if isinstance(found, State):
        opaque = sum(told.code in ("unknown-record", "unexpected-shape") for told in found.problems)
        status = _status(active_records(found))
        return About(
            found.metadata, found.starts, found.records, opaque, found.problems, is_loadable(found), status
        )
    record = found.record
    metadata: Record = {
        "projectHash": record.project_hash,
        "lastUpdated": record.last_updated,
        "summary": record.summary,
        "kind": record.kind,
    }
    beside = {"directories": record.directories, "memoryScratchpad": record.memory_scratchpad}
    metadata |= {key: value for key, value in beside.items() if value is not None}
    loads = survives_fallback(map(msgspec.to_builtins, record.messages))
    status = _status_of_plain(found) if loads else "interrupted"
    return About(metadata, (record.start_time,), len(record.messages) + 1, 0, (), loads, status)


def _status_of_plain(found: Plain) -> SessionStatus:
    last = found.record.messages[-1] if found.record.messages else None
    if not isinstance(last, AnswerRecord):
        return "interrupted"
    return "failure" if any(call.status == "error" for call in last.tool_calls or ()) else "success"


def _active(found: Recorded, setting: Setting) -> tuple[Entry, ...]:
    notes = Notes(found.state.path)
    return active_timeline(as_state(found.state), msgspec.structs.replace(setting, notes=notes))


def _extra(about: About, notes: Notes) -> Record:
    """Return what the file says of the session beyond our own fields."""
    unknown = {key: value for key, value in about.metadata.items() if key not in METADATA_KEYS}
    if unknown:
        notes.place = None
        notes.kept("unknown-part", "unknown keys about the session: " + ", ".join(sorted(unknown)))
    known = ("directories", "memoryScratchpad")
    return unknown | {key: value for key, value in about.metadata.items() if key in known}


def _warnings(found: Recorded, native_id: str | None, about: About) -> Iterator[Problem]:
    if native_id is None:
        yield problem("no-metadata", "the file says no session id", found.state.path)
    elif not about.is_loadable:
        yield problem("unreadable-by-agent", "Gemini CLI's own loader gives this file up", found.state.path)


def _uncounted(found: Recorded, timeline: Sequence[Entry]) -> Iterator[Problem]:
    everything, without = responses(timeline)
    if without:
        message = f"at least {without} of {everything} responses have no token count"
        yield problem("tokens-unrecorded", message, found.state.path)


def _parent(origin: Origin) -> str | None:
    return f"gemini:{origin.parent_stem or origin.parent_id}" if origin.parent_id else None


def _status(records: Sequence[Any]) -> SessionStatus:
    """The last record that the CLI holds tells how it ended."""
    last = records[-1] if records else None
    if type(last) is not dict or last.get("type") != "gemini":
        return "interrupted"
    calls = last.get("toolCalls")
    failed = type(calls) is list and any(
        type(call) is dict and call.get("status") == "error" for call in calls
    )
    return "failure" if failed else "success"


def _times(
    found: Recorded, about: About, timeline: tuple[Entry, ...], notes: Notes, modified_at: datetime
) -> tuple[datetime | None, datetime | None, bool]:
    notes.place = None
    first_said = next((entry.at for entry in timeline if entry.at is not None), None)
    last_said = next((entry.at for entry in reversed(timeline) if entry.at is not None), None)
    starts = [at for at in map(notes.time, about.starts) if at is not None]
    started_at = min(starts, default=first_said)
    mark, updated = mark_of(about.metadata), about.metadata.get("lastUpdated")
    if mark is not None and updated == mark.restored_at:  # when we wrote it back, nothing was said
        updated = mark.last_updated
    ends = (notes.time(updated), last_said)
    ended_at = max((at for at in ends if at is not None), default=None)
    if started_at is None and ended_at is None:
        derived = found.origin.named_at or modified_at
        return derived, derived, True
    return started_at or ended_at, ended_at or started_at, False


def _text(value: Any) -> str | None:
    return value if type(value) is str and value else None


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
