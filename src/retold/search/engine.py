"""Search engine: sessions that match a query, the best first, with snippets of their hits.

Every matching session is found, however many are requested. Tiers follow each other: ids, messages with all words,
tool outputs with all words, parts of names, and words anywhere in the session. A tier is searched when those before it
are exhausted, so that the first results are fast.
"""

from __future__ import annotations

from itertools import islice

from retold.archive.index.reader import TABLES, Conditions, Index, IndexHit
from retold.archive.index.tokenizer import split_runs
from retold.archive.queries.listing import ids_condition, load_named_sessions, register_functions
from retold.projects.matching import matches_project
from retold.search.filters import Filters
from retold.search.query import (
    NO_NAMES,
    Clause,
    Query,
    find_names_with_parts,
    is_symbol_query,
    match_expression,
    needs_verification,
    single_words,
)
from retold.search.ranking import (
    MatchingSessions,
    MessageRanking,
    ReadBudget,
    ReadBudgetExceeded,
    SessionCandidate,
    SessionMatch,
    rank_sessions,
)
from retold.search.results import (
    HITS_PER_RESULT,
    load_hit,
    load_result,
    make_safe_snippet,
    matches_query,
    select_text,
)

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from retold.archive.queries.listing import Condition
    from retold.archive.store import Store
    from retold.search.ranking import Names
    from retold.search.results import Clean, MessageHit, SearchResult


RESULTS_IN_DETAIL = 3
"""Results with several hits; the others have their best hit only."""
SHORTEST_ID, MOST_ID_MATCHES = 6, 5
THOROUGH_LIMIT = 100
"""Results above which all outputs are read to verify a phrase."""
OUTPUTS_READ = 60
"""Outputs that are read to verify a phrase for fewer results."""
_TIER_FACTOR = 0.5
"""The factor between the scores of a tier and those of the tier before."""


