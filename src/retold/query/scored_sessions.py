"""Sessions with a message in which all words are said, by the BM25 scores of their messages."""

from __future__ import annotations

from retold.archive.index.matches import best_rows, best_scores, found_again, scored_rows, scored_within
from retold.query.bm25 import AGENT, HUMAN, Bm25
from retold.query.candidates import Candidate, Rest, in_order
from retold.query.expression import expression, phrases

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from retold.archive.index.matches import Row, Score
    from retold.archive.index.reader import Conditions, Index, IndexFile, IndexHit
    from retold.query.candidates import DocumentMatch
    from retold.query.language import Query

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
