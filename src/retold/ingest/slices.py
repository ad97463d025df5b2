"""A part of a session, and its outline."""

from collections.abc import Iterator
from datetime import datetime

import msgspec
from msgspec.structs import replace

from retold.archive.record import Record
from retold.ingest.retell import retold
from retold.model.entries import Entry, Fate, Message
from retold.model.parts import Text, ToolCall
from retold.model.session import Session, View

LINE = 300


class Slice(msgspec.Struct, frozen=True):
    """Some entries of a session that follow each other."""

    session: Session
    """All that is told of it; its timeline are the entries of the slice alone."""
    first: int
    """The place of the first of them in the whole timeline of the view, from 0."""
    total: int
    """Entries in the whole timeline."""
    messages_before: int
    """Messages among the entries before the first."""
    size: int
    """Bytes of the files that the session was read from."""


class Turn(msgspec.Struct, frozen=True):
    """A prompt of a person, and what followed."""

    place: int
    """In the timeline."""
    message: int
    """The number of the message, counted from 1."""
    text: str
    """The person's own words, on one line."""
    fate: Fate
    at: datetime | None
    own: bool
    calls: int
    """Tool calls until the next turn."""
    errors: int
    """Those of them that failed."""


def told_slice(record: Record, key: str, first: int, count: int, view: View = "full") -> Slice | None:
    """Return so many entries of a session; None if there is no session."""
    session = retold(record, key, view)
    if session is None:
        return None
    timeline = session.timeline
    first = min(max(first, 0), len(timeline))
    told = replace(session, timeline=timeline[first : first + max(count, 0)])
    before = sum(isinstance(entry, Message) for entry in timeline[:first])
    return Slice(told, first, len(timeline), before, sum(source.bytes for source in session.sources))


def turns(record: Record, key: str, view: View = "full") -> tuple[Turn, ...]:
    """Return what people said in a session, each with what followed; nothing if there is no session."""
    session = retold(record, key, view)
    return () if session is None else tuple(_turns(session))


def _turns(session: Session) -> Iterator[Turn]:
    last, messages = None, 0
    for place, entry in enumerate(session.timeline):
        if not isinstance(entry, Message):
            continue
        messages += 1
        words = _words(entry)
        if words is not None:
            if last is not None:
                yield last
            line = " ".join(words[: 4 * LINE].split())[:LINE]
            last = Turn(place, messages, line, entry.fate, entry.at, entry.own, 0, 0)
        statuses = [part.status for part in entry.parts if isinstance(part, ToolCall)]
        if last is not None and statuses:
            errors = last.errors + statuses.count("error")
            last = replace(last, calls=last.calls + len(statuses), errors=errors)
    if last is not None:
        yield last


def _words(entry: Entry) -> str | None:
    if not isinstance(entry, Message) or entry.role != "user":
        return None
    if entry.prompt is not None or entry.own:
        return entry.prompt
    return next((part.text for part in entry.parts if isinstance(part, Text)), None)
