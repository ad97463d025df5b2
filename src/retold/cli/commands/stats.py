"""`retold stats`: what it cost and how it went."""

from __future__ import annotations

from retold.cli.filters import add_filters, filter_arguments, tell_unknown
from retold.search.report_query import BY

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
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
    from retold.cli.stats import counted
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
    from retold.cli import stats

    if options.explain:
        tell = stats.print_requests if options.json else stats.explain
        return tell(question, options.by or "day", console)
    if options.json:
        return stats.print_json(question, options.by or "day", console)
    if options.csv:
        return stats.print_csv(question, options.by or "day", console)
    if options.by:
        return stats.print_table(question, options.by, console)
    return stats.print_overview(question, console)
