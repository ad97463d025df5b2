"""Work in two halves: by processes that are forked for it, where there is much of it."""

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from retold.processes import PRIVATE, can_fork, fork

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
