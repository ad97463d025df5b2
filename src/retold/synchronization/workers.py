"""Workers: processes that read clusters and write the index, while one process writes the archive."""

import gc
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Generic, TypeVar

import msgspec

from retold.archive.database import RetoldError
from retold.archive.index.files import SHARDS, shard_path
from retold.archive.index.writer import IndexEntry, IndexWriter
from retold.archive.store import Store
from retold.archive.writer import ClusterUpdate
from retold.processes import PRIVATE, can_fork, fork, start
from retold.synchronization.cluster import ClusterJob, Reader
from retold.synchronization.time_limit import TimeLimit, TooSlow

AHEAD = 3
"""Jobs that a worker has at hand: it never waits for the next."""
BATCH = 256 << 20
"""Bytes of originals behind which a worker lets its part of the index be seen."""
MOST_DEATHS = 16
"""Processes that may die in one run: more are no fault of the files."""
Make = Callable[[Store], Reader]
Timed = tuple[ClusterJob, float]
"""A job, and the seconds in which it must be read."""


class Died(Exception):  # noqa: N818 - it says what happened
    """The process that read a cluster ended: the system killed it for its memory, or somebody else did."""


def crew_size(size: int) -> int:
    """Return how many processes to start for so many bytes; none where this process reads them faster itself."""
    return 0 if size < (12 << 20) else max(1, min(SHARDS, os.cpu_count() or 1))


def time_budget(size: int) -> float:
    """Return the seconds in which a cluster of so many bytes must be read: no reader is slower by far."""
    return 120 + size / (1 << 20)


def run_inline(
    jobs: Sequence[Timed], reader: Reader, shards: Sequence[IndexWriter]
) -> Iterator[ClusterUpdate]:
    """Yield the parcels of jobs that are few: read in this process."""
    with TimeLimit() as watch:
        for job, seconds in jobs:
            with watch.limit(seconds):
                parcel, indexed = reader.parcel(job)
            yield put_entries(parcel, indexed, shards)


def put_entries(
    parcel: ClusterUpdate, indexed: Iterable[IndexEntry], shards: Sequence[IndexWriter]
) -> ClusterUpdate:
    """Put the sessions of a parcel into the index, and return the parcel."""
    for entry in indexed:
        shard_for(entry.name, shards).put(entry)
    return parcel


def shard_for(name: int, shards: Sequence[IndexWriter]) -> IndexWriter:
    """Return the file of the index in which a session is, else the one with fewest."""
    holder = next((shard for shard in shards if shard.holds(name)), None)
    chosen = holder or min(shards, key=lambda shard: shard.last)
    chosen.begin()
    return chosen


