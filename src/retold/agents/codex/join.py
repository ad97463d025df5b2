"""Readings of one thread to one Session."""

from collections.abc import Sequence

from retold.agents.codex.lists import lost_draft
from retold.agents.codex.rollouts import Rollout
from retold.agents.codex.sessions import recorded_draft
from retold.agents.protocol import Reading
from retold.model.builder import assembled
from retold.model.serialization import room_for_depth
from retold.model.session import Session, View


def group(reading: Reading) -> str | None:
    """Return what all readings of one thread share: its id."""
    return reading.native_id


def log_folder(_reading: Reading) -> str | None:
    """Return no folder: a thread's id is the same in every list."""
    return None


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one thread."""
    ordered = sorted(readings, key=lambda reading: reading.source.shown)
    rollouts = [reading for reading in ordered if isinstance(reading.state, Rollout)]
    lists = [reading for reading in ordered if not isinstance(reading.state, Rollout)]
    with room_for_depth():
        return assembled(recorded_draft(rollouts, lists, view) if rollouts else lost_draft(lists), view)


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions as they are: parents and children have ids, and so clusters, of their own."""
    return sessions
