"""One question in SQL, and its answer: the names of its columns, and its rows as they come."""

from __future__ import annotations

import os
import re
import time

import apsw

from retold.archive.database import MACHINE, DamagedError, RetoldError, as_retold_error
from retold.archive.store import as_text, summary_of
from retold.model.session import CATEGORIES
from retold.model.tables import BOOL, INT, TABLES, UNKNOWN, Column

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Self, TypeVar

    from retold.archive.store import Store

    T = TypeVar("T")
    Value = int | float | str | bytes | None


UNPACKED = "unpacked"
"""The function that unpacks; only the views may call it."""
_ONLY_IN_ORIGINALS = "the archive keeps it in the originals alone"
_HASHED = "the archive keeps a hash of it: `session` and `seq` lead from a request to its message"
_BY_FILE = "the archive counts calls by session and file"
_NO_PLACES = "the path is told as the calls name it"
LACKING: dict[str, Mapping[str, str]] = {
    "sessions": {},
    "messages": {"request": _HASHED},
    "tool_calls": dict.fromkeys(("call", "native_status", "exit_code", "child"), _ONLY_IN_ORIGINALS),
    "requests": {"request": _HASHED},
    "files_touched": {"file": _NO_PLACES}
    | dict.fromkeys(
        ("seq", "place", "call", "canonical", "is_change", "status", "happened_at", "fate", "own"), _BY_FILE
    ),
    "problems": {},
}
"""By view: the columns of its table that it lacks, and why. What is `said` at length is in none of them."""
MORE = {
    "sessions": (
        Column(
            "is_spoken", BOOL, "False where nobody spoke: the agent was only started or set up.", needed=True
        ),
    ),
    "files_touched": (Column("changes", INT, "Calls that were to write or edit it.", needed=True),),
}
"""Columns that only a view has."""
DOCS = {
    "tool_calls": "One row for each call of a tool.",
    "files_touched": "One row for each file that calls of a session name, however many did.",
}
"""What a row is, where it is not what it is in the table."""
_SUMMARY = f"{UNPACKED}((SELECT packed FROM main.summaries WHERE summaries.session = s.id))"  # noqa: S608 - ours
_LARGEST = 2**63 - 1


def _kept(path: str) -> str:
    """Return what the packed form of a session holds at a path."""
    return f"json_extract({_SUMMARY}, '$.{path}')"


def _figure(name: str) -> str:
    """Return a sum of tokens; one that is too large for SQLite is the largest that is not, as everywhere."""
    told = _kept(f"usage.{name}")
    return f"iif(typeof({told}) = 'real', {_LARGEST}, {told})"


def _each(inner: str) -> str:
    """Return a question about the files of a session."""
    return f"(SELECT {inner} FROM json_each({_kept('sources')}))"  # noqa: S608 - ours


def _time(at: str) -> str:
    """Return microseconds since 1970 as the JSON form tells times: to the millisecond where that is all of it."""
    rest = f"(({at} % 1000000 + 1000000) % 1000000)"
    whole = f"strftime('%Y-%m-%dT%H:%M:%S', ({at} - {rest}) / 1000000, 'unixepoch')"
    return f"{whole} || iif({rest} % 1000, printf('.%06dZ', {rest}), printf('.%03dZ', {rest} / 1000))"


def _same(*names: str, of: str) -> dict[str, str]:
    return {name: f"{of}.{name}" for name in names}


_COMMON = {
    "agent": "s.agent",
    "month": f"coalesce(substr(s.started_at, 1, 7), '{UNKNOWN}')",
    "home": _kept("sources[0].home"),
    "project": "s.root",
    "session": "s.key",
    "conversation": "printf('%016x', s.name)",
}
_FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total", "cache_write_1h")
_OF_MESSAGE = {"fate": "m.fate", "own": "NOT m.copied"}
_CALLED = "coalesce(c.at, m.at)"
_CATEGORY = " ".join(f"WHEN '{canonical}' THEN '{category}'" for canonical, category in CATEGORIES.items())
_LABELS = "json_group_array(DISTINCT value ->> 'home' ORDER BY value ->> 'home') FILTER (WHERE value ->> 'home' IS NOT NULL)"

