"""Where in one session something is said."""

from __future__ import annotations

from retold.query.language import parse
from retold.query.search import Search
from retold.query.wanted import Filters

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.archive.store import Store
    from retold.query.hits import MessageHit

MOST = 100
"""Places that are told of."""


def found_inside(record: Store, key: str, text: str) -> list[tuple[int, MessageHit]]:
    """Return the places in a session's timeline, in its order; raises Unclear for a query that means nothing."""
    query = parse(text)
    return list(Search(record, query, Filters(query.fields)).within(key, MOST)) if query.terms else []
