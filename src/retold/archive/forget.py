"""Sessions out of the record and their words out of the originals, so that nothing is left of them but a tombstone."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from retold.archive.annotations import mark_forgotten, remove_forgotten
from retold.archive.database import is_log_emptied
from retold.archive.keyed_hashes import HiddenPaths, KeyedSet, folders_below
from retold.archive.relations import resolve_relations
from retold.archive.store import FORGETTING, Packer, Store, as_path, as_stored, digest, seal
from retold.archive.writer import NOTHING, Writer

_ONLY_THEIRS = """
SELECT DISTINCT source FROM session_sources WHERE session = ?1
AND NOT EXISTS (SELECT 1 FROM session_sources other WHERE other.source = session_sources.source AND other.session <> ?1)
"""
_IN_FOLDER = "SELECT 1 FROM sources JOIN session_sources ON source = sources.id WHERE agent = ? AND path >= ? AND path < ?"


def forget_sessions(record: Store, sessions: Iterable[int], related: Iterable[int], revision: int) -> None:
    """Remove all that is kept of sessions, and note that the index still holds them and what is related to them."""
    record.connection.execute("PRAGMA secure_delete = ON")
    with record.connection:
        writer = Writer(record, revision, lambda _model, _at, _figures: None)  # it only removes
        hidden, gone = HiddenPaths(record), Gone(set(), {}, set())
        names = [_erase_one(record, session, writer, hidden, gone) for session in sorted(sessions)]
        for agent in {agent for agent, _ in gone.ids}:
            _drop_beside(record, agent, gone)
        _hide_roots(record, hidden, gone.roots)
        resolve_relations(record, writer.touched)
        record.originals.sweep()
        earlier, earlier_related = unfinished(record) or ([], [])
        record.set_fact(FORGETTING, json.dumps([[*earlier, *names], [*earlier_related, *related]]))


def unfinished(record: Store) -> tuple[list[int], list[int]] | None:
    """Return the names of erased sessions, and of related ones, that the index may still hold; None if there are none."""
    noted = record.fact(FORGETTING)
    if noted is None:
        return None
    names, related = json.loads(noted)
    return names, related


def finish(record: Store) -> bool:
    """Rewrite the archive without the bytes of erased sessions; return False if some may be left.

    Free pages and the write-ahead log still hold those bytes. A process that reads the archive at the same time can
    prevent that the log is emptied.
    """
    record.connection.execute("VACUUM")
    if not is_log_emptied(record.connection):
        return False
    with record.connection:
        record.connection.execute("DELETE FROM facts WHERE name = ?", (FORGETTING,))
    return True


class Gone(NamedTuple):
    """Where the erased sessions were."""

    roots: set[str]
    ids: dict[tuple[str, str | None], set[str]]
    """By agent and cluster, the agent's own ids."""
    folders: set[tuple[str, str]]
    """By agent, those in which their files lay, up to the agent's home."""


def _erase_one(record: Store, session: int, writer: Writer, hidden: HiddenPaths, gone: Gone) -> int:
    asked = "SELECT name, native_id, agent, cluster, root FROM sessions WHERE id = ?"
    name, native_id, agent, cluster, root = next(record.rows(asked, (session,)))
    gone.roots.update([root] if root else [])
    native = digest(native_id.encode()) if native_id else None
    own = [source for (source,) in record.rows(_ONLY_THEIRS, (session,))]
    for source in own:
        _drop_originals(record, source)
    shared = [
        one for (one,) in record.rows("SELECT source FROM session_sources WHERE session = ?", (session,))
    ]
    gone.ids.setdefault((agent, cluster), set()).update([native_id] if native_id else [])
    gone.folders.update((agent, folder) for folder in _folders(record, shared))
    mark_forgotten(record, name, native, datetime.now(UTC).isoformat(timespec="seconds"))
    writer.remove_session(session)
    if native is not None:
        _strike(record, shared, native)
    for source in {*own, *shared}:
        _hide_if_empty(record, source, hidden)
    return int(name)


