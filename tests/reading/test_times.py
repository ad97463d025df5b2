"""Times as agents write them."""

from datetime import UTC, datetime

import pytest

from retold.reading.times import parse_time

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
