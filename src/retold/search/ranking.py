"""Ranking: candidates with bounds of their scores, BM25 over the whole index, and sessions by their matching documents.

FTS5 has the same formula for BM25, but its statistics are those of one file: there, a score depends on which other
sessions share the file.
"""

from __future__ import annotations

import math
import time
from heapq import heappop, heappush
from itertools import count, islice

from retold.archive.index.reader import (
    TABLES,
    count_documents_with,
    load_best_rows,
    load_best_scores,
    load_documents_by_session,
    load_documents_of_session,
    load_heads,
    load_hits,
    load_scored_rows,
    load_totals,
)
from retold.search.query import NO_NAMES, clause_phrases, match_expression, needs_verification
from retold.search.results import matches_query

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from retold.archive.index.reader import (
        Conditions,
        Index,
        IndexFile,
        IndexHit,
        ScoredRow,
        SessionHead,
    )
    from retold.search.query import Query

    LoadDocuments = Callable[[int], list[IndexHit]]
    """Returns at most so many documents of a session, the best first."""
    ComputeScore = Callable[[], float | None]
    """Returns the score, 0 if the session does not match, and None if the budget of reads is exceeded."""
    Names = Mapping[str, Sequence[str]]
    """The names in the index of which a word is a part, by word."""
    ByTable = dict[str, dict[int, str]]
    """The ids of the matching documents of each session, separated by commas, by table."""


RECENT = 0.15
"""How much more a session of today weighs than one of long ago; half as much more after a month."""
_DAY = 24 * 3600
_MONTH = 30.0 * _DAY
_BATCH = 64
"""Candidates that are looked up in the archive together, at first."""
_MARGIN = 1 + 1e-9
"""A bound for differences by rounding, between products of the same numbers and between FTS5 and our BM25."""
_NEVER = float("inf")


class SessionCandidate:
    """A session of an index file that may match, with the highest possible score without its recency."""

    __slots__ = ("compute_score", "entry_id", "file", "load_documents", "max_score")

    def __init__(
        self,
        file: IndexFile,
        entry_id: int,
        max_score: float,
        load_documents: LoadDocuments,
        compute_score: ComputeScore | None = None,
    ) -> None:
        self.file, self.entry_id, self.max_score = file, entry_id, max_score
        self.load_documents, self.compute_score = load_documents, compute_score
        """Without a function for it, the score is `max_score`."""


class LazyCandidates:
    """Candidates that are loaded only when they are needed, with the highest possible score of all of them."""

    __slots__ = ("load", "max_score")

    def __init__(self, max_score: float, load: Callable[[], Iterable[SessionCandidate]]) -> None:
        self.max_score, self.load = max_score, load


class SessionMatch:
    """A session that matches, with its score."""

    __slots__ = ("ended_at", "load_documents", "score", "session")

    def __init__(
        self, session: int, score: float, ended_at: int | None, load_documents: LoadDocuments
    ) -> None:
        self.session, self.score, self.ended_at = session, score, ended_at
        self.load_documents = load_documents


def recency(ended_at: int | None, now: float) -> float:
    """Return 1 for a session of today, a half for one of a month ago, and so on."""
    return 0.0 if ended_at is None else float(0.5 ** (max(now - ended_at, 0.0) / _MONTH))


def rank_sessions(
    candidates: Iterable[SessionCandidate],
    lazy: LazyCandidates | None = None,
    backlog: list[SessionCandidate] | None = None,
) -> Iterator[SessionMatch]:
    """Yield the sessions that match, the best first; of equals, the one that ended last, then by their keys.

    A session is yielded when no other can have a higher score, so the order does not depend on how many are taken.
    Candidates that exceed the budget of reads are added to the backlog.
    """
    queue = _Queue(candidates, lazy)
    while (entry := queue.next()) is not None:
        candidate = entry.candidate
        if entry.is_scored:
            yield SessionMatch(entry.session, entry.score, entry.ended_at, candidate.load_documents)
            continue
        score = 0.0 if candidate.compute_score is None else candidate.compute_score()
        if score:
            entry.score, entry.is_scored = score * entry.factor, True
            queue.put(entry)
        elif score is None and backlog is not None:
            backlog.append(candidate)


