"""A query in SQL: where it comes from, how its answer is printed, and what ends it if nothing else does."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal's own names of numbers cost half a millisecond
import _thread
import os
import sys

from retold.archive.sql import LONGEST_QUERY
from retold.cli.main import EXIT_INTERRUPTED, EXIT_MACHINE

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from typing import Self

    from retold.archive.sql import QueryClock, QueryResult
    from retold.cli.console import Console

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
