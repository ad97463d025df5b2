"""`logs.json`: every prompt typed in a project, by session. Where the session is gone, they are all that is left."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from retold.agents.gemini.notes import Notes
from retold.agents.gemini.places import Origin
from retold.agents.gemini.raw import Record
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft
from retold.model.session import Coverage, Entry, Message, Opaque, Part, Project, Role, Text

LOG_KEYS = frozenset(("sessionId", "messageId", "type", "message", "timestamp"))


class Typed(msgspec.Struct, frozen=True):
    """The prompts of one session, each with its place in the file."""

    origin: Origin
    project_hash: str | None
    prompts: tuple[tuple[int, Record], ...]


def is_logged(value: Any) -> bool:
    """Tell whether this is an entry of `logs.json`."""
    return (
        type(value) is dict
        and type(value.get("sessionId")) is str
        and "messageId" in value
        and "message" in value
    )


def prompts_draft(readings: Sequence[Reading]) -> Draft:
    """Return the draft of a session of which only the prompts are known, and perhaps an empty file."""
    first = readings[0]
    notes = Notes(first.source.shown)
    timeline = tuple(_entry(place, record, notes) for place, record in _typed(readings))
    times = [entry.at for entry in timeline if entry.at is not None]
    found: Typed = first.state
    return Draft(
        key=f"gemini:lost-{first.native_id}",
        agent="gemini",
        native_id=first.native_id,
        kind="prompts-only",
        project=Project(None, found.origin.project_key, found.project_hash, "none"),
        started_at=min(times, default=first.modified_at),
        ended_at=max(times, default=first.modified_at),
        are_times_derived=not times,
        status="interrupted",
        sources=tuple(source_file(reading) for reading in readings),
        coverage=Coverage(len(timeline), notes.opaque),
        problems=(*(told for reading in readings for told in reading.problems), *notes.problems),
        full=timeline,
        active=timeline,
    )


def _typed(readings: Iterable[Reading]) -> Iterator[tuple[int, Record]]:
    """Yield each prompt once: a copied project folder holds them all again."""
    seen: set[bytes] = set()
    for reading in readings:
        for place, record in reading.state.prompts if isinstance(reading.state, Typed) else ():
            name = msgspec.json.encode(
                [str(record.get(key)) for key in ("messageId", "timestamp", "message")]
            )
            if name not in seen:
                seen.add(name)
                yield place, record


def _entry(place: int, record: Record, notes: Notes) -> Entry:
    notes.place = (0, place)
    at = notes.time(record.get("timestamp"))
    text = record["message"]
    parts: tuple[Part, ...] = (Text(text),) if type(text) is str else (Opaque(text),)
    if not record.keys() <= LOG_KEYS:
        unknown = {key: value for key, value in record.items() if key not in LOG_KEYS}
        notes.kept("unknown-part", "unknown keys in a logged prompt: " + ", ".join(sorted(unknown)))
        parts = (*parts, Opaque(unknown))
    is_typed = record.get("type") == "user" and type(text) is str
    role: Role = "user" if record.get("type") == "user" else "assistant"
    return Message(None, role, at, "live", text.strip() or None if is_typed else None, None, None, parts)
