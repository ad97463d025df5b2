"""Rows of the ledger."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from retold.archive.rows import requests_of
from retold.lake.rows.figures import dollars_in
from retold.lake.told import RowSource
from retold.model.session import COPIES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def request_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each request that is the session's own; a copy of one has none."""
    if told.session.kind in COPIES:
        return
    began, ended = told.session.started_at, told.session.ended_at
    for seq, request in requests_of(told.session) if told.requests is None else told.requests:
        at = None if request.at is None else _EPOCH + timedelta(microseconds=request.at)
        picos = told.picos.get(request.name)
        cost = None if picos is None else dollars_in(picos)
        yield (seq, request.name, request.model, at, *request.figures, request.estimated, cost, began, ended)
