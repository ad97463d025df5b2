"""Reading in this process within limits on time, and work that is divided among forked processes."""

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Condition, Thread, get_ident
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

import msgspec

from retold.archive.index.writer import IndexWriter
from retold.archive.store import SHARDS, Store
from retold.archive.writer import ClusterUpdate
from retold.processes import PRIVATE, can_fork, fork
from retold.synchronization.cluster import ClusterJob, JobResult, JobRunner

_WORTH_PROCESSES = 12 << 20
"""Bytes that are worth the start of processes."""
RunnerFactory = Callable[[Store], JobRunner]


class TimedJob(NamedTuple):
    """A job, and the seconds within which it must be read."""

    job: ClusterJob
    seconds: float


class TooSlow(Exception):  # noqa: N818 - an event
    """Work took longer than it may."""

    problem_code = "reader-timeout"

    def __str__(self) -> str:
        return super().__str__() or "it took longer than it may"


class TimeLimit:
    """A thread that raises TooSlow in the thread that made it when work takes too long.

    Work inside one call to C is not interrupted before the call returns.
    """

    def __init__(self) -> None:
        self._watched = get_ident()
        self._changed = Condition()
        self._deadline: float | None = None
        self._seconds = 0.0
        self._is_over = False
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join()

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Limit the work of a `with` block to some seconds; its clean-up gets as many again each time they are over."""
        self._set(seconds)
        try:
            yield
        finally:
            self._set(None)

    def _set(self, seconds: float | None) -> None:
        with self._changed:
            self._seconds = seconds or 0.0
            self._deadline = None if seconds is None else time.monotonic() + seconds
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._is_over:
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                self._deadline = time.monotonic() + self._seconds
                _raise_too_slow(self._watched)


def _raise_too_slow(thread: int) -> None:
    from ctypes import c_ulong, py_object, pythonapi

    pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread), py_object(TooSlow))


def pool_size(size: int) -> int:
    """Return how many processes to start for some bytes; none if this process reads them faster itself."""
    return 0 if size < _WORTH_PROCESSES else max(1, min(SHARDS, os.cpu_count() or 1))


def time_budget(size: int) -> float:
    """Return the seconds within which a cluster of some bytes must be read: any reader needs far less."""
    return 120 + size / (1 << 20)


def run_inline(
    jobs: Sequence[TimedJob], runner: JobRunner, shards: Sequence[IndexWriter]
) -> Iterator[ClusterUpdate]:
    """Yield the updates of jobs, read in this process."""
    with TimeLimit() as limit:
        for job, seconds in jobs:
            try:
                with limit.limit(seconds):
                    result = runner.run(job)
            except TooSlow as error:  # while the cluster was being put off, or at the very end
                result = runner.postpone(job, error)
            yield write_entries(result, shards)


def write_entries(result: JobResult, shards: Sequence[IndexWriter]) -> ClusterUpdate:
    """Write the entries of a result into the index, and return its update."""
    for entry in result.entries:
        shard_for(entry.uid, shards).put(entry)
    return result.update


def shard_for(uid: int, shards: Sequence[IndexWriter]) -> IndexWriter:
    """Return the file of the index that has a session, else the one with fewest."""
    holder = next((shard for shard in shards if shard.has_session(uid)), None)
    chosen = holder or min(shards, key=lambda shard: shard.last)
    chosen.begin()
    return chosen


T = TypeVar("T")
Work = Callable[[Sequence[int]], Iterable[T]]
_PARTS = 2


def run_in_processes(
    work: Work[T], items: Sequence[int], size_of: Callable[[int], int], kind: type[T]
) -> Iterable[T]:
    """Return the results of work on items; in forked processes, which run already when this returns, if that pays off."""
    if sum(map(size_of, items)) < _WORTH_PROCESSES or len(items) < _PARTS or not can_fork():
        return work(items)
    return _ForkedResults(work, _split(items, size_of), kind)


def _split(items: Sequence[int], size_of: Callable[[int], int]) -> list[list[int]]:
    """Return the items in parts of about the same size."""
    parts: list[list[int]] = [[] for _ in range(_PARTS)]
    sizes = [0] * _PARTS
    for item in sorted(items, key=size_of, reverse=True):
        least = sizes.index(min(sizes))
        parts[least].append(item)
        sizes[least] += size_of(item)
    return parts


class _ForkedPart(NamedTuple):
    """Some items, the process that works on them, and the descriptor from which its results are read."""

    items: Sequence[int]
    process: int
    pipe: int

    def reap(self) -> None:
        """Close the pipe, and wait for the process."""
        PRIVATE.discard(self.pipe)
        os.close(self.pipe)
        with suppress(ChildProcessError):
            os.waitpid(self.process, 0)


def _start_part(work: Work[T], items: Sequence[int]) -> _ForkedPart:
    pipe, child_pipe = os.pipe()
    PRIVATE.add(pipe)
    process = fork(lambda: _run_part(work, items, child_pipe))
    os.close(child_pipe)
    return _ForkedPart(items, process, pipe)


def _run_part(work: Work[T], items: Sequence[int], pipe: int) -> None:
    """Do a part of the work in a child process; if the child fails, the parent does it."""
    from signal import SIG_DFL, SIGINT, signal

    signal(SIGINT, SIG_DFL)
    gc.disable()
    with suppress(BaseException), open(pipe, "wb") as file:
        file.write(msgspec.msgpack.encode(list(work(items))))


class _ForkedResults(Generic[T]):
    """The results of processes that work on parts."""

    def __init__(self, work: Work[T], parts: Sequence[Sequence[int]], kind: type[T]) -> None:
        self._work, self._decoder = work, msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]
        self._running = [_start_part(work, part) for part in parts]

    def __iter__(self) -> Iterator[T]:
        """Yield all results; those that a process did not return are made here."""
        while self._running:
            part = self._running[0]
            with open(part.pipe, "rb", closefd=False) as file:
                data = file.read()
            del self._running[0]
            part.reap()
            try:
                results = self._decoder.decode(data)
            except msgspec.DecodeError:
                results = list(self._work(part.items))
            yield from results

    def __del__(self) -> None:
        """End the processes whose results were not read."""
        from signal import SIGTERM

        for part in self._running:
            with suppress(ProcessLookupError):
                os.kill(part.process, SIGTERM)
            part.reap()
