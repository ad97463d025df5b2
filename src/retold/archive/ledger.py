"""The ledger: prices of models, the cost of requests, and sums for reports."""

from __future__ import annotations

from retold.model import FIGURES
from retold.model.report import format_dollars

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import apsw

    from retold.archive.store import Store
    from retold.model.rates import Figures

    Price = Callable[[str | None, int | None, Figures], int | None]
    """Returns what a request to a model at a time cost, in millionths of a millionth of a dollar."""


PRICED_BY, PRICED_ON = "priced by", "priced on"
"""Facts: the source of the prices, and the day that they are of."""


def load_rates(store: Store) -> dict[str, str | None]:
    """Return the prices that were used, by model."""
    return dict(store.rows("SELECT model, prices FROM rates"))


def write_rates(store: Store, model: str, prices: str | None) -> None:
    """Write the prices of a model; None says that it has none."""
    store.connection.execute("INSERT OR REPLACE INTO rates VALUES (?, ?)", (model, prices))


def delete_rates(store: Store) -> None:
    """Delete all prices, so that they are looked up again."""
    store.connection.execute("DELETE FROM rates")


def reprice(store: Store, price: Price) -> Iterator[int]:
    """Price all requests again; yield the sessions in which a price has changed."""
    sql = f"SELECT session, uid, picos, model, at, {', '.join(FIGURES)} FROM requests ORDER BY session"  # noqa: S608 - ours
    changed: dict[tuple[int, int], int | None] = {}
    for session, uid, picos, model, at, *figures in store.rows(sql):
        if (cost := price(model, at, figures)) != picos:
            changed[session, uid] = cost
    rows = [(cost, *request) for request, cost in changed.items()]
    store.connection.executemany("UPDATE requests SET picos = ? WHERE session = ? AND uid = ?", rows)
    return iter({session for session, _ in changed})


def load_cost(store: Store, session: int) -> str | None:
    """Return what the own requests of a session cost, in dollars; None if none has a price."""
    sql = "SELECT sum(micros), sum(picos) FROM request_sums WHERE session = ?"
    micros, picos = next(store.rows(sql, (session,)))
    return None if micros is None else format_dollars(micros * 1_000_000 + picos)


SUM_TABLES = ("request_sums", "tool_sums", "activity_sums")
QUARTER = 900_000_000
"""Microseconds."""
LONGEST_PAUSE = 300_000_000
"""Microseconds: a longer silence is no work."""
_WHICH = "session IN (SELECT value FROM json_each(?1))"
_START = "(SELECT unixepoch(started_at) * 1000000 FROM sessions WHERE id = session)"
_REQUEST_SUMS = f"""
INSERT INTO request_sums SELECT
    session, coalesce(at, {_START}) / {QUARTER}, model,
    estimated, count(*), sum(picos IS NULL), sum(input), sum(cached), sum(cache_write), sum(output), sum(reasoning), sum(tool),
    sum(total), sum(cache_write_1h), sum(picos / 1000000), sum(picos % 1000000)
FROM requests WHERE own AND {_WHICH} GROUP BY 1, 2, 3, 4
"""  # noqa: S608 - ours
_CALLS = f"""
SELECT session, coalesce(tool_calls.at, messages.at) AS at, model, tool, canonical, status = 'error' AS is_error, took_ms,
    coalesce(lag(status) OVER (PARTITION BY session, tool ORDER BY seq, position) = 'error', 0) AS is_retry
FROM tool_calls JOIN messages USING (session, seq) WHERE {_WHICH} AND NOT copied
"""  # noqa: S608 - ours
_TOOL_SUMS = f"""
INSERT INTO tool_sums SELECT
    session, coalesce(at, {_START}) / {QUARTER}, model, tool, canonical, count(*), sum(is_error), sum(is_retry),
    count(took_ms), sum(took_ms), max(took_ms)
FROM ({_CALLS}) GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 - ours
_ACTIVITY_SUMS = f"""
INSERT INTO activity_sums SELECT
    session, coalesce(at, {_START}) / {QUARTER}, sum(is_prompt), sum(iif(gap BETWEEN 0 AND {LONGEST_PAUSE}, gap, 0)) / 1000,
    sum(is_compaction), sum(is_call), sum(is_error), sum(is_retry)
FROM (
    SELECT *, at - lag(at) OVER (PARTITION BY session ORDER BY at) AS gap
    FROM (
        SELECT session, at, is_prompt, is_event AND role = 'compaction' AS is_compaction, 0 AS is_call, 0 AS is_error,
            0 AS is_retry
        FROM messages WHERE {_WHICH} AND NOT copied
        UNION ALL SELECT session, at, 0, 0, 1, is_error, is_retry FROM ({_CALLS})
    )
) GROUP BY 1, 2
"""  # noqa: S608 - ours


def rebuild_sums(connection: apsw.Connection, sessions: Collection[int]) -> None:
    """Replace the sums of sessions."""
    for table in SUM_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE {_WHICH}", (_json_list(sessions),))  # noqa: S608 - ours
    insert_sums(connection, sessions)


def insert_sums(connection: apsw.Connection, sessions: Collection[int]) -> None:
    """Insert the sums of sessions that have none: of many at once, because each statement takes longer than the sums of one."""
    for sql in (_REQUEST_SUMS, _TOOL_SUMS, _ACTIVITY_SUMS):
        connection.execute(sql, (_json_list(sessions),))


def _json_list(sessions: Collection[int]) -> str:
    return f"[{','.join(map(str, sessions))}]"
