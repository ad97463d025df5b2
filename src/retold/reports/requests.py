"""How the figures of a report came about: every request, and what was multiplied."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from retold.archive.ledger import kept_rates
from retold.archive.queries.conditions import of_key
from retold.archive.queries.reports import QuarterSpan, request_rows
from retold.model.rates import rates_from
from retold.model.report import FIGURES, ReportRequest
from retold.search.dates import local
from retold.search.filters import Filters
from retold.search.report_query import UNKNOWN, ReportQuery

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.store import Store


_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def explained(
    question: ReportQuery, by: str, page: tuple[int, int] = (-1, 0)
) -> Iterator[tuple[str, ReportRequest]]:
    """Yield each request that a report by something is made of, with what it counts for and how its price came about."""
    known = {model: rates_from(told) for model, told in kept_rates(question.record).items() if told}
    asked = request_rows(question.record, by, question.span, question.of_requests("requests"), page)
    for of, session, message, agent, model, at, estimated, picos, *figures in asked:
        rates = None if picos is None else known.get(model)
        charges = None if rates is None else rates.charges(at, figures)
        yield (
            of or UNKNOWN,
            ReportRequest(
                session,
                agent,
                dict(zip(FIGURES, figures, strict=True)),
                message=message,
                model=model,
                at=None if at is None else _moment(_BEGIN + timedelta(microseconds=at), question.span),
                estimated=bool(estimated),
                picos=picos,
                parts=charges or (),
                over=0 if rates is None else rates.over(at, figures),
            ),
        )


def _moment(at: datetime, span: QuarterSpan) -> datetime:
    return at if span.is_utc else local(at)


def requests_of(record: Store, key: str) -> Iterator[ReportRequest]:
    """Yield the requests that a session made itself, in their order, each with what was multiplied."""
    wanted = Filters()
    wanted.sessions.append(of_key(key))
    return (request for _, request in explained(ReportQuery(record, wanted, QuarterSpan()), "session"))