class Search:
    """A query to the archive, with filters."""

    symbol_timeout: float | None = None
    """Seconds after which a search for symbols ends with the results so far."""

    def __init__(
        self,
        store: Store,
        query: Query,
        filters: Filters,
        index: Index | None = None,
        clean: Clean | None = None,
    ) -> None:
        """Take the query; `clean` removes secrets from the text of snippets."""
        self._store, self._full_query, self._filters, self._clean = store, query, filters, clean
        self.query = Query(tuple([clause for clause in query.clauses if not clause.is_negated]), query.fields)
        self._index = index or Index(store, matches_project)
        self._excluded = ExcludedTerms(self._index, query)
        self._budget = ReadBudget(OUTPUTS_READ)
        self._has_all_symbols = True
        self._all_conditions: Conditions | None = None
        self._all_names: dict[str, list[str]] | None = None

    @property
    def _conditions(self) -> Conditions:
        """Conditions for sessions and messages, including that the session holds no excluded word."""
        if self._all_conditions is None:
            sessions = [*self._filters.sessions, *self._excluded.conditions()]
            self._all_conditions = Conditions(sessions, self._filters.messages)
        return self._all_conditions

    @property
    def _names(self) -> dict[str, list[str]]:
        """The names in the index of which a word of the query is a part, by word."""
        if self._all_names is None:
            self._all_names = find_names_with_parts(self._index, single_words(self.query))
        return self._all_names

    @property
    def is_complete(self) -> bool:
        """Whether no session was left out because verifying it requires too many reads."""
        return self._has_all_symbols and not self._budget.backlog

    def find(self, limit: int) -> Iterator[SearchResult]:
        """Yield the best results, the best first."""
        return self.load_results(islice(self.find_matches(limit), limit))

    def load_results(self, matches: Iterable[SessionMatch]) -> Iterator[SearchResult]:
        """Yield the results of matches; a session that is gone from the archive is left out."""
        for number, match in enumerate(matches):
            most = HITS_PER_RESULT if number < RESULTS_IN_DETAIL else 1
            hits = list(self._load_hits(match.load_documents(most)))
            result = load_result(self._store, match.session, match.score, hits)
            if result is not None:
                yield result

    def find_matches(
        self, limit: int | None = None, *, is_thorough: bool | None = None
    ) -> Iterator[SessionMatch]:
        """Yield matching sessions, tier by tier; this is faster if at most `limit` are taken, in the same order.

        Sessions come last if too many outputs must be read to verify a phrase in them. Only a thorough search reads
        these, which is the default without a limit and with a high one.
        """
        if not self.query.terms:
            return self._chain([self._find_newest()])
        if is_symbol_query(self.query):
            return self._chain([self._find_symbols()])
        self._budget = ReadBudget(OUTPUTS_READ)
        tiers = [
            self._find_by_id(),
            self._find_in_messages(limit),
            self._find_documents(tables=("output",)),
            self._find_by_name_parts(),
            self._find_anywhere(),
        ]
        if (limit is None or limit > THOROUGH_LIMIT) if is_thorough is None else is_thorough:
            tiers.append(self._find_in_backlog())
        return self._chain(tiers)

    def find_in_messages(self, limit: int) -> Iterator[SessionMatch]:
        """Yield the sessions of the first two tiers: by id, and with all words in one message."""
        if is_symbol_query(self.query):
            return self.find_matches(limit)
        return self._chain([self._find_by_id(), self._find_in_messages(limit)])

    def find_recent(self) -> Iterator[SessionMatch]:
        """Yield sessions by the number of their messages with all words and by recency.

        No message is scored, so this is fast for frequent words, too.
        """
        return self._find_documents(tables=("said",))

    def _chain(self, tiers: Iterable[Iterator[SessionMatch]]) -> Iterator[SessionMatch]:
        """Yield the matches of tiers in sequence, without sessions that hold excluded text that only reading finds."""
        if self._excluded.is_exact:
            return chain_tiers(tiers)
        known: dict[int, bool] = {}
        return chain_tiers(self._without_excluded(tier, known) for tier in tiers)

    def _without_excluded(
        self, tier: Iterable[SessionMatch], known: dict[int, bool]
    ) -> Iterator[SessionMatch]:
        """Yield the sessions of a tier without excluded text; `known` has those that were read for earlier tiers."""
        for match in tier:
            if match.session not in known:
                known[match.session] = any(map(self._excluded.is_in, match.load_documents(1)))
            if not known[match.session]:
                yield match

    def _find_symbols(self) -> Iterator[SessionMatch]:
        """Yield the sessions with symbols, the newest first."""
        from retold.search.text_scan import SymbolSearch  # a search for words does not need it

        search = SymbolSearch(self._store, self._index, self.query, self._conditions)
        for hits in search.find(self.symbol_timeout):
            yield SessionMatch(hits[0].session, 1.0, hits[0].ended_at, lambda most, hits=hits: hits[:most])  # type: ignore[misc]
        self._has_all_symbols = search.is_complete

    def _find_newest(self) -> Iterator[SessionMatch]:
        """Yield the sessions of a query with nothing but fields and exclusions, the newest first."""
        conditions = self._conditions  # loaded here, and not in the threads of several files
        hits = self._index.ask_all(lambda file: file.load_first_documents(conditions))
        yield from rank_sessions(
            SessionCandidate(hit.shard, hit.entry_id, 1.0, lambda most, hit=hit: [hit][:most])  # type: ignore[misc]
            for hit in hits
        )

    def _find_by_id(self) -> Iterator[SessionMatch]:
        """Yield the sessions whose key or id begins with the only term, if that is long enough to be one.

        The filters apply here too: an id gives no access to a hidden session.
        """
        terms, fields = self.query.terms, self.query.fields
        if len(terms) == 1 and not fields and not self._excluded and len(terms[0].text) >= SHORTEST_ID:
            register_functions(self._store.connection, matches_project)
            rows = load_named_sessions(self._store, terms[0].text, self._filters.sessions)
            yield from (
                SessionMatch(session, 1.0, None, lambda _: []) for session, *_ in rows[:MOST_ID_MATCHES]
            )

    def _find_in_messages(self, limit: int | None) -> Iterator[SessionMatch]:
        """Yield the sessions with all words in one message."""
        return MessageRanking(self._index, self.query, self._conditions).find(limit)

    def _find_documents(
        self, names: Names = NO_NAMES, tables: Sequence[str] = TABLES
    ) -> Iterator[SessionMatch]:
        """Yield the sessions with all words in one document of some tables."""
        sessions = MatchingSessions(self._index, self.query, self._conditions, names, tables, self._budget)
        yield from rank_sessions(sessions.candidates(), backlog=self._budget.backlog)

    def _find_by_name_parts(self) -> Iterator[SessionMatch]:
        """Yield the sessions in which words are parts of names, as `timeZone`."""
        if self._names:
            yield from self._find_documents(self._names)

    def _find_anywhere(self) -> Iterator[SessionMatch]:
        """Yield the sessions that hold all words in any of their documents; the rarest word gives the candidates."""
        # Symbols next to words are not searched.
        clauses = [
            one for one in self.query.clauses if any(split_runs(term.text) for term in one.alternatives)
        ]
        if len(clauses) < 2:  # noqa: PLR2004 - a single word is in one document
            return
        words = []
        for query in [Query((clause,), self.query.fields) for clause in clauses]:
            names = {word: self._names[word] for word in single_words(query) if word in self._names}
            words.append(MatchingSessions(self._index, query, self._conditions, names, budget=self._budget))
        rarest, *others = sorted(words, key=MatchingSessions.frequency)
        candidates = (_join_words(candidate, others) for candidate in rarest.candidates())
        yield from rank_sessions(candidates, backlog=self._budget.backlog)

    def _find_in_backlog(self) -> Iterator[SessionMatch]:
        """Yield the sessions that exceeded the budget of reads."""
        backlog, self._budget.backlog = self._budget.backlog, []
        self._budget.remove_limit()
        # Of several candidates of one session, the last one is of the tier with the weakest condition.
        yield from rank_sessions({(one.file, one.entry_id): one for one in backlog}.values())

    def find_in_session(self, key: str, most: int) -> Iterator[tuple[int, MessageHit]]:
        """Yield the hits in one session, in the order of its timeline, each with its seq.

        Here a message with excluded text is left out, and not the session.
        """
        hits = self._find_hits(key, most, NO_NAMES) or self._find_hits(key, most, self._names)
        ordered = sorted(hits, key=lambda hit: (hit.seq, hit.position or 0))[:most]
        for hit, message_hit in zip(ordered, self._load_hits(ordered), strict=True):
            yield hit.seq, message_hit

    def _find_hits(self, key: str, most: int, names: Names) -> list[IndexHit]:
        """Return the matching documents of one session, except for those that have no seq."""
        hits: list[IndexHit] = []
        conditions = Conditions(self._filters.sessions, self._filters.messages)
        if is_symbol_query(self.query):
            every = (hit for file in self._index.files for hit in file.load_documents_by_key(key, conditions))
            return [hit for hit in every if hit.seq >= 0 and self._verify(hit)]
        for table, has_positions in zip(TABLES, (True, False), strict=True):
            match = match_expression(self._full_query, has_positions=has_positions, names=names)
            for file in self._index.files if match else ():
                of_file = file.load_matches_by_key(table, match or "", key, conditions, most)
                is_exact = has_positions or not needs_verification(self._full_query)
                hits += of_file if is_exact else filter(self._verify, of_file)
        return [hit for hit in hits if hit.seq >= 0]

    def _verify(self, hit: IndexHit) -> bool:
        """Return whether the text of a document matches the whole query."""
        return matches_query("\n".join(hit.texts()), self._full_query)

    def _load_hits(self, hits: Sequence[IndexHit]) -> Iterator[MessageHit]:
        for hit in hits:
            snippet = make_safe_snippet(*select_text(hit, self.query), self.query, self._clean)
            yield load_hit(self._store, hit, snippet)


