"""Work in two halves: by processes that are forked for it, where there is much of it."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")
Work = Callable[[Sequence[int]], Iterable[T]]
_MUCH = 12 << 20
"""Bytes that are worth the start of processes."""
_HALVES = 2
_PR_SET_PDEATHSIG = 1
"""Of Linux, where alone processes are forked for it."""


def shared_out(
    work: Work[T],
    places: Sequence[int],
    size_of: Callable[[int], int],
    kind: type[T],
) -> Iterable[T]:
    """Return what work makes of places, each by itself; where it is shared out, it has begun when this returns."""
    if sum(map(size_of, places)) < _MUCH or len(places) < _HALVES or not _can_fork():
        return work(places)
    return _Shares(work, _parts(places, size_of), kind)


def _can_fork() -> bool:
    """Tell whether a process may be forked: on Linux, with cores to spare, and while no other thread runs."""
    threading = sys.modules.get("threading")
    is_alone = threading is None or threading.active_count() == 1
    return sys.platform == "linux" and (os.cpu_count() or 1) > 1 and is_alone


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
    parent = os.getpid()
    process = os.fork()
    if process:
        os.close(theirs)
        return process, ours
    with suppress(BaseException):  # whoever started us does then what we did not
        _end_with(parent)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.disable()
        os.close(ours)
        with open(theirs, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(list(work(part))))
    os._exit(0)


def _end_with(parent: int) -> None:
    """Have this process ended with the one that started it, however that goes: nobody wants its work then."""
    from ctypes import CDLL

    CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


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
    os.close(pipe)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)
