"""Workers: processes that read clusters and write the index while one process writes the archive; and limits on time."""

import gc
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from threading import Condition, Thread, get_ident
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

import msgspec

from retold.archive.database import RetoldError
from retold.archive.index.writer import IndexWriter
from retold.archive.store import SHARDS, Store, shard_path
from retold.archive.writer import ClusterUpdate
from retold.processes import PRIVATE, can_fork, fork, start
from retold.synchronization.cluster import ClusterJob, JobResult, JobRunner

JOBS_AHEAD = 3
"""Jobs that a worker has at hand, so that it never waits for the next."""
COMMIT_BYTES = 256 << 20
"""Bytes of files after which a worker commits its part of the index."""
MOST_DEATHS = 16
"""Workers that may die in one run: more are no fault of the files."""
_WORTH_PROCESSES = 12 << 20
"""Bytes that are worth the start of processes."""
RunnerFactory = Callable[[Store], JobRunner]


class TimedJob(NamedTuple):
    """A job, and the seconds within which it must be read."""

    job: ClusterJob
    seconds: float


class WorkerDied(Exception):  # noqa: N818 - an event
    """The process that read a cluster ended: the system killed it for its memory, or somebody else did."""


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


class WorkerPool:
    """Processes that read jobs. One that dies or takes too long costs no other job than the one that it was reading.

    A session that is in a file of the index is read by the process that writes this file: a search that goes through the
    files one after the other would miss a session that moves between them.
    """

    def __init__(
        self, shards: Mapping[ClusterJob, int], folder: str, factory: RunnerFactory, size: int
    ) -> None:
        """Take the index file of each job that has one, the archive's folder, and the number of processes."""
        self._shards, self._folder, self._factory, self._size = shards, folder, factory, size
        self._workers: list[_Worker] = []
        self._waiting: list[list[TimedJob]] = []
        self._taken: set[ClusterJob] = set()
        self._suspects: list[TimedJob] = []
        """The jobs that processes were reading when they died."""
        self.failed: list[tuple[ClusterJob, Exception]] = []
        """The jobs that could not be read, and the reasons."""
        self.deaths = 0
        """Processes that died. Index entries that they had not committed are lost."""

    def updates(self, jobs: Sequence[TimedJob]) -> Iterator[ClusterUpdate]:
        """Yield the updates of jobs, in any order; the first job is read first."""
        self._waiting = [
            [one for one in reversed(jobs) if self._shards.get(one.job, number) == number]
            for number in range(self._size)
        ]
        try:
            for number in range(self._size):
                self._start(number)
            yield from self._receive()
            # The system may have killed the wrong process for its memory: each suspect is read once more, alone.
            while self._suspects:
                suspect = self._suspects.pop()
                self._waiting = [[] for _ in range(self._size)]
                number = self._shards.get(suspect.job, 0)
                self._waiting[number].append(suspect)
                self._taken.discard(suspect.job)
                self._start(number, is_last_try=True)
                yield from self._receive()
        finally:
            for worker in self._workers:
                worker.kill()

    def _start(self, number: int, *, is_last_try: bool = False) -> None:
        numbers = range(SHARDS) if self._size == 1 else (number,)
        worker = _Worker(number, self._folder, numbers, self._factory, is_last_try=is_last_try)
        self._workers.append(worker)
        for _ in range(JOBS_AHEAD):
            self._give(worker)

    def _give(self, worker: "_Worker") -> None:
        """Give a worker its next job that no other has taken; None if there is no more."""
        waiting = self._waiting[worker.number]
        while waiting and waiting[-1].job in self._taken:
            waiting.pop()
        if waiting:
            self._taken.add(waiting[-1].job)
        worker.give(waiting.pop() if waiting else None)

    def _receive(self) -> Iterator[ClusterUpdate]:
        """Yield what the workers send, until all of them have ended."""
        while self._workers:
            deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
            timeout = max(min(deadlines) - time.monotonic(), 0) if deadlines else None
            ready = wait([worker.pipe for worker in self._workers], timeout)
            for worker in list(self._workers):
                if worker.pipe in ready:
                    update = self._receive_from(worker)
                    if update is not None:
                        yield update
                elif worker.deadline is not None and time.monotonic() >= worker.deadline:
                    self._lose(worker, TooSlow(f"not read in {worker.given[0].seconds:.0f} seconds"))

    def _receive_from(self, worker: "_Worker") -> ClusterUpdate | None:
        """Return the next update of a worker; None if it has ended."""
        try:
            message = pickle.loads(worker.pipe.recv_bytes())  # noqa: S301 - from a process that we started
        except (EOFError, ConnectionError):
            worker.process.join()
            self._lose(worker, WorkerDied(f"the process that read it ended with {worker.process.exitcode}"))
            return None
        if isinstance(message, ClusterUpdate):
            worker.finish_job()
            self._give(worker)
            return message
        if message is None:
            self._workers.remove(worker)
            worker.end()
        elif isinstance(message, RetoldError) or not isinstance(message, Exception):
            raise message
        else:
            self._lose(worker, message)
        return None

    def _lose(self, worker: "_Worker", error: Exception) -> None:
        """End a worker that failed at a job; start another for the rest of its jobs."""
        self._workers.remove(worker)
        worker.kill()
        self.deaths += 1
        if self.deaths > MOST_DEATHS:
            raise RetoldError("processes that read sessions keep dying; run the command again")
        if worker.given:
            failed = worker.given.popleft()
            if worker.is_last_try or isinstance(error, TooSlow):
                self.failed.append((failed.job, error))
            else:
                self._suspects.append(failed)
        for one in reversed(worker.given):
            self._taken.discard(one.job)
            self._waiting[worker.number].append(one)
        if any(one.job not in self._taken for one in self._waiting[worker.number]):
            self._start(worker.number)


