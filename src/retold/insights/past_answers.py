"""Past answers: the conversations closest to a question, with the failures or decisions in them that answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from retold.archive.index.reader import open_shared_index
from retold.archive.queries.listing import Condition
from retold.archive.store import Store
from retold.insights.decisions import Decision
from retold.insights.digest import Insights, load_insights
from retold.insights.failures import CallFailure
from retold.projects.matching import matches_project
from retold.search.filters import Filters
from retold.search.query import literal_query
from retold.search.recall import KeywordCoverage, Recall
from retold.search.scan_job import ResultItem, to_result_item

T = TypeVar("T")
MOST = 50
"""Conversations that are searched for one question."""
_ALWAYS, _LEAST_SCORE = 5, 0.3
"""Conversations that are returned whatever their scores, and the score that others need."""
_FEW = 3
"""Failures or decisions of one conversation that are returned."""


class PastQuestion(msgspec.Struct, frozen=True):
    """A question about past sessions."""

    text: str
    conditions: Sequence[Condition]
    """The conditions of the sessions."""
    clean: Callable[[str], str] | None = None
    """Removes secrets from the text around a match."""


class PastAnswer(msgspec.Struct, frozen=True):
    """A conversation with its matches, and the failures or decisions that answer the question."""

    result: ResultItem
    failures: tuple[CallFailure, ...] = ()
    decisions: tuple[Decision, ...] = ()


def find_fixes(store: Store, question: PastQuestion, first: int = 0) -> Iterator[PastAnswer]:
    """Yield conversations with failures, and fixes, that match a question."""
    recall = _recall(store, question)
    coverage = KeywordCoverage(recall.words)
    for result, insights in _find(store, recall, first):
        best = _best(insights.failures, lambda one: _score_failure(coverage, one))
        yield PastAnswer(result, failures=best)


def find_decisions(store: Store, question: PastQuestion, first: int = 0) -> Iterator[PastAnswer]:
    """Yield conversations with decisions that match a question."""
    recall = _recall(store, question)
    coverage = KeywordCoverage(recall.words)
    for result, insights in _find(store, recall, first):
        best = _best(insights.decisions, lambda one: coverage.score(one.text, one.context))
        yield PastAnswer(result, decisions=best)


def _recall(store: Store, question: PastQuestion) -> Recall:
    """Return the search for a question, without query syntax: an error message may contain colons, quotes and dashes."""
    filters = Filters()
    filters.sessions += question.conditions
    index = open_shared_index(store, matches_project)
    return Recall(store, literal_query(question.text), filters, index, question.clean)


def _find(store: Store, recall: Recall, first: int) -> Iterator[tuple[ResultItem, Insights]]:
    """Yield the closest conversations from one on with their insights, which are read as they are needed."""
    if not recall.words:  # the search would return the newest conversations
        return
    for rank, conversation in enumerate(recall.find(MOST)):
        if rank >= _ALWAYS and conversation.score < _LEAST_SCORE:
            return
        if rank >= first:
            found = load_insights(store, conversation.key)
            yield to_result_item(conversation), Insights() if found is None else found.insights


def _score_failure(coverage: KeywordCoverage, failure: CallFailure) -> float:
    """Return how well a failure matches, and its fix if it has one."""
    fix = failure.fix
    score = coverage.score(failure.target, failure.error, failure.tool)
    if fix is None:
        return score
    return score + coverage.score(
        failure.target, failure.error, fix.before, fix.after, *fix.files, *fix.commands
    )


def _best(items: Sequence[T], score_of: Callable[[T], float]) -> tuple[T, ...]:
    """Return the few items with the best scores, in their order; none with score 0."""
    scores = [(score_of(item), index) for index, item in enumerate(items)]
    best = sorted(scores, key=lambda one: (-one[0], one[1]))[:_FEW]
    return tuple(items[index] for score, index in sorted(best, key=lambda one: one[1]) if score > 0)
