"""Conversations that may answer a question in plain words: those that hold most of what is telling in it, the nearest together."""

from __future__ import annotations

import math
import time
from heapq import heappush, heappushpop, nlargest

from retold.archive.index.matches import (
    Weighed,
    copied_among,
    count,
    found_again,
    frequency,
    occurrences,
    said_in,
)
from retold.archive.index.reader import TABLES, Conditions, Index
from retold.projects.matching import is_meant
from retold.search.candidates import recency
from retold.search.engine import SHOWN_AT_LENGTH, Search
from retold.search.expression import expression
from retold.search.query import Clause, Query
from retold.search.questions import telling
from retold.search.results import HITS, conversation_of, hit_of, shown, telling_text
from retold.search.spread_matches import Unwanted

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from retold.archive.index.reader import IndexFile, IndexHit
    from retold.archive.store import Store
    from retold.search.filters import Filters
    from retold.search.query import Term
    from retold.search.questions import Keywords
    from retold.search.results import Clean, MessageHit, SearchResult

    Held = tuple[float, int, int]
    """What a word is worth where it stands, the place in the timeline, and the document."""


COUNTED = 1_000
"""Documents of a file up to which they are counted: of what is in more of them, it is enough to know how common it is."""
_LEAST = 1e-6
"""What FTS5 takes a word for that is in more than half of all documents."""


class Form:
    """A word as it was asked for, or all its other forms together, as both tables are asked for it."""

    __slots__ = ("matches", "number", "share", "terms", "word")

    def __init__(self, number: int, word: int, terms: tuple[Term, ...], share: float) -> None:
        self.number, self.word, self.terms, self.share = number, word, terms, share
        query = Query((Clause(terms, is_negated=False),), ())
        asked = {table: expression(query, has_positions=table == "said") for table in TABLES}
        self.matches = {table: match for table, match in asked.items() if match is not None}


class TermWeights:
    """The words of a question, with how often each form of them occurs in each file of the index."""

    def __init__(self, index: Index, words: Sequence[Keywords]) -> None:
        every = [
            (number, terms, share * word.weight)
            for number, word in enumerate(words)
            for terms, share in word.forms
        ]
        forms = [Form(place, *one) for place, one in enumerate(every)]
        self._counts = dict(index.at_once(lambda file: [(file.path, _TermCounts(file, forms))]))
        files = list(self._counts.values())
        self.forms = [form for form in forms if any([counts.holds(form) for counts in files])]
        """Those that occur anywhere."""
        self._weights = {table: self._weighed(table, len(words)) for table in TABLES}

    def _weighed(self, table: str, words: int) -> list[float]:
        files = self._counts.values()
        held = [0] * words
        for form in self.forms:
            held[form.word] += sum([counts.of(table, form) for counts in files])
        every = sum([counts.every[table] for counts in files])
        return [math.log(1 + every / (number + 0.5)) for number in held]

    def weight(self, table: str, form: Form) -> float:
        """Return what a form of a word weighs: it is as rare as all forms of the word together."""
        return form.share * self._weights[table][form.word]

    def count(self, file: IndexFile, table: str, form: Form) -> int:
        """Return in how many documents of a file a form occurs, as far as they are counted."""
        return self._counts[file.path].of(table, form)

    def rarity(self, file: IndexFile, form: Form) -> float:
        """Return what FTS5 multiplies with when it says what a document is worth: how rare it takes a form for."""
        counts = self._counts[file.path]
        there = counts.of("said", form)
        return max(math.log((counts.every["said"] - there + 0.5) / (there + 0.5)), _LEAST)

    def marked(self) -> Query:
        """Return what is marked in a text."""
        return Query(
            (Clause(tuple([term for form in self.forms for term in form.terms]), is_negated=False),), ()
        )


class _TermCounts:
    """How often forms occur in one file of the index."""

    __slots__ = ("_there", "every")

    def __init__(self, file: IndexFile, forms: Sequence[Form]) -> None:
        self.every = {table: count(file, table) for table in TABLES}
        """How many documents there are."""
        self._there = {
            (table, form.number): frequency(file, table, match, COUNTED)
            for table in TABLES
            for form in forms
            if (match := form.matches.get(table)) is not None
        }

    def of(self, table: str, form: Form) -> int:
        return self._there.get((table, form.number), 0)

    def holds(self, form: Form) -> bool:
        return any([self.of(table, form) for table in TABLES])


NEAR = 4
"""Entries of a timeline from which on a word is worth half of what it would be in the same one."""
ANYWHERE = 0.2
"""What a word is worth however far away it stands: it is the same conversation."""
AGAIN, TIMES = 0.2, 2
"""What it adds that a word is said again near by, and how many times: a conversation comes back to what it is about."""
FEW = 5
"""How many places of a word are looked at: where it is worth most."""


