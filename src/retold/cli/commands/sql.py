"""`retold sql`: questions in SQL, on views of the archive that it cannot change."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal's own names of numbers cost half a millisecond
import _thread
import os
import re
import sys

from retold.archive.sql import LONGEST_QUERY
from retold.cli.main import EXIT_INTERRUPTED, EXIT_MACHINE

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Self

    from retold.archive.sql import QueryClock, QueryResult, Value
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


GRACE, MOMENT = 2.0, 1.0
"""Seconds by which a query may be late before it is ended by force: when its time is up, and after Ctrl-C."""
_LOOK = 0.5


def typed_query(query: str) -> str:
    """Return the query; for `-` what stands on stdin, and no more of it than could be asked."""
    if query != "-":
        return query
    return sys.stdin.buffer.read(LONGEST_QUERY + 1).decode("utf-8", "replace")


def print_answer(answer: QueryResult, form: str, console: Console) -> None:
    """Print what a query gives, as a table, as JSON or as CSV."""
    with QueryWatch(answer.clock, console), answer:
        {"table": _table, "json": _json, "csv": _csv}[form](answer, console)


def _table(answer: QueryResult, console: Console) -> None:
    from retold.export.text.sql_results import table

    for pieces in table(answer.names, answer.rows(), console.columns):
        console.pieces(pieces)


def _json(answer: QueryResult, console: Console) -> None:
    from itertools import repeat

    from retold.export.text.sql_results import json_pieces, unique_names

    names = unique_names(answer.names)
    for pieces in map(json_pieces, repeat(names), answer.rows()):
        console.record_of(pieces)


def _csv(answer: QueryResult, console: Console) -> None:
    from retold.export.text.sql_results import csv_pieces

    console.line_of(csv_pieces(answer.names))
    for pieces in map(csv_pieces, answer.rows()):
        console.line_of(pieces)


class QueryWatch:
    """Ends the process where a query looks neither at its clock nor for Ctrl-C: a single step of SQLite's may take for ever."""

    __slots__ = ("_before", "_clock", "_console", "_done", "_rung")

    def __init__(self, clock: QueryClock, console: Console) -> None:
        self._clock, self._console = clock, console
        self._done = _thread.allocate_lock()
        self._before = self._rung = -1

    def __enter__(self) -> Self:
        self._done.acquire()
        heard, self._rung = os.pipe()
        if os.name != "nt":
            os.set_blocking(self._rung, False)  # a signal waits for nobody
        self._before = _signal.set_wakeup_fd(self._rung, warn_on_full_buffer=False)
        _thread.start_new_thread(self._look, ())
        _thread.start_new_thread(self._listen, (heard,))
        return self

    def __exit__(self, *_: object) -> None:
        _signal.set_wakeup_fd(self._before)
        self._done.release()
        os.close(self._rung)

    def _is_done(self, seconds: float) -> bool:
        """Tell whether the query has ended, or does so in time; there are two who ask."""
        if not self._done.acquire(timeout=seconds):
            return False
        self._done.release()
        return True

    def _look(self) -> None:
        while not self._is_done(_LOOK):
            if self._clock.is_over(GRACE):
                self._end(
                    EXIT_MACHINE,
                    f"retold: the query took longer than {self._clock.most:g} s, and was ended by force",
                )

    def _listen(self, heard: int) -> None:
        """Wait for Ctrl-C, of which the query itself learns as soon as it looks."""
        while told := os.read(heard, 1):
            if told[0] == _signal.SIGINT and not self._is_done(MOMENT):
                self._end(EXIT_INTERRUPTED)
        os.close(heard)

    def _end(self, code: int, told: str | None = None) -> None:
        if told is not None:
            self._console.tell(told)
            self._console.err.flush()
        os._exit(code)
