"""What a query in SQL may do: read the views, and take neither the archive nor the machine down."""

from __future__ import annotations

import apsw

from retold.archive.views import VIEWS

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
