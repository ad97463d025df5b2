"""How long ago something was, in few characters."""

from __future__ import annotations

from datetime import UTC, datetime

_STEPS = ((365 * 86_400, "y"), (30 * 86_400, "mo"), (7 * 86_400, "w"), (86_400, "d"), (3600, "h"), (60, "m"))


def age(at: str | None, now: datetime) -> str:
    """Return how long ago a time was, as in `5h`, `3d` and `2mo`; it comes as ISO 8601 in UTC."""
    if at is None:
        return "-"
    seconds = (now - datetime.fromisoformat(at).astimezone(UTC)).total_seconds()
    return next((f"{int(seconds // size)}{unit}" for size, unit in _STEPS if seconds >= size), "now")
