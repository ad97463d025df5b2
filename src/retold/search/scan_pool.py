"""Scans of all text for whoever asks for one: in other processes, a few at a time, and none for longer than it may take."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from retold.search import scan_worker
from retold.search.scan_job import BOUND, End, ResultItem, ScanJob, Scanned, Trouble

MOST = 2
"""Scans at the same time: each takes what a core can do."""
OFTEN = 0.2
"""Seconds after which it is asked again whether anybody still waits."""
LONGEST_LINE = 1 << 22

_LINE = msgspec.json.Decoder(ResultItem | Trouble)

IsGone = Callable[[], Awaitable[bool]]


class Scans:
    """Runs scans over the archive in a folder."""

    def __init__(self, folder: str, bound: float = BOUND) -> None:
        self._folder, self._bound = folder, bound
        self._free = asyncio.Semaphore(MOST)

    async def scanned(self, job: ScanJob, is_gone: IsGone) -> Scanned:
        """Return what is found within the time that a scan has, or until whoever asked has gone."""
        deadline = asyncio.get_running_loop().time() + self._bound
        if not await self._is_free(deadline, is_gone):
            return Scanned(end="busy")
        try:
            return await self._run(msgspec.structs.replace(job, folder=os.fsencode(self._folder)), is_gone)
        finally:
            self._free.release()

    async def _is_free(self, deadline: float, is_gone: IsGone) -> bool:
        while asyncio.get_running_loop().time() < deadline and not await is_gone():
            with suppress(TimeoutError):
                async with asyncio.timeout(OFTEN):
                    return await self._free.acquire()
        return False

    async def _run(self, job: ScanJob, is_gone: IsGone) -> Scanned:
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-P",
                "-m",
                scan_worker.__name__,
            ),  # -P: nothing is imported from where it is started
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=LONGEST_LINE,
            start_new_session=True,  # it has a process of its own, which is to end with it
        )
        try:
            assert process.stdin is not None  # noqa: S101 - for mypy: it is a pipe
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            lines, end = await self._lines(process, is_gone)
        finally:
            await _end(process)
        return _told(lines, end)

    async def _lines(self, process: Process, is_gone: IsGone) -> tuple[list[bytes], End]:
        """Return the lines that came in time, and how it ended."""
        lines: list[bytes] = []
        deadline = asyncio.get_running_loop().time() + self._bound
        reading = asyncio.create_task(_read(process, lines))
        try:
            while not reading.done():
                await asyncio.wait([reading], timeout=OFTEN)
                is_late = asyncio.get_running_loop().time() > deadline
                if not reading.done() and (is_late or await is_gone()):
                    return lines, "stopped"
            return lines, "done" if reading.result() else "broken"
        finally:
            reading.cancel()


async def _read(process: Process, lines: list[bytes]) -> bool:
    """Read all lines as they come; tell whether the last of them came."""
    assert process.stdout is not None  # noqa: S101 - for mypy: it is a pipe
    async for line in process.stdout:
        if line == b"\n":
            return True
        if not line.endswith(b"\n"):  # it has died within it
            return False
        lines.append(line)
    return False


async def _end(process: Process) -> None:
    """End it and what it started, whatever they are at."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()


def _told(lines: list[bytes], end: End) -> Scanned:
    told = [_LINE.decode(line) for line in lines]
    for one in told:
        if isinstance(one, Trouble):
            return Scanned(end="unclear", message=one.message)
    found = tuple(one for one in told if isinstance(one, ResultItem))
    return Scanned(found, end)
