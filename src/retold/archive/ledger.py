"""The prices that were used, and what requests cost by them."""

from __future__ import annotations

from retold.model.report import dollars_text

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import apsw

    from retold.archive.store import Store
    from retold.model.rates import Figures

    Price = Callable[[str | None, int | None, Figures], int | None]
    """What a request to a model at a time cost."""


PRICED_BY, PRICED_ON = "priced by", "priced on"
"""Facts: where the prices come from, and from which day they are."""
_FIGURES = "input, cached, cache_write, output, reasoning, tool, total, cache_write_1h"


def kept_rates(record: Store) -> dict[str, str | None]:
    """Return the prices that were used, by model."""
    return dict(record.rows("SELECT model, told FROM rates"))


def keep_rates(record: Store, model: str, told: str | None) -> None:
    """Keep the prices of a model, or that it has none."""
    record.connection.execute("INSERT OR REPLACE INTO rates VALUES (?, ?)", (model, told))


def drop_rates(record: Store) -> None:
    """Let all models be looked up anew."""
    record.connection.execute("DELETE FROM rates")


def reprice(record: Store, price: Price) -> Iterator[int]:
    """Price all requests anew; yield the sessions in which one costs another thing than before."""
    asked = f"SELECT session, name, picos, model, at, {_FIGURES} FROM requests ORDER BY session"  # noqa: S608 - ours
    changed: dict[tuple[int, int], int | None] = {}
    for session, name, picos, model, at, *figures in record.rows(asked):
        if (cost := price(model, at, figures)) != picos:
            changed[session, name] = cost
    told = [(cost, *which) for which, cost in changed.items()]
    record.connection.executemany("UPDATE requests SET picos = ? WHERE session = ? AND name = ?", told)
    return iter({session for session, _ in changed})


def cost_of(record: Store, session: int) -> str | None:
    """Return what the own requests of a session cost that have a price, in dollars; None if none has."""
    asked = "SELECT sum(micros), sum(picos) FROM spent WHERE session = ?"
    micros, picos = next(record.rows(asked, (session,)))
    return None if micros is None else dollars_text(micros * 1_000_000 + picos)


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
