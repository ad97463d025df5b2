"""Dates as people type them, in local days."""

from datetime import UTC, datetime, timedelta

import pytest

from retold.search.dates import now, parse_since, parse_until, to_local, today
from support.local_clock import local_clock

ANGELES, NEPAL = "America/Los_Angeles", "Asia/Kathmandu"
EVENING = datetime(2026, 11, 18, 4, 59, tzinfo=UTC)
"""20:59 on 17 November in Los Angeles; 10:44 on 18 November in Kathmandu."""


def span(since: str, until: str, *, is_utc: bool = False) -> tuple[str, str]:
    """Return the first moment that is meant, and the first that is not meant any more."""
    ends = (parse_since(since, EVENING, is_utc=is_utc), parse_until(until, EVENING, is_utc=is_utc))
    assert all(end.tzinfo is UTC for end in ends)
    return ends[0].strftime("%m-%d %H:%M"), ends[1].strftime("%m-%d %H:%M")


@pytest.mark.parametrize(
    ("zone", "word", "meant"),
    [
        (ANGELES, "today", ("11-17 08:00", "11-18 08:00")),
        (ANGELES, "Yesterday", ("11-16 08:00", "11-17 08:00")),
        (ANGELES, "2026-11-17", ("11-17 08:00", "11-18 08:00")),
        (NEPAL, "today", ("11-17 18:15", "11-18 18:15")),
        (NEPAL, "yesterday", ("11-16 18:15", "11-17 18:15")),
        ("UTC", "today", ("11-18 00:00", "11-19 00:00")),
    ],
)
def test_a_day_is_a_local_day(zone: str, word: str, meant: tuple[str, str]) -> None:
    with local_clock(zone):
        assert span(word, word) == meant
        assert span("today", "today", is_utc=True) == ("11-18 00:00", "11-19 00:00")


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("1d", "11-17 08:00"),
        ("7d", "11-11 08:00"),
        ("1w", "11-11 08:00"),
        ("1m", "10-19 07:00"),  # summer time
        ("24h", "11-17 04:59"),
    ],
)
def test_some_days_end_with_today(text: str, begin: str) -> None:
    with local_clock(ANGELES):
        assert span(text, text) == (begin, begin)


def test_a_time_without_a_zone_is_local() -> None:
    with local_clock(NEPAL):
        assert span("2026-11-18T05:45", "2026-11-18T05:45Z") == ("11-18 00:00", "11-18 05:45")
        assert span("2026-11-18T05:45", "2026-11-18T05:45", is_utc=True) == ("11-18 05:45", "11-18 05:45")


@pytest.mark.parametrize(("day", "hours"), [("2026-03-08", 23), ("2026-11-01", 25), ("2026-11-02", 24)])
def test_a_day_has_23_or_25_hours_where_clocks_change(day: str, hours: int) -> None:
    with local_clock(ANGELES):
        assert parse_until(day, EVENING) - parse_since(day, EVENING) == timedelta(hours=hours)


def test_a_day_begins_at_one_where_clocks_change_at_midnight() -> None:
    with local_clock("America/Santiago"):  # 2026-09-06 begins at 01:00
        day = parse_since("2026-09-06", EVENING)
        assert (day, to_local(day).hour) == (datetime(2026, 9, 6, 4, tzinfo=UTC), 1)


@pytest.mark.parametrize("zone", [ANGELES, NEPAL])
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-30"])
def test_days_at_the_ends_of_the_calendar_are_days(zone: str, day: str) -> None:
    with local_clock(zone):
        assert parse_since(day, EVENING) < parse_until(day, EVENING)


@pytest.mark.parametrize("text", ["", "someday", "7", "7x", "d", "2026-02-30", "\u0667d"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_since(text, EVENING)


def test_the_current_day_is_local() -> None:
    with local_clock(ANGELES, EVENING):
        assert str(today()) == "2026-11-17"
    with local_clock(NEPAL, EVENING):
        assert str(today()) == "2026-11-18"
    assert now().tzinfo is UTC
