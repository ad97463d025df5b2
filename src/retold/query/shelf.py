"""A page of conversations, listed or found: each at a glance, how many there are, and by what they can be narrowed down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from retold.archive.queries.conditions import CONVERSATIONS
from retold.archive.queries.listing import among, count_of
from retold.archive.store import Store
from retold.query import dates
from retold.query.facets import Facet, Facets
from retold.query.finding import SearchRequest, everything_found, finding
from retold.query.glances import SessionSummary, glances, glances_of
from retold.query.holding import ResultItem, ResultPlace

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
