"""Where somebody may want to go who types a few letters: conversations and projects, a few of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from retold.archive.cards import titled_like
from retold.archive.index import Index, kept_index
from retold.archive.index_file import Found
from retold.archive.record import Record
from retold.projects.matching import is_meant
from retold.query.expression import expression
from retold.query.finding import short_query
from retold.query.glances import Glance, glances
from retold.query.holding import Holding, holding_of
from retold.query.language import Query, Unclear, parse
from retold.query.places import Place as Project
from retold.query.places import called, places
from retold.query.ranking import followed, ranked
from retold.query.search import Search
from retold.query.shelf import BASE, Row, held_rows
from retold.query.signs import is_of_signs
from retold.query.wanted import Wanted

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.query.ranking import Ranked

SAID, TITLED, PROJECTS, NEWEST = 6, 4, 3, 8
SHORTEST = 2
"""Letters that say something."""
PATIENCE = 1.0
"""Seconds that a search for signs may take."""
MOST = 30
"""Messages of a file of the index that are looked at."""


class Leap(msgspec.Struct, frozen=True):
    """What is offered."""

    said: Sequence[Row] = ()
    """Conversations in which it was said, each with one place."""
    titled: Sequence[Glance] = ()
    """Others that are called so."""
    projects: Sequence[Project] = ()
    newest: Sequence[Glance] = ()
    """Where nothing was typed yet."""


def leap(record: Record, text: str) -> Leap:
    """Return what is offered for what was typed so far; a query that means nothing yet finds no words, only titles."""
    if not text:
        return Leap(newest=glances(record, BASE, NEWEST))
    if len(text) < SHORTEST:
        return Leap()
    try:
        said = held_rows(record, _said(record, text))
    except Unclear:
        said = []
    known = {row.card.session for row in said}
    named = glances(record, [*BASE, titled_like(text)], SAID + TITLED)
    return Leap(
        said,
        [card for card in named if card.session not in known][:TITLED],
        called(places(record), text)[:PROJECTS],
    )


def _said(record: Record, text: str) -> list[Holding]:
    """Return the best conversations that say it in one message, or else, newest first, those that say what begins so."""
    index = kept_index(record, is_meant)
    query = short_query(text)
    search = Search(record, query, Wanted(query.fields), index)
    if not query.terms:
        return []
    by_id: Ranked = [(session, 1.0, []) for session in search.named()]
    search.patience = PATIENCE
    said = search.found(SAID) if is_of_signs(query) else ranked(search.said(most=MOST))
    found = followed(by_id, said)
    is_word = not query.fields and not is_of_signs(query) and all(not one.is_negated for one in query.clauses)
    if not found and is_word and text.endswith(query.terms[-1].text):
        query = parse(f"{text}*")
        search = Search(record, query, Wanted(), index)
        found = ranked(_begun(index, query))
    told = search.told([(session, score, docs[:1]) for session, score, docs in found[:SAID]])
    return [holding_of(conversation) for conversation in told]


def _begun(index: Index, query: Query) -> Iterable[Found]:
    match = expression(query, has_positions=True)
    return () if match is None else index.at_once(lambda file: file.latest(match, MOST))
