"""Readings of one conversation to one Session."""

import re
from collections.abc import Callable, Sequence

from retold.agents.gemini.captures import Captured, capture_draft
from retold.agents.gemini.histories import History, history_draft
from retold.agents.gemini.merge import merged
from retold.agents.gemini.prompts import Typed, prompts_draft
from retold.agents.gemini.raw import ENVIRONMENT_ID
from retold.agents.gemini.replay import as_state
from retold.agents.gemini.sessions import Recorded, recorded_draft
from retold.agents.protocol import Reading
from retold.model.assemble import Draft, assembled
from retold.model.session import Session, View

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def group(reading: Reading) -> str:
    """Return what all readings of one conversation share: project and session id.

    Ids that are no UUIDs (`a2a-server` names hundreds of sessions) count only together with the first message's id.
    """
    found = reading.state
    if not isinstance(found, Recorded) or reading.native_id is None:
        return f"{reading.format}:{reading.source.path}:{reading.native_id or ''}"
    state = as_state(found.state)
    project = state.metadata.get("projectHash") or found.origin.project_key
    key = f"session:{project}:{reading.native_id}"
    if found.origin.parent_id or _UUID.fullmatch(reading.native_id):
        return key
    first = next((name for name in state.ever if type(name) is str and name != ENVIRONMENT_ID), None)
    return f"{key}:{first or reading.source.path}"


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one conversation."""
    return assembled(_draft(readings, view), view)


def _draft(readings: Sequence[Reading], view: View) -> Draft:
    recorded = [reading for reading in readings if isinstance(reading.state, Recorded)]
    if recorded:
        recorded.sort(key=lambda reading: reading.source.shown)
        found = [reading.state for reading in recorded]
        return recorded_draft(found[0] if len(found) == 1 else merged(found), recorded, view)
    return _DRAFTS[type(readings[0].state)](readings[0])


_DRAFTS: dict[type, Callable[[Reading], Draft]] = {
    History: history_draft,
    Captured: capture_draft,
    Typed: prompts_draft,
}
