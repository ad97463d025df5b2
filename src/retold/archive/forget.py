"""Forgetting: sessions are removed from the tables and the originals, and only tombstones are left."""

import json
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from retold.archive.annotations import HiddenPaths, KeyedSet, folders_below, mark_forgotten, remove_forgotten
from retold.archive.database import empty_log
from retold.archive.relations import resolve_relations
from retold.archive.store import FORGETTING, Packer, Store, as_path, as_stored, digest, sample_checksum
from retold.archive.writer import EMPTY_SIZE, Writer

_OWN_SOURCES = """
SELECT DISTINCT source FROM session_sources WHERE session = ?1
AND NOT EXISTS (SELECT 1 FROM session_sources other WHERE other.source = session_sources.source AND other.session <> ?1)
"""
_SESSION_BELOW = "SELECT 1 FROM sources JOIN session_sources ON source = sources.id WHERE agent = ? AND path >= ? AND path < ?"


def forget_sessions(store: Store, sessions: Iterable[int], related: Iterable[int], revision: int) -> None:
    """Remove sessions, and note that the index still has them and what is related to them."""
    store.connection.execute("PRAGMA secure_delete = ON")
    with store.connection:
        writer = Writer(store, revision, lambda _model, _at, _figures: None)  # it only removes
        hidden, erased = HiddenPaths(store), ErasedPlaces(set(), {}, set())
        uids = [_erase_session(store, session, writer, hidden, erased) for session in sorted(sessions)]
        for agent in {agent for agent, _ in erased.ids}:
            _drop_companions(store, agent, erased)
        _hide_roots(store, hidden, erased.roots)
        resolve_relations(store, writer.changed_sessions)
        store.originals.remove_unused_chunks()
        earlier, earlier_related = load_unfinished(store) or ([], [])
        store.set_fact(FORGETTING, json.dumps([[*earlier, *uids], [*earlier_related, *related]]))


def load_unfinished(store: Store) -> tuple[list[int], list[int]] | None:
    """Return the uids of erased sessions, and of related ones, that the index may still have; None if there are none."""
    fact = store.fact(FORGETTING)
    if fact is None:
        return None
    uids, related = json.loads(fact)
    return uids, related


def rewrite_archive(store: Store) -> bool:
    """Rewrite the archive without the bytes of erased sessions; return False if some may be left.

    Free pages and the write-ahead log still have those bytes. A process that reads the archive at the same time can prevent the log
    from being emptied.
    """
    store.connection.execute("VACUUM")
    if not empty_log(store.connection):
        return False
    with store.connection:
        store.connection.execute("DELETE FROM facts WHERE name = ?", (FORGETTING,))
    return True


class ErasedPlaces(NamedTuple):
    """The places of the erased sessions."""

    roots: set[str]
    ids: dict[tuple[str, str | None], set[str]]
    """The agents' own ids, by agent and cluster."""
    folders: set[tuple[str, str]]
    """Agents and folders of their files, up to the agent's home."""


def _erase_session(
    store: Store, session: int, writer: Writer, hidden: HiddenPaths, erased: ErasedPlaces
) -> int:
    sql = "SELECT uid, native_id, agent, cluster, root FROM sessions WHERE id = ?"
    uid, native_id, agent, cluster, root = next(store.rows(sql, (session,)))
    erased.roots.update([root] if root else [])
    native = digest(native_id.encode()) if native_id else None
    own = [source for (source,) in store.rows(_OWN_SOURCES, (session,))]
    for source in own:
        _drop_originals(store, source)
    sql = "SELECT source FROM session_sources WHERE session = ?"
    shared = [source for (source,) in store.rows(sql, (session,))]
    erased.ids.setdefault((agent, cluster), set()).update([native_id] if native_id else [])
    erased.folders.update((agent, folder) for folder in _folders(store, shared))
    mark_forgotten(store, uid, native, datetime.now(UTC).isoformat(timespec="seconds"))
    writer.remove_session(session)
    if native is not None:
        _remove_from_shared(store, shared, native)
    for source in {*own, *shared}:
        _hide_if_empty(store, source, hidden)
    return int(uid)


