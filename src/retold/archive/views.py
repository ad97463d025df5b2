"""The archive as views for questions in SQL: the tables of `model/tables.py`, as far as the record itself holds them.

A column that only the packed form of a session holds unpacks it, and only where a query asks for that column.
"""

from __future__ import annotations

import apsw

from retold.archive.record import summary_of
from retold.model.session import CATEGORIES
from retold.model.tables import BOOL, INT, TABLES, UNKNOWN, Column

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
