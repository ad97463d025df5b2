"""One thing that a person should know, with the command that mends it."""

from datetime import datetime

import msgspec

from retold.model.problem import Severity


class Finding(msgspec.Struct, frozen=True):
    """One finding. Of severity `loss` is what is or will be lost if nobody acts, of `note` what is only good to know."""

    code: str
    severity: Severity
    text: str
    home: str | None = None
    session: str | None = None
    at: datetime | None = None
    """When the agent deletes it; None where that may be at its next start, or where nothing is deleted."""
    fix: str | None = None
    """A command; None where no command mends it."""
    count: int = 1

    @property
    def is_risk(self) -> bool:
        """Whether somebody should do something about it."""
        return self.severity != "note"
