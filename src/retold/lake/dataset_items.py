"""Items of a dataset: sessions and unread files, each with a digest of everything that its rows depend on."""

import os
import secrets
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b

import msgspec

from retold.archive.queries.lookups import (
    RowDependencies,
    load_own_costs,
    load_refusals,
    load_row_dependencies,
)
from retold.archive.rows import unique_requests
from retold.archive.store import Store
from retold.lake.session_rows import RowSource, UnreadFile, month_of
from retold.model.problem import Problem
from retold.model.session import Message, Session
from retold.model.tables import UNKNOWN
from retold.redaction import Redactor
from retold.sessions.load import LoadedSession, load_many

KEY_NAME = "dataset.key"
_KEY_SIZE = 32
_DIGEST_SIZE = 12


class KeyedDigest:
    """Digests with a key. The values, names and passwords, can be guessed; so digests cannot be compared without the key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def hexdigest(self, *values: object) -> str:
        """Return the digest of values: texts, bytes, numbers or None."""
        digest = blake2b(key=self._key, digest_size=_DIGEST_SIZE)
        for value in values:
            data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()


def load_keyed_digest(home: str) -> KeyedDigest:
    """Return the digest with the key in the folder of the archive, which is created if there is none.

    If the key cannot be stored, there is a new one each time, and every dataset is written completely.
    """
    path = os.path.join(home, KEY_NAME)
    try:
        with open(path, "rb") as file:
            key = file.read(_KEY_SIZE + 1)
    except FileNotFoundError:
        key = b""
    if len(key) != _KEY_SIZE:
        key = secrets.token_bytes(_KEY_SIZE)
        _write_key(path, key)
    return KeyedDigest(key)


def _write_key(path: str, key: bytes) -> None:
    draft = f"{path}.{secrets.token_hex(8)}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)


UNREAD = "refused"
"""The name of the item for all unread files of an agent. No name of a session is equal to it."""


class DatasetItem(msgspec.Struct, frozen=True):
    """A session, or all unread files of an agent."""

    name: str
    digest: str
    """Changes with its rows."""
    agent: str
    month: str
    size: int
    """Bytes of its files."""
    key: str | None
    """The key of the session; None for unread files."""


class DatasetOptions(msgspec.Struct, frozen=True):
    """The content of a dataset."""

    keys: frozenset[str]
    """The keys of conversations, each of which includes its subagents."""
    unread_agents: frozenset[str] = frozenset()
    """Agents whose unread files are included."""


def select_items(store: Store, options: DatasetOptions, digest: KeyedDigest) -> list[DatasetItem]:
    """Return the items of a dataset, the earliest sessions first."""
    rows = load_row_dependencies(store)
    keys = _with_subagents(rows, options.keys)
    return [
        *(_session_item(row, digest) for row in rows if row.key in keys),
        *_unread_items(store, options.unread_agents, digest),
    ]


def _session_item(row: RowDependencies, digest: KeyedDigest) -> DatasetItem:
    started_at = None if row.started_at is None else datetime.fromisoformat(row.started_at)
    name, rows_digest = digest.hexdigest("session", row.uid), digest.hexdigest(*row.values)
    return DatasetItem(name, rows_digest, row.agent, month_of(started_at), row.size, row.key)


def _unread_items(store: Store, agents: Collection[str], digest: KeyedDigest) -> Iterator[DatasetItem]:
    values: dict[str, list[object]] = {}
    for agent, *rest in load_refusals(store):
        if agent in agents:
            values.setdefault(agent, []).extend(rest)
    for agent, of_agent in values.items():
        yield DatasetItem(UNREAD, digest.hexdigest(*of_agent), agent, UNKNOWN, 0, None)


def _with_subagents(rows: Iterable[RowDependencies], keys: Collection[str]) -> set[str]:
    """Return keys with those of all subagents below them."""
    below: dict[str, list[str]] = {}
    for row in rows:
        if row.kind == "subagent" and row.parent is not None:
            below.setdefault(row.parent, []).append(row.key)
    chosen: set[str] = set()
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        if key not in chosen:
            chosen.add(key)
            waiting += below.get(key, ())
    return chosen


def load_items(store: Store, items: Iterable[DatasetItem]) -> Iterator[LoadedSession | UnreadFile]:
    """Yield the sessions and the unread files of items."""
    given = list(items)
    yield from load_many(store, [item.key for item in given if item.key is not None])
    agents = {item.agent for item in given if item.key is None}
    for agent, label, refusal in list(load_refusals(store)) if agents else ():
        if agent in agents:
            yield UnreadFile(agent, label, msgspec.json.decode(refusal, type=Problem))


def make_row_source(
    store: Store, item: LoadedSession | UnreadFile, redactor: Redactor | None
) -> RowSource | UnreadFile:
    """Return the source of rows for a session or an unread file, without secrets if there is a redactor."""
    if isinstance(item, UnreadFile):
        return item if redactor is None else redactor.redact_value(item)
    # The redactor learns from it once more: a sync may have changed it since all sessions were learned from.
    session = item.session if redactor is None else redactor.redact(item.session)
    # The ledger says which requests the session owns: a copied message may hold the only record of a request.
    costs = load_own_costs(store, item.id)
    requests = list(unique_requests(_messages_at(session, costs)))
    return RowSource(session, item.uid, {request.name: costs[seq] for seq, request in requests}, requests)


def _messages_at(session: Session, seqs: Collection[int]) -> Iterator[tuple[int, Message]]:
    """Yield the messages with some seqs."""
    for seq, entry in enumerate(session.timeline) if seqs else ():
        if seq in seqs and isinstance(entry, Message):
            yield seq, entry
