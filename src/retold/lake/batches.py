"""Batches: the rows of one table from jobs, in Arrow. A failure costs the rows of one conversation at most."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from retold.agents.protocol import Agent, Reading
from retold.agents.registry import AGENTS
from retold.archive.rows import requests_with_copies, totals_with_copies
from retold.lake.arrow import make_batch, schema_of
from retold.lake.jobs import TableJob, report_failure
from retold.lake.session_rows import Row, RowSource, UnreadFile, table_rows
from retold.model.problem import Problem
from retold.model.report import to_dollars
from retold.model.session import Clue, Session
from retold.model.tables import TABLES
from retold.projects.resolver import ProjectResolver
from retold.sessions.conversations import conversation_uid, group_scraps, join_conversations
from retold.synchronization.prices import PriceList

if TYPE_CHECKING:
    from retold.archive.ledger import Price
    from retold.model.rates import Figures


@cache
def load_prices() -> "TablePrices":
    """Return the prices of the price library, loaded once in a process."""
    return TablePrices()


class TablePrices:
    """The costs of requests by the price library, without own prices."""

    def __init__(self) -> None:
        self._list = PriceList(None)

    def cost(self, model: str | None, at: int | None, figures: "Figures") -> int | None:
        """Return the cost of a request in millionths of a millionth of a dollar; None if its price is unknown."""
        rates = None if model is None else self._list.rates(model)
        return None if rates is None else rates.cost(at, figures)


def read_sessions(
    job: TableJob, resolver: ProjectResolver, price: "Price"
) -> Iterator[RowSource | UnreadFile]:
    """Yield the sessions of a job, and its files without a session."""
    agent = AGENTS[job.agent]
    readings: list[Reading] = []
    for source in job.sources:
        result = agent.read(source)
        if isinstance(result, Problem):
            yield UnreadFile(agent.NAME, source.label, result)
        else:
            readings += result
    for group, session in _sessions(agent, readings, job):
        placed = msgspec.structs.replace(session, project=resolver.resolve(session))
        yield _add_prices(placed, conversation_uid(agent, group), price)


def _sessions(agent: Agent, readings: list[Reading], job: TableJob) -> Iterator[tuple[str, Session]]:
    """Yield the conversations of a cluster with their groups; those known from scraps only come last."""
    scraps = group_scraps(agent, (reading for group in job.scraps.values() for reading in group))
    used: set[int] = set()
    for group, joined, session in join_conversations(agent, readings, scraps):
        used.update(map(id, joined))
        yield group, session
    for group, rest in scraps.groups.items():
        if not any(id(reading) in used for reading in rest):
            yield group, agent.join(rest)


def _add_prices(session: Session, uid: int, price: "Price") -> RowSource:
    requests = list(requests_with_copies(session))
    picos: Mapping[str, int | None] = {
        request.name: price(request.model, request.at, request.figures) for _, request in requests
    }
    known = [cost for cost in picos.values() if cost is not None]
    cost = to_dollars(sum(known)) if known else None
    whole = msgspec.structs.replace(session, cost_usd=cost, usage=totals_with_copies(session))
    return RowSource(whole, uid, picos, requests)


MOST_ROWS = 10_000
MOST_CHARACTERS = 8 << 20
"""Characters of long texts in one batch."""
_OWNERS = frozenset(("agent", "home", "session"))
_LOG = logging.getLogger(__name__)


class TableRequest(msgspec.Struct, frozen=True):
    """A table and its columns, in the order of the schema."""

    table: str
    schema: pa.Schema

    def column_selector(self) -> Callable[[Row], Row] | None:
        """Return a function that selects the columns from a row; None if all columns are requested."""
        if self.schema.names == TABLES[self.table].names:
            return None
        indexes = [TABLES[self.table].names.index(name) for name in self.schema.names]
        return lambda row: tuple([row[index] for index in indexes])

    def text_counter(self) -> Callable[[Row], int] | None:
        """Return a function that counts the characters of long texts in selected columns; None if there are none."""
        long = {column.name for column in TABLES[self.table].columns if column.is_said}
        indexes = [index for index, name in enumerate(self.schema.names) if name in long]
        if not indexes:
            return None
        return lambda row: sum([len(str(row[index] or "")) for index in indexes])


def read_batches(
    request: TableRequest,
    jobs: Iterable[TableJob],
    clues: Mapping[str, Sequence[Clue]],
    unread: Iterable[UnreadFile] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of jobs and unread files in batches of a limited size."""
    select, count = request.column_selector(), request.text_counter()
    batch: list[Row] = []
    characters = 0
    rows = _rows(request.table, jobs, clues, unread)
    for row in rows if select is None else map(select, rows):
        batch.append(row)
        if count is not None:
            characters += count(row)
        if len(batch) >= MOST_ROWS or characters >= MOST_CHARACTERS:
            yield from _make_batches(request.schema, batch)
            batch, characters = [], 0
    if batch:
        yield from _make_batches(request.schema, batch)


def _rows(
    table: str, jobs: Iterable[TableJob], clues: Mapping[str, Sequence[Clue]], unread: Iterable[UnreadFile]
) -> Iterator[Row]:
    for file in unread:
        yield from table_rows(table, file)
    resolver = ProjectResolver(clues, {}, "")
    for job in jobs:
        yield from _rows_of_job(table, job, resolver)
        # Roots that one job proves must not reach others: the rows would depend on which jobs are read together.
        for name in resolver.found_roots:
            resolver.by_hash.pop(name, None)
        resolver.found_roots.clear()


def _rows_of_job(table: str, job: TableJob, resolver: ProjectResolver) -> Iterator[Row]:
    try:
        for source in read_sessions(job, resolver, load_prices().cost):
            yield from _rows_of_source(table, source, job)
    except Exception as error:  # noqa: BLE001 - a bug in one cluster must not cost the others, and is reported
        yield from table_rows(table, _report(job, error))


def _rows_of_source(table: str, source: RowSource | UnreadFile, job: TableJob) -> Iterator[Row]:
    try:
        rows = list(table_rows(table, source))
    except Exception as error:  # noqa: BLE001 - the same for one conversation
        rows = list(table_rows(table, _report(job, error)))
    yield from rows
    if table == "problems":
        try:
            for name in TABLES:  # so that the problems include rows that another table lacks
                make_batch(schema_of(name), list(table_rows(name, source)))
        except Exception as error:  # noqa: BLE001 - the same
            yield from table_rows(table, _report(job, error))


def _report(job: TableJob, error: Exception) -> UnreadFile:
    first = job.sources[0] if job.sources else None
    home, path = (None, "") if first is None else (first.label, first.display_path)
    return report_failure(job.agent, home, path, error)


def _make_batches(schema: pa.Schema, rows: Sequence[Row]) -> Iterator[pa.RecordBatch]:
    """Yield rows as a batch; leave out a row that Arrow rejects, and log its owner. The table of problems has it as well."""
    try:
        yield make_batch(schema, rows)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        if len(rows) == 1:
            _LOG.exception("a row that Arrow does not take: %s", _describe_owner(schema, rows[0]))
            return
        middle = len(rows) // 2
        yield from _make_batches(schema, rows[:middle])
        yield from _make_batches(schema, rows[middle:])


def _describe_owner(schema: pa.Schema, row: Row) -> str:
    """Return the agent, home and session of a row, without any content."""
    values = zip(schema.names, row, strict=True)
    return ", ".join(f"{name} {value!r}" for name, value in values if name in _OWNERS)
