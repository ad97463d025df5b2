"""Conversations that hold what was asked for, the best first, with the places where it is said."""

from __future__ import annotations

from functools import cached_property
from itertools import chain, islice

from retold.archive.conditions import teach
from retold.archive.index import Index
from retold.archive.index_file import TABLES, Conditions, Found
from retold.projects.matching import is_meant
from retold.query.expression import expression, lone_words, needs_verifying
from retold.query.hits import HITS, conversation_of, hit_of
from retold.query.language import Query
from retold.query.listing import rows_meant
from retold.query.marks import satisfies
from retold.query.part_names import names_with_parts
from retold.query.ranking import followed, ranked
from retold.query.signs import Signs, is_of_signs
from retold.query.surroundings import shown, telling_text
from retold.query.unwanted import Unwanted
from retold.query.wanted import Wanted

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from retold.archive.record import Record
    from retold.query.hits import Conversation, Hit
    from retold.query.ranking import Ranked
    from retold.query.surroundings import Clean

    Names = Mapping[str, Sequence[str]]
    """Words of the query, and names with humps of which each is a part."""

MOST = 250
"""How many documents of a file of the index are looked at."""
FAR = 1_000
"""How many, where words need not be in the same message."""
MOST_READ = 100
"""How many have their text read, to tell whether words stand together in it."""
HUMAN, AGENT = 2.5, 1.0
"""What a word weighs in what a person said, and in what the agent did."""
SHOWN_AT_LENGTH = 3
"""Conversations of which several places are shown; of the others, the best."""
SHORTEST_ID, MOST_NAMED = 6, 5
NO_NAMES: Names = {}