class _QueueEntry:
    """A candidate with its session in the archive, and with its score or the highest possible one."""

    __slots__ = ("candidate", "ended_at", "factor", "is_scored", "key", "score", "session")

    def __init__(self, candidate: SessionCandidate, head: SessionHead, now: float) -> None:
        self.candidate = candidate
        _, self.session, self.key, self.ended_at = head
        self.factor = 1 + RECENT * recency(self.ended_at, now)
        self.score, self.is_scored = candidate.max_score * self.factor, candidate.compute_score is None

    @property
    def rank(self) -> tuple[float, bool, float, str]:
        """The key of the order: by score, and of equals those first that may have a lower score."""
        return -self.score, self.is_scored, _NEVER if self.ended_at is None else -self.ended_at, self.key


class _Queue:
    """Candidates, the best first. They are looked up in the archive when they may be the next."""

    def __init__(self, candidates: Iterable[SessionCandidate], lazy: LazyCandidates | None) -> None:
        self._waiting = sorted(candidates, key=_max_score)
        self._lazy, self._batch = lazy, _BATCH
        self._now = time.time() // _DAY * _DAY  # so that a query has the same scores all day
        self._heap: list[tuple[tuple[float, bool, float, str], int, _QueueEntry]] = []
        self._numbers = count()  # so that two entries are never compared

    def put(self, entry: _QueueEntry) -> None:
        heappush(self._heap, (entry.rank, next(self._numbers), entry))

    def next(self) -> _QueueEntry | None:
        """Return the entry with the highest possible score."""
        while self._may_be_better():
            self._look_up()
        return heappop(self._heap)[2] if self._heap else None

    def _may_be_better(self) -> bool:
        """Return whether a waiting candidate may have a higher score than all that were looked up."""
        waiting = max(
            self._waiting[-1].max_score if self._waiting else 0.0, self._lazy.max_score if self._lazy else 0.0
        )
        return waiting > 0 and (not self._heap or waiting * (1 + RECENT) * _MARGIN >= -self._heap[0][0][0])

    def _look_up(self) -> None:
        """Look up the best waiting candidates in the archive, or load the lazy ones."""
        if self._lazy and (not self._waiting or self._lazy.max_score >= self._waiting[-1].max_score):
            self._waiting, self._lazy = sorted([*self._waiting, *self._lazy.load()], key=_max_score), None
            return
        by_file: dict[IndexFile, dict[int, SessionCandidate]] = {}
        for candidate in self._waiting[-self._batch :]:
            by_file.setdefault(candidate.file, {})[candidate.entry_id] = candidate
        for file, candidates in by_file.items():
            for head in load_heads(file, candidates):  # has no head of a session that is gone
                self.put(_QueueEntry(candidates[head[0]], head, self._now))
        self._waiting, self._batch = self._waiting[: -self._batch], self._batch * 2


def _max_score(candidate: SessionCandidate) -> float:
    return candidate.max_score


HUMAN, AGENT = 2.5, 1.0
"""The weights of a word in the text of a person and in that of the agent."""
_SATURATION, _LENGTH = 1.2, 0.75
"""`k1` and `b` of BM25, as in FTS5."""
_LEAST_RARITY = 1e-6
"""The rarity that FTS5 gives to a word in more than half of all documents."""
_UNIT = 0.5
"""All weights are multiples of it."""


class _Corpus:
    """The number of documents, their words, and the number of documents with each phrase."""

    __slots__ = ("average", "counts", "documents", "rarities", "words")

    def __init__(self, documents: int, words: int, counts: Sequence[int]) -> None:
        self.documents, self.words, self.counts = documents, words, counts
        self.average = words / documents if words else 1.0
        self.rarities = [
            max(math.log((documents - count + 0.5) / (count + 0.5)), _LEAST_RARITY) for count in counts
        ]
        """The inverse document frequency of each phrase."""


