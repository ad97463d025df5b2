"""`retold sql`: run a read-only SQL query on the views of the archive."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # importing `signal` takes half a millisecond longer
import _thread
import os
import sys

from retold.archive.sql import LONGEST_QUERY
from retold.cli.main import EXIT_INTERRUPTED, EXIT_MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Self

    from retold.archive.sql import QueryClock, QueryResult, Value
    from retold.cli.console import Console


SECONDS, MOST_SECONDS = 30.0, 86_400.0
_NUMBER = r"-?(0|[1-9]\d{0,17})(\.\d+)?"
"""A value that SQLite returns as it was typed: without leading zeros, and with no more digits than SQLite takes."""
_WRONG_USAGE = 2


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `sql`."""
    parser.description = (
        "Answer one question in SQLite's SQL, on views of the archive: sessions, messages, tool_calls, requests, files_touched,"
        " problems. Nothing can be changed. Without a query, the views are listed."
    )
    parser.add_argument("query", nargs="?", metavar="QUERY", help="a SELECT, or - for one on stdin")
    parser.add_argument(
        "--set", action="append", type=_parse_binding, metavar="NAME=VALUE", help="what :NAME means in the query; repeatable"
    )  # fmt: skip
    parser.add_argument("--timeout", type=_parse_seconds, metavar="SECONDS", help="how long it may take (30)")
    parser.add_argument(
        "--tables", nargs="?", const="", metavar="VIEW", help="list the views, or the columns of one"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per row")
    form.add_argument(
        "--csv", action="store_true", help="rows for spreadsheets, below the names of the columns"
    )


def run(options: Namespace, console: Console) -> int:
    """Print the result; 0 even if it has no rows."""
    form = "json" if options.json else "csv" if options.csv else "table"
    if options.query is not None and options.tables is not None:
        console.notice("retold: a query, or --tables: one at a time")
        return _WRONG_USAGE
    if options.query is None:
        return _print_views(options.tables or "", form, console)
    from retold.archive.sql import QueryClock, QueryError, QueryResult
    from retold.cli.archive import open_archive

    values = dict(options.set or ())
    try:
        query = read_query(options.query)
        with open_archive(console) as record:
            print_result(
                QueryResult(record, query, values, QueryClock(options.timeout or SECONDS)), form, console
            )
    except QueryError as error:
        console.notice(f"retold: {' '.join(str(error).split())}")
        return _WRONG_USAGE
    return 0


def _print_views(view: str, form: str, console: Console) -> int:
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
        console.notice(f"retold: no view {view}: there are {', '.join(VIEWS)}")
        return _WRONG_USAGE
    names, *rows = column_rows(view) if view else view_rows()
    if form == "json":
        for row in rows:
            console.write_json(json_line(names, row))
    elif form == "csv":
        console.write_lines(csv_line(row) for row in (names, *rows))
    else:
        console.write_lines(column_lines(view, console.columns) if view else view_lines(console.columns))
    return 0


def _parse_binding(text: str) -> tuple[str, Value]:
    """Return the name and value of a NAME=VALUE; the value is a number if it is written as one, else text."""
    import re
    from argparse import ArgumentTypeError

    from retold.archive.store import as_text

    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    number = re.fullmatch(_NUMBER, value)
    if number is None:
        return name, as_text(value)
    return name, float(value) if number[2] else int(value)


def _parse_seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= MOST_SECONDS:
        raise ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


GRACE, MOMENT = 2.0, 1.0
"""Seconds that a query gets to stop by itself, after its timeout and after Ctrl-C, before the process is ended."""
_INTERVAL = 0.5


def read_query(query: str) -> str:
    """Return the query; for `-` read it from stdin, up to a byte more than the longest query."""
    if query != "-":
        return query
    return sys.stdin.buffer.read(LONGEST_QUERY + 1).decode("utf-8", "replace")


def print_result(result: QueryResult, form: str, console: Console) -> None:
    """Print the rows of a query as a table, as JSON or as CSV."""
    with QueryWatch(result.clock, console), result:
        {"table": _print_table, "json": _print_json, "csv": _print_csv}[form](result, console)


def _print_table(result: QueryResult, console: Console) -> None:
    from retold.export.text.sql_results import format_rows

    for pieces in format_rows(result.names, result.rows(), console.columns):
        console.write_styled(pieces)


def _print_json(result: QueryResult, console: Console) -> None:
    from itertools import repeat

    from retold.export.text.sql_results import json_pieces, unique_names

    names = unique_names(result.names)
    for pieces in map(json_pieces, repeat(names), result.rows()):
        console.write_json_in_pieces(pieces)


def _print_csv(result: QueryResult, console: Console) -> None:
    from retold.export.text.sql_results import csv_pieces

    console.write_line_in_pieces(csv_pieces(result.names))
    for pieces in map(csv_pieces, result.rows()):
        console.write_line_in_pieces(pieces)


class QueryWatch:
    """Ends the process if a query ignores its timeout or Ctrl-C: a single step of SQLite may run without end."""

    __slots__ = ("_clock", "_console", "_done", "_old_fd", "_wakeup_fd")

    def __init__(self, clock: QueryClock, console: Console) -> None:
        self._clock, self._console = clock, console
        self._done = _thread.allocate_lock()
        self._old_fd = self._wakeup_fd = -1

    def __enter__(self) -> Self:
        self._done.acquire()
        reading_fd, self._wakeup_fd = os.pipe()
        if os.name != "nt":
            os.set_blocking(self._wakeup_fd, False)  # required by set_wakeup_fd
        self._old_fd = _signal.set_wakeup_fd(self._wakeup_fd, warn_on_full_buffer=False)
        _thread.start_new_thread(self._watch_clock, ())
        _thread.start_new_thread(self._watch_signals, (reading_fd,))
        return self

    def __exit__(self, *_: object) -> None:
        _signal.set_wakeup_fd(self._old_fd)
        self._done.release()
        os.close(self._wakeup_fd)

    def _is_done(self, seconds: float) -> bool:
        """Return whether the query has ended, or ends within some seconds; two threads may ask at once."""
        if not self._done.acquire(timeout=seconds):
            return False
        self._done.release()
        return True

    def _watch_clock(self) -> None:
        while not self._is_done(_INTERVAL):
            if self._clock.is_over(GRACE):
                self._end(
                    EXIT_MACHINE,
                    f"retold: the query took longer than {self._clock.most:g} s, and was ended by force",
                )

    def _watch_signals(self, reading_fd: int) -> None:
        """End the process if the query does not stop by itself after Ctrl-C."""
        while number := os.read(reading_fd, 1):
            if number[0] == _signal.SIGINT and not self._is_done(MOMENT):
                self._end(EXIT_INTERRUPTED)
        os.close(reading_fd)

    def _end(self, code: int, message: str | None = None) -> None:
        if message is not None:
            self._console.notice(message)
            self._console.err.flush()
        os._exit(code)