class Search:
    """One question to the archive."""

    patience: float | None = None
    """Seconds after which a search for signs ends with what it has found."""

    def __init__(
        self,
        record: Record,
        query: Query,
        wanted: Wanted,
        index: Index | None = None,
        clean: Clean | None = None,
    ) -> None:
        """Take what is asked for; what is shown of a text is cleaned before it is cut out, if there is something to clean with."""
        self._record, self._asked, self._wanted = record, query, wanted
        self.query = Query(tuple([clause for clause in query.clauses if not clause.is_negated]), query.fields)
        self._index = index or Index(record, is_meant)
        self._clean = clean
        self._unwanted = Unwanted(self._index, query)
        self.is_complete = True
        """Whether the search did not end before it had read everything."""

    @cached_property
    def _conditions(self) -> Conditions:
        """What must hold of sessions and messages: also that nothing stands in a session that is excluded."""
        return Conditions([*self._wanted.sessions, *self._unwanted.conditions()], self._wanted.messages)

    def conversations(self, limit: int) -> Iterator[Conversation]:
        """Yield the best conversations, the best first: those whose id was typed before all others."""
        return self.told(self.found(limit)[:limit])

    def told(self, found: Ranked) -> Iterator[Conversation]:
        """Yield conversations that were found, with the places where it is said."""
        best = max([score for _, score, _ in found], default=1.0) or 1.0
        for place, (session, score, docs) in enumerate(found):
            hits = list(self._hits(docs[: HITS if place < SHOWN_AT_LENGTH else 1]))
            conversation = conversation_of(self._record, session, score / best, hits)
            if conversation is not None:
                yield conversation

    def found(self, limit: int, most: int = MOST) -> Ranked:
        """Return those whose id it is, those that say it in one message, those where it went by, and so on.

        There may be more than asked for; if there are fewer, there are no more.
        """
        if not self.query.terms:
            return self._left(ranked(self._unasked(limit if self._unwanted.is_sure else None)), limit)
        if is_of_signs(self.query):
            return self._left(ranked(self._signs(limit)), limit)
        found: Ranked = [(session, 1.0, []) for session in self.named()]
        said = self._left(ranked(self.said(most=most)), limit)
        found = followed(found, said) if found else said
        for further in (self._shown, self._by_names, self._scattered):
            if len(found) < limit:
                known = {session for session, *_ in found}
                most_new = limit - len(found) if self._unwanted.is_sure else FAR
                more = ranked(further(_Rest(known, most_new)))
                found = followed(found, self._left(more, limit))
        return found

    def _left(self, found: Ranked, limit: int) -> Ranked:
        """Return so many conversations without those that hold what is excluded, where the index does not know."""
        if self._unwanted.is_sure:
            return found
        return list(islice((one for one in found if not self._unwanted.is_in(one[2][0])), limit))

    def _signs(self, limit: int) -> Iterator[Found]:
        signs = Signs(self._record, self._index, self.query, self._conditions)
        most = limit if self._unwanted.is_sure else FAR
        yield from signs.found(most, self.patience)
        self.is_complete = signs.is_complete

    def _unasked(self, limit: int | None) -> Iterator[Found]:
        """Yield the beginnings of conversations that only fields, and what they do not hold, are asked of."""
        for file in self._index.files:
            yield from file.beginnings(self._conditions, -1 if limit is None else limit)

    def named(self) -> Iterator[int]:
        """Yield the sessions whose key or id begins with what was typed, if it is long enough to be meant so.

        What must hold of sessions holds of them as well: whoever may not see one cannot ask for it by its name.
        """
        terms = self.query.terms
        if (
            len(terms) == 1
            and not self.query.fields
            and not self._unwanted
            and len(terms[0].text) >= SHORTEST_ID
        ):
            teach(self._record.connection, is_meant)
            found = rows_meant(self._record, terms[0].text, self._wanted.sessions)
            yield from (number for number, *_ in found[:MOST_NAMED])

    def said(self, names: Names = NO_NAMES, most: int = MOST) -> Iterator[Found]:
        """Yield the messages in which all words stand, or names of which they are parts."""
        match = expression(self.query, has_positions=True, names=names)
        if match is not None:
            yield from self._index.at_once(
                lambda file: file.said(match, self._conditions, (HUMAN, AGENT), most)
            )

    def output(self, names: Names = NO_NAMES, most: int = MOST, rest: _Rest | None = None) -> Iterator[Found]:
        """Yield what went by in which all words stand; phrases are looked for in the text itself, until there are enough."""
        match = expression(self.query, has_positions=False, names=names)
        if match is None:
            return
        if not needs_verifying(self.query):
            yield from self._index.at_once(lambda file: file.output(match, self._conditions, most))
            return
        wanted = rest or _Rest(set(), most)
        yield from self._index.at_once(
            lambda file: wanted.of(filter(self._is_right, file.output(match, self._conditions, MOST_READ)))
        )

    def _shown(self, rest: _Rest) -> Iterator[Found]:
        yield from rest.of(self.output(rest=rest))

    def _by_names(self, rest: _Rest) -> Iterator[Found]:
        names = self._names()
        if names:
            yield from rest.of(chain(self.said(names), self.output(names, rest=rest)))

    def _scattered(self, rest: _Rest) -> Iterator[Found]:
        """Yield documents of sessions that hold all words, each wherever it is said; the rarest word leads to them."""
        sought = self.query.clauses
        if len(sought) < 2:  # noqa: PLR2004 - one is found in one message
            return
        queries = [Query((one,), self.query.fields) for one in sought]
        alone = [Search(self._record, query, self._wanted, self._index) for query in queries]
        rarest, *others = sorted(alone, key=Search._frequency)
        rarest._conditions = self._conditions  # noqa: SLF001 - of the same class; the others look into what it found
        best: dict[int, Found] = {}
        for one in chain(rarest.said(most=FAR), rarest.output(most=FAR) if rarest.matches[1] else ()):
            best.setdefault(one.session, one)
        yield from rest.of(one for found in islice(best.values(), FAR) for one in _joined(found, others))

    @property
    def matches(self) -> tuple[str | None, str | None]:
        """What is asked of both tables; nothing of the second where it would have to be read to be sure of it."""
        said = expression(self.query, has_positions=True)
        return said, None if needs_verifying(self.query) else expression(self.query, has_positions=False)

    def _frequency(self) -> int:
        """Return how often it is found, as far as that matters."""
        asked = [(table, match) for table, match in zip(TABLES, self.matches, strict=True) if match]
        return sum(file.frequency(table, match, FAR) for file in self._index.files for table, match in asked)

    def held_with(self, found: Found) -> Found | None:
        """Return a document of the same session in which this is found."""
        for table, match in zip(TABLES, self.matches, strict=True):
            held = match and found.shard.held(table, match, found.told, self._conditions)
            if held:
                return held
        return None

    def within(self, key: str, most: int) -> Iterator[tuple[int, Hit]]:
        """Yield where in one session it is said or went by, in its order, each with the place in its timeline.

        Here a message that holds what is excluded is left out, and not the session.
        """
        found = self._held_in(key, most, NO_NAMES) or self._held_in(key, most, self._names())
        ordered = sorted(found, key=lambda one: (one.seq, one.place or 0))[:most]
        for one, hit in zip(ordered, self._hits(ordered), strict=True):
            yield one.seq, hit

    def _held_in(self, key: str, most: int, names: Names) -> list[Found]:
        """Return the documents of one session; what is said of it as a whole has no place in it."""
        found: list[Found] = []
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
        return names_with_parts(self._index, lone_words(self.query))

    def _is_right(self, found: Found) -> bool:
        """Tell whether a document of the table without places has the phrases that were asked for."""
        return satisfies("\n".join(found.texts()), self.query)

    def _fits(self, found: Found) -> bool:
        """Tell whether a document has what was asked for, and nothing that is excluded."""
        return satisfies("\n".join(found.texts()), self._asked)

    def _hits(self, docs: Sequence[Found]) -> Iterator[Hit]:
        for one in docs:
            yield hit_of(self._record, one, shown(*telling_text(one, self.query), self.query, self._clean))


def _joined(found: Found, others: Sequence[Search]) -> list[Found]:
    """Return a document with those of the same session in which everything else is found; none, if something is not."""
    joined = [found]
    for other in others:
        held = other.held_with(found)
        if held is None:
            return []
        joined.append(held)
    return joined


class _Rest:
    """What is still wanted: documents of so many sessions that are not known yet."""

    def __init__(self, known: Collection[int], most: int) -> None:
        self._known, self._most = known, most

    def of(self, found: Iterable[Found]) -> Iterator[Found]:
        """Yield documents until they are of enough sessions: to find each may take some reading."""
        new: set[int] = set()
        for one in found:
            if one.session not in self._known:
                new.add(one.session)
                if len(new) > self._most:
                    return
                yield one