class _Worker:
    """A process, its jobs, and the deadline of the first of them."""

    def __init__(
        self, number: int, folder: str, numbers: Sequence[int], factory: RunnerFactory, *, is_last_try: bool
    ) -> None:
        self.number, self.is_last_try = number, is_last_try
        self.pipe, child_pipe = Pipe()
        # Before the start: a child that has our end as well would never notice that we are gone.
        PRIVATE.add(self.pipe.fileno())
        self.process = start(_run_worker, child_pipe, folder, numbers, factory)
        child_pipe.close()
        self.given: deque[TimedJob] = deque()
        self.deadline: float | None = None

    def give(self, one: TimedJob | None) -> None:
        """Send a job; None says that there are no more."""
        if one is not None:
            self.given.append(one)
            if len(self.given) == 1:
                self._set_deadline()
        with suppress(ConnectionError):  # a worker that has died is noticed at the pipe
            self.pipe.send(None if one is None else one.job)

    def finish_job(self) -> None:
        """Remove the first job."""
        self.given.popleft()
        self._set_deadline()

    def _set_deadline(self) -> None:
        self.deadline = time.monotonic() + self.given[0].seconds if self.given else None

    def end(self) -> None:
        """Wait for the process to end."""
        PRIVATE.discard(self.pipe.fileno())
        self.pipe.close()
        self.process.join()

    def kill(self) -> None:
        """End the process."""
        self.process.kill()
        self.end()


def _run_worker(pipe: Connection, folder: str, numbers: Sequence[int], factory: RunnerFactory) -> None:
    """Read jobs until there are no more, and commit the index now and then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    gc.disable()
    try:
        with Store(folder) as store:
            shards = [IndexWriter(shard_path(folder, number), store.id, is_bulk=True) for number in numbers]
            runner, size = factory(store), 0
            while (job := pipe.recv()) is not None:
                update = write_entries(runner.run(job), shards)
                size += sum(file.size for file in update.files)
                if size > COMMIT_BYTES:
                    for shard in shards:
                        shard.commit()
                    size = 0
                pipe.send_bytes(pickle.dumps(update, protocol=5))
            for shard in shards:
                shard.commit()
                shard.close()
        pipe.send_bytes(pickle.dumps(None))
    except (BrokenPipeError, EOFError):
        return  # the parent is gone
    except BaseException as error:  # noqa: BLE001 - the parent handles it
        pipe.send_bytes(pickle.dumps(error))


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
    signal.signal(signal.SIGINT, signal.SIG_DFL)
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
        for part in self._running:
            with suppress(ProcessLookupError):
                os.kill(part.process, signal.SIGTERM)
            part.reap()
