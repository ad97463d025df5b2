"""Readings of one conversation to one Session."""

from collections.abc import Sequence

from retold.agents.claude.copies import merged
from retold.agents.claude.places import is_session_id
from retold.agents.claude.sessions import Recorded, session_draft
from retold.agents.protocol import Reading
from retold.model.builder import assembled
from retold.model.serialization import room_for_depth
from retold.model.session import Session, View


def group(reading: Reading) -> str | None:
    """Return what all readings of one conversation share: the session's id, and the subagent's.

    An id that is no UUID may name many sessions; then the place of the file tells them apart.
    """
    found: Recorded = reading.state
    name = f"{found.state.session_id}:{found.agent_id or ''}"
    return name if is_session_id(found.state.session_id) else f"{reading.source.path.parent}:{name}"


def log_folder(_reading: Reading) -> str | None:
    """Return no folder: no log of prompts is read."""
    return None


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one conversation."""
    ordered = sorted(readings, key=lambda reading: reading.source.shown)
    with room_for_depth():
        found = ordered[0].state if len(ordered) == 1 else merged(ordered)
        return assembled(session_draft(found, ordered), view)
