"""An archive in memory, of nothing but the ledger: for a report where nothing is kept yet."""

from __future__ import annotations

import apsw

from retold.archive.database import take_steps
from retold.archive.originals import Originals
from retold.archive.record import Record, as_text
from retold.archive.rollup import SPENT
from retold.archive.schema import STEPS

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SESSION = """
INSERT INTO sessions (
    id, name, stamp, agent, key, read_key, native_id, kind, read_kind, parent, root, native_key, hash, evidence,
    started_at, ended_at, status, messages, tool_calls, estimated, are_times_derived, usage
) VALUES (?1, ?1, x'', ?2, ?3, ?3, NULL, ?4, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, '', 0, 0, 0, 0, '')
"""
_REQUEST = f"INSERT INTO requests VALUES ({', '.join('?' * 14)}, 1, ?)"  # noqa: S608 - ours


class Passing(Record):
    """It is gone when it is closed."""

    def __init__(self) -> None:
        self.folder = self.path = ":memory:"
        self.connection = apsw.Connection(self.path)
        take_steps(self.connection, STEPS)
        self.originals = Originals(self.connection)

    def put(self, sessions: Iterable[Sequence[object]], requests: Iterable[Sequence[object]]) -> None:
        """Take down sessions and the requests that are their own, and sum them up."""
        with self.connection:
            told = ([as_text(one) if isinstance(one, str) else one for one in row] for row in sessions)
            self.connection.executemany(_SESSION, told)
            self.connection.execute("DROP INDEX request_names")
            self.connection.executemany(_REQUEST, requests)
            self.connection.execute(SPENT.format("1"))
