"""The prices that were used, and what requests cost by them."""

from __future__ import annotations

from retold.model.report import dollars_text

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from retold.archive.record import Store
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
