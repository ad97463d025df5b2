"""Times as a person at this machine reads them: in its own zone, and how long ago."""

from datetime import datetime

from retold.export.text.times import day, minute
from retold.search import dates
from retold.search.dates import local

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_DAYS = 14
"""For so long it is told how many days ago something was; then the day itself."""


def ago(at: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago something was: `just now`, `5 min ago`, `yesterday`, `3 days ago`, `2026-01-27`."""
    if at is None:
        return ""
    here = local(now or dates.now())
    then = local(at)
    seconds = (here - then).total_seconds()
    if 0 <= seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min ago" if seconds >= _MINUTE else "just now"
    days = (here.date() - then.date()).days
    if days == 0 and seconds >= 0:
        return f"{int(seconds // _HOUR)} h ago"
    if days == 1:
        return "yesterday"
    return f"{days} days ago" if 1 < days <= _DAYS else day(at)


def local_time(at: datetime | None) -> str:
    """Return day and time in the machine's zone."""
    return "" if at is None else minute(at)


def local_day(at: datetime | None) -> str:
    """Return the day in the machine's zone."""
    return "" if at is None else day(at)
