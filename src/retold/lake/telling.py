"""Items read from the archive, as rows are made of them, without secrets where that is asked for."""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from retold.archive.queries.lookups import own_requests, refusals
from retold.archive.rows import requests_in
from retold.archive.store import Store
from retold.lake.items import DatasetItem
from retold.lake.told import RowSource, UnreadFile
from retold.model.problem import Problem
from retold.model.session import Message, Session
from retold.redaction import Redactor
from retold.sessions.load import load_many

Kept = tuple[int, int, Session]
"""A session with its id and its name in the archive."""


def kept(record: Store, items: Iterable[DatasetItem]) -> Iterator[Kept | UnreadFile]:
    """Yield what items are: sessions, and files that hold none."""
    given = list(items)
    yield from load_many(record, [item.key for item in given if item.key is not None])
    agents = {item.agent for item in given if item.key is None}
    for agent, label, refusal in list(refusals(record)) if agents else ():
        if agent in agents:
            yield UnreadFile(agent, label, msgspec.json.decode(refusal, type=Problem))


def as_told(record: Store, found: Kept | UnreadFile, redactor: Redactor | None) -> RowSource | UnreadFile:
    """Return what rows are made of; nothing that this redactor knows or finds is in it."""
    if isinstance(found, UnreadFile):
        return found if redactor is None else redactor.redacted_value(found)
    number, name, session = found
    # It is learned from once more: a sync may have brought something since all sessions were learned from.
    quiet = session if redactor is None else redactor.redacted(session)
    # Who owns a request, the ledger says: a message may be a copy, and yet what it took be told nowhere else.
    known = own_requests(record, number)
    requests = list(requests_in(_at(quiet, known)))
    return RowSource(quiet, name, {request.name: known[seq] for seq, request in requests}, requests)


def _at(session: Session, places: Collection[int]) -> Iterator[tuple[int, Message]]:
    """Yield the messages at some places of a timeline."""
    for seq, entry in enumerate(session.timeline) if places else ():
        if seq in places and isinstance(entry, Message):
            yield seq, entry