def _hide_if_empty(record: Store, source: int, hidden: HiddenPaths) -> None:
    """Hide the path of a file without archived content; its row stays, so a sync recognises it."""
    if record.row("SELECT 1 FROM session_sources WHERE source = ?", (source,)) is not None:
        return
    left = record.row("SELECT max(size) FROM originals WHERE source = ?", (source,))
    if left is not None and (left[0] or 0) > NOTHING:
        return
    _drop_originals(record, source)
    row = record.row("SELECT path, home, cluster FROM sources WHERE id = ?", (source,))
    if row is not None:
        hidden.hide_source(source, as_path(row[0]), as_path(row[1]), row[2])


def _hide_roots(record: Store, hidden: HiddenPaths, roots: Iterable[str]) -> None:
    """Keep nothing that names the folder of a project of which no session is left."""
    for root in roots:
        if record.row("SELECT 1 FROM sessions WHERE root = ?", (root,)) is None:
            hidden.hide([root])
            for table in ("clues", "roots"):
                record.connection.execute(f"DELETE FROM {table} WHERE root = ?", (root,))  # noqa: S608 - ours
    # They name every file and folder that a sync looked at: the next sync looks again.
    record.connection.execute("DELETE FROM answers")


def _drop_originals(record: Store, source: int) -> None:
    for (original,) in list(record.rows("SELECT id FROM originals WHERE source = ?", (source,))):
        record.originals.drop(original)


def _folders(record: Store, sources: Iterable[int]) -> Iterator[str]:
    for source in sources:
        row = record.row("SELECT path, home FROM sources WHERE id = ?", (source,))
        if row is not None:
            yield from folders_below(as_path(row[0]), as_path(row[1]))


def _drop_beside(record: Store, agent: str, gone: Gone) -> None:
    """Drop what lay beside the files of erased sessions: what bears an id of theirs, and what no other session leads to."""
    asked = "SELECT id, path, cluster FROM sources WHERE agent = ? AND is_beside"
    for source, stored, cluster in list(record.rows(asked, (agent,))):
        path = as_path(stored)
        folder = os.path.dirname(path)
        if (agent, cluster) not in gone.ids and (agent, folder) not in gone.folders:
            continue
        if any(native_id in path for native_id in gone.ids.get((agent, cluster), ())):
            _drop_source(record, source)
        elif not _has_session(record, agent, cluster):
            if _is_folder_of_sessions(record, agent, folder):
                record.connection.execute("UPDATE sources SET cluster = NULL WHERE id = ?", (source,))
            else:
                _drop_source(record, source)


def _has_session(record: Store, agent: str, cluster: str | None) -> bool:
    """Tell whether a session of a cluster is left; files of many conversations have none."""
    asked = "SELECT 1 FROM sessions WHERE agent = ? AND cluster = ?"
    return record.row(asked, (agent, cluster)) is not None


def _is_folder_of_sessions(record: Store, agent: str, folder: str) -> bool:
    """Tell whether a file of a session that is left lies below a folder."""
    first, last = as_stored(f"{folder}{os.sep}"), as_stored(f"{folder}{chr(ord(os.sep) + 1)}")
    return record.row(_IN_FOLDER, (agent, first, last)) is not None


def _drop_source(record: Store, source: int) -> None:
    """Drop a file with its originals; the row of one of which a session was read stays."""
    _drop_originals(record, source)
    record.connection.execute(
        "DELETE FROM sources WHERE id = ? AND NOT EXISTS (SELECT 1 FROM session_sources WHERE source = ?)",
        (source, source),
    )


def _strike(record: Store, sources: Iterable[int], native: bytes) -> None:
    """Strike a session out of the files that tell of others as well."""
    for source in sources:
        for (original,) in list(record.rows("SELECT id FROM originals WHERE source = ?", (source,))):
            left = remove_forgotten(record.originals.data(original), KeyedSet(more=(native,)))
            packer = Packer()
            packer.add(left)
            record.originals.put(original, packer.ended())
            state = (len(left), seal(len(left), _part_of(left)), original)
            record.connection.execute("UPDATE originals SET size = ?, seal = ? WHERE id = ?", state)


def _part_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda start, size: data[start : start + size]
