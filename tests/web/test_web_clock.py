"""Times as the page tells them, wherever the machine is."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from retold.web.templating import format_ago, local_day, local_time

NOW = datetime(2026, 3, 20, 1, 30, tzinfo=UTC)


@pytest.fixture(params=["America/Los_Angeles", "Pacific/Kiritimati"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def test_how_long_ago_something_was() -> None:
    told = {
        timedelta(seconds=5): "just now",
        timedelta(minutes=59): "59 min ago",
        timedelta(days=1): "yesterday",
        timedelta(days=14): "14 days ago",
        timedelta(days=15): "2026-03-05",
        timedelta(days=-3): "2026-03-23",
    }
    assert {since: format_ago(NOW - since, NOW) for since in told} == told
    assert format_ago(None) == ""


def test_days_are_those_of_the_machine(zone: str) -> None:
    is_west = zone.startswith("America")
    assert local_time(NOW) == ("2026-03-19 18:30" if is_west else "2026-03-20 15:30")
    assert local_day(NOW) == ("2026-03-19" if is_west else "2026-03-20")
    assert format_ago(NOW - timedelta(hours=2), NOW) == "2 h ago"


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("claimed", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_times_at_the_edge_of_all_time_are_told(claimed: str) -> None:
    at = datetime.fromisoformat(claimed)
    assert local_day(at)
    assert local_time(at)
    assert format_ago(at)
