"""Readings of one conversation to one Session."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from retold.agents.gemini.discovery import agent_id, mark_of, parent_id, session_group
from retold.agents.gemini.other_files import (
    Captured,
    History,
    Typed,
    capture_draft,
    history_draft,
    prompts_draft,
)
from retold.agents.gemini.raw import ENVIRONMENT_ID
from retold.agents.gemini.replay import as_state
from retold.agents.gemini.session import Recorded, merged, recorded_draft
from retold.agents.gemini.state import Plain, State, is_resumable
from retold.agents.gemini.tool_calls import STARTS_AGENT
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, assembled
from retold.model.serialization import room_for_depth
from retold.model.session import Entry, Message, Session, ToolCall, View

_HASH = re.compile(r"[0-9a-f]{64}")


def group(reading: Reading) -> str | None:
    """Return what all readings of one conversation share: project and session id.

    Ids that are no UUIDs (`a2a-server` names hundreds of sessions) count only together with the first message's id.
    A scrap without an id belongs to whatever bears its name.
    """
    match reading.state:
        case Recorded() as found:
            return _session_group(found, reading) if reading.native_id is not None else None
        case Typed(project_hash=project):
            return f"session:{project}:{reading.native_id}"
        case History(origin=place, project_hash=project, kind="checkpoint" | "main" as kind):
            name = "checkpoint" if kind == "checkpoint" else "history"
            return f"{name}:{project or place.project_folder}:{place.stem}"
    return f"{reading.format}:{reading.source.path}"


def log_folder(reading: Reading) -> str | None:
    """Return the project's folder, for a logged prompt and for a main session.

    The project hash does not tell as much: a folder named by a slug may have no marker, or one with another spelling
    of the path than the one that was hashed.
    """
    match reading.state:
        case Typed(origin=place):
            return place.project_folder or None
        case Recorded(origin=place, state=state) if (
            place.parent_id is None and _facts(state)[1] != "subagent"
        ):
            return place.project_folder or None
    return None


def _session_group(found: Recorded, reading: Reading) -> str:
    project, kind, first = _facts(found.state)
    return session_group(
        found.origin, reading.native_id or "", project, kind, first or str(reading.source.path)
    )


def _facts(state: State | Plain) -> tuple[object, object, str | None]:
    """Return a file's project hash and kind, and the id of the first message that the CLI did not write itself."""
    if isinstance(state, Plain):
        record = state.record
        said = (message.id for message in record.messages if message.id != ENVIRONMENT_ID)
        return record.project_hash, record.kind, next(said, None)
    names = (name for name in state.ever if type(name) is str and name != ENVIRONMENT_ID)
    mark = mark_of(state.metadata)
    project = state.metadata.get("projectHash") if mark is None else mark.project_hash
    return project, state.metadata.get("kind"), next(names, None)


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one conversation."""
    with room_for_depth():
        return assembled(_draft(sorted(readings, key=lambda reading: reading.source.shown), view), view)


def _draft(readings: Sequence[Reading], view: View) -> Draft:
    recorded = [reading for reading in readings if isinstance(reading.state, Recorded)]
    typed = [reading for reading in readings if isinstance(reading.state, Typed)]
    if recorded and not (typed and _is_empty(recorded)):
        # Several contents of one file: the earlier first, so that the later one stands.
        found = [reading.state for reading in sorted(recorded, key=lambda reading: reading.modified_at)]
        return recorded_draft(found[0] if len(found) == 1 else merged(found), recorded, view)
    if typed:
        return prompts_draft([*typed, *recorded])
    # Copies of a saved history: the longest, and of equals the one whose folder has a name.
    best = max(readings, key=lambda reading: (_length(reading.state), not _is_hashed(reading)))
    sources = tuple(source_file(reading) for reading in readings)
    return msgspec.structs.replace(_DRAFTS[type(best.state)](best), sources=sources)


def _is_empty(readings: Sequence[Reading]) -> bool:
    """Tell whether the CLI would resume nothing of these: a ghost, or an abandoned start."""
    records = (
        versions[-1][0] for reading in readings for versions in as_state(reading.state.state).ever.values()
    )
    return not any(type(record) is dict and is_resumable(record) for record in records)


def _length(state: object) -> int:
    return len(state.turns) if isinstance(state, History) else 0


def _is_hashed(reading: Reading) -> bool:
    return bool(_HASH.fullmatch(reading.state.origin.project_key or ""))


_DRAFTS: dict[type, Callable[[Reading], Draft]] = {History: history_draft, Captured: capture_draft}


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions of one cluster, each in its place, with parents and children named."""
    orphans: dict[str | None, list[int]] = defaultdict(list)
    for place, session in enumerate(sessions):
        if session.kind == "subagent":
            orphans[parent_id(session.sources[0].path, session.native_id)].append(place)
    related = list(sessions)
    for place, session in enumerate(sessions):
        if session.kind == "main":
            children = {
                child: _adopted(sessions[child], session) for child in orphans.pop(session.native_id, ())
            }
            if children:
                related[place] = _as_parent(session, tuple(children.values()))
            for child, adopted in children.items():
                related[child] = adopted
    return related


def _adopted(child: Session, parent: Session) -> Session:
    return msgspec.structs.replace(child, key=f"{parent.key}/{agent_id(child.key)}", parent=parent.key)


def _as_parent(session: Session, children: Sequence[Session]) -> Session:
    ordered = sorted(children, key=lambda child: (str(child.started_at), child.key))
    named = {
        part.child for entry in session.timeline if isinstance(entry, Message) for part in entry.parts
        if isinstance(part, ToolCall) and part.child
    }  # fmt: skip
    waiting = [child for child in ordered if child.key not in named]
    timeline = tuple(_linked(entry, waiting) for entry in session.timeline) if waiting else session.timeline
    return msgspec.structs.replace(session, children=tuple(child.key for child in ordered), timeline=timeline)


def _linked(entry: Entry, waiting: list[Session]) -> Entry:
    """Give each call that started a subagent the first one that ran while it did."""
    if not isinstance(entry, Message):
        return entry
    parts = tuple(
        _with_child(part, entry, waiting)
        if isinstance(part, ToolCall) and part.name in STARTS_AGENT
        else part
        for part in entry.parts
    )
    return msgspec.structs.replace(entry, parts=parts)


def _with_child(call: ToolCall, message: Message, waiting: list[Session]) -> ToolCall:
    if call.child is not None:
        return call
    for child in waiting:
        if child.started_at is None or message.at is None or call.at is None:
            continue
        if message.at <= child.started_at <= call.at:
            waiting.remove(child)
            return msgspec.structs.replace(call, child=child.key)
    return call
