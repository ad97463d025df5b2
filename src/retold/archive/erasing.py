"""Sessions out of the record and their words out of the originals, so that nothing is left of them but a tombstone."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from retold.archive.database import is_log_emptied
from retold.archive.hand import bury
from retold.archive.originals import Packer, digest, seal
from retold.archive.record import FORGETTING, Record, as_path
from retold.archive.settling import settle
from retold.archive.struck import struck
from retold.archive.writer import Writer

_ONLY_THEIRS = """
SELECT DISTINCT source FROM session_sources WHERE session = ?1
AND NOT EXISTS (SELECT 1 FROM session_sources other WHERE other.source = session_sources.source AND other.session <> ?1)
"""
_BESIDE = "SELECT id, path FROM sources WHERE agent = ? AND cluster IS ? AND is_beside"


def erase(record: Record, sessions: Iterable[int], related: Iterable[int], revision: int) -> None:
    """Remove all that is kept of sessions, and note that the index still holds them and what is related to them."""
    record.connection.execute("PRAGMA secure_delete = ON")
    with record.connection:
        writer = Writer(record, revision, lambda _model, _at, _figures: None)  # it only removes
        names = [_erase_one(record, session, writer) for session in sorted(sessions)]
        settle(record, writer.touched)
        record.originals.sweep()
        earlier, earlier_related = unfinished(record) or ([], [])
        record.set_fact(FORGETTING, json.dumps([[*earlier, *names], [*earlier_related, *related]]))


def unfinished(record: Record) -> tuple[list[int], list[int]] | None:
    """Return the names of erased sessions, and of related ones, that the index may still hold; None if there are none."""
    noted = record.fact(FORGETTING)
    if noted is None:
        return None
    names, related = json.loads(noted)
    return names, related


def finish(record: Record) -> bool:
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


def _erase_one(record: Record, session: int, writer: Writer) -> int:
    asked = "SELECT name, native_id, agent, cluster FROM sessions WHERE id = ?"
    name, native_id, agent, cluster = next(record.rows(asked, (session,)))
    native = digest(native_id.encode()) if native_id else None
    for (source,) in list(record.rows(_ONLY_THEIRS, (session,))):
        _drop_originals(record, source)
    shared = [
        one for (one,) in record.rows("SELECT source FROM session_sources WHERE session = ?", (session,))
    ]
    bury(record, name, native, datetime.now(UTC).isoformat(timespec="seconds"))
    writer.remove_session(session)
    _drop_beside(record, agent, cluster, native_id)
    if native is not None:
        _strike(record, shared, native)
    return int(name)


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
        for (original,) in list(record.rows("SELECT id FROM originals WHERE source = ?", (source,))):
            left = struck(record.originals.data(original), frozenset((native,)))
            packer = Packer()
            packer.add(left)
            record.originals.put(original, packer.ended())
            state = (len(left), seal(len(left), _part_of(left)), original)
            record.connection.execute("UPDATE originals SET size = ?, seal = ? WHERE id = ?", state)


def _part_of(data: bytes) -> Callable[[int, int], bytes]:
    return lambda start, size: data[start : start + size]
