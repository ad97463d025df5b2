"""What a session is worth by the documents in it that match."""

from __future__ import annotations

from retold.query.candidates import DocumentMatch

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SECOND = 0.1
"""What further documents of a conversation add to the score of its best."""
COUNTED = 3
"""Documents of a session that count."""
LESS = 0.5
"""Factor for matches in outputs, in parts of names, or spread over messages."""


def session_score(scores: Sequence[float]) -> float:
    """Return what a session is worth whose documents have these scores, the best first."""
    return scores[0] + SECOND * sum(scores[1:COUNTED])


def chained(tiers: Iterable[Iterator[DocumentMatch]]) -> Iterator[DocumentMatch]:
    """Yield the matches of each tier behind those of the tiers before it, each session once; the best score is 1.

    What a tier finds weighs less than all that the tiers before it found.
    """
    known: set[int] = set()
    above = weakest = 1.0
    for tier in tiers:
        best = 0.0
        for match in tier:
            if match.session not in known:
                known.add(match.session)
                best = best or match.score
                weakest = above * match.score / best
                yield DocumentMatch(match.session, weakest, match.ended_at, match.docs)
        above = weakest * LESS if known else 1.0
