"""Workers: processes that read clusters and fill one file of the index each, while one process writes the archive."""

import gc
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait

from retold.archive.database import Stopped
from retold.archive.parcel import Parcel
from retold.archive.record import Record
from retold.archive.shards import shard_path
from retold.archive.texts import Shard
from retold.ingest.case import Job
from retold.ingest.reader import Reader
from retold.processes import PRIVATE, start

AHEAD = 3
"""Jobs that a worker has at hand: it never waits for the next."""
BATCH = 256 << 20
"""Bytes of originals behind which a worker lets its part of the index be seen."""
Make = Callable[[Record], Reader]


def crew_size(size: int) -> int:
    """Return how many processes are worth their start for so many bytes."""
    return 1 if size < (12 << 20) else max(1, min(2, os.cpu_count() or 1))


def alone(jobs: Sequence[Job], reader: Reader, shards: Sequence[Shard]) -> Iterator[Parcel]:
    """Yield the parcels of jobs that are few: read in this process."""
    for job in jobs:
        parcel, indexed = reader.parcel(job)
        for entry in indexed:
            home_of(entry.name, shards).put(entry)
        yield parcel


def home_of(name: int, shards: Sequence[Shard]) -> Shard:
    """Return the file of the index in which a session is, else the one with fewest."""
    holder = next((shard for shard in shards if shard.holds(name)), None)
    chosen = holder or min(shards, key=lambda shard: shard.last)
    chosen.begin()
    return chosen


def together(
    jobs: Sequence[Job], homes: Mapping[Job, int], folder: str, make: Make, size: int
) -> Iterator[Parcel]:
    """Yield the parcels of many jobs: read by several processes, the largest first.

    What is in a file of the index already is read by the process that writes this file: whoever searches meanwhile, one
    file after the other, would miss what moves from one to the other.
    """
    waiting = [[job for job in reversed(jobs) if homes.get(job, number) == number] for number in range(size)]
    taken: set[Job] = set()
    pipes: list[Connection] = []
    processes = []
    try:
        for number in range(size):
            ours, theirs = Pipe()
            process = start(_work, theirs, folder, number, make)
            theirs.close()
            PRIVATE.add(ours.fileno())
            pipes.append(ours)
            processes.append(process)
            for _ in range(AHEAD):
                _hand(ours, waiting[number], taken)
        open_pipes = list(pipes)
        while open_pipes:
            for pipe in wait(open_pipes):
                parcel = _received(pipe)  # type: ignore[arg-type]
                if parcel is None:
                    open_pipes.remove(pipe)  # type: ignore[arg-type]
                    continue
                _hand(pipe, waiting[pipes.index(pipe)], taken)  # type: ignore[arg-type]
                yield parcel
        for process in processes:
            process.join()
    finally:
        for pipe in pipes:
            PRIVATE.discard(pipe.fileno())
            pipe.close()
        for process in processes:
            if process.is_alive():
                process.terminate()
                process.join()


def _hand(pipe: Connection, waiting: list[Job], taken: set[Job]) -> None:
    """Give a worker its next job that no other has taken; None when there is no more."""
    while waiting and waiting[-1] in taken:
        waiting.pop()
    if waiting:
        taken.add(waiting[-1])
    with suppress(ConnectionError):  # it may have ended by now: what it sent last tells why
        pipe.send(waiting.pop() if waiting else None)


def _received(pipe: Connection) -> Parcel | None:
    """Return the next parcel of a worker; None when it is done."""
    try:
        told = pickle.loads(pipe.recv_bytes())  # noqa: S301 - from a process that we started
    except (EOFError, ConnectionError) as error:
        raise Stopped("a process that was reading sessions ended early; run the command again") from error
    if isinstance(told, BaseException):
        raise told
    return told  # type: ignore[no-any-return]


def _work(pipe: Connection, folder: str, number: int, make: Make) -> None:
    """Read jobs until there are none, and let the index be seen now and then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started us decides what it means
    gc.disable()
    try:
        with Record(folder) as record:
            shard = Shard(shard_path(folder, number), record.id, is_bulk=True)
            reader, written = make(record), 0
            while (job := pipe.recv()) is not None:
                parcel, indexed = reader.parcel(job)
                shard.begin()
                for entry in indexed:
                    shard.put(entry)
                written += sum(held.size for held in parcel.files)
                if written > BATCH:
                    shard.commit()
                    written = 0
                pipe.send_bytes(pickle.dumps(parcel, protocol=5))
            shard.commit()
            shard.close()
        pipe.send_bytes(pickle.dumps(None))
    except (BrokenPipeError, EOFError):
        return  # whoever started us has gone
    except BaseException as error:  # noqa: BLE001 - told where it is handled
        pipe.send_bytes(pickle.dumps(error))
