"""What changes in the archive while somebody looks: told to every open page as it happens."""

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
from retold.export.text.findings import Gathered, gathered
from retold.maintenance.doctor.checks import checkup
from retold.maintenance.doctor.survey import Room, Standing, Survey, room, standings, survey
from retold.maintenance.hooks import timer
from retold.maintenance.invocation import own_command
from retold.maintenance.timers.machine import Machine

OFTEN = 0.5
"""Seconds between two looks at whether anything was written."""
QUIET = 15.0
"""Seconds after which an open page is told that there is nothing new: a connection that is gone shows itself then."""
MOST = 64
"""Pages that are told at the same time."""


class Following:
    """Looks at the archive as long as somebody listens."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._listeners = 0
        self._changes = 0
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    async def stream(self, request: Request) -> Response:
        """Tell one page, as server-sent events, each time that something was written into the archive."""
        if self._listeners >= MOST:
            return PlainTextResponse("Too many open pages\n", 503)
        return StreamingResponse(self._told(request), media_type="text/event-stream")

    async def _told(self, request: Request) -> AsyncIterator[str]:
        self._listeners += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield "retry: 2000\n\n"
            seen = self._changes
            while not await request.is_disconnected():
                if self._changes != seen:
                    seen = self._changes
                    yield f"event: changed\ndata: {seen}\n\n"
                elif not await self._is_changed():
                    yield ": nothing new\n\n"
        finally:
            self._listeners -= 1
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _is_changed(self) -> bool:
        """Wait until something changes, but not for ever."""
        try:
            async with asyncio.timeout(QUIET):
                return await self._changed.wait()
        except TimeoutError:
            return False

    async def _look(self) -> None:
        """Notice what other processes write; SQLite counts that for a connection that stays open."""
        with Store(self._folder) as record:
            before = record.version()
            while True:
                await asyncio.sleep(OFTEN)
                now = record.version()
                if now != before:
                    before = now
                    self._changes += 1
                    self._changed.set()
                    self._changed = asyncio.Event()

    def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()


AT_ONCE = 2
"""Documents that are made at the same time; whoever comes later waits."""
_PIECE = 65_536
_turns = BoundedSemaphore(AT_ONCE)


class Unfinished(Exception):  # noqa: N818 - it says what the document is
    """The document broke off: whoever gets it must not take it for whole."""


def exported(folder: str, key: str, options: Sequence[str]) -> Iterator[bytes]:
    """Yield what `retold export` writes for a session of the archive in a folder; it is ended if nobody wants it any more."""
    with _turns:
        process = subprocess.Popen(  # noqa: S603 - ourselves
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
            raise Unfinished(f"retold export ended with {process.returncode}")


_alone = Lock()


class PageSyncOutcome(msgspec.Struct, frozen=True):
    """What came of it, in words."""

    text: str
    is_well: bool = True


def sync(env: Mapping[str, str]) -> PageSyncOutcome:
    """Run `retold sync`, unless it runs for somebody else already."""
    if not _alone.acquire(blocking=False):
        return PageSyncOutcome("The archive is being brought up to date already.")
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            [*own_command(), "sync", "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=dict(env),
        )
    finally:
        _alone.release()
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip().splitlines()
        return PageSyncOutcome(
            told[-1] if told else f"retold sync ended with {done.returncode}", is_well=False
        )
    return PageSyncOutcome(_words(json.loads(done.stdout)))


def _words(told: Mapping[str, int]) -> str:
    new, read = told["new_sessions"], told["read"]
    if not read:
        return f"Nothing was new in {told['found']:,} files."
    sessions = f"{new:,} new session{'' if new == 1 else 's'}" if new else "no new session"
    return f"{read:,} of {told['found']:,} files were read: {sessions}."


_PATIENCE = 5
"""Seconds for which it may end what it is at."""


@contextmanager
def watching(env: Mapping[str, str]) -> Iterator[None]:
    """Let it run meanwhile."""
    child = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-P", "-m", __name__],  # -P: the folder it is started in is nothing to import from
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


def follow() -> None:
    """Keep the archive up to date, for as long as the one who started this lives."""
    from retold.config import read_config, retold_home
    from retold.maintenance.watch import change_events, rested
    from retold.synchronization.update import Task, update

    Thread(target=_end_with_others, daemon=True).start()
    folder = retold_home(os.environ)
    config = read_config(folder)
    task = Task(folder, os.environ, list(config.homes.items()), (), config.excluded)

    def look() -> None:
        update(task, lambda: None, lambda _done, _size: None)

    look()
    for _ in change_events(task, lambda _why: None):
        rested(look)


def _end_with_others() -> None:
    """End when the other end of our input does, however that came to its end."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    follow()


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
