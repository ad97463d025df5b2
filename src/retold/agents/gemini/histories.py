"""Client histories, `[{role, parts}]`: `/chat save`, `/chat share`, the snapshots behind `/restore`, and sessions of that form.

They have neither times nor ids, and a tool's result stands in the next user turn. They are turned into records of the
session form, so that one path makes the entries of both.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from retold.agents.gemini.normalise import normalise_entry
from retold.agents.gemini.notes import Notes
from retold.agents.gemini.pairing import Placed, paired
from retold.agents.gemini.places import Origin
from retold.agents.gemini.raw import Record, is_turn, text_parts
from retold.agents.gemini.setting import Setting
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, estimated
from retold.model.session import Coverage, Entry, Kind, Message, Project, SessionStatus, ToolCall

RESTORE_POINTER = "/clientHistory"
"""Where the turns of a restore point stand."""
_TYPES = {"model": "gemini", "gemini": "gemini", "user": "user"}


class History(msgspec.Struct, frozen=True):
    """A list of turns, with what stood beside it in the file."""

    origin: Origin
    kind: Kind
    turns: tuple[Any, ...]
    pointer: str = ""
    """Where in the file the list stands."""
    beside: Record = {}
    project_hash: str | None = None


def history_draft(reading: Reading) -> Draft:
    """Return the draft of a client history: both views are the same, all of it."""
    found: History = reading.state
    notes = Notes(reading.source.shown, found.pointer)
    setting = Setting(notes, found.origin.stem, _key(found))
    placed = []
    for index, record in enumerate(_records(found.turns)):
        notes.place = (0, index)
        placed.append(Placed(normalise_entry(record, "live", setting), notes.place))
    timeline = estimated(paired(placed, notes), found.origin.stem)
    derived = found.origin.named_at or reading.modified_at
    summary = found.beside.get("summary")
    return Draft(
        key=_key(found),
        agent="gemini",
        native_id=reading.native_id,
        kind=found.kind,
        project=Project(None, found.origin.project_key, found.project_hash, "none"),
        summary=summary if type(summary) is str else None,
        started_at=derived,
        ended_at=derived,
        are_times_derived=True,
        status=status_of_timeline(timeline),
        sources=(source_file(reading),),
        coverage=Coverage(max(len(found.turns), 1), notes.opaque),
        problems=(*reading.problems, *notes.problems),
        extra=found.beside,
        full=timeline,
        active=timeline,
    )


def status_of_timeline(timeline: Sequence[Entry]) -> SessionStatus:
    """Return how a conversation ended, by its last entry."""
    last = timeline[-1] if timeline else None
    if not isinstance(last, Message) or last.role != "assistant":
        return "interrupted"
    failed = any(isinstance(part, ToolCall) and part.status == "error" for part in last.parts)
    return "failure" if failed else "success"


def _key(found: History) -> str:
    name = found.origin.stem
    if found.kind != "checkpoint":
        return f"gemini:{name}"
    project = found.origin.project_key or "unknown"
    is_tag = found.origin.is_saved and found.pointer != RESTORE_POINTER and not name.startswith("checkpoint-")
    return f"gemini:{project}/{'checkpoint-' if is_tag else ''}{unquote(name)}"


def _records(turns: Sequence[Any]) -> Iterator[Any]:
    """Yield the turns as records of the session form, every call with an id and every result with its call's."""
    numbers: dict[str, int] = defaultdict(int)
    waiting: dict[str, list[str]] = defaultdict(list)
    for turn in turns:
        if not is_turn(turn):
            yield turn
            continue
        parts = [_identified(part, numbers, waiting) for part in text_parts(turn["parts"])]
        rest = {key: value for key, value in turn.items() if key not in ("role", "parts")}
        yield {**rest, "type": _TYPES.get(turn["role"], turn["role"]), "content": parts}


def _identified(part: Any, numbers: dict[str, int], waiting: dict[str, list[str]]) -> Any:
    """Pair calls and results by id, else by name and order; a call without an id gets `<name>-<n>`."""
    match part:
        case {"functionCall": {"name": str(name), "id": str(call_id)}}:
            waiting[name].append(call_id)
        case {"functionCall": {"name": str(name)} as call}:
            numbers[name] += 1
            call_id = f"{name}-{numbers[name]}"
            waiting[name].append(call_id)
            return {**part, "functionCall": {**call, "id": call_id}}
        case {"functionResponse": {"name": str(name)} as response} if waiting[name]:
            own = response.get("id")
            if own in waiting[name]:
                waiting[name].remove(own)
            else:
                return {**part, "functionResponse": {**response, "id": waiting[name].pop(0)}}
    return part
