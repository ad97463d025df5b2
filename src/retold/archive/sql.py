"""SQL queries of users: read-only views, a guard that refuses everything else, and limits of time and memory."""

from __future__ import annotations

import os
import time

import apsw

from retold.archive.database import MACHINE_ERRORS, DamagedError, RetoldError, as_retold_error
from retold.archive.store import as_text, unpack_summary
from retold.model import CATEGORIES, FIGURES
from retold.model.tables import BOOL, INT, TABLES, UNKNOWN, Column

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Self, TypeVar

    from retold.archive.store import Store

    T = TypeVar("T")
    Value = int | float | str | bytes | None


UNPACKED = "unpacked"
"""The SQL function that decompresses a summary; only the views may call it."""
_ONLY_IN_ORIGINALS = "the archive keeps it in the originals alone"
_HASHED = "the archive keeps a hash of it: `session` and `seq` lead from a request to its message"
_BY_FILE = "the archive counts calls by session and file"
_PATHS_AS_NAMED = "the path as the calls name it"
MISSING_COLUMNS: dict[str, Mapping[str, str]] = {
    "sessions": {},
    "messages": {"request": _HASHED},
    "tool_calls": dict.fromkeys(("call", "native_status", "exit_code", "child"), _ONLY_IN_ORIGINALS),
    "requests": {"request": _HASHED},
    "files_touched": {"file": _PATHS_AS_NAMED}
    | dict.fromkeys(
        ("seq", "place", "call", "canonical", "is_change", "status", "happened_at", "fate", "own"), _BY_FILE
    ),
    "problems": {},
}
"""By view: the columns of its table that it lacks, and why. No view has texts at length."""
EXTRA_COLUMNS = {
    "sessions": (
        Column(
            "is_spoken", BOOL, "False where nobody spoke: the agent was only started or set up.", needed=True
        ),
    ),
    "files_touched": (Column("changes", INT, "Calls that were to write or edit it.", needed=True),),
}
"""Columns that only a view has."""
VIEW_DOCS = {
    "tool_calls": "One row for each call of a tool.",
    "files_touched": "One row for each file that calls of a session name, however many did.",
}
"""Descriptions of rows that differ from those of the table."""
_SUMMARY = f"{UNPACKED}((SELECT packed FROM main.summaries WHERE summaries.session = s.id))"  # noqa: S608 - ours
_LARGEST = 2**63 - 1


def _summary_value(path: str) -> str:
    """Return SQL for a value in the JSON form of a session."""
    return f"json_extract({_SUMMARY}, '$.{path}')"


def _figure(name: str) -> str:
    """Return SQL for a sum of tokens; one that is too large for SQLite becomes the largest integer."""
    value = _summary_value(f"usage.{name}")
    return f"iif(typeof({value}) = 'real', {_LARGEST}, {value})"


def _from_sources(inner: str) -> str:
    """Return SQL for a value of the files of a session."""
    return f"(SELECT {inner} FROM json_each({_summary_value('sources')}))"  # noqa: S608 - ours


def _time(at: str) -> str:
    """Return SQL for a time as the JSON form has it: with milliseconds, or with microseconds if it has them."""
    rest = f"(({at} % 1000000 + 1000000) % 1000000)"
    whole = f"strftime('%Y-%m-%dT%H:%M:%S', ({at} - {rest}) / 1000000, 'unixepoch')"
    return f"{whole} || iif({rest} % 1000, printf('.%06dZ', {rest}), printf('.%03dZ', {rest} / 1000))"


def _same(*names: str, of: str) -> dict[str, str]:
    return {name: f"{of}.{name}" for name in names}


_COMMON = {
    "agent": "s.agent",
    "month": f"coalesce(substr(s.started_at, 1, 7), '{UNKNOWN}')",
    "home": _summary_value("sources[0].home"),
    "project": "s.root",
    "session": "s.key",
    "conversation": "printf('%016x', s.uid)",
}
_OF_MESSAGE = {"fate": "m.fate", "own": "NOT m.copied"}
_CALLED = "coalesce(c.at, m.at)"
_CATEGORY = " ".join(f"WHEN '{canonical}' THEN '{category}'" for canonical, category in CATEGORIES.items())
_LABELS = "json_group_array(DISTINCT value ->> 'home' ORDER BY value ->> 'home') FILTER (WHERE value ->> 'home' IS NOT NULL)"

