"""What a dataset is made of: sessions, and the files that hold none, each with a mark of all that its rows depend on."""

import os
import secrets
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b

import msgspec

from retold.archive.queries.lookups import RowDependencies, grounds, own_requests, refusals
from retold.archive.rows import requests_in
from retold.archive.store import Store
from retold.lake.session_rows import RowSource, UnreadFile, month_of
from retold.model.problem import Problem
from retold.model.session import Message, Session
from retold.model.tables import UNKNOWN
from retold.redaction import Redactor
from retold.sessions.load import load_many

NAME = "dataset.key"
_SIZE = 32
_DIGEST = 12


class Seal:
    """Makes digests. What it is given may be guessed, a name or a password; so none can be compared without the key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, *told: object) -> str:
        """Return the digest of some values: texts, bytes, numbers or nothing."""
        digest = blake2b(key=self._key, digest_size=_DIGEST)
        for one in told:
            data = one if isinstance(one, bytes) else repr(one).encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()


def kept_seal(home: str) -> Seal:
    """Return the seal of whoever keeps the archive in a folder, made if there is none.

    Where none can be kept there is a new one each time, and no dataset is known again.
    """
    path = os.path.join(home, NAME)
    try:
        with open(path, "rb") as file:
            key = file.read(_SIZE + 1)
    except FileNotFoundError:
        key = b""
    if len(key) != _SIZE:
        key = secrets.token_bytes(_SIZE)
        _keep(path, key)
    return Seal(key)


def _keep(path: str, key: bytes) -> None:
    draft = f"{path}.{secrets.token_hex(8)}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)


REFUSED = "refused"
"""How the files of an agent that hold no session are named, as names of sessions never are."""


class DatasetItem(msgspec.Struct, frozen=True):
    """Something that makes rows."""

    name: str
    mark: str
    """The same as long as its rows are."""
    agent: str
    month: str
    size: int
    """The bytes of its files."""
    key: str | None
    """Of the session; none for all files of an agent that hold none."""


class DatasetOptions(msgspec.Struct, frozen=True):
    """What a dataset is to hold."""

    keys: frozenset[str]
    """Conversations, each with the subagents below it."""
    refused: frozenset[str] = frozenset()
    """Agents whose files that hold no conversation are told of as well."""


def items(record: Store, choice: DatasetOptions, seal: Seal) -> list[DatasetItem]:
    """Return all that is chosen, the earliest sessions first."""
    found = grounds(record)
    chosen = _with_subagents(found, choice.keys)
    return [
        *(_item(one, seal) for one in found if one.key in chosen),
        *_refused(record, choice.refused, seal),
    ]


def _item(ground: RowDependencies, seal: Seal) -> DatasetItem:
    began = None if ground.started_at is None else datetime.fromisoformat(ground.started_at)
    name, mark = seal.of("session", ground.name), seal.of(*ground.told)
    return DatasetItem(name, mark, ground.agent, month_of(began), ground.size, ground.key)


def _refused(record: Store, agents: Collection[str], seal: Seal) -> Iterator[DatasetItem]:
    told: dict[str, list[object]] = {}
    for agent, *rest in refusals(record):
        if agent in agents:
            told.setdefault(agent, []).extend(rest)
    for agent, rows in told.items():
        yield DatasetItem(REFUSED, seal.of(*rows), agent, UNKNOWN, 0, None)


def _with_subagents(found: Iterable[RowDependencies], keys: Collection[str]) -> set[str]:
    """Return keys with those of all subagents below them."""
    below: dict[str, list[str]] = {}
    for one in found:
        if one.kind == "subagent" and one.parent is not None:
            below.setdefault(one.parent, []).append(one.key)
    chosen: set[str] = set()
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        if key not in chosen:
            chosen.add(key)
            waiting += below.get(key, ())
    return chosen


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
