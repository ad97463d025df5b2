"""What was learned before: conversations that come closest to a question, each with what in it answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from retold.archive.index.reader import kept_index
from retold.archive.queries.conditions import Condition
from retold.archive.store import Store
from retold.insights.decisions import Decision
from retold.insights.digest import Gleaned, gleaning
from retold.insights.failures import CallFailure
from retold.projects.matching import is_meant
from retold.search.filters import Filters
from retold.search.query import plain_query
from retold.search.questions import Fit
from retold.search.recall import Recall
from retold.search.scan_job import ResultItem, holding_of

T = TypeVar("T")
MOST = 50
"""Conversations that are recalled for one question."""
_SURE, _WORTH = 5, 0.3
"""So many are told however little they have of the question; of others, those that have this part of what the best one has."""
_FEW = 3
"""Things of one conversation that are told."""


class PastQuestion(msgspec.Struct, frozen=True):
    """What somebody wants to know, and of which sessions."""

    text: str
    conditions: Sequence[Condition]
    clean: Callable[[str], str] | None = None
    """Takes secrets out of the text around a place."""


class PastAnswer(msgspec.Struct, frozen=True):
    """A conversation, where in it the words stand, and what it comes to."""

    holding: ResultItem
    failures: tuple[CallFailure, ...] = ()
    decisions: tuple[Decision, ...] = ()


def fixes(record: Store, question: PastQuestion, first: int = 0) -> Iterator[PastAnswer]:
    """Yield conversations that may tell how something was mended, with what failed in them."""
    recall = _recall(record, question)
    fit = Fit(recall.words)
    for holding, found in _recalled(record, recall, first):
        best = _best(found.failures, lambda one: _of_failure(fit, one))
        yield PastAnswer(holding, failures=best)


def decided(record: Store, question: PastQuestion, first: int = 0) -> Iterator[PastAnswer]:
    """Yield conversations in which something was decided about it."""
    recall = _recall(record, question)
    fit = Fit(recall.words)
    for holding, found in _recalled(record, recall, first):
        yield PastAnswer(holding, decisions=_best(found.decisions, lambda one: fit.of(one.text, one.context)))


def _recall(record: Store, question: PastQuestion) -> Recall:
    """Return the search for a question: an error message may hold colons, quotes and dashes, and none of them means anything."""
    wanted = Filters()
    wanted.sessions += question.conditions
    index = kept_index(record, is_meant)
    return Recall(record, plain_query(question.text), wanted, index, question.clean)


def _recalled(record: Store, recall: Recall, first: int) -> Iterator[tuple[ResultItem, Gleaned]]:
    """Yield what comes closest, with all that it comes to: that is read only as far as it is asked for."""
    if not recall.words:  # the newest would be told, as if they were an answer
        return
    for place, conversation in enumerate(recall.conversations(MOST)):
        if place >= _SURE and conversation.score < _WORTH:
            return
        if place < first:
            continue
        gleaned = gleaning(record, conversation.key)
        yield holding_of(conversation), Gleaned() if gleaned is None else gleaned.gleaned


def _of_failure(fit: Fit, failure: CallFailure) -> float:
    """Return how well a failure fits; where something mended it, what was said and done then counts as well."""
    fix = failure.fix
    told = fit.of(failure.target, failure.error, failure.tool)
    if fix is None:
        return told
    return told + fit.of(failure.target, failure.error, fix.before, fix.after, *fix.files, *fix.commands)


def _best(found: Sequence[T], worth: Callable[[T], float]) -> tuple[T, ...]:
    """Return the few that fit best, in their order; none that does not fit at all."""
    worths = [(worth(one), place) for place, one in enumerate(found)]
    best = sorted(worths, key=lambda one: (-one[0], one[1]))[:_FEW]
    return tuple(found[place] for _, place in sorted(best, key=lambda one: one[1]) if worths[place][0] > 0)