_SESSIONS = _COMMON | {
    **_same("native_id", "kind", "parent", of="s"),
    "project_key": "s.native_key",
    "project_hash": "s.hash",
    "project_evidence": "s.evidence",
    "homes": _from_sources(_LABELS),
    "title": "s.title",
    **{name: _summary_value(name) for name in ("summary", "first_prompt", "last_prompt", "tags", "models")},
    **_same("started_at", "ended_at", "are_times_derived", "status", of="s"),
    "prompts": _summary_value("counts.prompts"),
    **_same("messages", "tool_calls", of="s"),
    "tool_errors": _summary_value("counts.tool_errors"),
    "requests": _summary_value("usage.requests"),
    **{f"{name}_tokens": "s.total" if name == "total" else _figure(name) for name in FIGURES},
    "estimated": _summary_value("usage.estimated"),
    "cost_usd": f"CAST({_summary_value('cost_usd')} AS REAL)",
    "sources": _summary_value("sources"),
    "source_bytes": _from_sources("coalesce(sum(value ->> 'bytes'), 0)"),
    "records": _summary_value("coverage.records"),
    "opaque": _summary_value("coverage.opaque"),
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
    **_same("seq", of="c"),
    "place": "c.position",
    **_same("tool", "canonical", of="c"),
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
    **{f"{name}_tokens": f"r.{name}" for name in FIGURES},
    "estimated": "r.estimated",
    "cost_usd": "r.picos / 1e12",
    **{f"session_{name}": f"s.{name}" for name in ("started_at", "ended_at")},
}
_PROBLEM = ("code", "severity", "message", "path", "line", "pointer")
_PROBLEMS = _COMMON | _same(*_PROBLEM, of="p")
_REFUSALS = {"agent": "f.agent", "month": f"'{UNKNOWN}'", "home": "f.label", "project": "NULL", "session": "NULL", "conversation": "NULL"} | {
    name: f"json_extract(f.refusal, '$.{name}')" for name in _PROBLEM
}  # fmt: skip


def _select(columns: Mapping[str, str], source: str) -> str:
    selected = ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())
    return f"SELECT {selected} FROM {source}"  # noqa: S608 - ours


_OF = "main.{0} {1} JOIN main.sessions s ON s.id = {1}.session"
VIEWS = {
    "sessions": _select(_SESSIONS, "main.sessions s"),
    "messages": _select(_MESSAGES, _OF.format("messages", "m")),
    "tool_calls": _select(
        _CALLS,
        f"{_OF.format('tool_calls', 'c')} JOIN main.messages m ON m.session = c.session AND m.seq = c.seq",
    ),
    "requests": _select(
        _REQUESTS, f"{_OF.format('requests', 'r')} WHERE r.own AND s.kind NOT IN ('checkpoint', 'capture')"
    ),
    "files_touched": _select(
        _COMMON | _same("path", "changes", of="t"), _OF.format("files", "t")
    ),
    "problems": f"{_select(_PROBLEMS, _OF.format('problems', 'p'))} UNION ALL "
    f"{_select(_REFUSALS, 'main.sources f')} WHERE f.refusal IS NOT NULL",
}  # fmt: skip
"""SQL of each view."""


def view_columns(view: str) -> list[Column]:
    """Return the columns of a view."""
    left_out = MISSING_COLUMNS[view]
    known = [one for one in TABLES[view].columns if not one.is_said and one.name not in left_out]
    return [*known, *EXTRA_COLUMNS.get(view, ())]


def view_doc(view: str) -> str:
    """Return a description of the rows of a view."""
    return VIEW_DOCS.get(view, TABLES[view].doc)


def create_views(connection: apsw.Connection, mark: str, query: str) -> None:
    """Create the views that a query may name, for this connection only. Each reads from a view with a secret name, which reads tables."""
    connection.execute("PRAGMA query_only = 0; PRAGMA temp_store = MEMORY")
    unpacking: Callable[..., str | None] = _SummaryUnpacker()
    connection.create_scalar_function(UNPACKED, unpacking, 1, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)
    words = query.lower()
    for name, sql in VIEWS.items():
        if name not in words:  # creating all takes longer than opening the archive
            continue
        # No table expression: if SQLite cannot merge one into a query, it computes all of its columns.
        connection.execute(f'CREATE TEMP VIEW "{mark}{name}" AS {sql}')
        connection.execute(f'CREATE TEMP VIEW {name} AS SELECT * FROM "{mark}{name}"')  # noqa: S608 - ours


