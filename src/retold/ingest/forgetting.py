"""What a person wants gone: out of the record, the originals and the index, and never brought back by a sync."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from retold.archive.originals import Packer, digest, seal
from retold.archive.record import Record, as_path
from retold.archive.settling import settle
from retold.archive.texts import SHARDS, Shard, shard_path
from retold.archive.writer import Writer
from retold.ingest.lock import Lock
from retold.ingest.revision import REVISION
from retold.ingest.struck import struck

_FAMILY = """
WITH RECURSIVE family (id, key) AS (
    SELECT id, key FROM sessions WHERE key = ?
    UNION SELECT sessions.id, sessions.key FROM sessions JOIN family ON parent = family.key WHERE kind = 'subagent'
) SELECT id FROM family
"""
_ONLY_THEIRS = """
SELECT DISTINCT source FROM session_sources WHERE session = ?
AND NOT EXISTS (SELECT 1 FROM session_sources other WHERE other.source = session_sources.source AND other.session <> ?)
"""
_BESIDE = "SELECT id, path FROM sources WHERE agent = ? AND cluster IS ? AND is_beside"


def forget(folder: str, keys: Sequence[str]) -> int:
    """Forget sessions and their subagents; return how many. The agents' own files are not touched."""
    with Lock(folder, lambda: None), Record(folder, can_write=True) as record:
        record.connection.execute("PRAGMA secure_delete = ON")
        sessions = {one for key in keys for (one,) in record.rows(_FAMILY, (key,))}
        with record.connection:
            names = _forget_rows(record, sessions)
        _clean_index(folder, names)
        # What was overwritten may still stand in the log of changes, and in pages that are free.
        for asked in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            record.connection.execute(asked)
    return len(sessions)


def _forget_rows(record: Record, sessions: Iterable[int]) -> list[int]:
    """Remove what is kept of sessions; return their names."""
    writer, names = Writer(record, REVISION), []
    at = datetime.now(UTC).isoformat(timespec="seconds")
    for session in sorted(sessions):
        asked = "SELECT name, native_id, agent, cluster FROM sessions WHERE id = ?"
        name, native_id, agent, cluster = record.row(asked, (session,)) or (0, None, "", None)
        native = digest(native_id.encode()) if native_id else None
        for (source,) in list(record.rows(_ONLY_THEIRS, (session, session))):
            _drop_originals(record, source)
        ask = record.connection.execute
        ask("INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?)", (name, native, at))
        ask("DELETE FROM tags WHERE name = ?", (name,))
        ask("DELETE FROM names WHERE name = ?", (name,))
        ask("DELETE FROM scraps WHERE name = ?", (name,))
        shared = [
            one for (one,) in record.rows("SELECT source FROM session_sources WHERE session = ?", (session,))
        ]
        writer.remove_session(session)
        _drop_beside(record, agent, cluster, native_id)
        if native is not None:
            _strike(record, shared, native)
        names.append(name)
    settle(record, writer.touched)
    record.originals.sweep()
    return names


def _drop_originals(record: Record, source: int) -> None:
    for (original,) in list(record.rows("SELECT id FROM originals WHERE source = ?", (source,))):
        record.originals.drop(original)


def _drop_beside(record: Record, agent: str, cluster: str | None, native_id: str | None) -> None:
    """Drop what lay beside a session's files: all of it with the last session of a cluster, else what bears its id."""
    left = record.row("SELECT 1 FROM sessions WHERE agent = ? AND cluster IS ?", (agent, cluster))
    for source, path in list(record.rows(_BESIDE, (agent, cluster))):
        if left is None or (native_id and native_id in as_path(path)):
            _drop_originals(record, source)


def _strike(record: Record, sources: Iterable[int], native: bytes) -> None:
    """Strike a session out of the files that tell of others as well."""
    for source in sources:
        asked = "SELECT id, size FROM originals WHERE source = ?"
        for original, _ in list(record.rows(asked, (source,))):
            left = struck(record.originals.data(original), frozenset((native,)))
            packer = Packer()
            packer.add(left)
            record.originals.put(original, packer.ended())
            state = (len(left), seal(len(left), _part_of(left)), original)
            record.connection.execute("UPDATE originals SET size = ?, seal = ? WHERE id = ?", state)


def _part_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda start, size: data[start : start + size]


def _clean_index(folder: str, names: Sequence[int]) -> None:
    for number in range(SHARDS):
        shard = Shard(shard_path(folder, number))
        shard.erase(names)
        shard.close()
