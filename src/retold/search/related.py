"""Where else to look: sessions that belong to one, or have something to do with it, each with why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from retold.archive.queries.listing import fates, stamp_of
from retold.archive.queries.related import co_changers, namesakes, neighbours, relatives, sharers
from retold.archive.store import Store

MOST = 12
"""Of each kind."""
FILES = 3
"""So many files are named."""
AROUND = 36 * 3600
"""Seconds before and after that are around the same time."""


class Other(msgspec.Struct, frozen=True):
    """Another session, and why it is named."""

    key: str
    title: str | None
    agent: str
    kind: str
    ended_at: str | None
    why: str
    """`parent`, `subagent`, `child`; `messages` or `id` that they share; `files` that both changed; `time`."""
    shared: int = 0
    """Messages or files."""
    files: tuple[str, ...] = ()
    """Some of those, the rarest first."""
    later: int = 0
    """Seconds by which it began later."""


def elsewhere(record: Store, key: str) -> list[Other]:
    """Return the other sessions, those that belong to it first; each once, for the best reason."""
    found: dict[str, Other] = {}
    for one in (*_belonging(record, key), *_with_files(record, key)[:MOST], *_near(record, key)):
        found.setdefault(one.key, one)
    return list(found.values())


def _belonging(record: Store, key: str) -> list[Other]:
    family = [Other(*_told(row), why=why) for why, *row in relatives(record, key, MOST)]
    copies = [
        Other(*_told(row), why="messages", shared=shared) for shared, *row in sharers(record, key, MOST)
    ]
    return [*family, *copies, *(Other(*_told(row), why="id") for row in namesakes(record, key, MOST))]


def _with_files(record: Store, key: str) -> list[Other]:
    """Return those that changed the same files, those first that share most that few others did."""
    rows = list(co_changers(record, key))
    changed = Counter(path for path, *_ in rows)
    paths: dict[str, list[str]] = defaultdict(list)
    told = {}
    for path, *row in rows:
        one = _told(row)
        paths[one[0]].append(path)
        told[one[0]] = one
    weights = {other: sum(1 / changed[path] for path in held) for other, held in paths.items()}
    ranked = sorted(paths, key=lambda other: (-weights[other], other))
    return [
        Other(*told[other], why="files", shared=len(paths[other]), files=_rarest(paths[other], changed))
        for other in ranked
    ]


def _told(row: Sequence[Any]) -> tuple[str, str | None, str, str, str | None]:
    key, title, agent, kind, ended_at = row
    return key, title, agent, kind, ended_at


def _rarest(paths: list[str], changed: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=lambda path: (changed[path], path))[:FILES])


def _near(record: Store, key: str) -> list[Other]:
    return [
        Other(*_told(row), why="time", later=later) for later, *row in neighbours(record, key, AROUND, MOST)
    ]


class SessionState(msgspec.Struct, frozen=True):
    """What can be told without reading it."""

    stamp: str
    """Another when anything in it is."""
    total: int
    """Entries in the full view."""
    fates: dict[str, int]
    """Messages by what became of them."""
    copied: int
    """Messages that another session holds as its own."""


def state(record: Store, key: str) -> SessionState | None:
    """Return how a session stands; None if there is none."""
    stamp = stamp_of(record, key)
    if stamp is None:
        return None
    rows = list(fates(record, key))
    return SessionState(
        stamp.hex(),
        sum(entries for _, entries, *_ in rows),
        {fate: messages for fate, _, messages, _ in rows if messages},
        sum(copied for *_, copied in rows),
    )