class Bm25:
    """Scores of documents for a query, with the statistics of all files of the index."""

    def __init__(self, index: Index, clauses: Sequence[Sequence[str]]) -> None:
        """Take the phrases of each clause of the query, in the order of the expression for FTS5."""
        phrases = [phrase for clause in clauses for phrase in clause]

        def load_corpus(file: IndexFile) -> list[tuple[IndexFile, _Corpus]]:
            counts = [count_documents_with(file, "said", phrase) for phrase in phrases]
            return [(file, _Corpus(*load_totals(file), counts))]

        self._files = dict(index.ask_all(load_corpus))
        files = self._files.values()
        counts = [sum(of_phrase) for of_phrase in zip(*[one.counts for one in files], strict=True)]
        self._all = _Corpus(sum([one.documents for one in files]), sum([one.words for one in files]), counts)
        left = iter(self._all.counts)
        self.most_documents = min([sum([next(left) for _ in clause]) for clause in clauses], default=0)
        """An upper bound of the number of documents with one phrase of each clause."""
        rarities, average = list(enumerate(self._all.rarities)), self._all.average

        def score(row: Any) -> float:
            length = _length(row.column_size(-1), average)
            total = 0.0
            for phrase, rarity in rarities:
                human, agent = row.phrase_locations(phrase)
                frequency = HUMAN * len(human) + AGENT * len(agent)
                if frequency:
                    total += rarity * _saturate(frequency, length)
            return total

        self.score = score
        """Returns the score of a row of FTS5."""

    def convert_score(self, file: IndexFile, score: float, words: int) -> float | None:
        """Return the score of a document of so many words from its score by FTS5; None for a query of several phrases.

        With one phrase, the frequency of the phrase follows from the score by FTS5.
        """
        if len(self._all.counts) != 1:
            return None
        corpus = self._files[file]
        share = score / corpus.rarities[0] / (_SATURATION + 1)
        frequency = round(share * _length(words, corpus.average) / (1 - share) / _UNIT) * _UNIT
        return self._all.rarities[0] * _saturate(frequency, _length(words, self._all.average))

    def max_ratio(self, file: IndexFile) -> float:
        """Return the highest possible ratio of a document's score to its score by FTS5."""
        corpus = self._files[file]
        ratios = [ours / theirs for ours, theirs in zip(self._all.rarities, corpus.rarities, strict=True)]
        return max(ratios, default=1.0) * max(1.0, self._all.average / corpus.average) * _MARGIN


def _length(words: int, average: float) -> float:
    """Return the factor of BM25 for the length of a document."""
    return _SATURATION * (1 - _LENGTH + _LENGTH * words / average)


def _saturate(frequency: float, length: float) -> float:
    return frequency * (_SATURATION + 1) / (frequency + length)


EXACT = 2_000
"""Documents up to which all are scored. Of more, only the documents of sessions that may be among the first."""
_FEW = 200
"""Results up to which the best documents of FTS5 are loaded first."""
_BEST, _LEAST_BEST = 10, 250
"""Documents of a file that are loaded first: for each result, and at least."""


