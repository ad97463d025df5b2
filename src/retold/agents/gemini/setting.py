"""What a record cannot say of itself: whose it is, and what lies beside it."""

import msgspec

from retold.agents.gemini.notes import Notes
from retold.agents.gemini.outputs import Outputs


class Setting(msgspec.Struct, frozen=True):
    """The session in which records are being read."""

    notes: Notes
    native_id: str
    key: str
    is_subagent: bool = False
    outputs: Outputs = Outputs()

    def child(self, agent_id: str | None) -> str | None:
        """Return the key of the subagent that a call started."""
        return None if agent_id is None else f"{self.key}/{agent_id}"
