"""Rows of the ledger."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from retold.archive.rows import requests_of
from retold.lake.arrow import PLACES
from retold.lake.told import Told
from retold.model.session import COPIES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(told: Told) -> Iterator[tuple[object, ...]]:
    """Yield a row for each request that is the session's own; a copy of one has none."""
    if told.session.kind in COPIES:
        return
    began, ended = told.session.started_at, told.session.ended_at
    for seq, request in requests_of(told.session):
        at = None if request.at is None else _EPOCH + timedelta(microseconds=request.at)
        picos = told.picos.get(request.name)
        cost = None if picos is None else Decimal(picos).scaleb(-PLACES)
        yield (seq, request.name, request.model, at, *request.figures, request.estimated, cost, began, ended)
