"""A pool of processes for scans: a few at a time, each with a time limit."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from retold.search import scan_job
from retold.search.scan_job import TIME_LIMIT, End, ResultItem, ScanError, ScanJob, ScanResult

MOST_SCANS = 2
"""Scans at the same time: each uses a core."""
POLL_SECONDS = 0.2
"""Seconds between checks whether the client is still connected."""
LONGEST_LINE = 1 << 22

_LINE = msgspec.json.Decoder(ResultItem | ScanError)

IsGone = Callable[[], Awaitable[bool]]


class ScanPool:
    """Runs scans of one archive."""

    def __init__(self, folder: str, time_limit: float = TIME_LIMIT) -> None:
        self._folder, self._time_limit = folder, time_limit
        self._slots = asyncio.Semaphore(MOST_SCANS)

    async def run(self, job: ScanJob, is_gone: IsGone) -> ScanResult:
        """Return the results of a scan within the time limit, or until the client is gone."""
        deadline = asyncio.get_running_loop().time() + self._time_limit
        if not await self._acquire_slot(deadline, is_gone):
            return ScanResult(end="busy")
        try:
            return await self._run(msgspec.structs.replace(job, folder=os.fsencode(self._folder)), is_gone)
        finally:
            self._slots.release()

    async def _acquire_slot(self, deadline: float, is_gone: IsGone) -> bool:
        while asyncio.get_running_loop().time() < deadline and not await is_gone():
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    return await self._slots.acquire()
        return False

    async def _run(self, job: ScanJob, is_gone: IsGone) -> ScanResult:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", scan_job.__name__),  # -P: the working folder is not imported from
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=LONGEST_LINE,
            start_new_session=True,  # so that its child process ends with it
        )
        try:
            assert process.stdin is not None  # noqa: S101 - for mypy: it is a pipe
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            lines, end = await self._lines(process, is_gone)
        finally:
            await _kill(process)
        return _to_result(lines, end)

    async def _lines(self, process: Process, is_gone: IsGone) -> tuple[list[bytes], End]:
        """Return the lines within the time limit, and the end of the scan."""
        lines: list[bytes] = []
        deadline = asyncio.get_running_loop().time() + self._time_limit
        reading = asyncio.create_task(_read(process, lines))
        try:
            while not reading.done():
                await asyncio.wait([reading], timeout=POLL_SECONDS)
                is_late = asyncio.get_running_loop().time() > deadline
                if not reading.done() and (is_late or await is_gone()):
                    return lines, "stopped"
            return lines, "done" if reading.result() else "broken"
        finally:
            reading.cancel()


async def _read(process: Process, lines: list[bytes]) -> bool:
    """Append lines as they come; return whether the last line came."""
    assert process.stdout is not None  # noqa: S101 - for mypy: it is a pipe
    async for line in process.stdout:
        if line == b"\n":
            return True
        if not line.endswith(b"\n"):  # the process died while it wrote
            return False
        lines.append(line)
    return False


async def _kill(process: Process) -> None:
    """Kill a process and its children."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()


def _to_result(lines: list[bytes], end: End) -> ScanResult:
    items = []
    for line in lines:
        item = _LINE.decode(line)
        if isinstance(item, ScanError):
            return ScanResult(end="unclear", message=item.message)
        items.append(item)
    return ScanResult(tuple(items), end)