class WorkerPool:
    """Processes that read jobs. One that dies or takes too long costs no other job than the one that it was reading.

    A session that is in a file of the index is read by the process that writes this file: a search that goes through the
    files one after the other would miss a session that moves between them.
    """

    def __init__(self, homes: Mapping[ClusterJob, int], folder: str, make: Make, size: int) -> None:
        """Take the index file of each job that has one, the archive's folder, and the number of processes."""
        self._homes, self._folder, self._make, self._size = homes, folder, make, size
        self._workers: list[_Worker] = []
        self._waiting: list[list[Timed]] = []
        self._taken: set[ClusterJob] = set()
        self._suspects: list[Timed] = []
        """The jobs that processes were reading when they died."""
        self.failed: list[tuple[ClusterJob, Exception]] = []
        """The jobs that were put off, and why."""
        self.deaths = 0
        """Processes that died. Index entries that they had not committed are lost."""

    def parcels(self, jobs: Sequence[Timed]) -> Iterator[ClusterUpdate]:
        """Yield the parcels of jobs, in any order; the first job is read first."""
        self._waiting = [
            [one for one in reversed(jobs) if self._homes.get(one[0], number) == number]
            for number in range(self._size)
        ]
        try:
            for number in range(self._size):
                self._start(number)
            yield from self._received()
            # The system may have killed the wrong process for its memory: each of these is read once more, alone.
            while self._suspects:
                job, seconds = self._suspects.pop()
                self._waiting = [[] for _ in range(self._size)]
                number = self._homes.get(job, 0)
                self._waiting[number].append((job, seconds))
                self._taken.discard(job)
                self._start(number, is_last_try=True)
                yield from self._received()
        finally:
            for worker in self._workers:
                worker.kill()

    def _start(self, number: int, *, is_last_try: bool = False) -> None:
        numbers = range(SHARDS) if self._size == 1 else (number,)
        worker = _Worker(number, self._folder, numbers, self._make, is_last_try=is_last_try)
        self._workers.append(worker)
        for _ in range(AHEAD):
            self._give(worker)

    def _give(self, worker: "_Worker") -> None:
        """Give a worker its next job that no other has taken; None when there is no more."""
        waiting = self._waiting[worker.number]
        while waiting and waiting[-1][0] in self._taken:
            waiting.pop()
        if waiting:
            self._taken.add(waiting[-1][0])
        worker.give(waiting.pop() if waiting else None)

    def _received(self) -> Iterator[ClusterUpdate]:
        """Yield what the workers send, until all of them have ended."""
        while self._workers:
            deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
            timeout = max(min(deadlines) - time.monotonic(), 0) if deadlines else None
            ready = wait([worker.pipe for worker in self._workers], timeout)
            for worker in list(self._workers):
                if worker.pipe in ready:
                    parcel = self._parcel(worker)
                    if parcel is not None:
                        yield parcel
                elif worker.deadline is not None and time.monotonic() >= worker.deadline:
                    self._lose(worker, TooSlow(f"not read in {worker.given[0][1]:.0f} seconds"))

    def _parcel(self, worker: "_Worker") -> ClusterUpdate | None:
        """Return the next parcel of a worker; None where it has ended."""
        try:
            told = pickle.loads(worker.pipe.recv_bytes())  # noqa: S301 - from a process that we started
        except (EOFError, ConnectionError):
            worker.process.join()
            self._lose(worker, Died(f"the process that read it ended with {worker.process.exitcode}"))
            return None
        if isinstance(told, ClusterUpdate):
            worker.answered()
            self._give(worker)
            return told
        if told is None:
            self._workers.remove(worker)
            worker.end()
        elif isinstance(told, RetoldError) or not isinstance(told, Exception):
            raise told
        else:
            self._lose(worker, told)
        return None

    def _lose(self, worker: "_Worker", error: Exception) -> None:
        """End a worker that failed at a job; let another do the rest of its jobs."""
        self._workers.remove(worker)
        worker.kill()
        self.deaths += 1
        if self.deaths > MOST_DEATHS:
            raise RetoldError("processes that read sessions keep dying; run the command again")
        if worker.given:
            job, seconds = worker.given.popleft()
            if worker.is_last_try or isinstance(error, TooSlow):
                self.failed.append((job, error))
            else:
                self._suspects.append((job, seconds))
        for job, seconds in reversed(worker.given):
            self._taken.discard(job)
            self._waiting[worker.number].append((job, seconds))
        if any(job not in self._taken for job, _ in self._waiting[worker.number]):
            self._start(worker.number)


class _Worker:
    """A process, the jobs that it was given, and until when it must have read the first of them."""

    def __init__(
        self, number: int, folder: str, numbers: Sequence[int], make: Make, *, is_last_try: bool
    ) -> None:
        self.number, self.is_last_try = number, is_last_try
        self.pipe, theirs = Pipe()
        # Before the start: with our end in its hands, it would never see that we have gone.
        PRIVATE.add(self.pipe.fileno())
        self.process = start(_work, theirs, folder, numbers, make)
        theirs.close()
        self.given: deque[Timed] = deque()
        self.deadline: float | None = None

    def give(self, job: Timed | None) -> None:
        """Send a job; None says that there are no more."""
        if job is not None:
            self.given.append(job)
            if len(self.given) == 1:
                self._begin()
        with suppress(ConnectionError):  # it may have died by now; the pipe tells
            self.pipe.send(None if job is None else job[0])

    def answered(self) -> None:
        """Take note that the first of the jobs is done."""
        self.given.popleft()
        self._begin()

    def _begin(self) -> None:
        self.deadline = time.monotonic() + self.given[0][1] if self.given else None

    def end(self) -> None:
        """Wait for the process to end."""
        PRIVATE.discard(self.pipe.fileno())
        self.pipe.close()
        self.process.join()

    def kill(self) -> None:
        """End the process."""
        self.process.kill()
        self.end()


