"""The time zone in which days begin, as people know it."""

from __future__ import annotations

import time

_HOUR = 3600


def zone_name(*, is_utc: bool) -> str:
    """Return what the zone is called in which days begin."""
    now = time.localtime()
    if is_utc or now.tm_zone == "UTC":
        return "UTC"
    hours, rest = divmod(abs(now.tm_gmtoff), _HOUR)
    sign = "-" if now.tm_gmtoff < 0 else "+"
    return f"{now.tm_zone} (UTC{sign}{hours:02d}:{rest // 60:02d})"
