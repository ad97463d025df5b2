"""Runs `retold watch` in a process of its own, and collects its output."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from support.person import CommandResult, Person

Json = dict[str, Any]
PATIENCE = 60.0
QUIET = 1.5
"""Seconds without output after which the watch counts as idle."""


class WatchProcess:
    """A running `retold watch`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._threads = [
            threading.Thread(target=self._gather, args=streams, daemon=True)
            for streams in ((process.stdout, self.out), (process.stderr, self.err))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _gather(stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))  # noqa: PERF401 - each line must be visible at once

    @property
    def events(self) -> list[Json]:
        return [json.loads(line) for line in list(self.out)]

    def told(self, *kinds: str) -> list[Json]:
        return [event for event in self.events if event["event"] in kinds]

    def wait(self, is_so: Callable[[], object]) -> None:
        """Wait until `is_so()` is true; fail if the watch ends before."""
        ends = time.monotonic() + PATIENCE
        while not is_so():
            assert self.process.poll() is None, (self.out, self.err)
            assert time.monotonic() < ends, (self.out, self.err)
            time.sleep(0.02)

    def wait_for_words(self, *words: str) -> None:
        """Wait until stdout contains all of these words."""
        self.wait(lambda: all(any(word in line for line in list(self.out)) for word in words))

    def settle(self) -> None:
        """Wait until stdout does not change for `QUIET` seconds."""
        count, since = len(self.out), time.monotonic()
        while time.monotonic() - since < QUIET:
            assert self.process.poll() is None, (self.out, self.err)
            time.sleep(0.05)
            if len(self.out) != count:
                count, since = len(self.out), time.monotonic()

    def stop(self) -> CommandResult:
        """Interrupt the watch as Ctrl-C does, and return its result."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> CommandResult:
        """Wait until the watch ends, and return its result."""
        code = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return CommandResult(code, "\n".join(self.out), "\n".join(self.err))


@contextmanager
def start_watch(person: Person, *arguments: str, code: str = "") -> Iterator[WatchProcess]:
    """Start a watch and yield it once it is watching; kill it if the test has not ended it."""
    process = person.start("watch", *arguments, code=code)
    watch = WatchProcess(process)
    try:
        watch.wait(lambda: any("watching" in line for line in list(watch.err)))
        yield watch
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
        for thread in watch._threads:  # noqa: SLF001 - same module
            thread.join(PATIENCE)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def event_texts(events: Sequence[Json], kind: str) -> list[str]:
    """Return the texts of all events of one kind."""
    return [event["text"] for event in events if event["event"] == kind]
