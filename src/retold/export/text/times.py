"""Times as people read them: in the time zone of this machine, and what that zone is called."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from retold.search.dates import in_utc, local

_HOUR_SECONDS = 3600
DAY, MINUTES, SECONDS = 10, 16, 19
"""How long a time is, as text: to the day, to the minute, to the second."""


def day(at: datetime, *, is_utc: bool = False) -> str:
    """Return the day of a time: `2026-01-27`; in UTC where the reader is a program."""
    return _told(at, is_utc=is_utc).isoformat()[:DAY]


def minute(at: datetime) -> str:
    """Return a time to the minute: `2026-01-27 15:21`."""
    return local(at).isoformat(" ")[:MINUTES]


def second(at: datetime) -> str:
    """Return a time to the second: `2026-01-27 15:21:04`."""
    return local(at).isoformat(" ")[:SECONDS]


def moment(at: datetime, *, is_utc: bool = False) -> str:
    """Return a time to the minute with its zone: `2026-01-27 07:21 PST`; in UTC where the reader is a program."""
    return f"{_told(at, is_utc=is_utc).isoformat(' ')[:MINUTES]} {zone_at(at, is_utc=is_utc)}"


def when(at: datetime, since: datetime | None, length: int = MINUTES) -> str:
    """Return the time of day, with the day where it is another than that of a conversation's beginning."""
    told = local(at).isoformat(" ")[:length]
    return told[DAY + 1 :] if since is not None and told[:DAY] == day(since) else told


def period(start: datetime, end: datetime | None, *, has_zone: bool = True) -> str:
    """Return from when to when; the day, and the name of the zone, once if they are the same."""
    last = start if end is None or end <= start else end
    names = [f" {zone_at(at)}" if has_zone else "" for at in (start, last)]
    if last is start:
        return minute(start) + names[0]
    return f"{minute(start)}{names[0] if names[0] != names[1] else ''} to {when(last, start)}{names[1]}"


def zone_at(at: datetime, *, is_utc: bool = False) -> str:
    """Return what the zone is called at a time: `UTC`, `PST`, or `UTC+05:45` where it has no name."""
    return _called(_told(at, is_utc=is_utc).tzname() or "UTC")


def zone_names() -> str:
    """Return what the zone is called all year: `UTC`, or `PST/PDT` where clocks change."""
    names = time.tzname if time.daylight else time.tzname[:1]
    return "/".join(dict.fromkeys(map(_called, names)))


def _told(at: datetime, *, is_utc: bool) -> datetime:
    return in_utc(at) if is_utc else local(at)


def _called(name: str) -> str:
    return f"UTC{name[:3]}:{name[3:] or '00'}" if name[:1] in ("+", "-") else name


def zone_name(*, is_utc: bool) -> str:
    """Return what the zone is called in which days begin."""
    now = time.localtime()
    if is_utc or now.tm_zone == "UTC":
        return "UTC"
    hours, rest = divmod(abs(now.tm_gmtoff), _HOUR_SECONDS)
    sign = "-" if now.tm_gmtoff < 0 else "+"
    return f"{now.tm_zone} (UTC{sign}{hours:02d}:{rest // 60:02d})"


_STEPS = ((365 * 86_400, "y"), (30 * 86_400, "mo"), (7 * 86_400, "w"), (86_400, "d"), (3600, "h"), (60, "m"))


def age(at: str | None, now: datetime) -> str:
    """Return how long ago a time was, as in `5h`, `3d` and `2mo`; it comes as ISO 8601 in UTC."""
    if at is None:
        return "-"
    seconds = (now - datetime.fromisoformat(at).astimezone(UTC)).total_seconds()
    return next((f"{int(seconds // size)}{unit}" for size, unit in _STEPS if seconds >= size), "now")
