"""Sessions that match, in the order of their scores: a score that takes work is found out only when its turn has come."""

from __future__ import annotations

import time
from heapq import heappop, heappush
from itertools import count

from retold.archive.index.matches import heads

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from retold.archive.index.matches import Head
    from retold.archive.index.reader import IndexFile, IndexHit

    Docs = Callable[[int], list[IndexHit]]
    """Returns so many documents of a session, the best first."""
    Weigh = Callable[[], float | None]
    """Returns the score, 0 where it does not match after all, and None where that would take too long for now."""


RECENT = 0.15
"""How much more a conversation of today weighs than one of long ago; half of it after a month."""
_DAY = 24 * 3600
_MONTH = 30.0 * _DAY
_BATCH = 64
"""Sessions that are looked up in the archive together, at first."""
_MARGIN = 1 + 1e-9
"""More than products of the same numbers differ by rounding."""
_ENDLESS = float("inf")


class Candidate:
    """A session of an index file that may match, and the most that its score can be before its age is looked at."""

    __slots__ = ("docs", "file", "most", "told", "weigh")

    def __init__(
        self, file: IndexFile, told: int, most: float, docs: Docs, weigh: Weigh | None = None
    ) -> None:
        self.file, self.told, self.most, self.docs = file, told, most, docs
        self.weigh = weigh
        """Without it, the score is `most`."""


class Rest:
    """Candidates that are found only when they are needed, and the most that the score of one can be."""

    __slots__ = ("find", "most")

    def __init__(self, most: float, find: Callable[[], Iterable[Candidate]]) -> None:
        self.most, self.find = most, find


class DocumentMatch:
    """A session that matches."""

    __slots__ = ("docs", "ended_at", "score", "session")

    def __init__(self, session: int, score: float, ended_at: int | None, docs: Docs) -> None:
        self.session, self.score, self.ended_at, self.docs = session, score, ended_at, docs


def today() -> float:
    """Return when today began: until it ends, the same question has the same scores."""
    return time.time() // _DAY * _DAY


def recency(ended_at: int | None, now: float) -> float:
    """Return 1 for a session of today, a half for one of a month ago, and so on."""
    return 0.0 if ended_at is None else float(0.5 ** (max(now - ended_at, 0.0) / _MONTH))


def in_order(
    candidates: Iterable[Candidate], rest: Rest | None = None, put_off: list[Candidate] | None = None
) -> Iterator[DocumentMatch]:
    """Yield the sessions that match, the best first; of equals, the one that ended last, then by their keys.

    A session is yielded when no other can be worth more: the first ones are those of the whole order, however few are
    taken. What takes too long is put off.
    """
    queue = _Queue(candidates, rest)
    while (one := queue.next()) is not None:
        if one.is_weighed:
            yield DocumentMatch(one.session, one.score, one.ended_at, one.candidate.docs)
            continue
        score = 0.0 if one.candidate.weigh is None else one.candidate.weigh()
        if score:
            queue.put(one.weighed(score * one.share))
        elif score is None and put_off is not None:
            put_off.append(one.candidate)


class _PendingCandidates:
    """A session in the queue, with its score or the most that this can be."""

    __slots__ = ("candidate", "ended_at", "is_weighed", "key", "score", "session", "share")

    def __init__(self, candidate: Candidate, head: Head, now: float) -> None:
        self.candidate = candidate
        _, self.session, self.key, self.ended_at = head
        self.share = 1 + RECENT * recency(self.ended_at, now)
        self.score, self.is_weighed = candidate.most * self.share, candidate.weigh is None

    def weighed(self, score: float) -> _PendingCandidates:
        """Return this session with its score."""
        self.score, self.is_weighed = score, True
        return self

    @property
    def rank(self) -> tuple[float, bool, float, str]:
        """Sort by score; of equals, those come first that may be worth less."""
        return -self.score, self.is_weighed, _ENDLESS if self.ended_at is None else -self.ended_at, self.key


class _Queue:
    """Candidates, the best first; they are looked up in the archive when they may be the next."""

    def __init__(self, candidates: Iterable[Candidate], rest: Rest | None) -> None:
        self._unknown = sorted(candidates, key=_most)
        self._rest, self._now, self._size = rest, today(), _BATCH
        self._heap: list[tuple[tuple[float, bool, float, str], int, _PendingCandidates]] = []
        self._numbers = count()  # so that two sessions in the queue are never compared

    def put(self, one: _PendingCandidates) -> None:
        heappush(self._heap, (one.rank, next(self._numbers), one))

    def next(self) -> _PendingCandidates | None:
        """Return the one that may be worth most."""
        while self._may_be_better():
            self._look_up()
        return heappop(self._heap)[2] if self._heap else None

    def _may_be_better(self) -> bool:
        """Tell whether some may be worth more than those that were looked up."""
        unknown = max(
            self._unknown[-1].most if self._unknown else 0.0, self._rest.most if self._rest else 0.0
        )
        return unknown > 0 and (not self._heap or unknown * (1 + RECENT) * _MARGIN >= -self._heap[0][0][0])

    def _look_up(self) -> None:
        """Look up the best of those that are known by their files alone, or find the rest of them."""
        if self._rest and (not self._unknown or self._rest.most >= self._unknown[-1].most):
            self._unknown, self._rest = sorted([*self._unknown, *self._rest.find()], key=_most), None
            return
        for one, head in _with_heads(self._unknown[-self._size :]):
            self.put(_PendingCandidates(one, head, self._now))
        self._unknown, self._size = self._unknown[: -self._size], self._size * 2


def _most(one: Candidate) -> float:
    return one.most


def _with_heads(batch: Sequence[Candidate]) -> Iterator[tuple[Candidate, Head]]:
    """Yield candidates with what the archive knows of them; those that it does not know any more are left out."""
    by_file: dict[IndexFile, dict[int, Candidate]] = {}
    for one in batch:
        by_file.setdefault(one.file, {})[one.told] = one
    for file, there in by_file.items():
        yield from ((there[head[0]], head) for head in heads(file, there))
