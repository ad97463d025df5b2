"""Where in one session something is said."""

from __future__ import annotations

from retold.query.language import parse
from retold.query.search import Search
from retold.query.wanted import Wanted

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.archive.record import Record
    from retold.query.hits import Hit

MOST = 100
"""Places that are told of."""


def found_inside(record: Record, key: str, text: str) -> list[tuple[int, Hit]]:
    """Return the places in a session's timeline, in its order; raises Unclear for a query that means nothing."""
    query = parse(text)
    return list(Search(record, query, Wanted(query.fields)).within(key, MOST)) if query.terms else []
