"""Dates as people type them: `2026-01-27`, `7d`, `yesterday`."""

import re
from datetime import UTC, date, datetime, time, timedelta

_AGO = re.compile(r"(\d{1,5})([hdwmy])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_WORDS = {"today": 0, "yesterday": 1}
_DAY_LENGTH = len("2026-01-27")


def parse_since(text: str, now: datetime, *, is_local: bool = False) -> datetime:
    """Return the moment from which something counts, in UTC; days begin when they do there, or where we are.

    Raises ValueError for what is no date.
    """
    day = _day(text, now, is_local=is_local)
    if day is not None:
        return _in_utc(datetime.combine(day, time()), is_local=is_local)
    if ago := _AGO.fullmatch(text.strip().lower()):
        return now - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
    at = datetime.fromisoformat(text.strip())
    return at.astimezone(UTC) if at.tzinfo else _in_utc(at, is_local=is_local)


def parse_until(text: str, now: datetime, *, is_local: bool = False) -> datetime:
    """Return the moment before which something counts: a day means the whole of it."""
    day = _day(text, now, is_local=is_local)
    if day is None:
        return parse_since(text, now, is_local=is_local)
    # The next day begins 23 or 25 hours later where clocks are changed.
    return _in_utc(datetime.combine(day + timedelta(days=1), time()), is_local=is_local)


def _day(text: str, now: datetime, *, is_local: bool) -> date | None:
    """Return the day that a text means, if it means a whole one."""
    word = text.strip().lower()
    if word in _WORDS:
        today = (now.astimezone() if is_local else now.astimezone(UTC)).date()
        return today - timedelta(days=_WORDS[word])
    return date.fromisoformat(word) if len(word) == _DAY_LENGTH and word[4] == word[7] == "-" else None


def _in_utc(at: datetime, *, is_local: bool) -> datetime:
    return at.astimezone(UTC) if is_local else at.replace(tzinfo=UTC)


def moment_of(text: str | None) -> datetime | None:
    """Return a time as the archive tells it; None for one that not every zone can tell."""
    at = None if text is None else datetime.fromisoformat(text)
    return at if at is None or date.min.year < at.year < date.max.year else None


def local(at: datetime) -> datetime:
    """Return a time in this machine's zone; one at the edge of all time, which files may claim, stays as it is."""
    try:
        return at.astimezone()
    except (OverflowError, OSError, ValueError):
        return at
