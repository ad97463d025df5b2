"""Conversations that match a query, the best first, with the places where it is said.

Every conversation that matches is found, however many are asked for. Tiers follow each other: the ids that were typed,
messages that hold all words, output that does, names of which words are parts, and sessions that hold each word
somewhere. A tier is looked for when those before it are exhausted, so that the first matches cost little.
"""

from __future__ import annotations

from functools import cached_property
from itertools import islice

from retold.archive.index.reader import TABLES, Conditions, Index, IndexHit
from retold.archive.index.tokenizer import atoms
from retold.archive.queries.conditions import register_functions
from retold.projects.matching import is_meant
from retold.search.candidates import Candidate, DocumentMatch, in_order
from retold.search.expression import expression, lone_words, names_with_parts, needs_verifying
from retold.search.filters import Filters
from retold.search.listing import rows_meant
from retold.search.query import Query
from retold.search.results import HITS, chained, conversation_of, hit_of, satisfies, shown, telling_text
from retold.search.scoring import ScoredSessions
from retold.search.signs import Signs, is_of_signs
from retold.search.spread_matches import NO_NAMES, HoldingSessions, OutputReading, TooMuchToRead, Unwanted

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from retold.archive.index.reader import IndexFile
    from retold.archive.store import Store
    from retold.search.results import Clean, MessageHit, SearchResult
    from retold.search.spread_matches import Names


SHOWN_AT_LENGTH = 3
"""Conversations of which several places are shown; of the others, the best."""
SHORTEST_ID, MOST_NAMED = 6, 5
FEW = 100
"""Above this limit, all outputs are read to verify a phrase."""
MOST_READ = 60
"""Documents of output that are read for fewer."""


