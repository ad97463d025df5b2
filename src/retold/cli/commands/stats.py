"""`retold stats`: reports on tokens, money, tools, errors and time."""

from __future__ import annotations

from retold.archive.ledger import PRICED_BY
from retold.cli.archive import open_archive
from retold.cli.options import add_filter_arguments, make_filters, warn_of_unknown_names
from retold.export.text.formatting import zone_name
from retold.reports.stats import (
    GROUPINGS,
    report_basis,
    report_lines,
    report_overview,
    report_tools,
    session_labels,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.export.text.formatting import StyledLine
    from retold.reports.stats import ReportQuery


TIMES = ("since", "until")
"""Filters that select requests here, not whole sessions."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `stats`."""
    parser.description = (
        "Tokens, money, time, tools and errors. Every request counts once, however many copies there are of it, and also"
        " if it was rewound or failed: it was paid for. Days are those of this machine's time zone."
    )
    parser.add_argument("--by", choices=GROUPINGS, help="a line for each; without it, an overview")
    parser.add_argument(
        "--explain", action="store_true", help="the arithmetic: each request that the figures are made of"
    )
    parser.add_argument("--utc", action="store_true", help="days, weeks and months as they are in UTC")
    add_filter_arguments(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="one JSON object per line of the report; by day if not told"
    )
    form.add_argument("--csv", action="store_true", help="the same as a table for spreadsheets")


def run(options: Namespace, console: Console) -> int:
    """Print the report; 1 if there is nothing to report."""
    from retold.reports.stats import ReportQuery, parse_span

    if options.explain and (options.by == "tool" or options.csv):
        console.notice("retold: --explain tells of requests: not by tool, and not as CSV")
        return 2
    span = parse_span(options.since, options.until, is_utc=bool(options.utc))
    with open_with_totals(console) as record:
        filters = make_filters(record, options, console, without=TIMES)
        query = ReportQuery(record, filters, span, options.model, options.tool)
        code = _print_report(query, options, console)
        if code == 1:
            warn_of_unknown_names(record, options, console)
        return code


def _print_report(query: ReportQuery, options: Namespace, console: Console) -> int:
    if options.explain:
        explain = print_requests if options.json else print_explanation
        return explain(query, options.by or "day", console)
    if options.json:
        return print_json(query, options.by or "day", console)
    if options.csv:
        return print_csv(query, options.by or "day", console)
    if options.by:
        return print_table(query, options.by, console)
    return print_overview(query, console)


def open_with_totals(console: Console) -> Store:
    """Return the archive; sync first if it does not exist or has no sums yet."""
    record = open_archive(console)
    if record.fact(PRICED_BY) is not None:
        return record
    record.connection.close()
    from retold.cli.progress import format_coverage, run_sync

    console.notice("retold: the archive has no sums yet: bringing it up to date")
    console.notice(format_coverage(run_sync(console)))
    return open_archive(console)


def print_overview(query: ReportQuery, console: Console) -> int:
    """Print the overview of a period."""
    from retold.export.text.report_overview import format_overview

    overview = report_overview(query, zone_name(is_utc=query.span.is_utc))
    if not overview.total.sessions:
        return _report_nothing(console)
    return _write_rows(format_overview(overview, console.columns), console)


def print_table(query: ReportQuery, by: str, console: Console) -> int:
    """Print a table with a line for each day, model, project ..., as `by` says."""
    from retold.export.text.report_table import format_report

    found = report_lines(query, by)
    if not found:
        return _report_nothing(console)
    rows = format_report(
        found,
        by,
        console.columns,
        total=next(iter(report_lines(query, "all")), None),
        basis=report_basis(query, zone_name(is_utc=query.span.is_utc)),
        titles=session_labels(query, (line.of for line in found)) if by == "session" else None,
        tools={tool.name: tool for tool in report_tools(query)} if by == "tool" else None,
    )
    return _write_rows(rows, console)


def print_json(query: ReportQuery, by: str, console: Console) -> int:
    """Print a JSON object for each line of the report."""
    from retold.export.text.report_data import line_json

    found = report_lines(query, by)
    took = {tool.name: tool for tool in report_tools(query)} if by == "tool" else {}
    zone = zone_name(is_utc=query.span.is_utc)
    for line in found:
        console.write_json(line_json(line, by, zone, took.get(line.of)))
    return 0 if found else _report_nothing(console)


def print_csv(query: ReportQuery, by: str, console: Console) -> int:
    """Print a CSV row for each line of the report."""
    from retold.export.text.report_data import csv_lines

    found = report_lines(query, by)
    console.write_lines(csv_lines(found, by))
    return 0 if found else _report_nothing(console)


def print_explanation(query: ReportQuery, by: str, console: Console) -> int:
    """Print the lines of the report, and below each the requests in it."""
    from itertools import groupby
    from operator import itemgetter

    from retold.export.text.report_table import format_basis_notes, format_explanation
    from retold.model.report import Spend
    from retold.reports.stats import explain_requests

    found = {line.of: line for line in report_lines(query, by)}
    if not found:
        return _report_nothing(console)
    names = session_labels(query, found) if by == "session" else {}
    for of, requests in groupby(explain_requests(query, by), key=itemgetter(0)):
        rows = (request for _, request in requests)
        _write_rows(format_explanation(found[of], rows, console.columns, names.get(of)), console)
    basis = report_basis(query, zone_name(is_utc=query.span.is_utc))
    return _write_rows(format_basis_notes(basis, Spend(), console.columns), console)


def print_requests(query: ReportQuery, by: str, console: Console) -> int:
    """Print a JSON object for each request in the report."""
    from retold.export.text.report_data import request_json
    from retold.reports.stats import explain_requests

    code = 1
    for of, request in explain_requests(query, by):
        console.write_json(request_json(request, by, of))
        code = 0
    return _report_nothing(console) if code else 0


def _write_rows(rows: Iterable[StyledLine], console: Console) -> int:
    for pieces in rows:
        console.write_styled(pieces)
    return 0


def _report_nothing(console: Console) -> int:
    console.notice("retold: nothing to count")
    return 1
