"""BM25 over the whole index: how rare words are and how long messages are is summed over all of its files.

FTS5 has the same formula, but knows one file: there, a score depends on which other sessions share its file.
"""

from __future__ import annotations

import math

from retold.archive.index.matches import (
    best_rows,
    best_scores,
    documents_with,
    found_again,
    said_totals,
    scored_rows,
    scored_within,
)
from retold.search.candidates import Candidate, Rest, in_order
from retold.search.expression import expression, phrases

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from retold.archive.index.matches import Row, Score
    from retold.archive.index.reader import Conditions, Index, IndexFile, IndexHit
    from retold.search.candidates import DocumentMatch
    from retold.search.query import Query


HUMAN, AGENT = 2.5, 1.0
"""What a word weighs in what a person said, and in what the agent did."""
_SATURATION, _LENGTH = 1.2, 0.75
"""`k1` and `b` of BM25, as FTS5 has them."""
_LEAST_RARITY = 1e-6
"""What FTS5 takes for the rarity of a word that is in more than half of all documents."""
_UNIT = 0.5
"""What all weights are multiples of."""
_MARGIN = 1 + 1e-9
"""More than the sums of FTS5 and ours differ by rounding."""


class _Corpus:
    """How many documents there are, how long they are on average, and how many of them have each phrase."""

    __slots__ = ("average", "counts", "documents", "rarities", "words")

    def __init__(self, documents: int, words: int, counts: Sequence[int]) -> None:
        self.documents, self.words, self.counts = documents, words, counts
        self.average = words / documents if words else 1.0
        self.rarities = [
            max(math.log((documents - count + 0.5) / (count + 0.5)), _LEAST_RARITY) for count in counts
        ]
        """The inverse document frequency of each phrase."""


def _corpus(file: IndexFile, phrases: Sequence[str]) -> _Corpus:
    documents, words = said_totals(file)
    return _Corpus(documents, words, [documents_with(file, "said", phrase) for phrase in phrases])


class Bm25:
    """What documents are worth for a query, by the statistics of all files of the index."""

    def __init__(self, index: Index, clauses: Sequence[Sequence[str]]) -> None:
        """Take the phrases of each clause of the query, in the order in which FTS5 is asked for them."""
        phrases = [phrase for clause in clauses for phrase in clause]
        self._files = dict(index.at_once(lambda file: [(file, _corpus(file, phrases))]))
        there = self._files.values()
        counts = [sum(of_phrase) for of_phrase in zip(*[one.counts for one in there], strict=True)]
        self._all = _Corpus(sum([one.documents for one in there]), sum([one.words for one in there]), counts)
        self.score = self.scorer()
        left = iter(self._all.counts)
        self.most_documents = min([sum([next(left) for _ in clause]) for clause in clauses], default=0)
        """As many documents at most have one phrase of each clause."""

    def scorer(self) -> Score:
        """Return the function that returns the score of a row of FTS5."""
        rarities, average = list(enumerate(self._all.rarities)), self._all.average

        def score(row: Any) -> float:
            length = _length(row.column_size(-1), average)
            total = 0.0
            for phrase, rarity in rarities:
                human, agent = row.phrase_locations(phrase)
                often = HUMAN * len(human) + AGENT * len(agent)
                if often:
                    total += rarity * _saturated(often, length)
            return total

        return score

    def corrected(self, file: IndexFile, score: float, words: int) -> float | None:
        """Return the score of a document of so many words from what FTS5 says of it; None where there are several phrases.

        Of one phrase, it tells how often the document has it.
        """
        if len(self._all.counts) != 1:
            return None
        there = self._files[file]
        share = score / there.rarities[0] / (_SATURATION + 1)
        often = round(share * _length(words, there.average) / (1 - share) / _UNIT) * _UNIT
        return self._all.rarities[0] * _saturated(often, _length(words, self._all.average))

    def excess(self, file: IndexFile) -> float:
        """Return how many times as much as FTS5 says a document of a file may be worth at most."""
        there = self._files[file]
        ratios = [ours / theirs for ours, theirs in zip(self._all.rarities, there.rarities, strict=True)]
        return max(ratios, default=1.0) * max(1.0, self._all.average / there.average) * _MARGIN


def _length(words: int, average: float) -> float:
    """Return by how much the length of a document diminishes what a word in it is worth."""
    return _SATURATION * (1 - _LENGTH + _LENGTH * words / average)


def _saturated(often: float, length: float) -> float:
    return often * (_SATURATION + 1) / (often + length)


EXACT = 2_000
"""Documents up to which all are scored one by one. Of more, only those are whose session may be among the first."""
_FEW = 200
"""Sessions up to which that is quicker."""
_BEST, _LEAST_BEST = 10, 250
"""Documents of a file that are looked at first, for each session that is wanted, and at least."""


