"""Asks an archive in plain words, as `retold search --any` does."""

from collections.abc import Callable, Sequence

from retold.archive.index.reader import Index
from retold.archive.queries.listing import Condition
from retold.archive.store import Store
from retold.search.filters import Filters
from retold.search.query import parse_question
from retold.search.recall import Recall
from retold.search.results import SearchResult


def recalled(  # noqa: PLR0913 - a question, where it is asked, and how it is answered
    record: Store,
    question: str,
    conditions: Sequence[Condition],
    limit: int,
    *,
    index: Index | None = None,
    clean: Callable[[str], str] | None = None,
) -> list[SearchResult]:
    """Return the conversations that come closest to a question, the best first."""
    query = parse_question(question)
    wanted = Filters(query.fields)
    wanted.sessions += conditions
    return list(Recall(record, query, wanted, index, clean).find(limit))
