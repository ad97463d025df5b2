"""A session as the rows of each table, in the order of its columns behind those that all tables have."""

from collections.abc import Callable, Iterator

from retold.lake.rows import events, files_touched, messages, problems, requests, sessions, tool_calls
from retold.lake.told import RowSource, UnreadFile, month_of, shown_name
from retold.model.tables import TABLES, UNKNOWN

Row = tuple[object, ...]
ROWS: dict[str, Callable[[RowSource], Iterator[Row]]] = {
    "sessions": sessions.session_rows,
    "messages": messages.message_rows,
    "tool_calls": tool_calls.tool_call_rows,
    "requests": requests.request_rows,
    "files_touched": files_touched.file_rows,
    "events": events.event_rows,
    "problems": problems.problem_rows,
}
assert ROWS.keys() == TABLES.keys()  # noqa: S101 - a table without rows would be found by nobody


def rows_of(table: str, told: RowSource | UnreadFile, first: int = 0) -> Iterator[Row]:
    """Yield the rows of a table that a session makes, from a column on; a file that holds none makes a problem."""
    common = _common(told)[first:]
    found = problems.refused(told) if isinstance(told, UnreadFile) else ROWS[table](told)
    if isinstance(told, RowSource) or table == "problems":
        yield from (common + row for row in found)


def _common(told: RowSource | UnreadFile) -> Row:
    if isinstance(told, UnreadFile):
        return told.agent, UNKNOWN, told.home, None, None, None
    session = told.session
    home = session.sources[0].home if session.sources else None
    name = shown_name(told.name)
    return session.agent, month_of(session.started_at), home, session.project.root, session.key, name
