"""Sums of what a session spent and did, by quarters of an hour: what reports are made of, kept up to date with the ledger."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    import apsw

TABLES = ("spent", "used", "worked")
QUARTER = 900_000_000
"""Microseconds."""
AWAY = 300_000_000
"""Microseconds: a longer silence is a pause, and no work."""
_START = "(SELECT unixepoch(started_at) * 1000000 FROM sessions WHERE id = ?1)"
SPENT = f"""
INSERT INTO spent SELECT
    session, coalesce(at, (SELECT unixepoch(started_at) * 1000000 FROM sessions WHERE id = session)) / {QUARTER}, model,
    estimated, count(*), sum(picos IS NULL), sum(input), sum(cached), sum(cache_write), sum(output), sum(reasoning), sum(tool),
    sum(total), sum(cache_write_1h), sum(picos / 1000000), sum(picos % 1000000)
FROM requests WHERE own AND {{}} GROUP BY 1, 2, 3, 4
"""  # noqa: S608 - ours
"""What was spent, by the sessions that a condition means."""
_SPENT = SPENT.format("session = ?1")
_CALLS = """
SELECT coalesce(tool_calls.at, messages.at) AS at, model, tool, canonical, status = 'error' AS is_error, took_ms,
    coalesce(lag(status) OVER (PARTITION BY tool ORDER BY seq, place) = 'error', 0) AS is_retry
FROM tool_calls JOIN messages USING (session, seq) WHERE session = ?1 AND NOT copied
"""
_USED = f"""
INSERT INTO used SELECT
    ?1, coalesce(at, {_START}) / {QUARTER}, model, tool, canonical, count(*), sum(is_error), sum(is_retry),
    count(took_ms), sum(took_ms), max(took_ms)
FROM ({_CALLS}) GROUP BY 2, 3, 4, 5
"""  # noqa: S608 - ours
_WORKED = f"""
INSERT INTO worked SELECT
    ?1, coalesce(at, {_START}) / {QUARTER}, sum(is_prompt), sum(iif(gap BETWEEN 0 AND {AWAY}, gap, 0)) / 1000,
    sum(is_compaction), sum(is_call), sum(is_error), sum(is_retry)
FROM (
    SELECT *, at - lag(at) OVER (ORDER BY at) AS gap
    FROM (
        SELECT at, is_prompt, is_event AND role = 'compaction' AS is_compaction, 0 AS is_call, 0 AS is_error, 0 AS is_retry
        FROM messages WHERE session = ?1 AND NOT copied
        UNION ALL SELECT at, 0, 0, 1, is_error, is_retry FROM ({_CALLS})
    )
) GROUP BY 2
"""  # noqa: S608 - ours


def roll_up(connection: apsw.Connection, session: int) -> None:
    """Make the sums of a session anew."""
    for table in TABLES:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 - ours
    add_up(connection, session)


def add_up(connection: apsw.Connection, session: int) -> None:
    """Make the sums of a session that has none."""
    for asked in (_SPENT, _USED, _WORKED):
        connection.execute(asked, (session,))
