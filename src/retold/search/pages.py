"""Pages of results: rows with session summaries, counts, and facets; for lists, searches and scans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from retold.archive.index.reader import open_shared_index
from retold.archive.queries.listing import (
    CONVERSATIONS,
    Condition,
    count_selected,
    ids_condition,
    load_summary_rows,
)
from retold.archive.store import Store, unpack_summary
from retold.model.report import PICOS
from retold.projects.matching import matches_project
from retold.search import dates
from retold.search.engine import Search
from retold.search.facets import Facet, Facets, filter_conditions
from retold.search.filters import Filters
from retold.search.query import Query, QuerySyntaxError, is_symbol_query, parse_query
from retold.search.scan_job import TIME_LIMIT, ResultHit, ResultItem, to_result_item

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from retold.search.ranking import SessionMatch
    from retold.search.results import MessageHit


MOST_TERMS = 24
COUNTED_UP_TO = 200
"""Results that are found even if fewer are shown, so that their count is exact up to there."""


class SearchPage(msgspec.Struct, frozen=True):
    """A page of search results, and all sessions that were found."""

    items: tuple[ResultItem, ...]
    """The results on the page."""
    sessions: tuple[int, ...]
    """All sessions that were found with all filters."""
    is_last: bool
    """Whether no results follow."""
    is_exact: bool
    """Whether there are no more results than were found."""
    prefix: str | None = None
    """The last word, if it was searched as a prefix because it has no match as a word."""


class SearchRequest(msgspec.Struct, frozen=True):
    """A query in a search box, with filters."""

    text: str
    filters: Mapping[str, str] = {}
    newest_first: bool = False
    """Whether the newest comes first, instead of the best."""


def find_page(store: Store, request: SearchRequest, first: int, most: int) -> SearchPage:
    """Return at most `most` results from `first` on; raise QuerySyntaxError for an error in the query.

    If nothing matches, the last word may be incomplete, and is searched as a prefix.
    """
    query = parse_limited(request.text)
    page = _find(store, query, request, first, most)
    last = query.terms[-1] if query.terms else None
    is_word = last is not None and last.kind == "word" and request.text.endswith(last.text)
    if page.sessions or last is None or not is_word or is_symbol_query(query):
        return page
    page = _find(store, parse_query(f"{request.text}*"), request, first, most)
    return msgspec.structs.replace(page, prefix=last.text)


def _find(store: Store, query: Query, request: SearchRequest, first: int, most: int) -> SearchPage:
    limit = max(first + most + 1, COUNTED_UP_TO)
    search, matches = _find_matches(store, query, request, limit, request.filters)
    if request.newest_first:
        matches.sort(key=lambda match: match.ended_at or 0, reverse=True)
    return SearchPage(
        tuple(map(to_result_item, search.load_results(matches[first : first + most]))),
        tuple([match.session for match in matches]),
        is_last=len(matches) <= first + most,
        is_exact=(request.newest_first or len(matches) < limit) and search.is_complete,
    )


def _find_matches(
    store: Store, query: Query, request: SearchRequest, limit: int, filters: Mapping[str, str]
) -> tuple[Search, list[SessionMatch]]:
    """Return the search and its best matches, or all of them if they are going to be sorted by time."""
    conditions = Filters(query.fields)
    conditions.sessions += filter_conditions(filters)
    search = Search(store, query, conditions, open_shared_index(store, matches_project))
    search.symbol_timeout = TIME_LIMIT
    if request.newest_first:
        return search, list(search.find_matches(is_thorough=False))
    return search, list(islice(search.find_matches(limit, is_thorough=False), limit))


def parse_limited(text: str) -> Query:
    """Return the query in a text; raise QuerySyntaxError for so many words that other requests would have to wait."""
    query = parse_query(text)
    terms = [term for clause in query.clauses for term in clause.alternatives]
    if len(terms) > MOST_TERMS:
        raise QuerySyntaxError(
            f"these are more than {MOST_TERMS} words: write fewer", terms[MOST_TERMS].offset
        )
    return query


class SessionSummary(msgspec.Struct, frozen=True):
    """A session in lists and results."""

    session: int
    """Its id in the archive."""
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
    """Whether the agent's file is gone, so that only the archive has the session."""


class _EntryCounts(msgspec.Struct):
    prompts: int = 0
    tool_errors: int = 0


class _Summary(msgspec.Struct):
    counts: _EntryCounts = msgspec.field(default_factory=_EntryCounts)
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    cost_usd: str | None = None


_DECODER = msgspec.json.Decoder(_Summary)