class Search:
    """One question to the archive."""

    patience: float | None = None
    """Seconds after which a search for signs ends with what it has found."""

    def __init__(
        self,
        record: Store,
        query: Query,
        wanted: Filters,
        index: Index | None = None,
        clean: Clean | None = None,
    ) -> None:
        """Take what is asked for; what is shown of a text is cleaned before it is cut out, if there is something to clean with."""
        self._record, self._asked, self._wanted = record, query, wanted
        self.query = Query(tuple([clause for clause in query.clauses if not clause.is_negated]), query.fields)
        self._index = index or Index(record, is_meant)
        self._clean = clean
        self._unwanted = Unwanted(self._index, query)
        self._names_found: dict[str, list[str]] | None = None
        self._reading = OutputReading(MOST_READ)
        self._are_signs_read = True

    @cached_property
    def _conditions(self) -> Conditions:
        """Conditions for sessions and messages, including that the session holds no excluded word."""
        return Conditions([*self._wanted.sessions, *self._unwanted.conditions()], self._wanted.messages)

    @property
    def is_complete(self) -> bool:
        """Whether no session was left out because too much has to be read to be sure that it matches."""
        return self._are_signs_read and not self._reading.put_off

    def conversations(self, limit: int) -> Iterator[SearchResult]:
        """Yield the best conversations, the best first: those whose id was typed before all others."""
        return self.told(islice(self.matches(limit), limit))

    def told(self, matches: Iterable[DocumentMatch]) -> Iterator[SearchResult]:
        """Yield conversations with the places where it is said."""
        for place, match in enumerate(matches):
            hits = list(self._hits(match.docs(HITS if place < SHOWN_AT_LENGTH else 1)))
            conversation = conversation_of(self._record, match.session, match.score, hits)
            if conversation is not None:
                yield conversation

    def matches(
        self, limit: int | None = None, *, is_thorough: bool | None = None
    ) -> Iterator[DocumentMatch]:
        """Yield matching sessions: first those with all words in one message, then in one tool output, and so on.

        The order is the same however many are taken; it is quicker where not more than a limit are. The last ones are
        those of which too much has to be read to be sure that a phrase stands in the output of a tool: only a thorough
        search reads it, as one without a limit, or with a high one, is.
        """
        if not self.query.terms:
            return self._allowed([self._unasked()])
        if is_of_signs(self.query):
            return self._allowed([self._signs()])
        self._reading = OutputReading(MOST_READ)
        tiers = [self._named(), self._said(limit), self._passed(), self._by_names(), self._scattered()]
        if (limit is None or limit > FEW) if is_thorough is None else is_thorough:
            tiers.append(self._put_off())
        return self._allowed(tiers)

    def near(self, limit: int) -> Iterator[DocumentMatch]:
        """Yield sessions with this id, then those with all words in one message."""
        return (
            self.matches(limit)
            if is_of_signs(self.query)
            else self._allowed([self._named(), self._said(limit)])
        )

    def latest(self) -> Iterator[DocumentMatch]:
        """Yield sessions with all words in one message, those with most such messages first.

        Recent sessions weigh more. No message is scored, so this is quick for common words, too.
        """
        holding = HoldingSessions(self._index, self.query, self._conditions, tables=("said",))
        return in_order(holding.candidates())

    def _allowed(self, tiers: Iterable[Iterator[DocumentMatch]]) -> Iterator[DocumentMatch]:
        """Leave out sessions with excluded text that only reading can find."""
        if self._unwanted.is_sure:
            return chained(tiers)
        known: dict[int, bool] = {}
        return chained(self._without_unwanted(tier, known) for tier in tiers)

    def _without_unwanted(
        self, tier: Iterable[DocumentMatch], known: dict[int, bool]
    ) -> Iterator[DocumentMatch]:
        """Yield the sessions of one tier that hold no excluded text; each session is examined once in all tiers."""
        for match in tier:
            if match.session not in known:
                known[match.session] = any(map(self._unwanted.is_in, match.docs(1)))
            if not known[match.session]:
                yield match

    def _signs(self) -> Iterator[DocumentMatch]:
        """Yield the sessions with signs that are no words, the newest first."""
        signs = Signs(self._record, self._index, self.query, self._conditions)
        for docs in signs.found(self.patience):
            yield DocumentMatch(docs[0].session, 1.0, docs[0].ended_at, lambda most, docs=docs: docs[:most])  # type: ignore[misc]
        self._are_signs_read = signs.is_complete

    def _unasked(self) -> Iterator[DocumentMatch]:
        """Yield the conversations when a query has nothing but fields and exclusions, the newest first."""
        conditions = self._conditions  # looked up here, and not by the threads of several files
        found = self._index.at_once(lambda file: file.beginnings(conditions))
        yield from in_order(
            Candidate(one.shard, one.told, 1.0, lambda most, one=one: [one][:most])  # type: ignore[misc]
            for one in found
        )

    def _named(self) -> Iterator[DocumentMatch]:
        """Yield the sessions whose key or id begins with what was typed, if it is long enough to be meant so.

        The filters apply here too: an id gives no access to a hidden session.
        """
        terms = self.query.terms
        if (
            len(terms) == 1
            and not self.query.fields
            and not self._unwanted
            and len(terms[0].text) >= SHORTEST_ID
        ):
            register_functions(self._record.connection, is_meant)
            found = rows_meant(self._record, terms[0].text, self._wanted.sessions)
            yield from (DocumentMatch(number, 1.0, None, lambda _: []) for number, *_ in found[:MOST_NAMED])

    def _said(self, limit: int | None) -> Iterator[DocumentMatch]:
        """Yield the sessions with a message in which all words stand."""
        return ScoredSessions(self._index, self.query, self._conditions).matches(limit)

    def _passed(self) -> Iterator[DocumentMatch]:
        """Yield sessions with all words in one tool output."""
        holding = HoldingSessions(
            self._index, self.query, self._conditions, tables=("output",), reading=self._reading
        )
        yield from in_order(holding.candidates(), put_off=self._reading.put_off)

    def _by_names(self) -> Iterator[DocumentMatch]:
        """Yield the sessions in which names have words as their parts."""
        names = self._names()
        if names:
            holding = HoldingSessions(self._index, self.query, self._conditions, names, reading=self._reading)
            yield from in_order(holding.candidates(), put_off=self._reading.put_off)

    def _scattered(self) -> Iterator[DocumentMatch]:
        """Yield the sessions that hold all words, each wherever it is said; the rarest word leads to them."""
        # Signs beside words are not searched.
        sought = [one for one in self.query.clauses if any(atoms(term.text) for term in one.alternatives)]
        if len(sought) < 2:  # noqa: PLR2004 - one is found in one message
            return
        queries = [Query((one,), self.query.fields) for one in sought]
        names = self._names()
        rarest, *others = sorted(
            [
                HoldingSessions(
                    self._index,
                    query,
                    self._conditions,
                    {word: names[word] for word in lone_words(query) if word in names},
                    reading=self._reading,
                )
                for query in queries
            ],
            key=HoldingSessions.frequency,
        )
        joined = (_Joined(one, others) for one in rarest.candidates())
        candidates = (Candidate(one.file, one.told, one.most, one.docs, one.weigh) for one in joined)
        yield from in_order(candidates, put_off=self._reading.put_off)

    def _put_off(self) -> Iterator[DocumentMatch]:
        """Yield the sessions of which too much had to be read before."""
        put_off, self._reading.put_off = self._reading.put_off, []
        self._reading.unbound()
        # Several tiers put the same session off. The last tier asks for least.
        yield from in_order({(one.file, one.told): one for one in put_off}.values())

    def within(self, key: str, most: int) -> Iterator[tuple[int, MessageHit]]:
        """Yield where in one session it is said or went by, in its order, each with the place in its timeline.

        Here a message that holds what is excluded is left out, and not the session.
        """
        found = self._held_in(key, most, NO_NAMES) or self._held_in(key, most, self._names())
        ordered = sorted(found, key=lambda one: (one.seq, one.place or 0))[:most]
        for one, hit in zip(ordered, self._hits(ordered), strict=True):
            yield one.seq, hit

    def _held_in(self, key: str, most: int, names: Names) -> list[IndexHit]:
        """Return the documents of one session; what is said of it as a whole has no place in it."""
        found: list[IndexHit] = []
        conditions = Conditions(self._wanted.sessions, self._wanted.messages)
        if is_of_signs(self.query):
            documents = (one for file in self._index.files for one in file.documents_of(key, conditions))
            return [one for one in documents if one.seq >= 0 and self._fits(one)]
        for table, has_positions in zip(TABLES, (True, False), strict=True):
            match = expression(self._asked, has_positions=has_positions, names=names)
            for file in self._index.files if match else ():
                held = file.within(table, match or "", key, conditions, most)
                is_sure = has_positions or not needs_verifying(self._asked)
                found += held if is_sure else filter(self._fits, held)
        return [one for one in found if one.seq >= 0]

    def _names(self) -> dict[str, list[str]]:
        """Return the names of which the words of the query are parts."""
        if self._names_found is None:
            self._names_found = names_with_parts(self._index, lone_words(self.query))
        return self._names_found

    def _fits(self, found: IndexHit) -> bool:
        """Tell whether a document has what was asked for, and nothing that is excluded."""
        return satisfies("\n".join(found.texts()), self._asked)

    def _hits(self, docs: Sequence[IndexHit]) -> Iterator[MessageHit]:
        for one in docs:
            yield hit_of(self._record, one, shown(*telling_text(one, self.query), self.query, self._clean))


class _Joined:
    """A session that holds the rarest word, and maybe the others."""

    __slots__ = ("_others", "_rarest")

    def __init__(self, rarest: Candidate, others: Sequence[HoldingSessions]) -> None:
        self._rarest, self._others = rarest, others

    @property
    def file(self) -> IndexFile:
        """The file of the index."""
        return self._rarest.file

    @property
    def told(self) -> int:
        """The session's id there."""
        return self._rarest.told

    @property
    def most(self) -> float:
        """What it may be worth."""
        return self._rarest.most

    def weigh(self) -> float | None:
        """Return what it is worth; 0 if it does not hold all words, None if too much would have to be read."""
        try:
            if not all(other.is_in(self.file, self.told) for other in self._others):
                return 0.0
        except TooMuchToRead:
            return None
        return self._rarest.most if self._rarest.weigh is None else self._rarest.weigh()

    def docs(self, most: int) -> list[IndexHit]:
        """Return a document for each word, as far as so many are wanted."""
        found = self._rarest.docs(1)
        for other in self._others:
            if len(found) < most:
                found += other.docs_within(self.file, self.told, 1)
        return found