class MessageRanking:
    """Sessions by the score of their best message that matches a query."""

    def __init__(self, index: Index, query: Query, conditions: Conditions) -> None:
        self._index, self._conditions = index, conditions
        self._match = match_expression(query, has_positions=True) or ""
        self._phrases = clause_phrases(query)

    def find(self, limit: int | None) -> Iterator[SessionMatch]:
        """Yield the sessions, the best first; this is faster if at most `limit` are taken."""
        if self._match:
            self._bm25 = Bm25(self._index, self._phrases)
            if limit is None or limit > _FEW or self._bm25.most_documents <= EXACT:
                yield from rank_sessions(self._score_all())
            elif self._conditions.sessions or self._conditions.messages:
                yield from rank_sessions(self._estimate_all())
            else:
                yield from rank_sessions(*self._score_best(limit))

    def load_rows(self, file: IndexFile, entry_id: int | None = None) -> list[ScoredRow]:
        """Return the messages of all sessions in a file, or of one, with their scores."""
        return load_scored_rows(file, self._match, self._bm25.score, self._conditions, entry_id)

    def _score_all(self) -> Iterator[SessionCandidate]:
        """Yield all sessions with their scores."""
        for file, rows in self._index.ask_all(lambda file: [(file, self.load_rows(file))]):
            by_session: dict[int, list[ScoredRow]] = {}
            for row in rows:
                by_session.setdefault(row[0], []).append(row)
            for entry_id, of_session in by_session.items():
                messages = _Messages(self, file, entry_id, of_session, is_complete=True)
                yield SessionCandidate(file, entry_id, messages.score(), messages.load)

    def _score_best(self, limit: int) -> tuple[list[SessionCandidate], LazyCandidates]:
        """Return the sessions of the best documents by FTS5, and all others with a bound."""
        # Messages with words of one beginning are so many that the best of them have nearly the same score.
        most = min(max(_BEST * limit, _LEAST_BEST) * (4 if "*" in self._match else 1), EXACT)
        best_rows = self._index.ask_all(
            lambda file: [(file, list(load_best_rows(file, self._match, (HUMAN, AGENT), most)))]
        )
        best: list[SessionCandidate] = []
        bound = 0.0
        for file, rows in best_rows:
            ratio = self._bm25.max_ratio(file)
            # No other document of the file has a higher score.
            rest_bound = ratio * rows[-1][0][4] if len(rows) == most else 0.0
            bound = max(bound, rest_bound)
            by_session: dict[int, list[tuple[ScoredRow, int]]] = {}
            for row, words in rows:
                by_session.setdefault(row[0], []).append((row, words))
            for entry_id, of_session in by_session.items():
                scored = [
                    (*row[:4], score)
                    for row, words in of_session
                    if (score := self._bm25.convert_score(file, row[4], words)) is not None
                    and score >= rest_bound
                ]
                messages = _Messages(self, file, entry_id, scored)
                max_score = ratio * of_session[0][0][4]
                best.append(
                    SessionCandidate(file, entry_id, messages.score(), messages.load)
                    if scored
                    else SessionCandidate(file, entry_id, max_score, messages.load, messages.score)
                )
        known = {(one.file, one.entry_id) for one in best}
        return best, LazyCandidates(bound, lambda: self._estimate_all(known))

    def _estimate_all(
        self, known: AbstractSet[tuple[IndexFile, int]] = frozenset()
    ) -> Iterator[SessionCandidate]:
        """Yield all sessions that are not known yet, with bounds of their scores."""
        best = self._index.ask_all(
            lambda file: [(file, list(load_best_scores(file, self._match, (HUMAN, AGENT), self._conditions)))]
        )
        for file, sessions in best:
            ratio = self._bm25.max_ratio(file)
            for entry_id, score in sessions:
                if (file, entry_id) not in known:
                    messages = _Messages(self, file, entry_id)
                    yield SessionCandidate(file, entry_id, ratio * score, messages.load, messages.score)


class _Messages:
    """The messages of one session that match, or the best of them."""

    __slots__ = ("_entry_id", "_file", "_is_complete", "_ranking", "_rows")

    def __init__(
        self,
        ranking: MessageRanking,
        file: IndexFile,
        entry_id: int,
        rows: Sequence[ScoredRow] = (),
        *,
        is_complete: bool = False,
    ) -> None:
        self._ranking, self._file, self._entry_id = ranking, file, entry_id
        self._rows, self._is_complete = sorted(rows, key=_rank), is_complete

    def _best(self, most: int) -> list[ScoredRow]:
        if len(self._rows) < most and not self._is_complete:
            rows = self._ranking.load_rows(self._file, self._entry_id)
            self._rows, self._is_complete = sorted(rows, key=_rank), True
        return self._rows[:most]

    def score(self) -> float:
        """Return the score of the session, which is that of its best message."""
        return next((row[4] for row in self._best(1)), 0.0)

    def load(self, most: int) -> list[IndexHit]:
        """Return the best messages as documents."""
        ids = [row[1] for row in self._best(most)]
        hits = load_hits(self._file, ids)
        return [hits[document] for document in ids if document in hits]