def select_summaries(
    store: Store, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> list[SessionSummary]:
    """Return summaries of the selected sessions, the newest first."""
    return [_to_summary(row) for row in load_summary_rows(store, conditions, limit, offset)]


def load_summaries(store: Store, sessions: Sequence[int]) -> list[SessionSummary]:
    """Return summaries of sessions in the given order; sessions that are gone are left out."""
    summaries = select_summaries(store, [ids_condition(sessions)], len(sessions))
    by_session = {summary.session: summary for summary in summaries}
    return [by_session[session] for session in sessions if session in by_session]


def _to_summary(row: Sequence[Any]) -> SessionSummary:
    agent, kind, root, native_key, project_hash, title, messages, tokens, estimated, subagents, *rest = row
    session, key, parent, ended_at, status, packed, has_file = rest
    summary = _DECODER.decode(unpack_summary(packed))
    return SessionSummary(
        session=session,
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
        prompts=summary.counts.prompts,
        tool_errors=summary.counts.tool_errors,
        models=summary.models,
        tags=summary.tags,
        picos=None if summary.cost_usd is None else int(Decimal(summary.cost_usd) * PICOS),
        subagents=subagents,
        is_gone=kind != "prompts-only" and not has_file,
    )


class ResultRow(msgspec.Struct, frozen=True):
    """A session and its hits."""

    summary: SessionSummary
    hits: tuple[ResultHit, ...] = ()


class PageBounds(msgspec.Struct, frozen=True):
    """The range of rows on a page."""

    first: int
    most: int
    only_rows: bool = False
    """Whether facets and counts by time are left out."""


class SpanCount(NamedTuple):
    """A time with the filters that select it, and the number of conversations in it."""

    name: str
    filters: Mapping[str, str]
    conversations: int


class ResultPage(msgspec.Struct, frozen=True):
    """A page of conversations."""

    rows: tuple[ResultRow, ...]
    count: int
    """The number of conversations, or of those that were found."""
    is_last: bool
    """Whether no rows follow."""
    facets: tuple[Facet, ...] = ()
    spans: tuple[SpanCount, ...] = ()
    is_exact: bool = True
    """Whether there are no more conversations than were counted."""
    prefix: str | None = None
    """The last word of the query, if it was searched as a prefix."""
    related: int = 0
    """The number of subagents and copies in the rows, which are not counted as conversations."""


def common_spans(today: date) -> dict[str, dict[str, str]]:
    """Return the filters of common times, by their names."""
    return {
        "Today": {"since": "today"},
        "Yesterday": {"since": "yesterday", "until": "yesterday"},
        "7 days": {"since": "7d"},
        "30 days": {"since": "30d"},
        "This year": {"since": f"{today.year:04}-01-01"},
    }


def load_list_page(store: Store, filters: Mapping[str, str], bounds: PageBounds) -> ResultPage:
    """Return the newest conversations; raise ValueError for a wrong date."""
    facets = Facets(store, CONVERSATIONS, filters)
    summaries = select_summaries(store, facets.all, bounds.most, bounds.first)
    is_last = facets.count <= bounds.first + bounds.most
    page = ResultPage(tuple(map(ResultRow, summaries)), facets.count, is_last)
    return page if bounds.only_rows else _add_facets(page, facets)


def load_search_page(store: Store, request: SearchRequest, bounds: PageBounds) -> ResultPage:
    """Return the results of a search; raise QuerySyntaxError for an error in the query, ValueError for a wrong date."""
    found = find_page(store, request, bounds.first, bounds.most)
    page = _load_page(store, found.items, found.sessions, is_last=found.is_last, is_exact=found.is_exact)
    page = msgspec.structs.replace(page, prefix=found.prefix)
    if bounds.only_rows:
        return page
    sessions = found.sessions
    if request.filters:  # a facet counts sessions without its own filter
        query = parse_query(request.text if found.prefix is None else f"{request.text}*")
        limit = max(len(found.sessions), COUNTED_UP_TO)
        _, matches = _find_matches(store, query, request, limit, {})
        sessions = tuple([match.session for match in matches])
    return _add_facets(page, Facets(store, [*CONVERSATIONS, ids_condition(sessions)], request.filters))


def load_scan_page(
    store: Store, items: Sequence[ResultItem], bounds: PageBounds, *, is_exact: bool
) -> ResultPage:
    """Return the results of a scan."""
    shown = items[bounds.first : bounds.first + bounds.most]
    sessions = [item.session for item in items]
    is_last = len(items) <= bounds.first + bounds.most
    page = _load_page(store, shown, sessions, is_last=is_last, is_exact=is_exact)
    return _add_facets(page, Facets(store, [*CONVERSATIONS, ids_condition(sessions)], {}))


def _load_page(
    store: Store, items: Sequence[ResultItem], sessions: Sequence[int], *, is_last: bool, is_exact: bool
) -> ResultPage:
    """Return a page with the rows of some items, and with the counts of all sessions that were found."""
    rows = tuple(load_result_rows(store, items))
    count = count_selected(store, [*CONVERSATIONS, ids_condition(sessions)])
    return ResultPage(rows, count, is_last, is_exact=is_exact, related=len(sessions) - count)


def load_result_rows(store: Store, items: Sequence[ResultItem]) -> list[ResultRow]:
    """Return the rows of items; sessions that are gone are left out."""
    hits = {item.session: item.hits for item in items}
    return [ResultRow(summary, hits[summary.session]) for summary in load_summaries(store, list(hits))]


def _add_facets(page: ResultPage, facets: Facets) -> ResultPage:
    spans = common_spans(dates.today())
    counts = facets.count_spans(list(spans.values()))
    pairs = zip(spans.items(), counts, strict=True)
    return msgspec.structs.replace(
        page,
        facets=tuple(facets.load_facets()),
        spans=tuple(SpanCount(name, filters, count) for (name, filters), count in pairs),
    )


MOST_HITS = 100
"""Hits in one session."""


def find_in_session(store: Store, key: str, text: str) -> list[tuple[int, MessageHit]]:
    """Return the hits in one session, each with its seq; raise QuerySyntaxError for an error in the query."""
    query = parse_query(text)
    if not query.terms:
        return []
    return list(Search(store, query, Filters(query.fields)).find_in_session(key, MOST_HITS))