def _work(pipe: Connection, folder: str, numbers: Sequence[int], make: Make) -> None:
    """Read jobs until there are none, and let the index be seen now and then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what it means
    gc.disable()
    try:
        with Store(folder) as record:
            shards = [IndexWriter(shard_path(folder, number), record.id, is_bulk=True) for number in numbers]
            reader, written = make(record), 0
            while (job := pipe.recv()) is not None:
                parcel = put_entries(*reader.parcel(job), shards)
                written += sum(held.size for held in parcel.files)
                if written > BATCH:
                    for shard in shards:
                        shard.commit()
                    written = 0
                pipe.send_bytes(pickle.dumps(parcel, protocol=5))
            for shard in shards:
                shard.commit()
                shard.close()
        pipe.send_bytes(pickle.dumps(None))
    except (BrokenPipeError, EOFError):
        return  # the parent has gone
    except BaseException as error:  # noqa: BLE001 - told where it is handled
        pipe.send_bytes(pickle.dumps(error))


T = TypeVar("T")
Work = Callable[[Sequence[int]], Iterable[T]]
_MUCH = 12 << 20
"""Bytes that are worth the start of processes."""
_HALVES = 2


def shared_out(
    work: Work[T],
    places: Sequence[int],
    size_of: Callable[[int], int],
    kind: type[T],
) -> Iterable[T]:
    """Return what work makes of places, each by itself; where it is shared out, it has begun when this returns."""
    if sum(map(size_of, places)) < _MUCH or len(places) < _HALVES or not can_fork():
        return work(places)
    return _Shares(work, _parts(places, size_of), kind)


def _parts(places: Sequence[int], size_of: Callable[[int], int]) -> list[list[int]]:
    """Return the places in parts of about the same size."""
    parts: list[list[int]] = [[] for _ in range(_HALVES)]
    sizes = [0] * _HALVES
    for place in sorted(places, key=size_of, reverse=True):
        least = sizes.index(min(sizes))
        parts[least].append(place)
        sizes[least] += size_of(place)
    return parts


def _begun(work: Work[T], part: Sequence[int]) -> tuple[int, int]:
    """Start a process for a part; return its id, and where its answer can be read."""
    ours, theirs = os.pipe()
    PRIVATE.add(ours)
    process = fork(lambda: _answer(work, part, theirs))
    os.close(theirs)
    return process, ours


def _answer(work: Work[T], part: Sequence[int], pipe: int) -> None:
    """Do a part of the work in a child process; the parent does what a child that fails did not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    with suppress(BaseException), open(pipe, "wb") as file:
        file.write(msgspec.msgpack.encode(list(work(part))))


class _Shares(Generic[T]):
    """Processes that were started for parts of some work."""

    def __init__(self, work: Work[T], parts: Sequence[Sequence[int]], kind: type[T]) -> None:
        self._work, self._decoder = work, msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]
        self._begun = [(part, *_begun(work, part)) for part in parts]

    def __iter__(self) -> Iterator[T]:
        """Yield the answers of all; what one of them did not give is made here."""
        while self._begun:
            part, process, pipe = self._begun[0]
            with open(pipe, "rb", closefd=False) as file:
                data = file.read()
            del self._begun[0]
            _end(process, pipe)
            try:
                answers = self._decoder.decode(data)
            except msgspec.DecodeError:
                answers = list(self._work(part))
            yield from answers

    def __del__(self) -> None:
        """End those whose answers nobody wants."""
        for _, process, pipe in self._begun:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
            _end(process, pipe)


def _end(process: int, pipe: int) -> None:
    PRIVATE.discard(pipe)
    os.close(pipe)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)
