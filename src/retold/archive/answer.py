"""One question in SQL, and its answer: the names of its columns, and its rows as they come."""

from __future__ import annotations

import os
import re
import time

import apsw

from retold.archive.database import MACHINE, DamagedError, RetoldError, as_retold_error
from retold.archive.guard import LONGEST_QUERY, MEMORY, MOST_COLUMNS, SqlGuard, longest_value, put_under_guard
from retold.archive.record import as_text
from retold.archive.views import VIEWS, columns_of, make_views

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Self, TypeVar

    from retold.archive.record import Store

    T = TypeVar("T")
    Value = int | float | str | bytes | None

STEPS = 20_000
"""Of SQLite's machine, between two looks at the clock: about a millisecond."""
_BLANK = re.compile(r"(?>[\s;]+|--[^\n]*|/\*.*?(?:\*/|\Z))*+", re.DOTALL)
"""What may stand behind a statement; nothing is looked at twice, however it is written."""
_MEGABYTE = 1_000_000


class QueryError(Exception):
    """A query cannot be answered as it is: told in one line, exit code 2."""


class QueryClock:
    """How long a query has been at work; what is done with its rows does not count."""

    __slots__ = ("_since", "_spent", "most")

    def __init__(self, most: float) -> None:
        self.most, self._spent = most, 0.0
        self._since: float | None = None

    def start(self) -> None:
        """Let the time count."""
        self._since = time.monotonic()

    def stop(self) -> None:
        """Let it not count until it is started again."""
        if self._since is not None:
            self._spent += time.monotonic() - self._since
            self._since = None

    def is_over(self, grace: float = 0) -> bool:
        """Tell whether the time is up."""
        since = self._since
        return since is not None and self._spent + time.monotonic() - since > self.most + grace


class QueryResult:
    """The answer to one query. `QueryError` is raised where the query is at fault, `RetoldError` where a bound is reached."""

    def __init__(self, record: Store, query: str, values: Mapping[str, Value], clock: QueryClock) -> None:
        """Take what is to be asked: afterwards, the connection to the archive is good for nothing else."""
        self._connection, self._path, self._folder, self.clock = (
            record.connection,
            record.path,
            record.folder,
            clock,
        )
        self._query, self._values = as_text(query), values
        self._guard = SqlGuard(os.urandom(16).hex())
        self._cursor = self._connection.cursor()
        self._memory = 0
        self.names: list[str] = []
        """Of its columns."""

    def __enter__(self) -> Self:
        """Ask."""
        self._memory = apsw.hard_heap_limit(MEMORY)  # of the whole process
        try:
            self._timed(self._ask)
        except BaseException:
            apsw.hard_heap_limit(self._memory)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cursor.close(force=True)
        apsw.hard_heap_limit(self._memory)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows; none is held while the next is looked for, and whoever takes them does well not to either."""
        while (row := self._timed(self._next)) is not None:
            yield row
            del row

    def _next(self) -> tuple[Any, ...] | None:
        return next(self._cursor, None)

    def _ask(self) -> None:
        if "\0" in self._query:
            raise QueryError("a query is text, and has no NUL in it")
        if len(self._query.encode()) > LONGEST_QUERY:
            raise QueryError(f"a query is text of at most {LONGEST_QUERY:,} bytes")
        make_views(self._connection, self._guard.mark, self._query)
        put_under_guard(self._connection, self._guard)
        self._connection.set_progress_handler(self.clock.is_over, STEPS)
        self._cursor.exec_trace = self._begun
        self._cursor.execute(self._query, self._values)
        if not self.names:
            raise QueryError("nothing is asked")

    def _begun(self, cursor: apsw.Cursor, statement: str, _: object) -> bool:
        """Take note of the columns, before the first row is looked for."""
        if self.names:  # what is blank counts as a statement too
            return True
        rest = self._query[len(statement) :]
        if _BLANK.fullmatch(rest) is None:
            raise QueryError(f"one statement at a time: this begins another: {' '.join(rest[:40].split())}")
        self.names = [name for name, *_ in cursor.get_description()]
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, longest_value(len(self.names)))
        return True

    def _timed(self, work: Callable[[], T]) -> T:
        self.clock.start()
        try:
            return work()
        except (apsw.Error, MemoryError, UnicodeError, KeyError) as error:
            raise self._told(error) from error
        finally:
            self.clock.stop()

    def _told(self, error: Exception) -> Exception:
        """Return what went wrong as what a person can do about it."""
        from retold.archive.examination import damage, damage_of_tables

        match error:
            case apsw.InterruptError():
                return RetoldError(
                    f"the query took longer than {self.clock.most:g} s: a longer --timeout lets it go on"
                )
            case apsw.NoMemError() | MemoryError():
                return RetoldError(
                    f"the query takes more than {MEMORY // _MEGABYTE} MB of memory: ask for less at once"
                )
            case apsw.AuthError() | apsw.SQLError() if self._guard.refused is not None:
                return QueryError(self._guard.refused)
            case apsw.TooBigError():
                return QueryError(f"{error}: {self._bound()}")
            case UnicodeError():
                damaged = damage(self._folder)
                return (
                    DamagedError(damaged)
                    if damaged
                    else QueryError("a value is no text: hex() shows its bytes")
                )
            case apsw.SQLError() if "no such" in str(error) and (damaged := damage_of_tables(self._folder)):
                return DamagedError(damaged)
            case KeyError(args=(str(name), *_)) if name.isidentifier():
                return QueryError(f"no value for :{name}: --set {name}=VALUE gives it one")
            case KeyError() | apsw.BindingsError():
                return QueryError("values are given by name: write :name for --set name=VALUE")
            case apsw.Error() if isinstance(error, MACHINE):
                return as_retold_error(error, self._path)
        return QueryError(f"{error}{self._hint(str(error))}")

    def _bound(self) -> str:
        """Return how long a value may be."""
        columns = len(self.names)
        most = longest_value(columns)
        told = f"a value has at most {most / _MEGABYTE:.2g} MB"
        return told if most == longest_value(1) else f"{told} in a row of {columns} columns: ask for fewer"

    def _hint(self, message: str) -> str:
        """Return what there is, where a query names what there is not."""
        if "no such table" in message:
            return f": there are {', '.join(VIEWS)}"
        if "too many columns" in message:
            return f": a row has at most {MOST_COLUMNS}"
        if "no such column" in message:
            words = set(re.findall(r"\w+", self._query.lower()))
            return "".join(
                f"; {view} has {', '.join(column.name for column in columns_of(view))}"
                for view in VIEWS
                if view in words
            )
        return ""
