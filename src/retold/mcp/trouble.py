"""What an agent is told where it cannot be answered: what to ask instead, or what the person at the machine can run."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from retold.archive.database import IndexDamaged, Stopped
from retold.mcp.cursor import Refused

Log = Callable[[Exception], str]
"""Keeps a bug of ours for the report, and returns where."""


def explained(error: Exception, log: Log) -> str:
    """Return an error in words. Of a bug of ours only the kind is told: its own words may quote what was asked or found."""
    match error:
        case Refused():
            return str(error)
        case msgspec.ValidationError():
            return f"these arguments are not understood: {error}"
        case IndexDamaged():
            return f"{error}: the person at this machine mends it with `retold sync --reindex`"
        case Stopped():
            return f"the archive cannot be read now: {error}"
        case _:
            return f"this is a bug of retold's own ({type(error).__name__}), not of what was asked; log: {log(error)}"