class ProximityScore:
    """What a conversation holds of a question: for each word, where it stands and what it is worth there."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: dict[int, dict[int, Held]] = {}
        """By word and document."""

    def hold(self, word: int, held: Held) -> None:
        """Add where a word stands; in one document, the form counts that is worth most."""
        docs = self.held.setdefault(word, {})
        known = docs.get(held[2])
        if known is None or known[0] < held[0]:
            docs[held[2]] = held

    @property
    def most(self) -> float:
        """What it could be worth at most, if all words stood together."""
        return sum([max(docs.values())[0] for docs in self.held.values()]) * (1 + AGAIN * TIMES)

    def worth(self) -> tuple[float, list[int]]:
        """Return what it is worth, and its documents: the one around which most stands, and what else there is."""
        by_word = {word: nlargest(FEW, docs.values()) for word, docs in self.held.items()}
        anchors = {(seq, doc) for places in by_word.values() for _, seq, doc in places}
        best, seq, doc = max([(self._around(seq, doc, by_word), -seq, doc) for seq, doc in anchors])
        lacking = [places for word, places in by_word.items() if doc not in self.held[word]]
        return best, [doc, *_nearest(-seq, lacking)]

    def _around(self, anchor: int, doc: int, by_word: Mapping[int, Sequence[Held]]) -> float:
        """Return what the words are worth for somebody who reads one document and looks around."""
        total = 0.0
        for word, places in by_word.items():
            worths = sorted([worth * _share(seq - anchor) for worth, seq, _ in places], reverse=True)
            here = self.held[word].get(doc, (0.0,))[
                0
            ]  # where a word is everywhere, it may be among the others
            total += max(worths[0], here) + AGAIN * sum(worths[1 : 1 + TIMES])
        return total


def _share(distance: int) -> float:
    return max(ANYWHERE, NEAR / (NEAR + abs(distance)))


def _nearest(anchor: int, lacking: Sequence[Sequence[Held]]) -> list[int]:
    """Return documents that hold what another does not, each nearest to it, what is worth most first."""
    nearest = [max(places, key=lambda held: held[0] * _share(held[1] - anchor)) for places in lacking]
    return list(dict.fromkeys(doc for _, _, doc in sorted(nearest, reverse=True)))


def best_of(conversed: Mapping[int, ProximityScore], most: int) -> list[tuple[float, int, list[int]]]:
    """Return the conversations that are worth most, with their documents; what cannot be among them is not weighed."""
    found: list[tuple[float, int, list[int]]] = []
    for bound, session in sorted([(one.most, session) for session, one in conversed.items()], reverse=True):
        if len(found) >= most and found[0][0] >= bound:
            break
        worth, docs = conversed[session].worth()
        (heappush if len(found) < most else heappushpop)(found, (worth, session, docs))
    return sorted(found, reverse=True)


MOST = {"said": 1_000, "output": 300}
"""How many documents of a file may hold a form that leads to conversations; a more common one adds to what was found."""
BEST = 300
"""How many documents are taken where what leads to conversations tells little."""
LITTLE = 2
"""How many times as much what leads must weigh as what does not."""
NEXT_TO_NOTHING = 8
"""How many times as much what leads weighs if what does not is not even looked for."""
HUMAN, AGENT = 4.0, 1.0
"""What a word weighs in what a person said, and in what the agent did."""
SHARES = {"said": 1.0, "output": 0.4}
"""What a word weighs in what was said, and in what only went by."""
_USUAL = 0.5
"""What it is worth that a document holds something, if nothing else is known."""


class Gathering:
    """A file of the index, and what was found in it."""

    def __init__(self, file: IndexFile, scale: TermWeights, wanted: Conditions) -> None:
        """Look for the words."""
        self._file, self._scale, self._wanted = file, scale, wanted
        self.conversed: dict[int, ProximityScore] = {}
        """By the session's id in the file."""
        self._places: dict[int, tuple[int, int]] = {}
        common, leading = [], 0.0
        for table, form in self._there():
            if self._leads(table, form):
                taken = self._lead(table, form)
                leading = max(leading, scale.weight(table, form) if taken else 0.0)
            elif table == "said":
                common.append(form)
        if LITTLE * max([scale.weight("said", form) for form in common], default=0.0) > leading:
            self._take_best(common)
        for form in common:
            if NEXT_TO_NOTHING * scale.weight("said", form) > leading:
                self._follow(form)

    def _there(self) -> Iterator[tuple[str, Form]]:
        for table in TABLES:
            for form in self._scale.forms:
                if self._scale.count(self._file, table, form):
                    yield table, form

    def _leads(self, table: str, form: Form) -> bool:
        """Tell whether a form leads to conversations: if it is rare, or only ever went by."""
        is_rare = self._scale.count(self._file, table, form) <= MOST[table]
        return is_rare or not self._scale.count(self._file, "said", form)

    @staticmethod
    def _match(table: str, *forms: Form) -> str:
        return " OR ".join([form.matches[table] for form in forms])

    def _lead(self, table: str, form: Form) -> bool:
        """Take every document that holds a form, or the latest; tell whether there are any that are meant."""
        weight = self._scale.weight(table, form) * SHARES[table]
        rarity = self._scale.rarity(self._file, form) if table == "said" else 1.0
        sought = Weighed(table, self._match(table, form), (HUMAN, AGENT))
        taken = list(occurrences(self._file, sought, self._wanted, MOST[table]))
        for session, doc, seq, worth in taken:
            self._places[doc] = session, seq
            often = worth / rarity  # how often and in how much text, as BM25 has it
            self._conversed(session).hold(form.word, (weight * often / (often + 1), seq, doc))
        return bool(taken)

    def _take_best(self, forms: list[Form]) -> None:
        """Take the documents that are worth most: all that is asked for is common, but not all of it together."""
        sought = Weighed("said", self._match("said", *forms), (HUMAN, AGENT), is_best=True)
        for session, doc, seq, _ in occurrences(self._file, sought, self._wanted, BEST):
            self._places[doc] = session, seq

    def _follow(self, form: Form) -> None:
        """Look for a common form in the documents that were taken."""
        worth = self._scale.weight("said", form) * _USUAL
        for doc in said_in(self._file, form.matches["said"], self._places):
            session, seq = self._places[doc]
            self._conversed(session).hold(form.word, (worth, seq, doc))

    def _conversed(self, session: int) -> ProximityScore:
        found = self.conversed.get(session)
        if found is None:
            found = self.conversed[session] = ProximityScore()
        return found


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
