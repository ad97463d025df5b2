"""Sets the time zone and the current time that retold sees."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest


@contextmanager
def local_clock(zone: str, now: datetime | None = None) -> Iterator[None]:
    """Set the time zone of this process and, if given, the current time, until the block ends."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TZ", zone)
            time.tzset()
            if now is not None:
                current = now.astimezone(UTC)
                patch.setattr("retold.search.dates.now", lambda: current)
            yield
    finally:
        time.tzset()
