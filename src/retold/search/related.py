"""Related sessions: the family of a session, its copies, and sessions with the same files or at the same time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from retold.archive.queries.listing import count_fates, load_stamp
from retold.archive.queries.related import (
    load_co_changers,
    load_namesakes,
    load_neighbours,
    load_relatives,
    load_sharers,
)
from retold.archive.store import Store

_MOST = 12
"""Sessions of each kind."""
_FILES = 3
"""Files that are named."""
_AROUND = 36 * 3600
"""Seconds before and after a session that are the same time."""


class RelatedSession(msgspec.Struct, frozen=True):
    """A related session and the reason."""

    key: str
    title: str | None
    agent: str
    kind: str
    ended_at: str | None
    why: str
    """`parent`, `subagent` or `child`; shared `messages` or a shared `id`; changed `files`; `time`."""
    shared: int = 0
    """The number of shared messages or files."""
    files: tuple[str, ...] = ()
    """Some of the files, those changed by the fewest sessions first."""
    later: int = 0
    """Seconds by which it began later."""


def find_related(store: Store, key: str) -> list[RelatedSession]:
    """Return the related sessions, each once with its strongest reason, the family first."""
    related: dict[str, RelatedSession] = {}
    for one in (
        *_find_family(store, key),
        *_find_by_files(store, key)[:_MOST],
        *_find_by_time(store, key),
    ):
        related.setdefault(one.key, one)
    return list(related.values())


def _related(
    row: Sequence[Any], why: str, shared: int = 0, files: tuple[str, ...] = (), later: int = 0
) -> RelatedSession:
    key, title, agent, kind, ended_at = row
    return RelatedSession(key, title, agent, kind, ended_at, why, shared, files, later)


def _find_family(store: Store, key: str) -> Iterator[RelatedSession]:
    for why, *row in load_relatives(store, key, _MOST):
        yield _related(row, why)
    for shared, *row in load_sharers(store, key, _MOST):
        yield _related(row, "messages", shared)
    for namesake in load_namesakes(store, key, _MOST):
        yield _related(namesake, "id")


def _find_by_files(store: Store, key: str) -> list[RelatedSession]:
    """Return the sessions that changed the same files, those first with most files that few others changed."""
    rows = list(load_co_changers(store, key))
    changed = Counter(path for path, *_ in rows)
    paths: dict[str, list[str]] = defaultdict(list)
    sessions = {}
    for path, *session in rows:
        paths[session[0]].append(path)
        sessions[session[0]] = session
    weights = {other: sum(1 / changed[path] for path in of_other) for other, of_other in paths.items()}
    related = []
    for other in sorted(paths, key=lambda other: (-weights[other], other)):
        rarest = sorted(paths[other], key=lambda path: (changed[path], path))[:_FILES]
        related.append(_related(sessions[other], "files", len(paths[other]), tuple(rarest)))
    return related


def _find_by_time(store: Store, key: str) -> Iterator[RelatedSession]:
    for later, *row in load_neighbours(store, key, _AROUND, _MOST):
        yield _related(row, "time", later=later)


class SessionState(msgspec.Struct, frozen=True):
    """The state of a session in the archive, without its content."""

    stamp: str
    """Changes with the session."""
    total: int
    """The number of entries in the full view."""
    fates: dict[str, int]
    """The number of messages by fate."""
    copied: int
    """The number of messages that belong to another session."""


def load_state(store: Store, key: str) -> SessionState | None:
    """Return the state of a session; None if there is none."""
    stamp = load_stamp(store, key)
    if stamp is None:
        return None
    rows = list(count_fates(store, key))
    return SessionState(
        stamp.hex(),
        sum(entries for _, entries, *_ in rows),
        {fate: messages for fate, _, messages, _ in rows if messages},
        sum(copied for *_, copied in rows),
    )
