"""Dates: the current time, local days, and dates that people type: `2026-01-27`, `7d`, `yesterday`.

All commands and pages use these functions, so that they agree on the meaning of "today".
"""

from datetime import UTC, date, datetime, time, timedelta

_AGO = r"(?a)(\d{1,5})([hdwmy])"
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}
_WORDS = {"today": 0, "yesterday": 1}
_DAY_LENGTH = len("2026-01-27")


def now() -> datetime:
    """Return the current time in UTC. Tests replace this function to choose the time."""
    return datetime.now(UTC)


def today() -> date:
    """Return the current day in local time."""
    return to_local(now()).date()


def parse_since(text: str, at: datetime, *, is_utc: bool = False) -> datetime:
    """Return the first moment of a date, in UTC. `at` is the current time; days are local, or those of UTC.

    `7d` is today and the six days before it; `24h` is the last 24 hours. Raise ValueError for anything else.
    """
    day = _day(text, at, is_utc=is_utc)
    if day is not None:
        return _start_of(day, is_utc=is_utc)
    import re

    if ago := re.fullmatch(_AGO, text.strip().lower()):
        number, unit = int(ago[1]), ago[2]
        if unit == "h":
            return at - timedelta(hours=number)
        return _start_of(_today(at, is_utc=is_utc) - timedelta(days=number * _DAYS[unit] - 1), is_utc=is_utc)
    moment = datetime.fromisoformat(text.strip())
    return moment.astimezone(UTC) if moment.tzinfo else _in_utc(moment, is_utc=is_utc)


def parse_until(text: str, at: datetime, *, is_utc: bool = False) -> datetime:
    """Return the end of a date, in UTC: the end of a day, and the first moment of `7d`."""
    day = _day(text, at, is_utc=is_utc)
    if day is None:
        return parse_since(text, at, is_utc=is_utc)
    # The next day begins 23 or 25 hours later when clocks are changed.
    return _start_of(day + timedelta(days=1), is_utc=is_utc)


def _day(text: str, at: datetime, *, is_utc: bool) -> date | None:
    """Return the day in a text; None if it is no whole day."""
    word = text.strip().lower()
    if word in _WORDS:
        return _today(at, is_utc=is_utc) - timedelta(days=_WORDS[word])
    return date.fromisoformat(word) if len(word) == _DAY_LENGTH and word[4] == word[7] == "-" else None


def _today(at: datetime, *, is_utc: bool) -> date:
    return (at.astimezone(UTC) if is_utc else to_local(at)).date()


def _start_of(day: date, *, is_utc: bool) -> datetime:
    return _in_utc(datetime.combine(day, time()), is_utc=is_utc)


def _in_utc(at: datetime, *, is_utc: bool) -> datetime:
    try:
        # `astimezone` is an hour early for a midnight that clocks skip.
        return at.replace(tzinfo=UTC) if is_utc else datetime.fromtimestamp(at.timestamp(), UTC)
    except (OverflowError, OSError, ValueError):  # at the end of the calendar, a zone may have no time
        return at.replace(tzinfo=UTC)


def to_datetime(text: str | None) -> datetime | None:
    """Return a time in the archive; None for one in a year that not every zone has."""
    at = None if text is None else datetime.fromisoformat(text)
    return at if at is None or date.min.year < at.year < date.max.year else None


def to_utc(at: datetime) -> datetime:
    """Return a time in UTC."""
    return at.astimezone(UTC)


def to_local(at: datetime) -> datetime:
    """Return a time in local time; one at the end of the calendar, which files may contain, is unchanged."""
    try:
        return at.astimezone()
    except (OverflowError, OSError, ValueError):
        return at