_SESSIONS = _COMMON | {
    **_same("native_id", "kind", "parent", of="s"),
    "project_key": "s.native_key",
    "project_hash": "s.hash",
    "project_evidence": "s.evidence",
    "homes": _each(_LABELS),
    "title": "s.title",
    **{name: _kept(name) for name in ("summary", "first_prompt", "last_prompt", "tags", "models")},
    **_same("started_at", "ended_at", "are_times_derived", "status", of="s"),
    "prompts": _kept("counts.prompts"),
    **_same("messages", "tool_calls", of="s"),
    "tool_errors": _kept("counts.tool_errors"),
    "requests": _kept("usage.requests"),
    **{f"{name}_tokens": "s.total" if name == "total" else _figure(name) for name in _FIGURES},
    "estimated": _kept("usage.estimated"),
    "cost_usd": f"CAST({_kept('cost_usd')} AS REAL)",
    "sources": _kept("sources"),
    "source_bytes": _each("coalesce(sum(value ->> 'bytes'), 0)"),
    "records": _kept("coverage.records"),
    "opaque": _kept("coverage.opaque"),
    "problems": "(SELECT count(*) FROM main.problems WHERE problems.session = s.id)",
    "is_spoken": "s.is_spoken",
}
_MESSAGES = _COMMON | {
    **_same("seq", "id", of="m"),
    "role": "iif(m.is_event, NULL, m.role)",
    "event": "iif(m.is_event, m.role, NULL)",
    "happened_at": _time("m.at"),
    **_OF_MESSAGE,
    **_same("is_prompt", "model", of="m"),
    "tool_calls": "(SELECT count(*) FROM main.tool_calls c WHERE c.session = m.session AND c.seq = m.seq)",
}
_CALLS = _COMMON | {
    **_same("seq", "place", "tool", "canonical", of="c"),
    "category": f"CASE c.canonical {_CATEGORY} ELSE 'Other' END",
    **_same("server", "status", of="c"),
    "happened_at": _time(_CALLED),
    "took_ms": "c.took_ms",
    **_OF_MESSAGE,
    "model": "m.model",
}
_REQUESTS = _COMMON | {
    **_same("seq", "model", of="r"),
    "happened_at": _time("r.at"),
    **{f"{name}_tokens": f"r.{name}" for name in _FIGURES},
    "estimated": "r.estimated",
    "cost_usd": "r.picos / 1e12",
    **{f"session_{name}": f"s.{name}" for name in ("started_at", "ended_at")},
}
_PROBLEM = ("code", "severity", "message", "path", "line", "pointer")
_PROBLEMS = _COMMON | _same(*_PROBLEM, of="p")
_REFUSALS = {"agent": "f.agent", "month": f"'{UNKNOWN}'", "home": "f.label", "project": "NULL", "session": "NULL", "conversation": "NULL"} | {
    name: f"json_extract(f.refusal, '$.{name}')" for name in _PROBLEM
}  # fmt: skip


def _selected(columns: Mapping[str, str], source: str) -> str:
    told = ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())
    return f"SELECT {told} FROM {source}"  # noqa: S608 - ours


_OF = "main.{0} {1} JOIN main.sessions s ON s.id = {1}.session"
VIEWS = {
    "sessions": _selected(_SESSIONS, "main.sessions s"),
    "messages": _selected(_MESSAGES, _OF.format("messages", "m")),
    "tool_calls": _selected(
        _CALLS,
        f"{_OF.format('tool_calls', 'c')} JOIN main.messages m ON m.session = c.session AND m.seq = c.seq",
    ),
    "requests": _selected(
        _REQUESTS, f"{_OF.format('requests', 'r')} WHERE r.own AND s.kind NOT IN ('checkpoint', 'capture')"
    ),
    "files_touched": _selected(
        _COMMON | _same("path", "changes", of="t"), _OF.format("files", "t")
    ),
    "problems": f"{_selected(_PROBLEMS, _OF.format('problems', 'p'))} UNION ALL "
    f"{_selected(_REFUSALS, 'main.sources f')} WHERE f.refusal IS NOT NULL",
}  # fmt: skip
"""By name: the question that a view is."""


def columns_of(view: str) -> list[Column]:
    """Return the columns of a view, with what they mean."""
    left_out = LACKING[view]
    known = [one for one in TABLES[view].columns if not one.is_said and one.name not in left_out]
    return [*known, *MORE.get(view, ())]


def doc_of(view: str) -> str:
    """Return what a row of a view is."""
    return DOCS.get(view, TABLES[view].doc)


def make_views(connection: apsw.Connection, mark: str, query: str) -> None:
    """Make the views that a query may name, for this connection alone, each on one with a mark, which alone reads tables."""
    connection.execute("PRAGMA query_only = 0; PRAGMA temp_store = MEMORY")
    unpacking: Callable[..., str | None] = _Unpacking()
    connection.create_scalar_function(UNPACKED, unpacking, 1, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)
    words = query.lower()
    for name, asked in VIEWS.items():
        if name not in words:  # to make all takes as long as to open the archive, and more
            continue
        # Not a table expression: SQLite would work out all columns of one, where it cannot be merged into a query.
        connection.execute(f'CREATE TEMP VIEW "{mark}{name}" AS {asked}')
        connection.execute(f'CREATE TEMP VIEW {name} AS SELECT * FROM "{mark}{name}"')  # noqa: S608 - ours


