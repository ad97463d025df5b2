"""What the doctor says, kept for a moment: to find out reads the agents' homes, and looks through the archive."""

import sys
import time
from collections.abc import Mapping
from datetime import datetime
from threading import Lock

import msgspec

from retold.archive.store import Store
from retold.export.text.findings import Gathered, gathered
from retold.maintenance.doctor.checks import checkup
from retold.maintenance.doctor.survey import Room, Standing, Survey, room, standings, survey
from retold.maintenance.hooks import timer
from retold.maintenance.timers.machine import Machine

LASTS = 10.0
"""Seconds for which a look is good enough."""


class Checked(msgspec.Struct, frozen=True):
    """How everything stands."""

    at: datetime
    findings: tuple[Gathered, ...]
    standings: tuple[Standing, ...]
    keys: frozenset[str]
    """Of all sessions in the archive."""
    room: Room
    has_timer: bool
    synced_at: datetime | None


class Checkups:
    """Looks at everything when somebody asks, but not for everybody who asks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._latest: tuple[float, Checked] | None = None

    def latest(self, env: Mapping[str, str], *, is_new: bool = False) -> Checked:
        """Return how things stand now, or stood a moment ago; while somebody looks, others get what was seen before."""
        known = self._latest
        if known is not None and not is_new and time.monotonic() - known[0] < LASTS:
            return known[1]
        if not self._lock.acquire(blocking=known is None or is_new):
            return known[1] if known is not None else _checked(env)
        try:
            if self._latest is not known and self._latest is not None and not is_new:
                return self._latest[1]
            found = _checked(env)
            self._latest = (time.monotonic(), found)
            return found
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Look again next time: something was changed."""
        self._latest = None


def _checked(env: Mapping[str, str]) -> Checked:
    seen = survey(env)
    try:
        findings = tuple(gathered(list(checkup(seen)), seen.now))
        keys = frozenset(session.key for session in seen.sessions)
        _, has_timer = timer(Machine(env, sys.platform))
        return Checked(
            seen.now, findings, tuple(standings(seen)), keys, room(seen.folder), has_timer, _synced_at(seen)
        )
    finally:
        if seen.record is not None:
            seen.record.connection.close()


def _synced_at(seen: Survey) -> datetime | None:
    record: Store | None = seen.record
    at = record.fact("synced_at") if record is not None else None
    return datetime.fromtimestamp(at, seen.now.tzinfo) if at else None
