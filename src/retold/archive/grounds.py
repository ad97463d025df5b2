"""What all that is told of a session rests on: where none of it has changed, it is told the same."""

from __future__ import annotations

from retold.archive.sessions import renamed_keys

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from retold.archive.record import Store

    Row = tuple[Any, ...]

_SESSIONS = """
SELECT sessions.id, sessions.name, key, read_key, kind, parent, sessions.agent, cluster, started_at, stamp, packed
FROM sessions JOIN summaries ON session = sessions.id ORDER BY ifnull(started_at, ''), key
"""
_COPIED = (
    "SELECT session, group_concat(name, ' ' ORDER BY seq) FROM messages WHERE copied = 2 GROUP BY session"
)
_LEDGER = """
SELECT session, group_concat(name || ',' || own || ',' || ifnull(picos, ''), ' ' ORDER BY name) FROM requests GROUP BY session
"""
_FILES = """
SELECT agent, cluster, group_concat(name || ',' || originals.size || ',' || originals.modified_ns || ',' || is_latest, ' ' ORDER BY name)
FROM sources JOIN originals ON source = sources.id WHERE cluster IS NOT NULL AND is_latest >= 0 GROUP BY agent, cluster
"""
_SIZES = """
SELECT session, sum(size) FROM session_sources JOIN sources ON sources.id = source WHERE cluster IS NOT NULL GROUP BY session
"""
_REFUSALS = "SELECT agent, label, refusal FROM sources WHERE refusal IS NOT NULL ORDER BY agent, path"
_OWN = "SELECT seq, picos FROM requests WHERE session = ? AND own"


class RowDependencies:
    """A session by what it is known by, and all that its telling depends on."""

    __slots__ = ("agent", "key", "kind", "name", "parent", "size", "started_at", "told")

    def __init__(self, row: Row, size: int, told: tuple[object, ...]) -> None:
        _, self.name, self.key, _, self.kind, self.parent, self.agent, _, self.started_at, *_ = row
        self.size = size
        """The bytes of its files."""
        self.told = told


def grounds(record: Store) -> list[RowDependencies]:
    """Return every session, the earliest first, as of one moment."""
    with record.connection:
        copied, ledger, sizes = (dict(record.rows(asked)) for asked in (_COPIED, _LEDGER, _SIZES))
        files = {(agent, cluster): told for agent, cluster, told in record.rows(_FILES)}
        rows = list(record.rows(_SESSIONS))
        renamed = _renamed(record, rows)
    return [
        RowDependencies(
            row,
            sizes.get(row[0], 0),
            (
                *row[-2:],
                copied.get(row[0]),
                ledger.get(row[0]),
                files.get((row[6], row[7])),
                renamed.get((row[6], row[7])),
            ),
        )
        for row in rows
    ]


def _renamed(record: Store, rows: list[Row]) -> dict[tuple[str, str | None], str]:
    """Return, by agent and cluster, the keys that sessions there have instead of those which calls name them by."""
    keys = renamed_keys(record)
    found: dict[tuple[str, str | None], str] = {}
    for row in rows:
        if row[3] in keys:
            place = row[6], row[7]
            found[place] = f"{found.get(place, '')}{row[3]}\n{keys[row[3]]}\n"
    return found


def refusals(record: Store) -> Iterator[Row]:
    """Yield agent, label of the home, and the problem as JSON, of every file that holds no conversation."""
    return record.rows(_REFUSALS)


def own_requests(record: Store, session: int) -> dict[int, int | None]:
    """Return what the requests cost that the ledger counts in a session, by their places in its timeline."""
    return dict(record.rows(_OWN, (session,)))