class _Unpacking:
    """Unpacks sessions; the last is remembered: a query asks for several of its columns, or for many of its rows."""

    __slots__ = ("_packed", "_text")

    def __init__(self) -> None:
        self._packed, self._text = b"", ""

    def __call__(self, packed: bytes | None) -> str | None:
        if packed is None or packed == self._packed:
            return self._text if packed else None
        text = summary_of(packed)
        # What an agent recorded besides stands last, and may be nested deeper than SQLite reads.
        known, cut, _ = text.partition(',"view":')
        self._packed, self._text = packed, known + "}" if cut else text
        return self._text


LONGEST_VALUE, LONGEST_QUERY = 8_000_000, 1_000_000
"""Bytes of a text or a blob, and of a query."""
LONGEST_ROW, MOST_COLUMNS = 128_000_000, 200
"""Bytes of all values of a row, each of which may have its share: Python holds them all at once, beside SQLite."""
MEMORY = 256_000_000
"""Bytes that SQLite may take: sorted and gathered rows are kept there, so that no disk is filled."""
_LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: LONGEST_VALUE,
    apsw.SQLITE_LIMIT_SQL_LENGTH: LONGEST_QUERY,
    apsw.SQLITE_LIMIT_COLUMN: MOST_COLUMNS,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_SETTINGS = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,  # "title" is a column, or a mistake
}
_LISTS = ("json_each", "json_tree")
"""Tables that are made of what a query gives them."""
FUNCTIONS = frozenset(
    """
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist
    current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format glob
    group_concat hex if ifnull iif instr json json_array json_array_insert json_array_length json_error_position json_extract
    json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace
    json_set json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object
    jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday lag last_value lead length like
    likelihood likely ln log log10 log2 lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank
    percentile percentile_cont percentile_disc pi pow power printf quote radians random randomblob rank replace round
    row_number rtrim sign sin sinh sqlite_version sqrt strftime string_agg substr substring sum tan tanh time timediff total
    trim trunc typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob
    """.split()  # noqa: SIM905 - words are read more easily than a list of texts
)
"""Those that give back something and do nothing."""


class SqlGuard:
    """Tells SQLite, for each thing that a query would do, whether it may; and remembers what it may not."""

    __slots__ = ("mark", "refused")

    def __init__(self, mark: str) -> None:
        self.mark = mark
        """What the names of the views begin with that alone read tables: made anew each time, so that no query knows it."""
        self.refused: str | None = None

    def __call__(
        self, action: int, one: str | None, two: str | None, where: str | None, by: str | None
    ) -> int:
        """Answer as SQLite asks: an action, what it is about, the database, and by whom, if not by the query itself."""
        is_ours = (by or "").startswith(self.mark) or (one or "").startswith(self.mark)
        told = None if is_ours else self._fault(action, one, two, where)
        if told is None:
            return int(apsw.SQLITE_OK)
        self.refused = self.refused or told
        return int(apsw.SQLITE_DENY)

    @staticmethod
    def _fault(action: int, one: str | None, two: str | None, where: str | None) -> str | None:
        """Return why the query itself may not do something."""
        match action:
            case apsw.SQLITE_SELECT | apsw.SQLITE_RECURSIVE:
                return None
            case apsw.SQLITE_READ:
                # Without a column, how many rows there are is all that is asked: a view of sessions asks so of the table.
                is_offered = (one in VIEWS and where == "temp") or one in _LISTS or two == ""
                name = one if where is None else f"{where}.{one}"
                return None if is_offered else f"{name} cannot be read: there are {', '.join(VIEWS)}"
            case apsw.SQLITE_FUNCTION:
                return None if two in FUNCTIONS else f"the function {two} is not offered"
        return "a query may only read: SELECT, WITH or VALUES"


def longest_value(columns: int) -> int:
    """Return how many bytes a value may have in a row of so many columns."""
    return min(LONGEST_VALUE, LONGEST_ROW // max(1, columns))


def put_under_guard(connection: apsw.Connection, guard: SqlGuard) -> None:
    """Let a connection do nothing from now on but what a query may."""
    connection.execute("PRAGMA query_only = 1")
    for setting, value in _SETTINGS.items():
        connection.config(setting, value)
    for limit, value in _LIMITS.items():
        connection.limit(limit, value)
    connection.drop_modules(None)
    connection.authorizer = guard


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
