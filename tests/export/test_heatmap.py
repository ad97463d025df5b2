"""Days as a calendar."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.export.text.report_overview import (
    MARGIN,
    SHADES,
    format_heat_map,
    format_weeks,
    shade_level,
    sum_weeks,
)
from support.sample_reports import plain_text

DATES = st.dates()


def drawn(days: dict[date, int | None], since: date, until: date, width: int = 80) -> list[str]:
    return plain_text(format_heat_map(days, since, until, width)).split("\n")


def test_weeks_stand_in_columns_and_a_week_begins_on_monday() -> None:
    days: dict[date, int | None] = {
        date(2026, 1, 5): 1,
        date(2026, 1, 6): 2,
        date(2026, 1, 11): 3,
        date(2026, 1, 12): 4,
    }
    assert drawn(days, date(2026, 1, 1), date(2026, 1, 14)) == [
        "      Jan",
        "Mon     ░░██",
        "        ▒▒··",
        "Wed     ····",
        "      ····",
        "Fri   ····",
        "      ····",
        "Sun   ··▓▓",
        "      less ·░▒▓█ more   most 4 on 2026-01-12",
    ]


def test_days_without_any_work_are_all_the_same() -> None:
    lines = drawn({}, date(2026, 2, 2), date(2026, 2, 8))
    assert lines == ["      ", "Mon   ··", *["      ··", "Wed   ··", "      ··", "Fri   ··", "      ··", "Sun   ··"], "      less ·░▒▓█ more"]  # fmt: skip


def test_a_single_day_is_the_darkest() -> None:
    assert "██" in drawn({date(2026, 2, 3): 1}, date(2026, 2, 2), date(2026, 2, 8))[2]


def test_one_huge_day_does_not_hide_the_others() -> None:
    days: dict[date, int | None] = {date(2026, 2, 2) + timedelta(place): 10**place for place in range(4)}
    days[date(2026, 2, 6)] = 10**40
    shades = [line[MARGIN:] for line in drawn(days, date(2026, 2, 2), date(2026, 2, 8))[1:6]]
    assert shades == ["░░", "▒▒", "▓▓", "██", "██"]


def test_work_of_unknown_worth_is_not_shown_as_none() -> None:
    lines = drawn({date(2026, 2, 3): None}, date(2026, 2, 2), date(2026, 2, 8))
    assert lines[2] == "      ??"
    assert lines[-1] == "      less ·░▒▓█ more   ? unknown"


def test_a_leap_day_has_a_place_of_its_own() -> None:
    days: dict[date, int | None] = {date(2028, 2, 29): 5}
    lines = drawn(days, date(2028, 2, 28), date(2028, 3, 5))
    assert lines[:3] == ["      Mar", "Mon   ··", "      ██"]
    assert lines[-1].endswith("most 5 on 2028-02-29")


def test_the_year_changes_within_a_week() -> None:
    lines = drawn({date(2026, 12, 31): 1, date(2027, 1, 1): 2}, date(2026, 12, 28), date(2027, 1, 3))
    assert lines[0] == "      Jan"
    assert lines[4:6] == ["      ▒▒", "Fri   ██"]


def test_as_many_weeks_as_fit_the_newest_at_the_right() -> None:
    until = date(2026, 11, 16)
    days: dict[date, int | None] = {until: 7}
    for width, weeks, cell in ((120, 53, 2), (80, 53, 1), (40, 34, 1)):
        monday = drawn(days, date(2020, 1, 1), until, width)[1]
        assert monday == "Mon   " + "·" * cell * (weeks - 1) + "█" * cell


def test_names_of_months_never_touch() -> None:
    for width in (40, 80, 120):
        for place in range(400):
            until = date(2026, 1, 1) + timedelta(place)
            names = drawn({}, date(2025, 1, 1), until, width)[0].split()
            assert names
            assert all(len(name) == 3 for name in names)


@pytest.mark.parametrize("day", [date.min, date.max])
def test_the_ends_of_time_are_days_like_others(day: date) -> None:
    assert any("██" in line for line in drawn({day: 3}, day, day))
    assert "█" in plain_text(format_weeks({day: 3}, day, day, 80, str))


@given(
    st.dictionaries(DATES, st.none() | st.integers(0, 10**20), max_size=20),
    DATES,
    DATES,
    st.integers(20, 140),
)
def test_no_line_of_a_calendar_is_too_wide(
    days: dict[date, int | None], one: date, other: date, width: int
) -> None:
    since, until = sorted((one, other))
    for line in (
        *drawn(days, since, until, width),
        *plain_text(format_weeks(days, since, until, width, str)).split("\n"),
    ):
        assert len(line) <= width


def test_where_there_is_no_room_there_are_no_weeks() -> None:
    assert list(format_weeks({}, date(2026, 1, 1), date(2026, 2, 1), MARGIN, str)) == []


@given(st.lists(st.integers(1, 10**20), min_size=1))
def test_shades_keep_the_order_of_their_values(values: list[int]) -> None:
    order = sorted(values)
    shades = [shade_level(value, order) for value in order]
    assert shades == sorted(shades)
    assert shades[0] >= 1
    assert shades[-1] == len(SHADES) - 1


def test_a_week_is_summed_from_monday_to_sunday_and_without_prices_unknown() -> None:
    days: dict[date, int | None] = {
        date(2025, 12, 28): 1,  # a Sunday
        date(2025, 12, 29): 2,
        date(2026, 1, 4): 3,
        date(2026, 1, 12): None,
        date(2026, 1, 19): None,
        date(2026, 1, 20): 4,
    }
    last = (date(2026, 1, 25).toordinal() - 1) // 7
    assert sum_weeks(days, last, 5) == [1, 5, 0, None, 4]
    line = plain_text(format_weeks(days, date(2025, 12, 22), date(2026, 1, 25), 80, str))
    assert line == "weeks ▂█▁?▇   the last 4 · the most 5"
