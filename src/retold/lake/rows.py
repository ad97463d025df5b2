"""A session as the rows of each table, in the order of its columns behind those that all tables have."""

from collections.abc import Callable, Iterator

from retold.lake import session_rows
from retold.lake.session_rows import RowSource, UnreadFile, month_of, shown_name
from retold.model.tables import TABLES, UNKNOWN

Row = tuple[object, ...]
ROWS: dict[str, Callable[[RowSource], Iterator[Row]]] = {
    "sessions": session_rows.session_rows,
    "messages": session_rows.message_rows,
    "tool_calls": session_rows.tool_call_rows,
    "requests": session_rows.request_rows,
    "files_touched": session_rows.file_rows,
    "events": session_rows.event_rows,
    "problems": session_rows.problem_rows,
}
assert ROWS.keys() == TABLES.keys()  # noqa: S101 - a table without rows would be found by nobody


def rows_of(table: str, told: RowSource | UnreadFile, first: int = 0) -> Iterator[Row]:
    """Yield the rows of a table that a session makes, from a column on; a file that holds none makes a problem."""
    common = _common(told)[first:]
    found = session_rows.refused(told) if isinstance(told, UnreadFile) else ROWS[table](told)
    if isinstance(told, RowSource) or table == "problems":
        yield from (common + row for row in found)


def _common(told: RowSource | UnreadFile) -> Row:
    if isinstance(told, UnreadFile):
        return told.agent, UNKNOWN, told.home, None, None, None
    session = told.session
    home = session.sources[0].home if session.sources else None
    name = shown_name(told.name)
    return session.agent, month_of(session.started_at), home, session.project.root, session.key, name
