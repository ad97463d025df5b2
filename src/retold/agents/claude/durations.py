"""How long a call ran: as its tool told, else from the line that asked for it to the line that answers it.

Evidence: `docs/formats/claude.md`, section 9.
"""

from datetime import datetime
from typing import Any

from retold.reading.diagnostics import duration_ms, elapsed_ms


def took_ms(twin: Any, asked_at: datetime | None, done_at: datetime | None) -> int | None:
    """Return the milliseconds that a call took; few tools tell them in the twin of their result."""
    told = _told_ms(twin) if type(twin) is dict else None
    return elapsed_ms(asked_at, done_at) if told is None else told


def _told_ms(twin: dict[str, Any]) -> int | None:
    """Return what `Glob` and `WebFetch` tell, or `Task` of its subagent, or `WebSearch` in seconds."""
    for key in ("durationMs", "totalDurationMs"):
        if key in twin:
            return duration_ms(twin[key])
    seconds = twin.get("durationSeconds", -1)
    return duration_ms(seconds * 1000) if type(seconds) in (int, float) else None
