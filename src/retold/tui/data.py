"""Queries of the terminal browser. Each opens a connection of its own, so that any thread may run it."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from retold.archive.database import RetoldError
from retold.archive.ledger import PRICED_BY
from retold.archive.queries.listing import count_fates
from retold.archive.store import Store
from retold.export.files import free_path, write_file
from retold.export.formats.registry import ExportOptions
from retold.export.load import load_document
from retold.export.text.findings import format_findings
from retold.export.text.formatting import StyledLine, zone_name
from retold.export.text.report_overview import format_overview
from retold.maintenance.doctor.checks import run_checks
from retold.maintenance.doctor.survey import make_survey
from retold.maintenance.restore import (
    RestoreOptions,
    RestorePlan,
    format_full_command,
    plan_restore,
    plan_resume,
    write_plan,
)
from retold.model.session import Session
from retold.reports.stats import ReportQuery, parse_span, report_overview
from retold.search.engine import Search
from retold.search.filters import Filters
from retold.search.listing import FolderScope, unknown_name_messages
from retold.search.query import Field, QuerySyntaxError, parse_query, parse_unfinished
from retold.search.quick_find import TitleEntry, load_cards
from retold.search.results import SearchResult
from retold.search.scan_job import TIME_LIMIT
from retold.sessions.slices import load_slice

MOST_FOUND = 60
"""Sessions that a search in the text adds to the list, at most."""
_TIMES = ("since", "until")


class ArchiveQueries(msgspec.Struct, frozen=True):
    """The archive, the filters of the command line, and the folder in which the browser was started."""

    folder: str
    filters: tuple[tuple[str, str], ...] = ()
    here: str = ""

    def open(self) -> Store:
        """Return a new connection."""
        return Store(self.folder)

    def make_filters(
        self,
        scope: FolderScope,
        fields: Sequence[Field] = (),
        *,
        in_messages: bool = False,
        times: bool = True,
    ) -> Filters:
        """Return the filters of the command line, a scope and the fields of a query."""
        filters = Filters(fields)
        for name, value in self.filters:
            if times or name not in _TIMES:
                filters.add(name, value, in_messages=in_messages)
        if scope.folder is not None:
            filters.add_folder(scope.folder)
        return filters


def load_titles(archive: ArchiveQueries, scope: FolderScope, limit: int | None = None) -> list[TitleEntry]:
    """Return the sessions in scope, the newest first."""
    with archive.open() as store:
        return load_cards(store, archive.make_filters(scope), limit)


def search_text(archive: ArchiveQueries, scope: FolderScope, typed: str) -> list[SearchResult]:
    """Return the sessions whose text matches; raises QuerySyntaxError for a malformed query."""
    query = parse_unfinished(typed)
    with archive.open() as store:
        filters = archive.make_filters(scope, query.fields, in_messages=True)
        search = Search(store, query, filters)
        search.symbol_timeout = TIME_LIMIT
        return list(search.find(MOST_FOUND))


def unknown_in_query(archive: ArchiveQueries, typed: str) -> str:
    """Return messages about names in a query that the archive does not know; empty if it knows all of them."""
    names = [(field.name, field.value) for field in parse_query(typed).fields if not field.is_negated]
    with archive.open() as store:
        return "; ".join(unknown_name_messages(store, names)) if names else ""


def is_plain(typed: str) -> bool:
    """Return whether a query has only words, which may be part of a title: no fields, quotes or negations."""
    try:
        query = parse_query(typed)
    except QuerySyntaxError:
        return False
    words = [term.kind == "word" for term in query.terms]
    is_single = all(len(one.alternatives) == 1 and not one.is_negated for one in query.clauses)
    return not query.fields and is_single and all(words)


def load_fate_counts(archive: ArchiveQueries, key: str) -> dict[str, int]:
    """Return how many entries have each fate other than `live`."""
    with archive.open() as store:
        return {fate: entries for fate, entries, *_ in count_fates(store, key) if fate != "live"}


def load_entries(archive: ArchiveQueries, key: str, first: int, count: int) -> Session | None:
    """Return a part of a session."""
    with archive.open() as store:
        part = load_slice(store, key, first, count)
        return None if part is None else part.session


def export_to_folder(
    archive: ArchiveQueries, key: str, form: str, folder: str, *, is_redacted: bool
) -> tuple[str, int]:
    """Export a session into a folder, under a new name; return the path and the size."""
    with archive.open() as store:
        document = load_document(store, key, form, ExportOptions(is_redacted=is_redacted))
        if document is None:
            raise RetoldError(f"no session {key} in the archive")
        path = free_path(folder, document.name)
        return path, write_file(path, document.pieces)


def resume_command(archive: ArchiveQueries, key: str) -> tuple[RestorePlan, str]:
    """Return the plan of a resume and the command to type."""
    with archive.open() as store:
        plan = plan_resume(store, key, os.environ)
        return plan, format_full_command(plan, key)


def load_restore_plan(archive: ArchiveQueries, key: str) -> RestorePlan:
    """Return the files that a restore would write."""
    with archive.open() as store:
        return plan_restore(store, key, RestoreOptions(), os.environ)


def write_restored(archive: ArchiveQueries, key: str) -> RestorePlan:
    """Restore a session. The plan is made again, since the agent may have written in the meantime."""
    plan = load_restore_plan(archive, key)
    write_plan(plan)
    return plan


def stats_lines(archive: ArchiveQueries, scope: FolderScope, typed: str, columns: int) -> list[StyledLine]:
    """Return the overview of the sessions in scope, filtered by the command line and by typed fields."""
    filters = dict(archive.filters)
    span = parse_span(filters.get("since"), filters.get("until"), is_utc=False)
    with archive.open() as store:
        if store.fact(PRICED_BY) is None:
            return [[("plain", "The archive has no sums yet: `retold sync` makes them.")]]
        selected = archive.make_filters(scope, _session_fields(typed), times=False)
        query = ReportQuery(store, selected, span, filters.get("model"), filters.get("tool"))
        report = report_overview(query, zone_name(is_utc=False))
        if not report.total.sessions:
            return [[("plain", "Nothing to count.")]]
        return list(format_overview(report, columns))


def _session_fields(typed: str) -> Sequence[Field]:
    """Return the typed fields that apply to whole sessions."""
    try:
        return [field for field in parse_query(typed).fields if field.name not in ("role", "tool", "is")]
    except QuerySyntaxError:
        return ()


def health_lines(columns: int) -> list[StyledLine]:
    """Return the findings of `doctor`."""
    survey = make_survey(os.environ)
    try:
        findings = list(run_checks(survey))
        lines = list(format_findings(findings, survey.now, columns))
        count = survey.conversations
    finally:
        if survey.record is not None:
            survey.record.connection.close()
    if any(finding.is_risk for finding in findings):
        return lines
    return [[("title", f"Nothing is at risk: {count:,} sessions are archived.")], *lines]


T = TypeVar("T")


async def run_in_thread(function: Callable[[], T]) -> T:
    """Return what a function returns in a thread of its own. A cancelled call does not wait for the thread.

    Not `asyncio.to_thread`: the end of the program would wait for every thread of its executor.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():  # the call was cancelled
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = function()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
            error = raised
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future
