"""The time that figures are of."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.reports.selection import PERIODS, Period, choose_unit, named_period, parse_period, split_period

TODAY = date(2026, 3, 29)
DAYS = st.dates(date(1971, 1, 1), date(2199, 12, 31))


@pytest.mark.parametrize(
    ("name", "since", "before"),
    [
        ("7d", date(2026, 3, 23), (date(2026, 3, 16), date(2026, 3, 22))),
        ("30d", date(2026, 2, 28), (date(2026, 1, 29), date(2026, 2, 27))),
        ("month", date(2026, 3, 1), (date(2026, 1, 31), date(2026, 2, 28))),
        ("year", date(2025, 3, 30), (date(2024, 3, 30), date(2025, 3, 29))),
    ],
)
def test_a_period_ends_today_and_another_as_long_is_before_it(
    name: str, since: date, before: tuple[date, date]
) -> None:
    found = parse_period(name, "", "", TODAY)
    assert (found.since, found.until, found.name) == (since, TODAY, name)
    earlier = found.before()
    assert earlier is not None
    assert (earlier.since, earlier.until) == before
    assert earlier.days == found.days


def test_all_time_has_no_ends_and_nothing_before_it() -> None:
    found = parse_period("all", "", "", TODAY)
    assert (found.since, found.until, found.before()) == (None, None, None)
    assert (found.span.since, found.span.until) == (None, None)


@pytest.mark.parametrize("wrong", ["", "yesterday", "2026-13-01", "<script>", "7", "0001-01-0", "9" * 400])
def test_what_is_no_period_is_the_usual_one(wrong: str) -> None:
    assert parse_period(wrong, wrong, wrong, TODAY) == named_period("7d", TODAY)


def test_dates_win_over_a_name_in_whatever_order_they_come() -> None:
    assert parse_period("all", "2026-02-03", "2026-02-01", TODAY) == Period(
        date(2026, 2, 1), date(2026, 2, 3)
    )
    assert parse_period("7d", "2026-02-03", "", TODAY) == Period(date(2026, 2, 3), None)


def test_dates_that_are_those_of_a_name_have_it() -> None:
    for name in PERIODS:
        told = named_period(name, TODAY)
        assert parse_period(name, str(told.since or ""), str(told.until or ""), TODAY) == told


@pytest.mark.parametrize("day", ["0001-01-01", "1970-01-01", "9999-12-31"])
def test_days_that_no_clock_can_tell_do_no_harm(day: str) -> None:
    found = parse_period("", day, day, TODAY)
    assert found.span.since is not None
    assert found.before() is None or found.before()


@given(DAYS, st.integers(0, 2000), st.sampled_from(["day", "week", "month"]))
def test_parts_make_up_the_whole(since: date, days: int, by: str) -> None:
    until = min(since + timedelta(days=days), date(2199, 12, 31))
    found = list(split_period(Period(since, until), by))
    assert sum(part.days or 0 for _, part in found) == (until - since).days + 1
    assert len({of for of, _ in found}) == len(found)
    assert (found[0][1].since, found[-1][1].until) == (since, until)


def test_many_days_are_told_by_weeks_and_years_by_months() -> None:
    told = {
        days: choose_unit(Period(TODAY - timedelta(days=days - 1), TODAY)) for days in (1, 62, 63, 366, 401)
    }
    assert told == {1: "day", 62: "day", 63: "week", 366: "week", 401: "month"}
    assert choose_unit(Period()) == "month"


def test_whoever_wants_other_parts_gets_them_where_they_can_be_seen() -> None:
    year, decade = (Period(TODAY - timedelta(days=days - 1), TODAY) for days in (365, 3650))
    assert [choose_unit(year, by) for by in ("day", "week", "month", "hour", "")] == [
        "day",
        "week",
        "month",
        "week",
        "week",
    ]
    assert [choose_unit(decade, by) for by in ("day", "week", "month")] == ["month"] * 3
