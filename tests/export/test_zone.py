"""Times as people read them, with the name of their zone."""

from datetime import UTC, datetime, timedelta

import pytest

from retold.export.text.formatting import (
    format_day,
    format_minute,
    format_moment,
    format_period,
    format_second,
    format_time,
    zone_names,
)
from support.local_clock import local_clock

AT = datetime(2026, 1, 27, 1, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "told", "names"),
    [
        ("UTC", "2026-01-27 01:02:03 UTC", "UTC"),
        ("Asia/Kathmandu", "2026-01-27 06:47:03 UTC+05:45", "UTC+05:45"),
        ("America/Sao_Paulo", "2026-01-26 22:02:03 UTC-03:00", "UTC-03:00"),
        ("America/Los_Angeles", "2026-01-26 17:02:03 PST", "PST/PDT"),
    ],
)
def test_a_time_is_local_and_names_its_zone(zone: str, told: str, names: str) -> None:
    with local_clock(zone):
        on, at, called = told.split()
        assert (format_day(AT), format_second(AT), format_minute(AT)) == (on, f"{on} {at}", f"{on} {at[:5]}")
        assert format_moment(AT) == f"{on} {at[:5]} {called}"
        assert (format_moment(AT, is_utc=True), format_day(AT, is_utc=True)) == (
            "2026-01-27 01:02 UTC",
            "2026-01-27",
        )
        assert zone_names() == names


def test_a_period_names_the_day_and_the_zone_again_only_where_they_change() -> None:
    with local_clock("America/Los_Angeles"):
        night = datetime(2026, 11, 1, 8, 30, tzinfo=UTC)  # an hour before clocks are set back
        assert format_period(night, night + timedelta(minutes=5)) == "2026-11-01 01:30 to 01:35 PDT"
        assert format_period(night, night + timedelta(hours=1)) == "2026-11-01 01:30 PDT to 01:30 PST"
        assert (
            format_period(night, night + timedelta(days=1)) == "2026-11-01 01:30 PDT to 2026-11-02 00:30 PST"
        )
        assert format_period(night, None) == format_period(night, night) == "2026-11-01 01:30 PDT"


def test_a_message_on_another_day_has_its_day() -> None:
    with local_clock("America/Los_Angeles"):
        assert format_time(AT, AT - timedelta(hours=17)) == "17:02"
        assert format_time(AT, AT - timedelta(hours=18)) == "2026-01-26 17:02"
        assert format_time(AT, None) == "2026-01-26 17:02"
