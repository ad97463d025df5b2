"""The current time, the days of this machine's time zone, and dates as people type them: `2026-01-27`, `7d`, `yesterday`.

Every command and page asks here what "today" means and how to show a time to a person, so that they agree.
"""

import re
from datetime import UTC, date, datetime, time, timedelta

_AGO = re.compile(r"(\d{1,5})([hdwmy])", re.ASCII)
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}
_WORDS = {"today": 0, "yesterday": 1}
_DAY_LENGTH = len("2026-01-27")


def now() -> datetime:
    """Return the time in UTC. Tests replace this function to choose the time."""
    return datetime.now(UTC)


def today() -> date:
    """Return the day that it is here."""
    return local(now()).date()


def parse_since(text: str, at: datetime, *, is_utc: bool = False) -> datetime:
    """Return the moment from which something counts, in UTC. `at` is the current time; days begin here, or in UTC.

    `7d` is today and the six days before it; `24h` is the last 24 hours. Raises ValueError for what is no date.
    """
    day = _day(text, at, is_utc=is_utc)
    if day is not None:
        return _begin(day, is_utc=is_utc)
    if ago := _AGO.fullmatch(text.strip().lower()):
        number, unit = int(ago[1]), ago[2]
        if unit == "h":
            return at - timedelta(hours=number)
        return _begin(_today(at, is_utc=is_utc) - timedelta(days=number * _DAYS[unit] - 1), is_utc=is_utc)
    moment = datetime.fromisoformat(text.strip())
    return moment.astimezone(UTC) if moment.tzinfo else _in_utc(moment, is_utc=is_utc)


def parse_until(text: str, at: datetime, *, is_utc: bool = False) -> datetime:
    """Return the moment before which something counts: a day means the whole of it, `7d` what was before these days."""
    day = _day(text, at, is_utc=is_utc)
    if day is None:
        return parse_since(text, at, is_utc=is_utc)
    # The next day begins 23 or 25 hours later where clocks are changed.
    return _begin(day + timedelta(days=1), is_utc=is_utc)


def _day(text: str, at: datetime, *, is_utc: bool) -> date | None:
    """Return the day that a text means, if it means a whole one."""
    word = text.strip().lower()
    if word in _WORDS:
        return _today(at, is_utc=is_utc) - timedelta(days=_WORDS[word])
    return date.fromisoformat(word) if len(word) == _DAY_LENGTH and word[4] == word[7] == "-" else None


def _today(at: datetime, *, is_utc: bool) -> date:
    return (at.astimezone(UTC) if is_utc else local(at)).date()


def _begin(day: date, *, is_utc: bool) -> datetime:
    return _in_utc(datetime.combine(day, time()), is_utc=is_utc)


def _in_utc(at: datetime, *, is_utc: bool) -> datetime:
    try:
        # `astimezone` is an hour early for a midnight that clocks skip.
        return at.replace(tzinfo=UTC) if is_utc else datetime.fromtimestamp(at.timestamp(), UTC)
    except (OverflowError, OSError, ValueError):  # at the edge of the calendar, where a zone may have no time
        return at.replace(tzinfo=UTC)


def moment_of(text: str | None) -> datetime | None:
    """Return a time as the archive tells it; None for one that not every zone can tell."""
    at = None if text is None else datetime.fromisoformat(text)
    return at if at is None or date.min.year < at.year < date.max.year else None


def in_utc(at: datetime) -> datetime:
    """Return a time in UTC."""
    return at.astimezone(UTC)


def local(at: datetime) -> datetime:
    """Return a time in this machine's zone; one at the edge of all time, which files may claim, stays as it is."""
    try:
        return at.astimezone()
    except (OverflowError, OSError, ValueError):
        return at
