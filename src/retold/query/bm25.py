"""BM25 over the whole index: how rare words are and how long messages are is summed over all of its files.

FTS5 has the same formula, but knows one file: there, a score depends on which other sessions share its file.
"""

from __future__ import annotations

import math

from retold.archive.index.matches import documents_with, said_totals

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from retold.archive.index.matches import Score
    from retold.archive.index.reader import Index, IndexFile

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
