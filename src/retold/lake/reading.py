"""A job to the sessions in it: the same reading as a sync's, without an archive."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from retold.agents.protocol import Agent, Reading
from retold.agents.registry import AGENTS
from retold.archive.rows import held_requests, held_totals
from retold.lake.job import TableJob
from retold.lake.told import RowSource, UnreadFile
from retold.model.problem import Problem
from retold.model.report import dollars
from retold.model.session import Session
from retold.projects.resolver import Atlas
from retold.sessions.conversations import conversation_name, conversations, scraps
from retold.synchronization.prices import PriceList

if TYPE_CHECKING:
    from retold.archive.ledger import Price
    from retold.model.rates import Figures


@cache
def prices() -> "TablePrices":
    """Return the prices that everyone has; looked up once in a process."""
    return TablePrices()


class TablePrices:
    """What requests cost, by the price library."""

    def __init__(self) -> None:
        self._list = PriceList(None)

    def cost(self, model: str | None, at: int | None, figures: "Figures") -> int | None:
        """Return what a request cost; None where no price is known."""
        rates = None if model is None else self._list.rates(model)
        return None if rates is None else rates.cost(at, figures)


def told(job: TableJob, atlas: Atlas, price: "Price") -> Iterator[RowSource | UnreadFile]:
    """Yield the sessions of a job, and the files that hold none."""
    agent = AGENTS[job.agent]
    readings: list[Reading] = []
    for source in job.sources:
        found = agent.read(source)
        if isinstance(found, Problem):
            yield UnreadFile(agent.NAME, source.label, found)
        else:
            readings += found
    for group, session in _sessions(agent, readings, job):
        placed = msgspec.structs.replace(session, project=atlas.project(session))
        yield _priced(placed, conversation_name(agent, group), price)


def _sessions(agent: Agent, readings: list[Reading], job: TableJob) -> Iterator[tuple[str, Session]]:
    """Yield the conversations of a cluster by their groups, those last of which only other files tell."""
    said = scraps(agent, (reading for told in job.said.values() for reading in told))
    used: set[int] = set()
    for group, told, session in conversations(agent, readings, said):
        used.update(map(id, told))
        yield group, session
    for group, left in said.groups.items():
        if not any(id(reading) in used for reading in left):
            yield group, agent.join(left)


def _priced(session: Session, name: int, price: "Price") -> RowSource:
    requests = list(held_requests(session))
    picos: Mapping[str, int | None] = {
        request.name: price(request.model, request.at, request.figures) for _, request in requests
    }
    known = [one for one in picos.values() if one is not None]
    cost = dollars(sum(known)) if known else None
    whole = msgspec.structs.replace(session, cost_usd=cost, usage=held_totals(session))
    return RowSource(whole, name, picos, requests)
