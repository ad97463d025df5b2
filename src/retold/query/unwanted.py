"""Excluded words: a conversation that contains one anywhere is not found."""

from __future__ import annotations

from retold.archive.index.reader import TABLES, Conditions
from retold.archive.index.tokenizer import atoms
from retold.archive.queries.listing import among
from retold.query.expression import expression, lone_words, needs_verifying
from retold.query.language import Clause, Query
from retold.query.marks import satisfies
from retold.query.part_names import names_with_parts

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.archive.index.reader import Index, IndexHit
    from retold.archive.queries.conditions import Condition


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