class ScoredSessions:
    """The messages that match a query, scored."""

    def __init__(self, index: Index, query: Query, wanted: Conditions) -> None:
        self._index, self._wanted = index, wanted
        self._match = expression(query, has_positions=True) or ""
        self._phrases = phrases(query)

    def matches(self, limit: int | None) -> Iterator[DocumentMatch]:
        """Yield the sessions, the best first; it is quicker where not more than a limit are taken."""
        if self._match:
            bm25 = Bm25(self._index, self._phrases)
            if limit is None or limit > _FEW or bm25.most_documents <= EXACT:
                yield from in_order(self._exact(bm25))
            elif self._wanted.sessions or self._wanted.messages:
                yield from in_order(self._others(bm25))
            else:
                yield from in_order(*self._first(bm25, limit))

    def _exact(self, bm25: Bm25) -> Iterator[Candidate]:
        """Yield all sessions, with their scores."""
        for file, rows in self._index.at_once(lambda file: [(file, self._rows(file, bm25.score))]):
            by_session: dict[int, list[Row]] = {}
            for row in rows:
                by_session.setdefault(row[0], []).append(row)
            for told, of_one in by_session.items():
                messages = _Messages(self, file, told, bm25.score, of_one, is_all=True)
                yield Candidate(file, told, messages.weigh(), messages.docs)

    def _first(self, bm25: Bm25, limit: int) -> tuple[list[Candidate], Rest]:
        """Return the sessions of FTS5's best documents, and a bound for all others."""
        # So many messages have a word that begins so that the best of them are worth nearly the same.
        most = min(max(_BEST * limit, _LEAST_BEST) * (4 if "*" in self._match else 1), EXACT)
        found = self._index.at_once(
            lambda file: [(file, list(best_rows(file, self._match, (HUMAN, AGENT), most)))]
        )
        first: list[Candidate] = []
        bound = 0.0
        for file, rows in found:
            excess = bm25.excess(file)
            # No document behind these is worth more.
            behind = excess * rows[-1][0][4] if len(rows) == most else 0.0
            bound = max(bound, behind)
            by_session: dict[int, list[tuple[Row, int]]] = {}
            for row, words in rows:
                by_session.setdefault(row[0], []).append((row, words))
            for told, of_one in by_session.items():
                sure = [
                    (*row[:4], score)
                    for row, words in of_one
                    if (score := bm25.corrected(file, row[4], words)) is not None and score >= behind
                ]
                messages = _Messages(self, file, told, bm25.score, sure)
                limit_of_one = excess * of_one[0][0][4]
                first.append(
                    Candidate(file, told, messages.weigh(), messages.docs)
                    if sure
                    else Candidate(file, told, limit_of_one, messages.docs, messages.weigh)
                )
        known = {(one.file, one.told) for one in first}
        return first, Rest(bound, lambda: self._others(bm25, known))

    def _others(
        self, bm25: Bm25, known: AbstractSet[tuple[IndexFile, int]] = frozenset()
    ) -> Iterator[Candidate]:
        """Yield the other sessions, with the most that they can be worth."""
        best = self._index.at_once(
            lambda file: [(file, list(best_scores(file, self._match, (HUMAN, AGENT), self._wanted)))]
        )
        for file, sessions in best:
            excess = bm25.excess(file)
            for told, score in sessions:
                if (file, told) not in known:
                    messages = _Messages(self, file, told, bm25.score)
                    yield Candidate(file, told, excess * score, messages.docs, messages.weigh)

    def _rows(self, file: IndexFile, score: Score) -> list[Row]:
        return scored_rows(file, self._match, score, self._wanted)

    def rows_within(self, file: IndexFile, told: int, score: Score) -> list[Row]:
        """Return the messages of one session, with their scores."""
        return scored_within(file, self._match, score, told, self._wanted)


class _Messages:
    """The messages of one session that match, or the best of them."""

    __slots__ = ("_file", "_is_all", "_rows", "_score", "_search", "_told")

    def __init__(  # noqa: PLR0913 - what is known, and how to find what is not
        self,
        search: ScoredSessions,
        file: IndexFile,
        told: int,
        score: Score,
        rows: Sequence[Row] = (),
        *,
        is_all: bool = False,
    ) -> None:
        self._search, self._file, self._told, self._score = search, file, told, score
        self._rows, self._is_all = sorted(rows, key=_rank), is_all

    def _best(self, most: int) -> list[Row]:
        """Return so many messages, the best first."""
        if len(self._rows) < most and not self._is_all:
            rows = self._search.rows_within(self._file, self._told, self._score)
            self._rows, self._is_all = sorted(rows, key=_rank), True
        return self._rows[:most]

    def weigh(self) -> float:
        """Return what the session is worth: as much as its best message."""
        return next((row[4] for row in self._best(1)), 0.0)

    def docs(self, most: int) -> list[IndexHit]:
        """Return so many messages, the best first."""
        return documents(self._file, [row[1] for row in self._best(most)])


def _rank(row: Row) -> tuple[float, int, int]:
    """Sort by score; of equals, what was said first comes first."""
    return -row[4], row[2], -1 if row[3] is None else row[3]


def documents(file: IndexFile, ids: Sequence[int]) -> list[IndexHit]:
    """Return documents of a file as they are shown, in the order of their ids that is given."""
    found = found_again(file, ids)
    return [found[doc] for doc in ids if doc in found]
