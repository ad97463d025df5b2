"""`retold sql`: questions in SQL, on views of the archive that it cannot change."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.archive.sql import Value
    from retold.cli.console import Console

SECONDS, MOST_SECONDS = 30.0, 86_400.0
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d+)?")
"""What is given back as it was typed: no zeros before it, and no more digits than SQLite takes."""
_WRONG = 2


def arguments(parser: ArgumentParser) -> None:
    """Add what `sql` understands."""
    parser.description = (
        "Answer one question in SQLite's SQL, on views of the archive: sessions, messages, tool_calls, requests, files_touched,"
        " problems. Nothing can be changed. Without a query, the views are listed."
    )
    parser.add_argument("query", nargs="?", metavar="QUERY", help="a SELECT, or - for one on stdin")
    parser.add_argument(
        "--set", action="append", type=_binding, metavar="NAME=VALUE", help="what :NAME means in the query; repeatable"
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=_seconds, default=SECONDS, metavar="SECONDS", help="how long it may take (30)"
    )
    parser.add_argument(
        "--tables", nargs="?", const="", metavar="VIEW", help="list the views, or the columns of one"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per row")
    form.add_argument(
        "--csv", action="store_true", help="rows for spreadsheets, below the names of the columns"
    )


def run(options: Namespace, console: Console) -> int:
    """Print the answer; 0 also if it has no rows."""
    form = "json" if options.json else "csv" if options.csv else "table"
    if options.query is not None and options.tables is not None:
        console.tell("retold: a query, or --tables: one at a time")
        return _WRONG
    if options.query is None:
        return _listed(options.tables or "", form, console)
    from retold.archive.sql import QueryClock, QueryError, QueryResult
    from retold.cli.archive import opened
    from retold.cli.sql import print_answer, typed_query

    values = dict(options.set or ())
    try:
        query = typed_query(options.query)
        with opened(console) as record:
            print_answer(QueryResult(record, query, values, QueryClock(options.timeout)), form, console)
    except QueryError as error:
        console.tell(f"retold: {' '.join(str(error).split())}")
        return _WRONG
    return 0


def _listed(view: str, form: str, console: Console) -> int:
    """Print the views, or the columns of one."""
    from retold.archive.sql import VIEWS
    from retold.export.text.sql_results import (
        column_lines,
        column_rows,
        csv_line,
        json_line,
        view_lines,
        view_rows,
    )

    view = view.lower()
    if view and view not in VIEWS:
        console.tell(f"retold: no view {view}: there are {', '.join(VIEWS)}")
        return _WRONG
    names, *rows = column_rows(view) if view else view_rows()
    if form == "json":
        for row in rows:
            console.record(json_line(names, row))
    elif form == "csv":
        console.lines(csv_line(row) for row in (names, *rows))
    else:
        console.lines(column_lines(view, console.columns) if view else view_lines(console.columns))
    return 0


def _binding(text: str) -> tuple[str, Value]:
    """Return a name and its value: what is written as a number is one, all else is text."""
    from argparse import ArgumentTypeError

    from retold.archive.store import as_text

    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    number = _NUMBER.fullmatch(value)
    if number is None:
        return name, as_text(value)
    return name, float(value) if number[2] else int(value)


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= MOST_SECONDS:
        raise ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds
