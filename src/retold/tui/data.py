"""What the browser asks: each question with a connection of its own, so that any thread may ask it."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

import msgspec

from retold.archive.database import RetoldError
from retold.archive.ledger import PRICED_BY
from retold.archive.queries.listing import fates as fate_rows
from retold.archive.store import Store
from retold.archive.sync_state import DAY, due_soon
from retold.export.files import free_path, to_file
from retold.export.formats.registry import ExportOptions
from retold.export.load import document
from retold.export.text.findings import finding_lines
from retold.export.text.report_overview import overview as overview_lines
from retold.export.text.times import zone_name
from retold.maintenance.doctor.checks import checkup
from retold.maintenance.doctor.survey import survey
from retold.maintenance.restore import RestorePlan, Wish, planned, way_on, whole_line, write
from retold.model.session import Session
from retold.reports.stats import overview
from retold.search import dates
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.listing import Scope, unknown_names
from retold.search.query import Field, QuerySyntaxError, parse, parse_unfinished
from retold.search.quick_find import Named, cards
from retold.search.report_query import ReportQuery, span
from retold.search.results import SearchResult
from retold.search.scan_job import BOUND
from retold.sessions.pages import load_slice

StyledLine = Sequence[tuple[str, str]]
MOST_FOUND = 60
"""Conversations that a search of the text adds to the list."""
_TIMES = ("since", "until")


class ArchiveQueries(msgspec.Struct, frozen=True):
    """The archive, and what of it was asked for when the browser was started."""

    folder: str
    filters: tuple[tuple[str, str], ...] = ()
    here: str = ""

    def opened(self) -> Store:
        """Return a connection for one thread."""
        return Store(self.folder)

    def wanted(
        self, scope: Scope, fields: Sequence[Field] = (), *, in_messages: bool = False, times: bool = True
    ) -> Filters:
        """Return what conversations must be like."""
        wanted = Filters(fields)
        for name, value in self.filters:
            if times or name not in _TIMES:
                wanted.add(name, value, in_messages=in_messages)
        if scope.folder is not None:
            wanted.keep_within(scope.folder)
        return wanted


def listed(archive: ArchiveQueries, scope: Scope, limit: int | None = None) -> list[Named]:
    """Return the conversations, the newest first."""
    with archive.opened() as record:
        return cards(record, archive.wanted(scope), limit)


def found(archive: ArchiveQueries, scope: Scope, typed: str) -> list[SearchResult]:
    """Return the conversations in which it is said; raises Unclear for a query that means nothing."""
    query = parse_unfinished(typed)
    with archive.opened() as record:
        wanted = archive.wanted(scope, query.fields, in_messages=True)
        search = Search(record, query, wanted)
        search.patience = BOUND
        return list(search.conversations(MOST_FOUND))


def unknown(archive: ArchiveQueries, typed: str) -> str:
    """Return what the archive does not know of the names in a query; empty where it knows all of them."""
    names = [(field.name, field.value) for field in parse(typed).fields if not field.is_negated]
    with archive.opened() as record:
        return "; ".join(unknown_names(record, names)) if names else ""


def is_plain(typed: str) -> bool:
    """Tell whether only words were typed, which may be part of a name; fields, quotes and what must not occur are not."""
    try:
        query = parse(typed)
    except QuerySyntaxError:
        return False
    words = [term.kind == "word" for term in query.terms]
    is_single = all(len(one.alternatives) == 1 and not one.is_negated for one in query.clauses)
    return not query.fields and is_single and all(words)


def due(archive: ArchiveQueries) -> Iterator[tuple[str, int, int]]:
    """Yield what goes soon: the agent, how many conversations, and within how many days."""
    with archive.opened() as record:
        for one in due_soon(record):
            yield one.agent, one.count, max(0, int(-(-one.seconds // DAY)))


def fates(archive: ArchiveQueries, key: str) -> dict[str, int]:
    """Return how many entries were rewound, compacted or superseded."""
    with archive.opened() as record:
        return {fate: entries for fate, entries, *_ in fate_rows(record, key) if fate != "live"}


def beginning(archive: ArchiveQueries, key: str, first: int, count: int) -> Session | None:
    """Return some entries of a conversation."""
    with archive.opened() as record:
        part = load_slice(record, key, first, count)
        return None if part is None else part.session


def exported(
    archive: ArchiveQueries, key: str, form: str, folder: str, *, is_redacted: bool
) -> tuple[str, int]:
    """Write a conversation into a folder, beside what lies there; return the path and the size."""
    with archive.opened() as record:
        made = document(record, key, form, ExportOptions(is_redacted=is_redacted))
        if made is None:
            raise RetoldError(f"no session {key} in the archive")
        path = free_path(folder, made.name)
        return path, to_file(path, made.pieces)


def resuming(archive: ArchiveQueries, key: str) -> tuple[RestorePlan, str]:
    """Return what going on takes, and the line to type."""
    with archive.opened() as record:
        plan = way_on(record, key, os.environ)
        return plan, whole_line(plan, key)


def restoring(archive: ArchiveQueries, key: str) -> RestorePlan:
    """Return what would be written so that the agent has it again."""
    with archive.opened() as record:
        return planned(record, key, Wish(), os.environ)


def restored(archive: ArchiveQueries, key: str) -> RestorePlan:
    """Write it back; what was shown is planned anew, as the agent may have been at work since."""
    plan = restoring(archive, key)
    write(plan)
    return plan


def stats(archive: ArchiveQueries, scope: Scope, typed: str, columns: int) -> list[StyledLine]:
    """Return what it cost and how it went, as far as filters, scope and the fields that were typed reach."""
    filters = dict(archive.filters)
    asked = span(filters.get("since"), filters.get("until"), is_utc=False)
    with archive.opened() as record:
        if record.fact(PRICED_BY) is None:
            return [[("plain", "The archive has no sums yet: `retold sync` makes them.")]]
        wanted = archive.wanted(scope, _fields(typed), times=False)
        question = ReportQuery(record, wanted, asked, filters.get("model"), filters.get("tool"))
        told = overview(question, zone_name(is_utc=False))
        if not told.total.sessions:
            return [[("plain", "Nothing to count.")]]
        return [list(pieces) for pieces in overview_lines(told, columns)]


def _fields(typed: str) -> Sequence[Field]:
    """Return the fields that were typed, if they are of whole conversations."""
    try:
        return [field for field in parse(typed).fields if field.name not in ("role", "tool", "is")]
    except QuerySyntaxError:
        return ()


def findings(columns: int) -> list[StyledLine]:
    """Return what the doctor says."""
    seen = survey(os.environ)
    try:
        told = list(checkup(seen))
        lines: list[StyledLine] = list(finding_lines(told, seen.now, columns))
        count = seen.conversations
    finally:
        if seen.record is not None:
            seen.record.connection.close()
    if any(finding.is_risk for finding in told):
        return lines
    return [[("title", f"Nothing is at risk: {count:,} sessions are archived.")], *lines]


def now() -> datetime:
    """Return the time, by which ages are told."""
    return dates.now()


T = TypeVar("T")


async def answer(ask: Callable[[], T]) -> T:
    """Return what a function returns that runs in a thread; nothing waits for the thread once nobody wants its answer.

    Not `asyncio.to_thread`: the end of the program would wait for every question that was ever asked.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():  # given up meanwhile
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = ask()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the answer is awaited
            error = raised
        with suppress(RuntimeError):  # the program has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future