def _rank(row: ScoredRow) -> tuple[float, int, int]:
    """Return the key of the order: by score, and of equals the earliest first."""
    return -row[4], row[2], -1 if row[3] is None else row[3]


_WORTH = {"said": 2.0, "output": 1.0}
"""The score of a document with all words, by table."""
_FURTHER = 0.1
"""The share of the scores of further documents in the score of a session."""
_COUNTED = 3
"""Documents of a session that count for its score."""
_FREQUENT = 1_000
"""Documents up to which they are counted to find the rarest word."""
_ONE_BY_ONE = 100
"""Sessions up to which they are queried one by one; for more, one query loads all."""


class ReadBudgetExceeded(Exception):  # noqa: N818 - a limit, not an error
    """Verifying a session would exceed the budget of reads."""


class ReadBudget:
    """The number of documents that may still be read to verify phrases; None is without a limit."""

    __slots__ = ("_left", "backlog")

    def __init__(self, most: int | None = None) -> None:
        self._left = most
        self.backlog: list[SessionCandidate] = []
        """Candidates that were not verified."""

    def spend(self) -> None:
        """Take one read; raise ReadBudgetExceeded if none is left."""
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise ReadBudgetExceeded

    @property
    def is_spent(self) -> bool:
        """Whether no read is left."""
        return self._left is not None and self._left <= 0

    def remove_limit(self) -> None:
        """Allow any number of reads."""
        self._left = None


class MatchingSessions:
    """Sessions by the number of their documents that match a query: in messages, in tool output, or in both."""

    def __init__(  # noqa: PLR0913 - a query, the tables to search, and the limits
        self,
        index: Index,
        query: Query,
        conditions: Conditions,
        names: Names = NO_NAMES,
        tables: Sequence[str] = TABLES,
        budget: ReadBudget | None = None,
    ) -> None:
        self._index, self._query, self._conditions = index, query, conditions
        self._budget = budget or ReadBudget()
        expressions = {
            table: match_expression(query, has_positions=table == "said", names=names) for table in tables
        }
        self._matches = {table: match for table, match in expressions.items() if match is not None}
        self._unverified = {"output"} if needs_verification(query) else set()
        self._single_queries = 0 if names else _ONE_BY_ONE
        self._known: dict[IndexFile, ByTable] | None = None
        self._verified: dict[tuple[IndexFile, int], MatchingDocuments] = {}
        """Documents that were read to verify a phrase, so that they are read once."""

    def candidates(self) -> Iterator[SessionCandidate]:
        """Yield the sessions with a matching document."""
        for file, by_table in self._load_all().items():
            for entry_id in {entry_id for of_table in by_table.values() for entry_id in of_table}:
                documents = self._documents(file, entry_id)
                compute_score = documents.score if documents.must_verify else None
                yield SessionCandidate(file, entry_id, documents.max_score, documents.load, compute_score)

    def frequency(self) -> int:
        """Return the number of matching documents, up to a limit."""
        counts = self._index.ask_all(
            lambda file: [
                count_documents_with(file, table, match, _FREQUENT) for table, match in self._matches.items()
            ]
        )
        return min(sum(counts), _FREQUENT)

    def has_match(self, file: IndexFile, entry_id: int) -> bool:
        """Return whether a document of one session matches."""
        self._single_queries -= 1
        if self._single_queries < 0:
            self._load_all()
        if self._known is None and not self._unverified:
            ids_by_table = (
                load_documents_of_session(file, table, match, entry_id, self._conditions)
                for table, match in self._matches.items()
            )
            return any(next(ids, None) is not None for ids in ids_by_table)
        return bool(self.load_documents(file, entry_id, 1))

    def load_documents(self, file: IndexFile, entry_id: int, most: int) -> list[IndexHit]:
        """Return at most so many matching documents of one session."""
        documents = self._verified.get((file, entry_id)) or self._documents(file, entry_id)
        hits = documents.load(most)
        if hits and documents.must_verify:
            self._verified[file, entry_id] = documents
        return hits

    def _load_all(self) -> dict[IndexFile, ByTable]:
        def load(file: IndexFile) -> list[tuple[IndexFile, ByTable]]:
            tables = {
                table: dict(load_documents_by_session(file, table, match, self._conditions))
                for table, match in self._matches.items()
            }
            return [(file, tables)]

        if self._known is None:
            self._known = dict(self._index.ask_all(load))
        return self._known

    def _documents(self, file: IndexFile, entry_id: int) -> MatchingDocuments:
        if self._known is not None:
            texts = {table: of_table.get(entry_id, "") for table, of_table in self._known[file].items()}
            ids = {table: [int(one) for one in text.split(",")] for table, text in texts.items() if text}
        else:
            ids = {
                table: list(load_documents_of_session(file, table, match, entry_id, self._conditions))
                for table, match in self._matches.items()
            }
        found = {table: of_table for table, of_table in ids.items() if of_table}
        return MatchingDocuments(file, found, self._unverified, self._query, self._budget)