def _hide_if_empty(store: Store, source: int, hidden: HiddenPaths) -> None:
    """Hide the path of a file without archived content; its row stays, so that a sync recognises it."""
    if store.row("SELECT 1 FROM session_sources WHERE source = ?", (source,)) is not None:
        return
    left = store.row("SELECT max(size) FROM originals WHERE source = ?", (source,))
    if left is not None and (left[0] or 0) > EMPTY_SIZE:
        return
    _drop_originals(store, source)
    row = store.row("SELECT path, home, cluster FROM sources WHERE id = ?", (source,))
    if row is not None:
        hidden.hide_source(source, as_path(row[0]), as_path(row[1]), row[2])


def _hide_roots(store: Store, hidden: HiddenPaths, roots: Iterable[str]) -> None:
    """Hide roots of projects that have no session any more."""
    for root in roots:
        if store.row("SELECT 1 FROM sessions WHERE root = ?", (root,)) is None:
            hidden.hide([root])
            for table in ("clues", "roots"):
                store.connection.execute(f"DELETE FROM {table} WHERE root = ?", (root,))  # noqa: S608 - ours
    # They name every file and folder that a sync looked at.
    store.connection.execute("DELETE FROM dependencies")


def _drop_originals(store: Store, source: int) -> None:
    for (original,) in list(store.rows("SELECT id FROM originals WHERE source = ?", (source,))):
        store.originals.drop(original)


def _folders(store: Store, sources: Iterable[int]) -> Iterator[str]:
    for source in sources:
        row = store.row("SELECT path, home FROM sources WHERE id = ?", (source,))
        if row is not None:
            yield from folders_below(as_path(row[0]), as_path(row[1]))


def _drop_companions(store: Store, agent: str, erased: ErasedPlaces) -> None:
    """Delete companions of the files of erased sessions: those with an id of theirs, and those that belong to no other session."""
    sql = "SELECT id, path, cluster FROM sources WHERE agent = ? AND is_companion"
    for source, stored, cluster in list(store.rows(sql, (agent,))):
        path = as_path(stored)
        folder = os.path.dirname(path)
        if (agent, cluster) not in erased.ids and (agent, folder) not in erased.folders:
            continue
        if any(native_id in path for native_id in erased.ids.get((agent, cluster), ())):
            _drop_source(store, source)
        elif store.row("SELECT 1 FROM sessions WHERE agent = ? AND cluster = ?", (agent, cluster)) is None:
            first, last = as_stored(f"{folder}{os.sep}"), as_stored(f"{folder}{chr(ord(os.sep) + 1)}")
            if store.row(_SESSION_BELOW, (agent, first, last)) is not None:
                store.connection.execute("UPDATE sources SET cluster = NULL WHERE id = ?", (source,))
            else:
                _drop_source(store, source)


def _drop_source(store: Store, source: int) -> None:
    """Delete a file with its originals; its row stays if a session was read from it."""
    _drop_originals(store, source)
    store.connection.execute(
        "DELETE FROM sources WHERE id = ? AND NOT EXISTS (SELECT 1 FROM session_sources WHERE source = ?)",
        (source, source),
    )


def _remove_from_shared(store: Store, sources: Iterable[int], native: bytes) -> None:
    """Remove a session from files that hold other sessions as well."""
    for source in sources:
        for (original,) in list(store.rows("SELECT id FROM originals WHERE source = ?", (source,))):
            data = remove_forgotten(store.originals.read(original), KeyedSet(more=(native,)))
            packer = Packer()
            packer.add(data)
            store.originals.write(original, packer.finish())
            checksum = sample_checksum(len(data), lambda start, size, data=data: data[start : start + size])  # type: ignore[misc]
            state = (len(data), checksum, original)
            store.connection.execute("UPDATE originals SET size = ?, checksum = ? WHERE id = ?", state)
