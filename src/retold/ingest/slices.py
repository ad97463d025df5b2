"""A part of a conversation: what stands at some places of its timeline, and the turns that lead there."""

from __future__ import annotations

from datetime import datetime

import msgspec

from retold.archive.record import Record
from retold.ingest.retell import retold
from retold.model.entries import Event, Fate, Message
from retold.model.parts import ToolCall
from retold.model.session import Session, View


class Slice(msgspec.Struct, frozen=True):
    """Some entries of a session, in the full view."""

    session: Session
    """With nothing in its timeline but these entries."""
    first: int
    total: int
    messages_before: int


class Turn(msgspec.Struct, frozen=True):
    """What a person said, and how much was done until they said something else."""

    place: int
    message: int
    text: str
    fate: Fate
    at: datetime | None
    own: bool
    calls: int
    errors: int


def told_slice(record: Record, key: str, first: int, count: int, view: View = "full") -> Slice | None:
    """Return so many entries of a session, from a place on; None if there is no such session."""
    session = retold(record, key, view)
    if session is None:
        return None
    before = session.timeline[:first]
    part = msgspec.structs.replace(session, timeline=session.timeline[first : first + count])
    return Slice(part, first, len(session.timeline), sum(1 for entry in before if isinstance(entry, Message)))


def turns(record: Record, key: str, view: View = "full") -> tuple[Turn, ...]:
    """Return the turns of a session."""
    session = retold(record, key, view)
    found: list[Turn] = []
    messages = 0
    for place, entry in enumerate(() if session is None else session.timeline):
        if isinstance(entry, Event):
            continue
        messages += 1
        if entry.prompt is not None:
            found.append(Turn(place, messages, entry.prompt, entry.fate, entry.at, entry.own, 0, 0))
        calls = [part for part in entry.parts if isinstance(part, ToolCall)]
        if found and calls:
            last, failed = found[-1], sum(1 for call in calls if call.status == "error")
            found[-1] = msgspec.structs.replace(
                last, calls=last.calls + len(calls), errors=last.errors + failed
            )
    return tuple(found)
