"""The ledger of all homes, priced and summed, where there is no archive yet."""

from __future__ import annotations

from retold.ingest.config import read_config
from retold.ingest.tally import Tally

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from retold.archive.record import Record
    from retold.ingest.counted import Counted
    from retold.ingest.prices import PriceList


def counted(folder: str, env: Mapping[str, str]) -> Record:
    """Return sums as a new archive would have them, of requests alone."""
    from pathlib import Path

    config = read_config(folder)
    tally = Tally(env, [(label, Path(home)) for label, home in config.homes.items()], (), config.excluded)
    # While others count, all else is imported.
    from retold.archive.passing import Passing
    from retold.archive.rates import PRICED_BY, PRICED_ON, keep_rates
    from retold.ingest.price_source import priced_by
    from retold.ingest.prices import PriceList
    from retold.model.rates import rates_text

    prices, record = PriceList(folder), Passing()
    day = prices.date
    conversations = tally.conversations()
    record.put(_sessions(conversations), _requests(conversations, prices))
    for model in {request.model for one in conversations for request in one.requests}:
        rates = None if model is None else prices.rates(model)
        if model is not None and rates is not None:
            keep_rates(record, model, rates_text(rates))
    record.set_fact(PRICED_BY, priced_by(folder))
    record.set_fact(PRICED_ON, day)
    return record


def _sessions(conversations: Sequence[Counted]) -> Iterator[tuple[object, ...]]:
    from retold.model.wire import time_text

    for number, one in enumerate(conversations):
        times = (None if at is None else time_text(at) for at in (one.started_at, one.ended_at))
        project = one.project
        place = (project.root, project.native_key, project.hash, project.evidence)
        yield (number, one.agent, one.key, one.kind, one.parent, *place, *times)


def _requests(conversations: Sequence[Counted], prices: PriceList) -> Iterator[tuple[object, ...]]:
    for number, one in enumerate(conversations):
        for seq, request in enumerate(one.requests):
            rates = None if request.model is None else prices.rates(request.model)
            cost = None if rates is None else rates.cost(request.at, request.figures)
            yield (number, seq, seq, request.model, request.at, *request.figures, request.estimated, cost)