class _SummaryUnpacker:
    """Decompresses summaries. It caches the last, because a query reads several of its columns, or many of its rows."""

    __slots__ = ("_packed", "_text")

    def __init__(self) -> None:
        self._packed, self._text = b"", ""

    def __call__(self, packed: bytes | None) -> str | None:
        if packed is None or packed == self._packed:
            return self._text if packed else None
        text = unpack_summary(packed)
        # Additional values of the agent come last, and may be nested deeper than SQLite reads.
        known, cut, _ = text.partition(',"view":')
        self._packed, self._text = packed, known + "}" if cut else text
        return self._text


LONGEST_VALUE, LONGEST_QUERY = 8_000_000, 1_000_000
"""Bytes of a text or a blob, and of a query."""
LONGEST_ROW, MOST_COLUMNS = 128_000_000, 200
"""Bytes of all values of a row: Python holds them all at once, beside SQLite. And columns of a row."""
MEMORY = 256_000_000
"""Bytes that SQLite may allocate: it sorts and groups in memory, so that it fills no disk."""
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
"""Table-valued functions of JSON."""
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
"""Functions without side effects."""


class SqlGuard:
    """An authorizer for SQLite: it refuses what a query may not do, and keeps the reason."""

    __slots__ = ("mark", "refused")

    def __init__(self, mark: str) -> None:
        self.mark = mark
        """The secret prefix of the views that may read tables; each query has another, so that no query can name them."""
        self.refused: str | None = None

    def __call__(
        self, action: int, one: str | None, two: str | None, where: str | None, by: str | None
    ) -> int:
        """Return whether SQLite may do an action, on `one` and `two` of database `where`, for the view `by` or for the query itself."""
        is_ours = (by or "").startswith(self.mark) or (one or "").startswith(self.mark)
        fault = None if is_ours else self._fault(action, one, two, where)
        if fault is None:
            return int(apsw.SQLITE_OK)
        self.refused = self.refused or fault
        return int(apsw.SQLITE_DENY)

    @staticmethod
    def _fault(action: int, one: str | None, two: str | None, where: str | None) -> str | None:
        """Return why the query itself may not do an action; None if it may."""
        match action:
            case apsw.SQLITE_SELECT | apsw.SQLITE_RECURSIVE:
                return None
            case apsw.SQLITE_READ:
                # Without a column, only the number of rows is read: a view of sessions reads it from the table.
                is_offered = (one in VIEWS and where == "temp") or one in _LISTS or two == ""
                name = one if where is None else f"{where}.{one}"
                return None if is_offered else f"{name} cannot be read: there are {', '.join(VIEWS)}"
            case apsw.SQLITE_FUNCTION:
                return None if two in FUNCTIONS else f"the function {two} is not offered"
        return "a query may only read: SELECT, WITH or VALUES"


