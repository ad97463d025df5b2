"""Where somebody may want to go who types a few letters: conversations and projects, a few of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from retold.archive.index.reader import kept_index
from retold.archive.queries.listing import titled_like
from retold.archive.store import Store
from retold.projects.matching import is_meant
from retold.query.finding import short_query
from retold.query.glances import SessionSummary, glances
from retold.query.holding import ResultItem, holding_of
from retold.query.language import QuerySyntaxError, parse
from retold.query.places import ProjectPlace, called, places
from retold.query.search import Search
from retold.query.shelf import BASE, ResultRow, held_rows
from retold.query.signs import is_of_signs
from retold.query.wanted import Filters

SAID, TITLED, PROJECTS, NEWEST = 6, 4, 3, 8
SHORTEST = 2
"""Letters that say something."""
PATIENCE = 1.0
"""Seconds that a search for signs may take."""


class QuickFind(msgspec.Struct, frozen=True):
    """What is offered."""

    said: Sequence[ResultRow] = ()
    """Conversations in which it was said, each with one place."""
    titled: Sequence[SessionSummary] = ()
    """Others that are called so."""
    projects: Sequence[ProjectPlace] = ()
    newest: Sequence[SessionSummary] = ()
    """Where nothing was typed yet."""


def leap(record: Store, text: str) -> QuickFind:
    """Return what is offered for what was typed so far; a query that means nothing yet finds no words, only titles."""
    if not text:
        return QuickFind(newest=glances(record, BASE, NEWEST))
    if len(text) < SHORTEST:
        return QuickFind()
    try:
        said = held_rows(record, _said(record, text))
    except QuerySyntaxError:
        said = []
    known = {row.card.session for row in said}
    named = glances(record, [*BASE, titled_like(text)], SAID + TITLED)
    return QuickFind(
        said,
        [card for card in named if card.session not in known][:TITLED],
        called(places(record), text)[:PROJECTS],
    )


def _said(record: Store, text: str) -> list[ResultItem]:
    """Return the best conversations with all words in one message, or else those with words that begin so."""
    index = kept_index(record, is_meant)
    query = short_query(text)
    search = Search(record, query, Filters(query.fields), index)
    if not query.terms:
        return []
    search.patience = PATIENCE
    found = list(islice(search.near(SAID), SAID))
    is_word = not query.fields and not is_of_signs(query) and all(not one.is_negated for one in query.clauses)
    if not found and is_word and text.endswith(query.terms[-1].text):
        query = parse(f"{text}*")
        search = Search(record, query, Filters(), index)
        found = list(islice(search.latest(), SAID))
    return [
        msgspec.structs.replace(one, places=one.places[:1]) for one in map(holding_of, search.told(found))
    ]
