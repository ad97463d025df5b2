"""A thread's files to a draft of its session."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from retold.agents.codex.lists import name_in
from retold.agents.codex.metas import kind_of, parent_of, project_of
from retold.agents.codex.raw import Record
from retold.agents.codex.rollouts import Rollout
from retold.agents.codex.timelines import timeline
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, estimated
from retold.model.problem import Problem, problem
from retold.model.session import Coverage, Entry, Message, SessionStatus, ToolCall, View
from retold.reading.diagnostics import ReaderNotes

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
