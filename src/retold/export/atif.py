"""Trajectories in the Agent Trajectory Interchange Format, version 1.8: one JSON document per line and conversation.

The format has no place for branches: steps are the path that was kept. What was taken back is counted in `notes`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.atif_steps import step, sums
from retold.export.dialogue import ModelTurn, Said, agent_version, dialogue
from retold.export.telling import ExportOptions, ExportSession
from retold.model.serialization import encoded, time_text
from retold.model.session import Message, Session, ToolCall
from retold.model.usage import Totals

SCHEMA_VERSION = "ATIF-v1.8"
UNKNOWN = "unknown"
_GONE = ("rewound", "superseded")

Json = dict[str, Any]


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield each trajectory on one line, its subagents inside."""
    for telling in tellings:
        yield from _trajectory(telling, choice)
        yield b"\n"


def _trajectory(telling: ExportSession, choice: ExportOptions) -> Iterator[bytes]:
    """Yield a trajectory step by step; what follows from all of them comes after them."""
    session = telling.session
    yield encoded(_head(session))[:-1] + b',"steps":['
    number, gone = 0, Counter[str]()
    usages: list[Totals] = []
    children: dict[str, ExportSession] = {}
    for said in dialogue(session, choice):
        if said.fate in _GONE:
            gone[said.fate] += isinstance(said, Message | ModelTurn)
            continue
        number += 1
        usages += [said.usage] if isinstance(said, ModelTurn) and said.usage else []
        started = _started(said, telling)
        children |= started
        yield (b"," if number > 1 else b"") + encoded(step(said, number, started))
    yield b"]," + encoded(_tail(session, choice, number, usages, gone))[1:-1]
    yield from _children(children.values(), choice)
    yield b"}"


def _children(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    for place, telling in enumerate(tellings):
        yield b"," if place else b',"subagent_trajectories":['
        yield from _trajectory(telling, choice)
    if tellings:
        yield b"]"


def _started(said: Said, telling: ExportSession) -> dict[str, ExportSession]:
    """Return the subagents that an answer started, by their keys."""
    parts = said.parts if isinstance(said, ModelTurn) else ()
    keys = [part.child for part in parts if isinstance(part, ToolCall) and part.child]
    return {key: telling.subagents[key] for key in keys if key in telling.subagents}


def _head(session: Session) -> Json:
    agent: Json = {"name": session.agent, "version": agent_version(session) or UNKNOWN}
    if session.models:
        agent["model_name"] = session.models[0]
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": session.native_id or session.key,
        "trajectory_id": session.key,
        "agent": agent,
    }


def _tail(
    session: Session, choice: ExportOptions, steps: int, usages: list[Totals], gone: Counter[str]
) -> Json:
    """Return what is told of a trajectory as a whole."""
    cost = {} if session.cost_usd is None else {"total_cost_usd": float(session.cost_usd)}
    tail: Json = {
        "final_metrics": {**sums(usages or [session.usage]), **cost, "total_steps": steps},
        "extra": _session_extra(session, choice),
    }
    told = [f"{number} {fate}" for fate, number in sorted(gone.items()) if number]
    if told:
        tail["notes"] = (
            f"Messages that are not among the steps, because they were taken back or replaced: {', '.join(told)}."
            " What they cost is in total_cost_usd, their tokens are in no total."
        )
    return tail


def _session_extra(session: Session, choice: ExportOptions) -> Json:
    told = {
        "title": session.title,
        "kind": session.kind,
        "status": session.status,
        "parent": session.parent,
        "project_root": session.project.root,
        "started_at": time_text(session.started_at) if session.started_at else None,
        "ended_at": time_text(session.ended_at) if session.ended_at else None,
        "tags": list(session.tags) or None,
        "redacted": choice.is_redacted,
    }
    return {name: value for name, value in told.items() if value is not None}
