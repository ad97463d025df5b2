"""The outline of a session: what a person said, each time with what was done about it until the next."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec
from msgspec.structs import replace

from retold.ingest.belonging import Ownership
from retold.model.serialization import Packing
from retold.model.session import Entry, Fate, Message, ToolCall, first_text

LINE = 300
_LOOKED_AT = 4 * LINE
"""Characters of a prompt of which a line is made: more than a line, as there may be many spaces."""


class SessionTurn(msgspec.Struct, frozen=True):
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


class OutlineEntry(msgspec.Struct, frozen=True):
    """What may be a turn: whether it is one, only the archive can tell where nobody is known to have said it here."""

    turn: SessionTurn
    is_prompt: bool
    id: str | None
    request: str | None


OPENINGS: Packing[OutlineEntry] = Packing(OutlineEntry)


def openings(timeline: Iterable[Entry]) -> Iterator[OutlineEntry]:
    """Yield what may be a turn, each with what followed until the next."""
    last, messages = None, 0
    for place, entry in enumerate(timeline):
        if not isinstance(entry, Message):
            continue
        messages += 1
        opening = _opening(entry, place, messages)
        if opening is not None:
            if last is not None:
                yield last
            last = opening
        statuses = [part.status for part in entry.parts if isinstance(part, ToolCall)]
        if last is not None and statuses:
            last = replace(last, turn=_grown(last.turn, len(statuses), statuses.count("error")))
    if last is not None:
        yield last


def _opening(message: Message, place: int, number: int) -> OutlineEntry | None:
    words = message.prompt if message.prompt is not None else first_text(message)
    if message.role != "user" or words is None:
        return None
    line = " ".join(words[:_LOOKED_AT].split())[:LINE]
    turn = SessionTurn(place, number, line, message.fate, message.at, message.own, 0, 0)
    request = message.usage.request if message.usage else None
    return OutlineEntry(turn, message.prompt is not None, message.id, request)


def outline(found: Iterable[OutlineEntry], belonging: Ownership) -> tuple[SessionTurn, ...]:
    """Return the turns among what may be one, with what belongs to other sessions marked."""
    turns: list[SessionTurn] = []
    for opening in found:
        turn = opening.turn
        is_own = turn.own and not belonging.is_others(opening.id, opening.request)
        if opening.is_prompt or not is_own:
            turns.append(replace(turn, own=is_own))
        elif turns:
            turns[-1] = _grown(turns[-1], turn.calls, turn.errors)
    return tuple(turns)


def _grown(turn: SessionTurn, calls: int, errors: int) -> SessionTurn:
    return replace(turn, calls=turn.calls + calls, errors=turn.errors + errors)
