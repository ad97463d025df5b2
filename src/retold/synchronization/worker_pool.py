"""Worker processes: they read clusters and write the index while one process writes the archive."""

import gc
import pickle
import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait

from retold.archive.database import RetoldError
from retold.archive.index.writer import IndexWriter
from retold.archive.store import SHARDS, Store, shard_path
from retold.archive.writer import ClusterUpdate
from retold.processes import PRIVATE, start
from retold.synchronization.cluster import ClusterJob
from retold.synchronization.workers import RunnerFactory, TimedJob, TooSlow, write_entries

JOBS_AHEAD = 3
"""Jobs that a worker has at hand, so that it never waits for the next."""
COMMIT_BYTES = 256 << 20
"""Bytes of files after which a worker commits its part of the index."""
MOST_DEATHS = 16
"""Workers that may die in one run: more are no fault of the files."""


class WorkerDied(Exception):  # noqa: N818 - an event
    """The process that read a cluster ended: the system killed it for its memory, or somebody else did."""


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
