"""A search for a page: as many conversations as it shows, and all that were found, to be narrowed down."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import msgspec

from retold.archive.index.reader import kept_index
from retold.archive.store import Store
from retold.projects.matching import is_meant
from retold.query.facets import conditions_of
from retold.query.holding import ResultItem, holding_of
from retold.query.language import Query, QuerySyntaxError, parse
from retold.query.scanned import BOUND
from retold.query.search import Search
from retold.query.signs import is_of_signs
from retold.query.wanted import Filters

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.query.candidates import DocumentMatch

MOST_TERMS = 24
COUNTED = 200
"""So many conversations are looked for even where fewer are shown: what is counted is then true, until there are more."""


class SearchPage(msgspec.Struct, frozen=True):
    """What a search came to."""

    holdings: tuple[ResultItem, ...]
    """Those that are shown."""
    sessions: tuple[int, ...]
    """All that were found, under all filters."""
    is_all: bool
    """Whether there are none behind those that are shown."""
    is_exact: bool
    """Whether no more could have been found."""
    begun: str | None = None
    """The word of which only the beginning was looked for, because nobody said it as it is."""


class SearchRequest(msgspec.Struct, frozen=True):
    """What somebody looks for."""

    text: str
    filters: Mapping[str, str] = {}
    is_newest: bool = False
    """Whether the newest comes first, not the best."""


def finding(record: Store, sought: SearchRequest, first: int, most: int) -> SearchPage:
    """Return so many conversations from one on; raises Unclear for a query that means nothing.

    A word that nobody said may be one that somebody is typing: then all that begin so are found.
    """
    query = short_query(sought.text)
    found = _Finder(record, query, sought).finding(first, most)
    last = query.terms[-1] if query.terms else None
    if (
        found.sessions
        or last is None
        or last.kind != "word"
        or is_of_signs(query)
        or not sought.text.endswith(last.text)
    ):
        return found
    begun = _Finder(record, parse(f"{sought.text}*"), sought).finding(first, most)
    return msgspec.structs.replace(begun, begun=last.text)


def short_query(text: str) -> Query:
    """Return the query that a text means, if it has not so many words that others would have to wait for it."""
    query = parse(text)
    terms = [term for clause in query.clauses for term in clause.alternatives]
    if len(terms) > MOST_TERMS:
        raise QuerySyntaxError(
            f"these are more than {MOST_TERMS} words: write fewer", terms[MOST_TERMS].place
        )
    return query


def everything_found(record: Store, sought: SearchRequest, found: SearchPage) -> tuple[int, ...]:
    """Return what the same search finds without its filters."""
    query = parse(sought.text if found.begun is None else f"{sought.text}*")
    every, _ = _Finder(record, query, sought).found(max(len(found.sessions), COUNTED), {})
    return tuple([match.session for match in every])


class _Finder:
    """A search with the index open."""

    def __init__(self, record: Store, query: Query, sought: SearchRequest) -> None:
        self._record, self._query, self._sought = record, query, sought
        self._index = kept_index(record, is_meant)

    def finding(self, first: int, most: int) -> SearchPage:
        limit = max(first + most + 1, COUNTED)
        found, search = self.found(limit, self._sought.filters)
        if self._sought.is_newest:
            found.sort(key=lambda match: match.ended_at or 0, reverse=True)
        return SearchPage(
            tuple(map(holding_of, search.told(found[first : first + most]))),
            tuple([match.session for match in found]),
            is_all=len(found) <= first + most,
            is_exact=(self._sought.is_newest or len(found) < limit) and search.is_complete,
        )

    def found(self, limit: int, filters: Mapping[str, str]) -> tuple[list[DocumentMatch], Search]:
        """Return the best matches (all, if sorted by time) and the search."""
        wanted = Filters(self._query.fields)
        wanted.sessions += conditions_of(filters)
        search = Search(self._record, self._query, wanted, self._index)
        search.patience = BOUND
        if self._sought.is_newest:
            return list(search.matches(is_thorough=False)), search
        return list(islice(search.matches(limit, is_thorough=False), limit)), search