class MatchingDocuments:
    """Documents of one session with all words; phrases in outputs are verified by reading."""

    __slots__ = ("_budget", "_file", "_ids", "_loaded", "_query", "_unverified")

    def __init__(
        self,
        file: IndexFile,
        ids: Mapping[str, Sequence[int]],
        unverified: set[str],
        query: Query,
        budget: ReadBudget,
    ) -> None:
        self._file, self._ids, self._unverified, self._query = file, ids, unverified, query
        self._budget = budget
        self._loaded: dict[str, list[IndexHit]] = {}

    @property
    def must_verify(self) -> bool:
        """Whether some must be read."""
        return not self._unverified.isdisjoint(self._ids)

    @property
    def max_score(self) -> float:
        """The score if all of them match."""
        return _score_counts({table: len(ids) for table, ids in self._ids.items()})

    def score(self) -> float | None:
        """Return the score; None if the budget of reads is exceeded."""
        if self._budget.is_spent and self.must_verify:
            return None
        try:
            counts = {
                table: len(self._load_table(table)) if table in self._unverified else len(ids)
                for table, ids in self._ids.items()
            }
        except ReadBudgetExceeded:
            return None
        return _score_counts(counts)

    def load(self, most: int) -> list[IndexHit]:
        """Return at most so many of them: messages before outputs, the last first."""
        hits: list[IndexHit] = []
        for table in self._ids:
            if len(hits) < most:
                hits += self._load_table(table)
        return hits[:most]

    def _load_table(self, table: str) -> list[IndexHit]:
        """Return the last matching documents of a table, as many as count."""
        if table not in self._loaded:
            every = load_hits(self._file, self._ids[table]).values()
            ordered: Iterator[IndexHit] = iter(sorted(every, key=_seq_and_position, reverse=True))
            if table in self._unverified:
                ordered = filter(self._verify, ordered)
            self._loaded[table] = list(islice(ordered, _COUNTED))
        return self._loaded[table]

    def _verify(self, hit: IndexHit) -> bool:
        self._budget.spend()
        return matches_query("\n".join(hit.texts()), self._query)


def _seq_and_position(hit: IndexHit) -> tuple[int, int]:
    return hit.seq, -1 if hit.position is None else hit.position


def _score_counts(counts: Mapping[str, int]) -> float:
    """Return the score of a session with so many matching documents in each table."""
    scores = sorted(
        [_WORTH[table] for table, count in counts.items() for _ in range(min(count, _COUNTED))], reverse=True
    )
    return scores[0] + _FURTHER * sum(scores[1:_COUNTED]) if scores else 0.0
