"""Sessions with documents that hold words, by how many do: in tool output, as parts of names, or in several messages."""

from __future__ import annotations

from itertools import islice

from retold.archive.index.matches import documents_by_session, documents_with, documents_within, found_again
from retold.archive.index.reader import TABLES, Conditions
from retold.archive.index.tokenizer import atoms
from retold.archive.queries.listing import among
from retold.search.candidates import Candidate
from retold.search.expression import expression, lone_words, names_with_parts, needs_verifying
from retold.search.query import Clause, Query
from retold.search.results import COUNTED, satisfies, session_score

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from retold.archive.index.reader import Index, IndexFile, IndexHit
    from retold.archive.queries.conditions import Condition

    Names = Mapping[str, Sequence[str]]
    """Words of the query, and names with humps of which each is a part."""
    ByTable = dict[str, dict[int, str]]
    """The documents of each session that match, between commas, by table."""


NO_NAMES: Names = {}
_WORTH = {"said": 2.0, "output": 1.0}
"""What a document is worth that holds all words."""
_OFTEN = 1_000
"""Documents up to which they are counted to know which word is the rarest."""
_ONE_BY_ONE = 100
"""Up to this many sessions are queried one by one; for more, one query finds all."""


class TooMuchToRead(Exception):  # noqa: N818 - it says what happened
    """Verifying this session would exceed the reading budget."""


class OutputReading:
    """How many more documents may be read to be sure that they hold a phrase; without a number, as many as it takes."""

    __slots__ = ("_left", "put_off")

    def __init__(self, most: int | None = None) -> None:
        self._left = most
        self.put_off: list[Candidate] = []
        """Sessions that were not read."""

    def may_read(self) -> bool:
        """Take one of them; tell whether there was one left."""
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0

    @property
    def is_spent(self) -> bool:
        """Whether none is left."""
        return self._left is not None and self._left <= 0

    def unbound(self) -> None:
        """Let everything be read."""
        self._left = None


class HoldingSessions:
    """The documents that hold what a query asks for."""

    def __init__(  # noqa: PLR0913 - a query, where it is asked, and what counts
        self,
        index: Index,
        query: Query,
        wanted: Conditions,
        names: Names = NO_NAMES,
        tables: Sequence[str] = TABLES,
        reading: OutputReading | None = None,
    ) -> None:
        self._index, self._query, self._wanted = index, query, wanted
        self._reading = reading or OutputReading()
        asked = {table: expression(query, has_positions=table == "said", names=names) for table in tables}
        self._matches = {table: match for table, match in asked.items() if match is not None}
        self._unsure = {"output"} if needs_verifying(query) else set()
        self._left = 0 if names else _ONE_BY_ONE
        self._known: dict[IndexFile, ByTable] | None = None
        self._verified: dict[tuple[IndexFile, int], HeldDocuments] = {}
        """Documents that were read to verify a phrase: they are not read a second time."""

    def candidates(self) -> Iterator[Candidate]:
        """Yield the sessions with such a document."""
        for file, by_table in self._by_file().items():
            for told in {told for there in by_table.values() for told in there}:
                held = self._held(file, told)
                yield Candidate(file, told, held.most, held.docs, held.weigh if held.is_unsure else None)

    def frequency(self) -> int:
        """Return how many documents match, as far as that matters."""
        counts = self._index.at_once(
            lambda file: [
                documents_with(file, table, match, _OFTEN) for table, match in self._matches.items()
            ]
        )
        return min(sum(counts), _OFTEN)

    def is_in(self, file: IndexFile, told: int) -> bool:
        """Tell whether a document of one session matches."""
        self._left -= 1
        if self._left < 0:
            self._by_file()
        if self._known is None and not self._unsure:
            there = (
                documents_within(file, table, match, told, self._wanted)
                for table, match in self._matches.items()
            )
            return any(next(ids, None) is not None for ids in there)
        return bool(self.docs_within(file, told, 1))

    def docs_within(self, file: IndexFile, told: int, most: int) -> list[IndexHit]:
        """Return so many documents of one session that match."""
        held = self._verified.get((file, told)) or self._held(file, told)
        docs = held.docs(most)
        if docs and held.is_unsure:
            self._verified[file, told] = held
        return docs

    def _by_file(self) -> dict[IndexFile, ByTable]:
        if self._known is None:
            self._known = dict(self._index.at_once(lambda file: [(file, self._by_table(file))]))
        return self._known

    def _by_table(self, file: IndexFile) -> ByTable:
        return {
            table: dict(documents_by_session(file, table, match, self._wanted))
            for table, match in self._matches.items()
        }

    def _held(self, file: IndexFile, told: int) -> HeldDocuments:
        if self._known is not None:
            packed = {table: there.get(told, "") for table, there in self._known[file].items()}
            ids = {table: [int(doc) for doc in text.split(",")] for table, text in packed.items() if text}
        else:
            ids = {
                table: list(documents_within(file, table, match, told, self._wanted))
                for table, match in self._matches.items()
            }
        there = {table: found for table, found in ids.items() if found}
        return HeldDocuments(file, there, self._unsure, self._query, self._reading)


