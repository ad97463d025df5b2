"""Jobs to batches of Arrow: the rows of one table, whatever happens on the way."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from retold.agents.protocol import Agent, Reading
from retold.agents.registry import AGENTS
from retold.archive.rows import held_requests, held_totals
from retold.lake.arrow import batch_of, schema_of
from retold.lake.jobs import TableJob, failed
from retold.lake.rows import Row, rows_of
from retold.lake.session_rows import RowSource, UnreadFile
from retold.model.problem import Problem
from retold.model.report import dollars
from retold.model.session import Clue, Session
from retold.model.tables import TABLES
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


MOST_ROWS = 10_000
MOST_LETTERS = 8 << 20
"""Of what was said at length, in one batch."""
_OWNERS = frozenset(("agent", "home", "session"))
_LOG = logging.getLogger(__name__)


class TableRequest(msgspec.Struct, frozen=True):
    """What is asked of jobs: some columns of a table, in the order of the schema."""

    table: str
    schema: pa.Schema

    def cut(self) -> Callable[[Row], Row] | None:
        """Return what takes the wanted columns out of a row; None where it is all of them."""
        if self.schema.names == TABLES[self.table].names:
            return None
        places = [TABLES[self.table].names.index(name) for name in self.schema.names]
        return lambda row: tuple([row[place] for place in places])

    def lengths(self) -> Callable[[Row], int] | None:
        """Return what tells how much was said in a row that was cut; None where nothing is."""
        long = {column.name for column in TABLES[self.table].columns if column.is_said}
        places = [place for place, name in enumerate(self.schema.names) if name in long]
        if not places:
            return None
        return lambda row: sum([len(str(row[place] or "")) for place in places])


def batches(
    wanted: TableRequest,
    jobs: Iterable[TableJob],
    clues: Mapping[str, Sequence[Clue]],
    refused: Iterable[UnreadFile] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of jobs, and of what stood in the way of looking, in batches that are neither large nor many."""
    cut, length = wanted.cut(), wanted.lengths()
    rows: list[Row] = []
    letters = 0
    found = _rows(wanted.table, jobs, clues, refused)
    for row in found if cut is None else map(cut, found):
        rows.append(row)
        if length is not None:
            letters += length(row)
        if len(rows) >= MOST_ROWS or letters >= MOST_LETTERS:
            yield from _batched(wanted.schema, rows)
            rows, letters = [], 0
    if rows:
        yield from _batched(wanted.schema, rows)


def _rows(
    table: str, jobs: Iterable[TableJob], clues: Mapping[str, Sequence[Clue]], refused: Iterable[UnreadFile]
) -> Iterator[Row]:
    for one in refused:
        yield from rows_of(table, one)
    atlas = Atlas(clues, {}, "")
    for job in jobs:
        yield from _rows_of_job(table, job, atlas)
        # What one job proves of a project would else be told of others, or not, by who is read together.
        for name in atlas.proven:
            atlas.by_hash.pop(name, None)
        atlas.proven.clear()


def _rows_of_job(table: str, job: TableJob, atlas: Atlas) -> Iterator[Row]:
    try:
        for one in told(job, atlas, prices().cost):
            yield from _rows_of_one(table, one, job)
    except Exception as error:  # noqa: BLE001 - the top of a task
        # A bug of ours in one cluster must not cost the others, nor be passed over.
        yield from rows_of(table, _failed(job, error))


def _rows_of_one(table: str, one: RowSource | UnreadFile, job: TableJob) -> Iterator[Row]:
    try:
        rows = list(rows_of(table, one))
    except Exception as error:  # noqa: BLE001 - the same, for one conversation
        rows = list(rows_of(table, _failed(job, error)))
    yield from rows
    if table == "problems":
        try:
            _try_all(one)
        except Exception as error:  # noqa: BLE001 - the same
            yield from rows_of(table, _failed(job, error))


def _try_all(one: RowSource | UnreadFile) -> None:
    """Make all tables of a session, so that the table of problems tells as well where one of the others lacks a row."""
    for table in TABLES:
        batch_of(schema_of(table), list(rows_of(table, one)))


def _failed(job: TableJob, error: Exception) -> UnreadFile:
    first = job.sources[0] if job.sources else None
    home, path = (None, "") if first is None else (first.label, first.shown)
    return failed(job.agent, home, path, error)


def _batched(schema: pa.Schema, rows: Sequence[Row]) -> Iterator[pa.RecordBatch]:
    """Yield rows as a batch; one that Arrow does not take is left out, told in the log by whose it is, and a problem: see `_try_all`."""
    try:
        yield batch_of(schema, rows)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        if len(rows) == 1:
            _LOG.exception("a row that Arrow does not take: %s", _whose(schema, rows[0]))
            return
        middle = len(rows) // 2
        yield from _batched(schema, rows[:middle])
        yield from _batched(schema, rows[middle:])


def _whose(schema: pa.Schema, row: Row) -> str:
    """Return whose a row is, as far as its columns tell; nothing that was said."""
    told = zip(schema.names, row, strict=True)
    return ", ".join(f"{name} {value!r}" for name, value in told if name in _OWNERS)
