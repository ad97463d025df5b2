"""Times as agents write them."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from retold.reading.diagnostics import duration_ms, elapsed_ms, parse_time

NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "at", "code"),
    [
        ("2026-03-01T09:00:00.000Z", NINE, None),
        ("2026-03-01T09:00:00+00:00", NINE, None),
        ("2026-03-01T11:00:00+02:00", NINE, None),
        ("2026-03-01T09:00:00", NINE, "naive-timestamp"),
        (1_772_355_600_000, NINE, None),
        (1_772_355_600, NINE, None),
        (1_772_355_600.0, NINE, None),
        (-1_000_000_000_000, datetime(1938, 4, 24, 22, 13, 20, tzinfo=UTC), None),
        (None, None, None),
        ("", None, "bad-timestamp"),
        ("yesterday", None, "bad-timestamp"),
        ("0001-01-01T00:00:00+23:00", None, "bad-timestamp"),
        (10**30, None, "bad-timestamp"),
        (10**400, None, "bad-timestamp"),
        (True, None, "bad-timestamp"),
        ({}, None, "bad-timestamp"),
    ],
)
def test_a_time_is_understood_or_told(value: object, at: datetime | None, code: str | None) -> None:
    assert parse_time(value) == (at, code)


@pytest.mark.parametrize(
    ("start", "end", "elapsed"),
    [
        (NINE, NINE + timedelta(milliseconds=250), 250),
        (NINE, NINE, 0),
        (NINE, NINE + timedelta(days=30), 2_592_000_000),
        (NINE, NINE + timedelta(days=30, milliseconds=1), None),
        (NINE, NINE - timedelta(microseconds=1), None),
        (None, NINE, None),
        (NINE, None, None),
    ],
)
def test_what_lies_between_two_times_is_told_if_a_call_can_take_so_long(
    start: datetime | None, end: datetime | None, elapsed: int | None
) -> None:
    assert elapsed_ms(start, end) == elapsed


@pytest.mark.parametrize(
    ("value", "told"),
    [(12, 12), (12.6, 13), (0, 0), (-1, None), (10**400, None), (math.inf, None), (math.nan, None), (True, None),
     ("12", None), (None, None)],
)  # fmt: skip
def test_a_duration_is_whole_milliseconds_or_none(value: object, told: int | None) -> None:
    assert duration_ms(value) == told