class HeldDocuments:
    """Documents of one session with all words; phrases in outputs are verified by reading."""

    __slots__ = ("_file", "_ids", "_query", "_read", "_reading", "_unsure")

    def __init__(
        self,
        file: IndexFile,
        ids: Mapping[str, Sequence[int]],
        unsure: set[str],
        query: Query,
        reading: OutputReading,
    ) -> None:
        self._file, self._ids, self._unsure, self._query, self._reading = file, ids, unsure, query, reading
        self._read: dict[str, list[IndexHit]] = {}

    @property
    def is_unsure(self) -> bool:
        """Whether some must be read."""
        return not self._unsure.isdisjoint(self._ids)

    @property
    def most(self) -> float:
        """What they are worth if all of them have what was asked for."""
        return _worth({table: len(ids) for table, ids in self._ids.items()})

    def weigh(self) -> float | None:
        """Return what they are worth; None if too many would have to be read."""
        if self._reading.is_spent and self.is_unsure:
            return None
        try:
            counts = {
                table: len(self._found(table)) if table in self._unsure else len(ids)
                for table, ids in self._ids.items()
            }
        except TooMuchToRead:
            return None
        return _worth(counts)

    def docs(self, most: int) -> list[IndexHit]:
        """Return so many of them: what was said before what went by, the last first."""
        found: list[IndexHit] = []
        for table in self._ids:
            if len(found) < most:
                found += self._found(table)
        return found[:most]

    def _found(self, table: str) -> list[IndexHit]:
        """Return the last of the documents in a table, as many as count."""
        if table not in self._read:
            every = found_again(self._file, self._ids[table]).values()
            ordered: Iterator[IndexHit] = iter(sorted(every, key=_place, reverse=True))
            if table in self._unsure:
                ordered = filter(self._is_right, ordered)
            self._read[table] = list(islice(ordered, COUNTED))
        return self._read[table]

    def _is_right(self, found: IndexHit) -> bool:
        if not self._reading.may_read():
            raise TooMuchToRead
        return satisfies("\n".join(found.texts()), self._query)


def _place(found: IndexHit) -> tuple[int, int]:
    return found.seq, -1 if found.place is None else found.place


def _worth(counts: Mapping[str, int]) -> float:
    scores = [_WORTH[table] for table, count in counts.items() for _ in range(min(count, COUNTED))]
    return session_score(sorted(scores, reverse=True)) if scores else 0.0


class Unwanted:
    """The words, phrases and signs that a query excludes."""

    def __init__(self, index: Index, query: Query) -> None:
        self._index = index
        self._queries = [
            Query((Clause(clause.alternatives, is_negated=False),), ())
            for clause in query.clauses
            if clause.is_negated
        ]
        self._doubtful = [query for query in self._queries if needs_verifying(query) or not _has_words(query)]
        """What the index does not find for sure: phrases in outputs, and signs."""

    def __bool__(self) -> bool:
        return bool(self._queries)

    @property
    def is_sure(self) -> bool:
        """Whether the conditions are enough."""
        return not self._doubtful

    def conditions(self) -> list[Condition]:
        """Return the condition that a session has none of it, as far as the index knows."""
        if not self._queries:
            return []
        names = names_with_parts(self._index, {word for query in self._queries for word in lone_words(query)})
        asked = [
            (table, match)
            for query in self._queries
            for table in TABLES
            if table == "said" or not needs_verifying(query)
            if (match := expression(query, has_positions=table == "said", names=names)) is not None
        ]
        found = self._index.at_once(
            lambda file: [session for table, match in asked for session in file.sessions_with(table, match)]
        )
        return [among(sorted(set(found))).negated()] if found else []

    def is_in(self, found: IndexHit) -> bool:
        """Tell whether the session of a document has something of it that the index does not find for sure."""
        return any(self._is_held(found, query) for query in self._doubtful)

    @staticmethod
    def _is_held(found: IndexHit, query: Query) -> bool:
        match = expression(query, has_positions=False)
        if match is None:
            documents = found.shard.documents(found.told, Conditions([], []))
        else:
            documents = found.shard.documents_with("output", match, found.told)
        return any(satisfies("\n".join(one.texts()), query) for one in documents)


def _has_words(query: Query) -> bool:
    return any(atoms(term.text) for term in query.terms)
