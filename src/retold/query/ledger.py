"""The ledger of one session: every request that its tokens and its cost are the sum of."""

from __future__ import annotations

from retold.archive.queries.conditions import of_key
from retold.archive.queries.reports import QuarterSpan
from retold.query.arithmetic import explained
from retold.query.question import ReportQuery
from retold.query.wanted import Filters

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.store import Store
    from retold.model.report import ReportRequest


def requests_of(record: Store, key: str) -> Iterator[ReportRequest]:
    """Yield the requests that a session made itself, in their order, each with what was multiplied."""
    wanted = Filters()
    wanted.sessions.append(of_key(key))
    return (request for _, request in explained(ReportQuery(record, wanted, QuarterSpan()), "session"))
