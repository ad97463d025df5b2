"""What a dataset is made of: sessions, and the files that hold none, each with a mark of all that its rows depend on."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

import msgspec

from retold.archive.queries.lookups import RowDependencies, grounds, refusals
from retold.archive.store import Store
from retold.lake.seal import Seal
from retold.lake.told import month_of
from retold.model.tables import UNKNOWN

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
