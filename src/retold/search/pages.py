"""A search for a page: as many conversations as it shows, and all that were found, to be narrowed down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

import msgspec

from retold.archive.index.reader import kept_index
from retold.archive.queries.conditions import CONVERSATIONS, Condition
from retold.archive.queries.listing import among, card_rows, count_of
from retold.archive.store import Store, summary_of
from retold.model.report import PICOS
from retold.projects.matching import is_meant
from retold.search import dates
from retold.search.engine import Search
from retold.search.facets import Facet, Facets, conditions_of
from retold.search.filters import Filters
from retold.search.query import Query, QuerySyntaxError, parse
from retold.search.scan_job import BOUND, ResultItem, ResultPlace, holding_of
from retold.search.signs import is_of_signs

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from retold.search.candidates import DocumentMatch
    from retold.search.results import MessageHit


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


class SessionSummary(msgspec.Struct, frozen=True):
    """What is told of a conversation where there are many."""

    session: int
    """Its id in this archive."""
    key: str
    agent: str
    kind: str
    parent: str | None
    root: str | None
    native_key: str | None
    hash: str | None
    title: str | None
    ended_at: datetime | None
    status: str
    messages: int
    tokens: int | None
    is_estimated: bool
    prompts: int
    tool_errors: int
    models: tuple[str, ...]
    tags: tuple[str, ...]
    picos: int | None
    subagents: int
    is_gone: bool
    """Whether the agent has nothing of it any more: the archive alone does."""


class _EntryCounts(msgspec.Struct):
    prompts: int = 0
    tool_errors: int = 0


class _Summary(msgspec.Struct):
    counts: _EntryCounts = msgspec.field(default_factory=_EntryCounts)
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    cost_usd: str | None = None


_DECODER = msgspec.json.Decoder(_Summary)


def glances(
    record: Store, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> list[SessionSummary]:
    """Return at a glance sessions, the newest first."""
    return [_glance(row) for row in card_rows(record, conditions, limit, offset)]


def glances_of(record: Store, sessions: Sequence[int]) -> list[SessionSummary]:
    """Return at a glance some sessions in their order, but for those that have gone meanwhile."""
    found = {card.session: card for card in glances(record, [among(sessions)], len(sessions))}
    return [found[session] for session in sessions if session in found]


def _glance(row: Sequence[Any]) -> SessionSummary:
    agent, kind, root, native_key, project_hash, title, messages, tokens, estimated, subagents, *rest = row
    number, key, parent, ended_at, status, packed, is_there = rest
    told = _DECODER.decode(summary_of(packed))
    return SessionSummary(
        session=number,
        key=key,
        agent=agent,
        kind=kind,
        parent=parent,
        root=root,
        native_key=native_key,
        hash=project_hash,
        title=title,
        ended_at=None if ended_at is None else datetime.fromisoformat(ended_at),
        status=status,
        messages=messages,
        tokens=tokens,
        is_estimated=bool(estimated),
        prompts=told.counts.prompts,
        tool_errors=told.counts.tool_errors,
        models=told.models,
        tags=told.tags,
        picos=None if told.cost_usd is None else int(Decimal(told.cost_usd) * PICOS),
        subagents=subagents,
        is_gone=kind != "prompts-only" and not is_there,
    )


BASE = CONVERSATIONS
"""What a list shows unless it is asked for more."""


class ResultRow(msgspec.Struct, frozen=True):
    """A conversation, and where in it it stands that was looked for."""

    card: SessionSummary
    places: tuple[ResultPlace, ...] = ()


class PageBounds(msgspec.Struct, frozen=True):
    """Which of many rows are shown."""

    first: int
    most: int
    is_bare: bool = False
    """Whether only rows are wanted, and not by what they could be narrowed down."""


class ResultPage(msgspec.Struct, frozen=True):
    """A page of conversations."""

    rows: tuple[ResultRow, ...]
    count: int
    """How many conversations there are, or were found."""
    is_all: bool
    """Whether there are none behind these rows."""
    facets: tuple[Facet, ...] = ()
    spans: tuple[tuple[str, Mapping[str, str], int], ...] = ()
    """The usual times: what they are called, as filters mean them, and how many conversations there are in them."""
    is_exact: bool = True
    """Whether there are no more than were counted."""
    begun: str | None = None
    """A word of which only the beginning was looked for."""
    beside: int = 0
    """How many subagents and copies were found: they have rows, and are no conversations of their own."""


def usual_spans(today: date) -> dict[str, dict[str, str]]:
    """Return the times that people mean most, as filters mean them."""
    return {
        "Today": {"since": "today"},
        "Yesterday": {"since": "yesterday", "until": "yesterday"},
        "7 days": {"since": "7d"},
        "30 days": {"since": "30d"},
        "This year": {"since": f"{today.year:04}-01-01"},
    }


def listed_shelf(record: Store, filters: Mapping[str, str], cut: PageBounds) -> ResultPage:
    """Return the newest conversations; raises ValueError for a date that is none."""
    facets = Facets(record, BASE, filters)
    found = glances(record, facets.all, cut.most, cut.first)
    shelf = ResultPage(
        tuple(map(ResultRow, found)), facets.count, is_all=facets.count <= cut.first + cut.most
    )
    return shelf if cut.is_bare else _faceted(shelf, facets)


def found_shelf(record: Store, sought: SearchRequest, cut: PageBounds) -> ResultPage:
    """Return conversations that hold words; raises Unclear for a query that means nothing, ValueError for no date."""
    found = finding(record, sought, cut.first, cut.most)
    rows = held_rows(record, found.holdings)
    count, beside = _counted(record, found.sessions)
    shelf = ResultPage(
        tuple(rows), count, found.is_all, is_exact=found.is_exact, begun=found.begun, beside=beside
    )
    if cut.is_bare:
        return shelf
    every = everything_found(record, sought, found) if sought.filters else found.sessions
    return _faceted(shelf, Facets(record, [*BASE, among(every)], sought.filters))


def scanned_shelf(
    record: Store, holdings: Sequence[ResultItem], cut: PageBounds, *, is_exact: bool
) -> ResultPage:
    """Return conversations that somebody else has looked through."""
    rows = held_rows(record, holdings[cut.first : cut.first + cut.most])
    sessions = [one.session for one in holdings]
    count, beside = _counted(record, sessions)
    is_all = len(holdings) <= cut.first + cut.most
    shelf = ResultPage(tuple(rows), count, is_all, is_exact=is_exact, beside=beside)
    return _faceted(shelf, Facets(record, [*BASE, among(sessions)], {}))


def _counted(record: Store, sessions: Sequence[int]) -> tuple[int, int]:
    """Return how many of these sessions are conversations, and how many are not."""
    count = count_of(record, [*BASE, among(sessions)])
    return count, len(sessions) - count


def held_rows(record: Store, holdings: Sequence[ResultItem]) -> list[ResultRow]:
    """Return the rows of conversations that hold something, in their order."""
    places = {one.session: one.places for one in holdings}
    return [ResultRow(card, places[card.session]) for card in glances_of(record, list(places))]


def _faceted(shelf: ResultPage, facets: Facets) -> ResultPage:
    spans = usual_spans(dates.today())
    counts = facets.spans(list(spans.values()))
    told = [(name, span, number) for (name, span), number in zip(spans.items(), counts, strict=True)]
    return msgspec.structs.replace(shelf, facets=tuple(facets.facets()), spans=tuple(told))


MOST = 100
"""Places that are told of."""


def found_inside(record: Store, key: str, text: str) -> list[tuple[int, MessageHit]]:
    """Return the places in a session's timeline, in its order; raises Unclear for a query that means nothing."""
    query = parse(text)
    return list(Search(record, query, Filters(query.fields)).within(key, MOST)) if query.terms else []
