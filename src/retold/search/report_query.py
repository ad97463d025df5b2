"""What is asked for in a report: of which sessions, of what time, and of which models and tools in them."""

from __future__ import annotations

from retold.archive.queries.conditions import LISTED, of_tool, register_functions
from retold.archive.queries.reports import QUARTER, TIMES, QuarterSpan, of_model
from retold.projects.matching import is_meant

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from retold.archive.queries.conditions import Condition
    from retold.archive.store import Store
    from retold.search.filters import Filters


BY = (*TIMES, "model", "project", "agent", "tool", "session")
UNKNOWN = "unknown"
"""What a thing is called of which nothing tells what it is."""


class ReportQuery:
    """What is asked for: of which sessions, of what time, and of which models and tools in them."""

    is_exact = False
    """Whether a tool's name means that tool alone, although a kind of tools has the same name in lower case."""

    def __init__(
        self,
        record: Store,
        wanted: Filters,
        span: QuarterSpan,
        model: str | None = None,
        tool: str | None = None,
    ) -> None:
        self.record, self.span = record, span
        register_functions(record.connection, is_meant)
        self.sessions = [*wanted.sessions, LISTED]
        """Checkpoints and captures are copies of what was said elsewhere: they cost nothing."""
        self._model, self._tool = model, tool

    @property
    def chooses_calls(self) -> bool:
        """Whether not all calls of the sessions are meant."""
        return self._model is not None or self._tool is not None

    def of_requests(self, table: str) -> list[Condition]:
        """Return what must hold of requests, or of sums of them."""
        if self._model is None:
            return self.sessions
        return [*self.sessions, of_model(table, self._model)]

    def of_calls(self) -> list[Condition]:
        """Return what must hold of calls of tools."""
        if self._tool is None:
            return self.of_requests("used")
        called = of_tool(self._tool, "used.tool", canonical="used.canonical", is_exact=self.is_exact)
        return [*self.of_requests("used"), called]


def span(since: str | None, until: str | None, *, is_utc: bool) -> QuarterSpan:
    """Return the time that dates mean, as people type them; raises ValueError for what is no date."""
    if since is None and until is None:
        return QuarterSpan(is_utc=is_utc)
    from retold.search.dates import now, parse_since, parse_until

    at = now()
    begin = None if since is None else int(parse_since(since, at, is_utc=is_utc).timestamp() // QUARTER)
    end = None if until is None else -int(-parse_until(until, at, is_utc=is_utc).timestamp() // QUARTER)
    return QuarterSpan(begin, end, is_utc=is_utc)