def _join_words(candidate: SessionCandidate, others: Sequence[MatchingSessions]) -> SessionCandidate:
    """Return a session with the rarest word as a candidate that must hold the other words, too."""
    file, entry_id = candidate.file, candidate.entry_id

    def compute_score() -> float | None:
        try:
            if not all(other.has_match(file, entry_id) for other in others):
                return 0.0
        except ReadBudgetExceeded:
            return None
        return candidate.max_score if candidate.compute_score is None else candidate.compute_score()

    def load_documents(most: int) -> list[IndexHit]:
        hits = candidate.load_documents(1)
        for other in others:
            if len(hits) < most:
                hits += other.load_documents(file, entry_id, 1)
        return hits

    return SessionCandidate(file, entry_id, candidate.max_score, load_documents, compute_score)


def chain_tiers(tiers: Iterable[Iterator[SessionMatch]]) -> Iterator[SessionMatch]:
    """Yield the matches of tiers in sequence, each session once, with 1 as the best score.

    A match of one tier has a lower score than all matches of the tiers before.
    """
    known: set[int] = set()
    bound = lowest = 1.0
    for tier in tiers:
        best = 0.0
        for match in tier:
            if match.session not in known:
                known.add(match.session)
                best = best or match.score
                lowest = bound * match.score / best
                yield SessionMatch(match.session, lowest, match.ended_at, match.load_documents)
        bound = lowest * _TIER_FACTOR if known else 1.0


class ExcludedTerms:
    """The words, phrases and symbols that a query excludes."""

    def __init__(self, index: Index, query: Query) -> None:
        self._index = index
        self._queries = [
            Query((Clause(clause.alternatives, is_negated=False),), ())
            for clause in query.clauses
            if clause.is_negated
        ]
        self._inexact = [one for one in self._queries if needs_verification(one) or is_symbol_query(one)]
        """Exclusions that the index cannot decide: phrases in outputs, and symbols."""

    def __bool__(self) -> bool:
        return bool(self._queries)

    @property
    def is_exact(self) -> bool:
        """Whether the conditions decide everything."""
        return not self._inexact

    def conditions(self) -> list[Condition]:
        """Return the condition that a session holds no excluded text, as far as the index can decide."""
        if not self._queries:
            return []
        words = {word for query in self._queries for word in single_words(query)}
        names = find_names_with_parts(self._index, words)
        expressions = [
            (table, match)
            for query in self._queries
            for table in TABLES
            if table == "said" or not needs_verification(query)
            if (match := match_expression(query, has_positions=table == "said", names=names)) is not None
        ]
        sessions = self._index.ask_all(
            lambda file: [
                session
                for table, match in expressions
                for session in file.load_session_ids_with(table, match)
            ]
        )
        return [ids_condition(sorted(set(sessions))).negated()] if sessions else []

    def is_in(self, hit: IndexHit) -> bool:
        """Return whether the session of a document holds excluded text that the index cannot decide."""
        return any(self._holds(hit, query) for query in self._inexact)

    @staticmethod
    def _holds(hit: IndexHit, query: Query) -> bool:
        match = match_expression(query, has_positions=False)
        if match is None:
            documents = hit.shard.load_documents(hit.entry_id, Conditions([], []))
        else:
            documents = hit.shard.load_matches("output", match, hit.entry_id)
        return any(matches_query("\n".join(one.texts()), query) for one in documents)
