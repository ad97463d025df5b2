"""Work behind the pages: the change feed, exports and syncs as processes, the watcher, and the cached health of the archive."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import BoundedSemaphore, Lock, Thread

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from retold.archive.store import Store
from retold.export.text.findings import FindingGroup, group_findings
from retold.export.text.formatting import plural
from retold.maintenance.doctor.checks import run_checks
from retold.maintenance.doctor.survey import DiskUsage, HomeStatus, disk_usage, home_statuses, make_survey
from retold.maintenance.hooks import timer_status
from retold.maintenance.invocation import own_command
from retold.maintenance.timers.machine import Machine

OFTEN = 0.5
"""Seconds between two checks for changes."""
QUIET = 15.0
"""Seconds after which a page without changes gets a comment, so that a closed connection is noticed."""
MOST = 64
"""Open pages that are served."""


class ChangeFeed:
    """Watches the archive while pages listen, and notifies them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._listeners = 0
        self._changes = 0
        self._changed = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def stream(self, request: Request) -> Response:
        """Send a page a server-sent event each time something is written into the archive."""
        if self._listeners >= MOST:
            return PlainTextResponse("Too many open pages\n", 503)
        return StreamingResponse(self._events(request), media_type="text/event-stream")

    async def _events(self, request: Request) -> AsyncIterator[str]:
        self._listeners += 1
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        try:
            yield "retry: 2000\n\n"
            seen = self._changes
            while not await request.is_disconnected():
                if self._changes != seen:
                    seen = self._changes
                    yield f"event: changed\ndata: {seen}\n\n"
                elif not await self._wait_for_change():
                    yield ": nothing new\n\n"
        finally:
            self._listeners -= 1
            if not self._listeners and self._watching is not None:
                self._watching.cancel()
                self._watching = None

    async def _wait_for_change(self) -> bool:
        """Wait for a change for `QUIET` seconds; return whether there was one."""
        try:
            async with asyncio.timeout(QUIET):
                return await self._changed.wait()
        except TimeoutError:
            return False

    async def _watch(self) -> None:
        """Notice writes of other processes by SQLite's data version, which an open connection can read."""
        with Store(self._folder) as store:
            before = store.data_version()
            while True:
                await asyncio.sleep(OFTEN)
                now = store.data_version()
                if now != before:
                    before = now
                    self._changes += 1
                    self._changed.set()
                    self._changed = asyncio.Event()

    def close(self) -> None:
        """Stop watching."""
        if self._watching is not None:
            self._watching.cancel()


AT_ONCE = 2
"""Exports that run at the same time; others wait."""
_PIECE = 65_536
_export_slots = BoundedSemaphore(AT_ONCE)


class ExportInterrupted(Exception):  # noqa: N818 - it says what happened
    """The export failed: the connection must break, so that the file is not taken for whole."""


def run_export(folder: str, key: str, options: Sequence[str]) -> Iterator[bytes]:
    """Yield the output of `retold export` for a session; the process is ended if nobody reads on."""
    with _export_slots:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*own_command(), "export", *options, "--", key],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RETOLD_HOME": folder},
        )
        with process:
            try:
                while process.stdout is not None and (piece := process.stdout.read(_PIECE)):
                    yield piece
            finally:
                if process.poll() is None:
                    process.terminate()
        if process.returncode != 0:
            raise ExportInterrupted(f"retold export ended with {process.returncode}")


_sync_lock = Lock()


class PageSyncOutcome(msgspec.Struct, frozen=True):
    """The outcome of a sync in words."""

    text: str
    is_well: bool = True


def run_sync_command(env: Mapping[str, str]) -> PageSyncOutcome:
    """Run `retold sync`, unless a page runs it already."""
    if not _sync_lock.acquire(blocking=False):
        return PageSyncOutcome("The archive is being brought up to date already.")
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            [*own_command(), "sync", "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=dict(env),
        )
    finally:
        _sync_lock.release()
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return PageSyncOutcome(
            lines[-1] if lines else f"retold sync ended with {done.returncode}", is_well=False
        )
    return PageSyncOutcome(_sync_sentence(json.loads(done.stdout)))


def _sync_sentence(counts: Mapping[str, int]) -> str:
    new, read = counts["new_sessions"], counts["read"]
    if not read:
        return f"Nothing was new in {counts['found']:,} files."
    sessions = plural(new, "new session") if new else "no new session"
    return f"{read:,} of {counts['found']:,} files were read: {sessions}."


_PATIENCE = 5
"""Seconds that the watcher has to end by itself."""


@contextmanager
def run_watcher(env: Mapping[str, str]) -> Iterator[None]:
    """Run this module as a process that keeps the archive up to date, until the block ends."""
    child = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-m", __name__],  # -P: nothing is imported from the current folder
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(env),
    )
    try:
        yield
    finally:
        child.terminate()
        try:
            child.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()


def keep_up_to_date() -> None:
    """Sync at once and after each change of the agents' files. Ends with the process that started this one."""
    from retold.config import read_config, retold_home
    from retold.maintenance.watch import change_events, run_then_rest
    from retold.synchronization.update import SyncOptions, update

    Thread(target=_exit_at_end_of_input, daemon=True).start()
    folder = retold_home(os.environ)
    config = read_config(folder)
    options = SyncOptions(folder, os.environ, list(config.homes.items()), (), config.excluded)

    def sync() -> None:
        update(options, lambda: None, lambda _done, _size: None)

    sync()
    for _ in change_events(options, lambda _why: None):
        run_then_rest(sync)


def _exit_at_end_of_input() -> None:
    """Exit when the parent process ends, however it ends: that closes our input."""
    sys.stdin.buffer.read()
    os._exit(0)


LASTS = 10.0
"""Seconds for which a state is good enough."""


class HealthState(msgspec.Struct, frozen=True):
    """The state of the archive and of the agents' homes."""

    at: datetime
    findings: tuple[FindingGroup, ...]
    homes: tuple[HomeStatus, ...]
    keys: frozenset[str]
    """The keys of all archived sessions."""
    disk: DiskUsage
    has_timer: bool
    synced_at: datetime | None


class HealthCache:
    """Checks the health when a page asks, but not for each of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._latest: tuple[float, HealthState] | None = None

    def latest(self, env: Mapping[str, str], *, is_new: bool = False) -> HealthState:
        """Return the current or a recent state. While one page checks, others get the state before, if there is one."""
        known = self._latest
        if known is not None and not is_new and time.monotonic() - known[0] < LASTS:
            return known[1]
        if not self._lock.acquire(blocking=known is None or is_new):
            return known[1] if known is not None else _check_health(env)
        try:
            if self._latest is not known and self._latest is not None and not is_new:
                return self._latest[1]
            state = _check_health(env)
            self._latest = (time.monotonic(), state)
            return state
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Check again next time, since something was changed."""
        self._latest = None


def _check_health(env: Mapping[str, str]) -> HealthState:
    seen = make_survey(env)
    try:
        findings = tuple(group_findings(list(run_checks(seen)), seen.now))
        keys = frozenset(session.key for session in seen.sessions)
        synced_at = None if seen.record is None else seen.record.fact("synced_at")
        has_timer = timer_status(Machine(env, sys.platform)).is_enabled
        return HealthState(
            seen.now,
            findings,
            tuple(home_statuses(seen)),
            keys,
            disk_usage(seen.folder),
            has_timer,
            datetime.fromtimestamp(synced_at, seen.now.tzinfo) if synced_at else None,
        )
    finally:
        if seen.record is not None:
            seen.record.connection.close()


if __name__ == "__main__":
    keep_up_to_date()
