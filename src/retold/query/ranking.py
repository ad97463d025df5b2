"""Documents to conversations, the one that is meant first."""

from __future__ import annotations

import time

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable

    from retold.archive.index_file import Found

    Ranked = list[tuple[int, float, list[Found]]]
    """Sessions with their score and their documents, the best first."""

SECOND = 0.1
"""What further documents of a conversation add to the score of its best."""
RECENT = 0.15
"""How much more a conversation of today weighs than one of long ago; half of it after a month."""
LESS = 0.5
"""What a conversation weighs that has a word only in what went by, as a part of a name, or in another message."""
_MONTH = 30 * 24 * 3600.0
_COUNTED = 3


def ranked(found: Iterable[Found]) -> Ranked:
    """Return sessions with their score and their best documents."""
    by_session: dict[int, list[Found]] = {}
    for one in found:
        by_session.setdefault(one.session, []).append(one)
    now = time.time()
    scored = []
    for session, docs in by_session.items():
        docs.sort(key=lambda one: -one.score)
        score = docs[0].score + SECOND * sum([one.score for one in docs[1:_COUNTED]])
        scored.append((session, score * (1 + RECENT * recency(docs[0].ended_at, now)), docs))
    return sorted(scored, key=lambda one: -one[1])


def recency(ended_at: int | None, now: float) -> float:
    """Return 1 for a session of today, a half for one of a month ago, and so on."""
    return 0.0 if ended_at is None else float(0.5 ** (max(now - ended_at, 0.0) / _MONTH))


def followed(first: Ranked, more: Ranked) -> Ranked:
    """Return sessions with others behind them, each once; whatever these weigh, it is less."""
    known = {session for session, *_ in first}
    weakest, best = (first[-1][1] if first else 1.0), (more[0][1] if more else 1.0) or 1.0
    behind = [
        (session, weakest * LESS * score / best, docs)
        for session, score, docs in more
        if session not in known
    ]
    return [*first, *behind]
