"""A query in SQL: where it comes from, how its answer is printed, and what ends it if nothing else does."""

from __future__ import annotations

import _thread
import os
import sys

from retold.archive.guard import LONGEST_QUERY

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from typing import Self

    from retold.archive.answer import Answer, Clock
    from retold.cli.console import Console

GRACE = 2.0
"""Seconds by which a query may be late before it is ended by force."""
_LOOK = 0.5


def typed_query(query: str) -> str:
    """Return the query; for `-` what stands on stdin, and no more of it than could be asked."""
    if query != "-":
        return query
    return sys.stdin.buffer.read(LONGEST_QUERY + 1).decode("utf-8", "replace")


def print_answer(answer: Answer, form: str, console: Console) -> None:
    """Print what a query gives, as a table, as JSON or as CSV."""
    with Watch(answer.clock, console), answer:
        {"table": _table, "json": _json, "csv": _csv}[form](answer, console)


def _table(answer: Answer, console: Console) -> None:
    from retold.export.answer import table

    for pieces in table(answer.names, answer.rows(), console.columns):
        console.pieces(pieces)


def _json(answer: Answer, console: Console) -> None:
    from itertools import repeat

    from retold.export.answer import json_pieces, unique_names

    names = unique_names(answer.names)
    for pieces in map(json_pieces, repeat(names), answer.rows()):
        console.record_of(pieces)


def _csv(answer: Answer, console: Console) -> None:
    from retold.export.answer import csv_pieces

    console.line_of(csv_pieces(answer.names))
    for pieces in map(csv_pieces, answer.rows()):
        console.line_of(pieces)


class Watch:
    """Ends the process where a query does not look at its clock: a single step of SQLite's may take for ever."""

    __slots__ = ("_clock", "_console", "_done")

    def __init__(self, clock: Clock, console: Console) -> None:
        self._clock, self._console = clock, console
        self._done = _thread.allocate_lock()

    def __enter__(self) -> Self:
        self._done.acquire()
        _thread.start_new_thread(self._look, ())
        return self

    def __exit__(self, *_: object) -> None:
        self._done.release()

    def _look(self) -> None:
        while not self._done.acquire(timeout=_LOOK):
            if self._clock.is_over(GRACE):
                self._end()

    def _end(self) -> None:
        from retold.cli.main import EXIT_MACHINE

        self._console.tell(
            f"retold: the query took longer than {self._clock.most:g} s, and was ended by force"
        )
        self._console.err.flush()
        os._exit(EXIT_MACHINE)
