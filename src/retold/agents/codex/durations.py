"""How long a call ran, in each of the ways in which Codex tells it.

Evidence: `docs/formats/codex.md`, section 7.
"""

import re
from typing import Any

from retold.agents.codex.raw import Record
from retold.reading.diagnostics import duration_ms

_WALL_TIME = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$", re.MULTILINE)


def event_ms(told: Record) -> int | None:
    """Return the `duration` of an event or a completed item, else what lies between its times (0.166)."""
    match told:
        case {"duration": {"secs": int(seconds), "nanos": int(nanos)}}:
            return duration_ms(seconds * 1000 + nanos // 1_000_000)
        case {"started_at_ms": int(start), "completed_at_ms": int(end)}:
            return duration_ms(end - start)
        case _:
            return None


def metadata_ms(told: Any) -> int | None:
    """Return what stands beside an output in JSON as `duration_seconds`."""
    return duration_ms(told * 1000) if type(told) in (int, float) else None


def wall_time_ms(dress: str) -> int | None:
    """Return what the lines that Codex puts before an output say."""
    match = _WALL_TIME.search(dress)
    return duration_ms(float(match[1]) * 1000) if match else None
