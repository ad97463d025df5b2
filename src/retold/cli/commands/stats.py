"""`retold stats`: what it cost and how it went."""

from __future__ import annotations

from retold.archive.ledger import PRICED_BY
from retold.cli.archive import opened
from retold.cli.options import add_filters, filter_arguments, tell_unknown
from retold.export.text.times import zone_name
from retold.reports.stats import basis, lines, overview, titles, tools
from retold.search.report_query import BY

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.export.text.grid import Pieces
    from retold.search.report_query import ReportQuery


TIMES = ("since", "until")
"""Filters that here mean requests, and not whole sessions."""


def arguments(parser: ArgumentParser) -> None:
    """Add what `stats` understands."""
    parser.description = (
        "Tokens, money, time, tools and errors. Every request counts once, however many copies there are of it, and also"
        " if it was rewound or failed: it was paid for. Days are those of this machine's time zone."
    )
    parser.add_argument("--by", choices=BY, help="a line for each; without it, an overview")
    parser.add_argument(
        "--explain", action="store_true", help="the arithmetic: each request that the figures are made of"
    )
    parser.add_argument("--utc", action="store_true", help="days, weeks and months as they are in UTC")
    filter_arguments(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="one JSON object per line of the report; by day if not told"
    )
    form.add_argument("--csv", action="store_true", help="the same as a table for spreadsheets")


def run(options: Namespace, console: Console) -> int:
    """Print the report; 1 if there is nothing to report."""
    from retold.cli.project_names import project_finder
    from retold.search.filters import Filters
    from retold.search.report_query import ReportQuery, span

    if options.explain and (options.by == "tool" or options.csv):
        console.tell("retold: --explain tells of requests: not by tool, and not as CSV")
        return 2
    asked = span(options.since, options.until, is_utc=bool(options.utc))
    with counted(console) as record:
        wanted = add_filters(Filters(find_project=project_finder(record, console)), options, without=TIMES)
        code = _told(ReportQuery(record, wanted, asked, options.model, options.tool), options, console)
        if code == 1:
            tell_unknown(record, options, console)
        return code


def _told(question: ReportQuery, options: Namespace, console: Console) -> int:

    if options.explain:
        tell = print_requests if options.json else explain
        return tell(question, options.by or "day", console)
    if options.json:
        return print_json(question, options.by or "day", console)
    if options.csv:
        return print_csv(question, options.by or "day", console)
    if options.by:
        return print_table(question, options.by, console)
    return print_overview(question, console)


def counted(console: Console) -> Store:
    """Return the archive with its sums; it is brought up to date first if it does not exist or has no sums yet."""
    record = opened(console)
    if record.fact(PRICED_BY) is not None:
        return record
    record.connection.close()
    from retold.cli.progress import coverage_line, run_sync

    console.tell("retold: the archive has no sums yet: bringing it up to date")
    console.tell(coverage_line(run_sync(console)))
    return opened(console)


def print_overview(question: ReportQuery, console: Console) -> int:
    """Print what is told of a period at once."""
    from retold.export.text.report_overview import overview as shown

    told = overview(question, zone_name(is_utc=question.span.is_utc))
    if not told.total.sessions:
        return _nothing(console)
    return _print(shown(told, console.columns), console)


def print_table(question: ReportQuery, by: str, console: Console) -> int:
    """Print a line for each thing."""
    from retold.export.text.report_table import table

    found = lines(question, by)
    if not found:
        return _nothing(console)
    shown = table(
        found,
        by,
        console.columns,
        total=next(iter(lines(question, "all")), None),
        basis=basis(question, zone_name(is_utc=question.span.is_utc)),
        titles=titles(question, (line.of for line in found)) if by == "session" else None,
        tools={tool.name: tool for tool in tools(question)} if by == "tool" else None,
    )
    return _print(shown, console)


def print_json(question: ReportQuery, by: str, console: Console) -> int:
    """Print an object for each thing."""
    from retold.export.text.report_data import line_json

    found = lines(question, by)
    took = {tool.name: tool for tool in tools(question)} if by == "tool" else {}
    zone = zone_name(is_utc=question.span.is_utc)
    for line in found:
        console.record(line_json(line, by, zone, took.get(line.of)))
    return 0 if found else _nothing(console)


def print_csv(question: ReportQuery, by: str, console: Console) -> int:
    """Print a row for each thing."""
    from retold.export.text.report_data import csv_lines

    found = lines(question, by)
    console.lines(csv_lines(found, by))
    return 0 if found else _nothing(console)


def explain(question: ReportQuery, by: str, console: Console) -> int:
    """Print each request that a report is made of, below what it counts for."""
    from itertools import groupby
    from operator import itemgetter

    from retold.export.text.report_table import basis_notes
    from retold.export.text.report_table import explained as shown
    from retold.model.report import Spend
    from retold.reports.requests import explained

    found = {line.of: line for line in lines(question, by)}
    if not found:
        return _nothing(console)
    names = titles(question, found) if by == "session" else {}
    for of, requests in groupby(explained(question, by), key=itemgetter(0)):
        _print(
            shown(found[of], (request for _, request in requests), console.columns, names.get(of)), console
        )
    rests_on = basis(question, zone_name(is_utc=question.span.is_utc))
    return _print(basis_notes(rests_on, Spend(), console.columns), console)


def print_requests(question: ReportQuery, by: str, console: Console) -> int:
    """Print an object for each request that a report is made of."""
    from retold.export.text.report_data import request_json
    from retold.reports.requests import explained

    code = 1
    for of, request in explained(question, by):
        console.record(request_json(request, by, of))
        code = 0
    return _nothing(console) if code else 0


def _print(shown: Iterable[Pieces], console: Console) -> int:
    for pieces in shown:
        console.pieces(pieces)
    return 0


def _nothing(console: Console) -> int:
    console.tell("retold: nothing to count")
    return 1
