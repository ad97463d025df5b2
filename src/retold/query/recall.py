"""Conversations that may answer a question in plain words: those that hold most of what is telling in it, the nearest together."""

from __future__ import annotations

import time

from retold.archive.index.matches import copied_among, found_again
from retold.archive.index.reader import Conditions, Index
from retold.projects.matching import is_meant
from retold.query.candidates import recency
from retold.query.gathering import Gathering
from retold.query.hits import HITS, conversation_of, hit_of
from retold.query.language import Query
from retold.query.nearness import best_of
from retold.query.scale import TermWeights
from retold.query.search import SHOWN_AT_LENGTH, Search
from retold.query.surroundings import shown, telling_text
from retold.query.telling import telling
from retold.query.unwanted import Unwanted

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from retold.archive.index.reader import IndexFile, IndexHit
    from retold.archive.store import Store
    from retold.query.hits import MessageHit, SearchResult
    from retold.query.surroundings import Clean
    from retold.query.wanted import Filters

RECENT = 0.03
"""How much more a conversation of today weighs than one of long ago: it decides between equals."""
COPY = 0.2
"""How much less one weighs that has all of it from another, as a fork has its beginning: that one should come first."""


class Recall:
    """One question in plain words.

    Fields, phrases, -not and OR mean what they mean in a search, and conditions hold besides.
    """

    def __init__(
        self,
        record: Store,
        query: Query,
        wanted: Filters,
        index: Index | None = None,
        clean: Clean | None = None,
    ) -> None:
        self._record, self._query, self._wanted, self._clean = record, query, wanted, clean
        self._index = index or Index(record, is_meant)
        self._unwanted = Unwanted(self._index, query)
        self._conditions = Conditions([*wanted.sessions, *self._unwanted.conditions()], wanted.messages)
        self.words = telling(query)
        """What is looked for; without any, the newest are told."""

    def conversations(self, limit: int) -> Iterator[SearchResult]:
        """Yield the conversations that come closest, the best first."""
        if not self.words:
            yield from self._newest().conversations(limit)
            return
        scale = TermWeights(self._index, self.words)
        found = self._index.at_once(lambda file: self._best(file, scale, limit))
        found.sort(key=lambda one: -one[0])
        best = found[0][0] if found else 1.0
        marked = scale.marked()
        for place, (score, docs) in enumerate(found[:limit]):
            hits = self._hits(docs[: HITS if place < SHOWN_AT_LENGTH else 1], marked)
            conversation = conversation_of(self._record, docs[0].session, score / best, list(hits))
            if conversation is not None:
                yield conversation

    def _newest(self) -> Search:
        """Return the search for whatever is meant by fields, and by what must not occur."""
        unwanted = tuple([clause for clause in self._query.clauses if clause.is_negated])
        query = Query(unwanted, self._query.fields)
        return Search(self._record, query, self._wanted, self._index, self._clean)

    def _best(self, file: IndexFile, scale: TermWeights, limit: int) -> list[tuple[float, list[IndexHit]]]:
        """Return the best conversations of one file of the index, each with its documents."""
        gathering = Gathering(file, scale, self._conditions)
        best = best_of(gathering.conversed, limit + 1 if self._unwanted.is_sure else len(gathering.conversed))
        shown = [doc for *_, docs in best for doc in docs[:HITS]]
        found, copied, now = found_again(file, shown), copied_among(file, shown), time.time()
        return [
            (worth * _standing([doc in copied for doc in docs[:HITS]], held[0], now), held)
            for worth, _, docs in best
            if (held := [found[doc] for doc in docs[:HITS] if doc in found])
            and not self._unwanted.is_in(held[0])
        ]

    def _hits(self, docs: Sequence[IndexHit], marked: Query) -> Iterator[MessageHit]:
        for one in docs:
            text, places = telling_text(one, marked)
            yield hit_of(self._record, one, shown(text, places, marked, self._clean))


def _standing(copies: Sequence[bool], first: IndexHit, now: float) -> float:
    """Return what decides between conversations that hold the same: which is newer, and whose words they were."""
    return (1 + RECENT * recency(first.ended_at, now)) * (1 - COPY * sum(copies) / len(copies))
