"""Recorded sessions, of one file or the whole: from a replayed state to a draft."""

from datetime import datetime
from typing import Any

import msgspec

from retold.agents.gemini.normalise import Setting
from retold.agents.gemini.notes import Notes
from retold.agents.gemini.outputs import Outputs
from retold.agents.gemini.places import Origin
from retold.agents.gemini.raw import METADATA_KEYS
from retold.agents.gemini.replay import State, active_records, is_loadable
from retold.agents.gemini.timelines import active_timeline, full_timeline
from retold.agents.gemini.tokens import estimated
from retold.agents.protocol import Reading
from retold.model.assemble import Draft
from retold.model.entries import Entry, Message
from retold.model.problem import problem
from retold.model.project import Project
from retold.model.session import Coverage, Kind, SessionStatus, SourceFile, View

_OPAQUE_RECORDS = ("unknown-record",)


class Recorded(msgspec.Struct, frozen=True):
    """A session file, replayed."""

    origin: Origin
    state: State
    settled: State
    """The state at the last line end: from here a file that has grown is read on."""
    offset: int = 0
    seal: bytes = b""
    """Tells whether the file still begins with what was read up to `offset`."""
    outputs: Outputs = Outputs()


def recorded_draft(reading: Reading, view: View) -> Draft:
    """Return the draft of a session that lies in one file."""
    found: Recorded = reading.state
    state = found.state
    notes = Notes(state.path)
    native_id = reading.native_id or found.origin.stem
    kind = _kind(found)
    setting = Setting(notes, native_id, kind == "subagent", found.outputs)
    full = full_timeline(state, setting)
    if all(entry.usage is None for entry in full if type(entry) is Message):
        full = estimated(full, native_id)
    active = (
        full
        if view == "full"
        else active_timeline(state, msgspec.structs.replace(setting, notes=Notes(state.path)))
    )
    started_at, ended_at, are_derived = _times(found, full, notes, reading.modified_at)
    extra = {key: value for key, value in state.metadata.items() if key not in METADATA_KEYS}
    if extra:
        notes.kept("unknown-part", "unknown keys about the session: " + ", ".join(sorted(extra)))
    if reading.native_id is None:
        notes.problems.append(problem("no-metadata", "the file says no session id", state.path))
    elif not is_loadable(state):
        notes.problems.append(
            problem("unreadable-by-agent", "Gemini CLI's own loader gives this file up", state.path)
        )
    for known in ("directories", "memoryScratchpad"):
        if known in state.metadata:
            extra[known] = state.metadata[known]
    problems = (*reading.problems, *state.problems, *notes.problems)
    opaque = notes.opaque + sum(found.code in _OPAQUE_RECORDS for found in state.problems)
    return Draft(
        key=_key(found),
        agent="gemini",
        native_id=reading.native_id,
        kind=kind,
        project=Project(None, found.origin.project_key, _text(state.metadata.get("projectHash")), "none"),
        summary=_text(state.metadata.get("summary")),
        started_at=started_at,
        ended_at=ended_at,
        are_times_derived=are_derived,
        status=_status(state),
        parent=_parent(found.origin),
        sources=(source_file(reading),),
        coverage=Coverage(max(state.records, 1), opaque),
        problems=problems,
        extra=extra,
        full=full,
        active=active,
    )


def source_file(reading: Reading) -> SourceFile:
    """Return what a session tells about one of its files."""
    home = reading.source.home
    return SourceFile(home.label if home else None, str(reading.source.path), reading.format, reading.size)


def _kind(found: Recorded) -> Kind:
    is_subagent = found.origin.parent_id is not None or found.state.metadata.get("kind") == "subagent"
    return "subagent" if is_subagent else "main"


def _key(found: Recorded) -> str:
    parent = _parent(found.origin)
    return f"{parent}/{found.origin.stem}" if parent else f"gemini:{found.origin.stem}"


def _parent(origin: Origin) -> str | None:
    return f"gemini:{origin.parent_stem or origin.parent_id}" if origin.parent_id else None


def _status(state: State) -> SessionStatus:
    """The contract's rule: the last record that the CLI holds tells how it ended."""
    records = active_records(state)
    last = records[-1] if records else None
    if type(last) is not dict or last.get("type") != "gemini":
        return "interrupted"
    calls = last.get("toolCalls")
    failed = type(calls) is list and any(
        type(call) is dict and call.get("status") == "error" for call in calls
    )
    return "failure" if failed else "success"


def _times(
    found: Recorded, timeline: tuple[Entry, ...], notes: Notes, modified_at: datetime
) -> tuple[datetime | None, datetime | None, bool]:
    notes.place = None
    first_said = next((entry.at for entry in timeline if entry.at is not None), None)
    last_said = next((entry.at for entry in reversed(timeline) if entry.at is not None), None)
    starts = [at for at in map(notes.time, found.state.starts) if at is not None]
    started_at = min(starts, default=first_said)
    ends = (notes.time(found.state.metadata.get("lastUpdated")), last_said)
    ended_at = max((at for at in ends if at is not None), default=None)
    if started_at is None and ended_at is None:
        derived = found.origin.named_at or modified_at
        return derived, derived, True
    return started_at or ended_at, ended_at or started_at, False


def _text(value: Any) -> str | None:
    return value if type(value) is str and value else None
