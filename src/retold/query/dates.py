"""Dates as people type them: `2026-01-27`, `7d`, `yesterday`."""

import re
from datetime import UTC, datetime, time, timedelta

_AGO = re.compile(r"(\d{1,5})([hdwmy])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_WORDS = {"today": 0, "yesterday": 1}


def parse_since(text: str, now: datetime) -> datetime:
    """Return the moment from which something counts; raises ValueError for what is no date."""
    word = text.strip().lower()
    if ago := _AGO.fullmatch(word):
        return now - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
    if word in _WORDS:
        return datetime.combine((now - timedelta(days=_WORDS[word])).date(), time(), UTC)
    at = datetime.fromisoformat(text.strip())
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def parse_until(text: str, now: datetime) -> datetime:
    """Return the moment before which something counts: a day means the whole of it."""
    at = parse_since(text, now)
    is_day = text.strip().lower() in _WORDS or len(text.strip()) == len("2026-01-27")
    return at + timedelta(days=1) if is_day else at