def longest_value(columns: int) -> int:
    """Return how many bytes a value may have in a row of so many columns."""
    return min(LONGEST_VALUE, LONGEST_ROW // max(1, columns))


def install_guard(connection: apsw.Connection, guard: SqlGuard) -> None:
    """Restrict a connection to what a query may do."""
    connection.execute("PRAGMA query_only = 1")
    for setting, value in _SETTINGS.items():
        connection.config(setting, value)
    for limit, value in _LIMITS.items():
        connection.limit(limit, value)
    connection.drop_modules(None)
    connection.authorizer = guard


PROGRESS_STEPS = 20_000
"""Steps of SQLite's machine between two looks at the clock: about a millisecond."""
_BLANK = r"(?s)(?>[\s;]+|--[^\n]*|/\*.*?(?:\*/|\Z))*+"
"""Blanks and comments after a statement; the expression never backtracks."""
_MEGABYTE = 1_000_000


def _is_blank(text: str) -> bool:
    """Return whether a text consists of blanks and comments."""
    import re

    return re.fullmatch(_BLANK, text) is not None


class QueryError(Exception):
    """A query cannot be answered: one line for the user, exit code 2."""


class QueryClock:
    """Measures how long a query runs, without the time in which its rows are used."""

    __slots__ = ("_since", "_spent", "most")

    def __init__(self, most: float) -> None:
        self.most, self._spent = most, 0.0
        self._since: float | None = None

    def start(self) -> None:
        """Start the clock."""
        self._since = time.monotonic()

    def stop(self) -> None:
        """Stop the clock until it is started again."""
        if self._since is not None:
            self._spent += time.monotonic() - self._since
            self._since = None

    def is_over(self, grace: float = 0) -> bool:
        """Return whether the time is up."""
        since = self._since
        return since is not None and self._spent + time.monotonic() - since > self.most + grace


class QueryResult:
    """The result of one query. It raises QueryError if the query is at fault, and RetoldError at a limit."""

    def __init__(self, store: Store, query: str, values: Mapping[str, Value], clock: QueryClock) -> None:
        """Take the query; the connection to the archive serves nothing else afterwards."""
        self._connection, self._path, self._folder = store.connection, store.path, store.folder
        self.clock = clock
        self._query, self._values = as_text(query), values
        self._guard = SqlGuard(os.urandom(16).hex())
        self._cursor = self._connection.cursor()
        self._memory = 0
        self.names: list[str] = []
        """Names of the columns."""

    def __enter__(self) -> Self:
        """Start the query."""
        self._memory = apsw.hard_heap_limit(MEMORY)  # of the whole process
        try:
            self._run_timed(self._start)
        except BaseException:
            apsw.hard_heap_limit(self._memory)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cursor.close(force=True)
        apsw.hard_heap_limit(self._memory)

    def rows(self) -> Iterator[Any]:
        """Yield the rows; none is held while the next is read."""
        while (row := self._run_timed(self._next)) is not None:
            yield row
            del row

    def _next(self) -> Any | None:
        return next(self._cursor, None)

    def _start(self) -> None:
        if "\0" in self._query:
            raise QueryError("a query is text, and has no NUL in it")
        if len(self._query.encode()) > LONGEST_QUERY:
            raise QueryError(f"a query is text of at most {LONGEST_QUERY:,} bytes")
        create_views(self._connection, self._guard.mark, self._query)
        install_guard(self._connection, self._guard)
        self._connection.set_progress_handler(self.clock.is_over, PROGRESS_STEPS)
        self._cursor.exec_trace = self._note_columns
        self._cursor.execute(self._query, self._values)
        if not self.names:
            raise QueryError("nothing is asked")

    def _note_columns(self, cursor: apsw.Cursor, statement: str, _: object) -> bool:
        """Note the columns before the first row is read."""
        if self.names:  # trailing blanks count as a statement too
            return True
        rest = self._query[len(statement) :]
        if rest and not _is_blank(rest):
            raise QueryError(f"one statement at a time: this begins another: {' '.join(rest[:40].split())}")
        self.names = [name for name, *_ in cursor.get_description()]
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, longest_value(len(self.names)))
        return True

    def _run_timed(self, work: Callable[[], T]) -> T:
        self.clock.start()
        try:
            return work()
        except (apsw.Error, MemoryError, UnicodeError, KeyError) as error:
            raise self._as_query_error(error) from error
        finally:
            self.clock.stop()

    def _as_query_error(self, error: Exception) -> Exception:
        """Return an error with what a user can do about it."""
        from retold.archive.examination import find_damage, find_table_damage

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
                return QueryError(f"{error}: {self._value_limit()}")
            case UnicodeError():
                damaged = find_damage(self._folder)
                return (
                    DamagedError(damaged)
                    if damaged
                    else QueryError("a value is no text: hex() shows its bytes")
                )
            case apsw.SQLError() if "no such" in str(error) and (damaged := find_table_damage(self._folder)):
                return DamagedError(damaged)
            case KeyError(args=(str(name), *_)) if name.isidentifier():
                return QueryError(f"no value for :{name}: --set {name}=VALUE gives it one")
            case KeyError() | apsw.BindingsError():
                return QueryError("values are given by name: write :name for --set name=VALUE")
            case apsw.Error() if isinstance(error, MACHINE_ERRORS):
                return as_retold_error(error, self._path)
        return QueryError(f"{error}{self._hint(str(error))}")

    def _value_limit(self) -> str:
        """Return how long a value may be."""
        columns = len(self.names)
        most = longest_value(columns)
        text = f"a value has at most {most / _MEGABYTE:.2g} MB"
        return text if most == longest_value(1) else f"{text} in a row of {columns} columns: ask for fewer"

    def _hint(self, message: str) -> str:
        """Return the names that exist, if the query has one that does not."""
        if "no such table" in message:
            return f": there are {', '.join(VIEWS)}"
        if "too many columns" in message:
            return f": a row has at most {MOST_COLUMNS}"
        if "no such column" in message:
            import re

            words = set(re.findall(r"\w+", self._query.lower()))
            return "".join(
                f"; {view} has {', '.join(column.name for column in view_columns(view))}"
                for view in VIEWS
                if view in words
            )
        return ""
