"""Lookups by uid, cluster, stamp, key and path, for code that reads sessions and their files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from retold.archive.database import DamagedError
from retold.archive.store import ARCHIVE_NAME, SHARDS, as_path, as_stored, as_text, shard_path, unpack_summary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from retold.archive.store import Store

Row = tuple[Any, ...]


class StampedKey(NamedTuple):
    """Agent and key of a session, and the stamp of what it was made from."""

    agent: str
    key: str
    stamp: bytes


class StoredSession(NamedTuple):
    """A session in the archive."""

    id: int
    uid: int
    agent: str
    cluster: str | None
    packed: bytes
    """Its JSON form, compressed."""


class OriginalVersion(NamedTuple):
    """An original in an archive."""

    id: int
    size: int
    modified_ns: int


class Loss(NamedTuple):
    """Something that was lost when a file of a session was read."""

    key: str
    agent: str
    code: str
    message: str
    path: str
    line: int | None
    occurrences: int


_WITHOUT_PROJECT = """
SELECT DISTINCT sessions.cluster FROM sessions JOIN session_sources ON session = sessions.id
JOIN sources ON sources.id = source WHERE sources.home = ? AND sources.agent = ?
AND evidence <> 'recorded' AND sessions.cluster IS NOT NULL
"""


def load_stamps(store: Store) -> dict[int, bytes]:
    """Return the stamps of all sessions by uid."""
    return dict(store.rows("SELECT uid, stamp FROM sessions"))


def load_stamped_keys(store: Store) -> dict[int, StampedKey]:
    """Return the keys and stamps of all sessions by uid."""
    sql = "SELECT uid, agent, key, stamp FROM sessions"
    return {uid: StampedKey(*rest) for uid, *rest in store.rows(sql)}


def load_cluster_keys(store: Store, agent: str, cluster: str) -> list[tuple[int, str]]:
    """Return uid and key of the sessions of a cluster."""
    sql = "SELECT uid, key FROM sessions WHERE agent = ? AND cluster = ?"
    return list(store.rows(sql, (agent, cluster)))


def load_clusters(store: Store, agent: str) -> dict[int, str | None]:
    """Return the clusters of an agent's sessions by uid; None for a session that only files of many conversations have."""
    return dict(store.rows("SELECT uid, cluster FROM sessions WHERE agent = ?", (agent,)))


def load_sessions_without_files(
    store: Store, agent: str, cluster: str | None
) -> dict[int, tuple[bytes, str]]:
    """Return stamps and keys, by uid, of the sessions of a cluster whose files the archive does not know any more."""
    sql = (
        "SELECT DISTINCT uid, stamp, key FROM sessions JOIN session_sources ON session = sessions.id"
        " WHERE agent = ? AND cluster = ? AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.id = source)"
    )
    return {uid: (bytes(stamp), key) for uid, stamp, key in store.rows(sql, (agent, cluster))}


def load_cluster_mates(store: Store, sessions: Collection[int]) -> list[int]:
    """Return the uids of all sessions in the clusters of some: their files name each other."""
    sql = (
        "SELECT DISTINCT other.uid FROM sessions one JOIN sessions other"
        " ON other.agent = one.agent AND other.cluster = one.cluster WHERE one.id = ?"
    )
    return [uid for session in sessions for (uid,) in store.rows(sql, (session,))]


def load_clusters_without_project(store: Store, home: str, agent: str) -> set[str]:
    """Return the clusters in a home whose projects the agent did not write down."""
    return {cluster for (cluster,) in store.rows(_WITHOUT_PROJECT, (as_stored(home), agent))}


def load_recorded_sessions(store: Store, agent: str, native_id: str) -> list[tuple[int, str | bytes]]:
    """Return the uids of the main sessions with a native id and with files of their own, once with each of the files."""
    sql = (
        "SELECT sessions.uid, path FROM sessions JOIN session_sources ON session = sessions.id"
        " JOIN sources ON sources.id = source WHERE native_id = ? AND sessions.agent = ?"
        " AND sessions.cluster IS NOT NULL AND read_kind IN ('main', 'prompts-only') ORDER BY sessions.uid"
    )
    return list(store.rows(sql, (as_text(native_id), agent)))


def load_logged_sessions(store: Store, agent: str) -> list[tuple[int, str, str | bytes]]:
    """Return uid, native id and log of the sessions that only logs of prompts have."""
    sql = (
        "SELECT sessions.uid, native_id, path FROM sessions JOIN session_sources ON session = sessions.id"
        " JOIN sources ON sources.id = source WHERE sessions.agent = ? AND sessions.cluster IS NULL"
        " AND native_id IS NOT NULL ORDER BY sessions.uid"
    )
    return list(store.rows(sql, (agent,)))


def load_scrap_digests(store: Store) -> dict[int, bytes]:
    """Return the digests of scraps by uid."""
    return dict(store.rows("SELECT uid, digest FROM scraps"))


def load_ids(store: Store) -> set[int]:
    """Return the ids of all sessions."""
    return {number for (number,) in store.rows("SELECT id FROM sessions")}


def load_project_session_ids(store: Store, hashes: Collection[str]) -> list[int]:
    """Return the ids of the sessions of some projects, by the projects' hashes."""
    sql = f"SELECT id FROM sessions WHERE hash IN ({', '.join('?' * len(hashes))})"  # noqa: S608 - values are bound
    return [number for (number,) in store.rows(sql, list(hashes))]


def load_stored_session(store: Store, key: str) -> StoredSession | None:
    """Return a session by its key."""
    sql = "SELECT id, uid, agent, cluster, packed FROM sessions JOIN summaries ON session = id WHERE key = ?"
    row = store.row(sql, (key,))
    return None if row is None else StoredSession(*row)


def load_stamp_by_id(store: Store, session: int) -> bytes:
    """Return the stamp of a session."""
    return bytes(next(store.rows("SELECT stamp FROM sessions WHERE id = ?", (session,)))[0])


def load_copied_messages(store: Store, session: int) -> set[int]:
    """Return the uids of a session's messages that belong to another session."""
    sql = "SELECT uid FROM messages WHERE session = ? AND copied = 2"
    return {uid for (uid,) in store.rows(sql, (session,))}


def load_copied_requests(store: Store, session: int) -> set[int]:
    """Return the uids of a session's requests that belong to an earlier session."""
    sql = "SELECT uid FROM requests WHERE session = ? AND NOT own"
    return {uid for (uid,) in store.rows(sql, (session,))}


def load_renamed_keys(store: Store) -> dict[str, str]:
    """Return the keys of sessions whose files give them another, by that key."""
    return dict(store.rows("SELECT read_key, key FROM sessions WHERE read_key <> key"))


def load_family(store: Store, key: str) -> Iterator[int]:
    """Yield the ids of a session and of all subagents below it."""
    sql = """
        WITH RECURSIVE family (id, key) AS (
            SELECT id, key FROM sessions WHERE key = ?
            UNION SELECT sessions.id, sessions.key FROM sessions JOIN family ON parent = family.key WHERE kind = 'subagent'
        ) SELECT id FROM family
    """
    return (number for (number,) in store.rows(sql, (key,)))


FAILURE_CODES = ("reader-failed", "reader-timeout", "original-damaged", "too-long")
"""Problems of files that may hold a conversation and could not be read; the archive has their bytes."""
_ORIGINALS = "SELECT originals.id, originals.size, originals.modified_ns FROM sources JOIN originals ON source = sources.id"
_FILE_VERSIONS = """
SELECT path, home, folder, label, cluster, sources.size, sources.modified_ns, tail, identity, revision,
    originals.id, uid, originals.size, originals.modified_ns, checksum, is_latest
FROM sources LEFT JOIN originals ON source = sources.id AND is_latest >= 0 WHERE agent = ? AND {which} ORDER BY path
"""
# Two lists, each by an index: with an OR, SQLite would go through all files of the agent for each session.
_SESSION_ORIGINALS = """
SELECT path, home, folder, label, cluster, is_latest, originals.id, originals.size, originals.modified_ns
FROM sources JOIN originals ON source = sources.id WHERE NOT is_companion AND is_latest >= 0 AND sources.id IN (
    SELECT id FROM sources WHERE agent = ?1 AND cluster = ?2
    UNION ALL SELECT source FROM session_sources JOIN sources ON id = source
    WHERE session = ?3 AND agent = ?1 AND cluster IS NULL
)
ORDER BY is_latest DESC, path, originals.id DESC
"""


def load_file_rows(store: Store, agent: str) -> Iterator[Row]:
    """Yield the columns of `sources` of an agent's files that may hold conversations: see the query."""
    sql = (
        "SELECT id, path, home, cluster, size, modified_ns, tail, read_ns, revision, is_present, identity FROM sources"
        " WHERE agent = ? AND NOT is_companion"
    )
    return store.rows(sql, (agent,))


def count_present(store: Store, agent: str) -> int:
    """Return how many files of an agent the last sync found, hidden ones too."""
    sql = "SELECT count(*) FROM sources WHERE agent = ? AND NOT is_companion AND is_present"
    return int(next(store.rows(sql, (agent,)))[0])


def count_failures(store: Store, agent: str) -> int:
    """Return how many files of an agent have a problem of FAILURE_CODES, and how many sessions lack a file."""
    sql = "SELECT json_extract(refusal, '$.code') FROM sources WHERE agent = ? AND refusal IS NOT NULL"
    failed = sum(code in FAILURE_CODES for (code,) in store.rows(sql, (agent,)))
    # The cross join begins with the few lost files: otherwise SQLite would go through all sessions of the agent.
    sql = (
        "SELECT count(DISTINCT session) FROM session_sources CROSS JOIN sessions ON sessions.id = session"
        " WHERE agent = ? AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.id = source)"
    )
    return failed + int(next(store.rows(sql, (agent,)))[0])


def load_failed_clusters(store: Store, agent: str) -> set[str]:
    """Return the clusters with a file that has a problem of FAILURE_CODES."""
    sql = (
        "SELECT cluster, json_extract(refusal, '$.code') FROM sources"
        " WHERE agent = ? AND refusal IS NOT NULL AND cluster IS NOT NULL"
    )
    return {cluster for cluster, code in store.rows(sql, (agent,)) if code in FAILURE_CODES}


def load_unlisted_clusters(store: Store, agent: str) -> set[str]:
    """Return the clusters with an archived file from which no session was read."""
    sql = (
        "SELECT DISTINCT cluster FROM sources WHERE agent = ? AND NOT is_companion AND refusal IS NULL AND cluster IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM originals WHERE source = sources.id)"
        " AND NOT EXISTS (SELECT 1 FROM session_sources JOIN sessions ON sessions.id = session WHERE source = sources.id)"
    )
    return {cluster for (cluster,) in store.rows(sql, (agent,))}


def load_stamps_of_files(store: Store, agent: str, paths: Collection[str]) -> dict[int, bytes]:
    """Return the stamps, by uid, of the sessions that were read from some files."""
    sql = (
        "SELECT sessions.uid, stamp FROM sessions JOIN session_sources ON session = sessions.id"
        " JOIN sources ON sources.id = source WHERE sources.agent = ? AND path = ?"
    )
    return {uid: bytes(stamp) for path in paths for uid, stamp in store.rows(sql, (agent, as_stored(path)))}


def load_files_without_content(store: Store, agent: str) -> set[int]:
    """Return the ids of files whose conversations are not archived: forgotten, or of an excluded project."""
    sql = (
        "SELECT id FROM sources WHERE agent = ? AND NOT is_companion AND refusal IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM originals WHERE source = sources.id)"
    )
    return {number for (number,) in store.rows(sql, (agent,))}


def load_clusters_without_content(store: Store, agent: str) -> set[str]:
    """Return the clusters with such files of which no conversation is archived."""
    sql = (
        "SELECT DISTINCT cluster FROM sources WHERE agent = ?1 AND NOT is_companion AND refusal IS NULL AND cluster IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM originals WHERE source = sources.id)"
        " AND NOT EXISTS (SELECT 1 FROM sessions WHERE agent = ?1 AND sessions.cluster = sources.cluster)"
    )
    return {cluster for (cluster,) in store.rows(sql, (agent,))}


def load_files_of_cluster(store: Store, agent: str, cluster: str | None) -> Iterator[Row]:
    """Yield the files of a cluster, once with each of their originals."""
    return store.rows(_FILE_VERSIONS.format(which="cluster = ? AND NOT is_companion"), (agent, cluster))


def load_file_versions(store: Store, agent: str, path: str) -> Iterator[Row]:
    """Yield a file, once with each of its originals."""
    return store.rows(_FILE_VERSIONS.format(which="path = ?"), (agent, as_stored(path)))


def load_session_originals(store: Store, agent: str, cluster: str | None, session: int) -> Iterator[Row]:
    """Yield the originals of a cluster, and of files of many conversations from which a session was read."""
    return store.rows(_SESSION_ORIGINALS, (agent, cluster, session))


def load_cluster_size(store: Store, agent: str, cluster: str | None) -> int:
    """Return the bytes of the originals of a cluster."""
    sql = (
        "SELECT total(originals.size) FROM sources JOIN originals ON source = sources.id"
        " WHERE agent = ? AND cluster = ? AND NOT is_companion AND is_latest >= 0"
    )
    return int(next(store.rows(sql, (agent, cluster)))[0])


def load_archived_files(store: Store, agent: str, cluster: str) -> Iterator[Row]:
    """Yield the files of a cluster that have an original, companions too."""
    sql = (
        "SELECT DISTINCT path, home, folder, label, cluster FROM sources JOIN originals ON source = sources.id"
        " WHERE agent = ? AND cluster = ? AND is_latest = 1 ORDER BY path"
    )
    return store.rows(sql, (agent, cluster))


def load_latest_original(store: Store, agent: str, path: str) -> OriginalVersion | None:
    """Return the latest original of a file."""
    sql = f"{_ORIGINALS} WHERE agent = ? AND path = ? ORDER BY is_latest DESC, originals.id DESC LIMIT 1"
    row = store.row(sql, (agent, as_stored(path)))
    return None if row is None else OriginalVersion(*row)


def load_paths_below(store: Store, agent: str, start: str) -> Iterator[str | bytes]:
    """Yield paths with a prefix, of files that have an original."""
    # Text sorts before bytes in SQLite.
    first = as_stored(start)
    last: str | bytes = first + "\U0010ffff" if isinstance(first, str) else first + b"\xff"
    sql = (
        "SELECT path FROM sources WHERE agent = ? AND path >= ? AND path < ?"
        " AND EXISTS (SELECT 1 FROM originals WHERE source = sources.id)"
    )
    return (path for (path,) in store.rows(sql, (agent, first, last)))


_FILE_STATES = """
SELECT path, home, size || ' ' || modified_ns || ' ' || identity, refusal,
    EXISTS (SELECT 1 FROM originals WHERE source = sources.id)
FROM sources WHERE agent = ? AND NOT is_companion
"""
_SESSION_FILES = """
SELECT key, sessions.agent, native_id, kind, title, is_spoken, path, sources.home, sources.cluster IS NULL
FROM sessions JOIN session_sources ON session = sessions.id JOIN sources ON sources.id = source
WHERE NOT is_companion ORDER BY sessions.ended_at DESC, key, path
"""
_LONE_SUBAGENTS = """
SELECT key, agent, title FROM sessions WHERE kind = 'subagent'
AND NOT EXISTS (SELECT 1 FROM sessions above WHERE above.key = sessions.parent) ORDER BY key
"""
_LOSSES = """
SELECT key, agent, problems.code, problems.message, problems.path, problems.line, count(*)
FROM problems JOIN sessions ON sessions.id = session WHERE problems.severity = 'loss'
GROUP BY key, problems.path ORDER BY key
"""


def load_file_states(store: Store, agent: str) -> Iterator[Row]:
    """Yield path, home, status, problem as JSON, and whether there is an original, of each file of an agent.

    The status is size, time and identity as one text.
    """
    for path, home, status, refusal, is_kept in store.rows(_FILE_STATES, (agent,)):
        yield as_path(path), as_path(home), status, refusal, bool(is_kept)


def load_session_files(store: Store) -> Iterator[Row]:
    """Yield key, agent, native id, kind, title, is_spoken, path, home and is_shared of each session, once with each of its files.

    A shared file may hold several sessions, as a log of prompts does.
    """
    for *session, path, home, is_shared in store.rows(_SESSION_FILES):
        yield (*session, as_path(path), as_path(home), bool(is_shared))


def load_lone_subagents(store: Store) -> Iterator[tuple[str, str, str | None]]:
    """Yield key, agent and title of the subagents whose session is not in the archive."""
    return ((key, agent, title) for key, agent, title in store.rows(_LONE_SUBAGENTS))


def load_losses(store: Store) -> Iterator[Loss]:
    """Yield what was lost when files were read."""
    return (Loss(*row) for row in store.rows(_LOSSES))


def load_readable_summaries(store: Store) -> Iterator[tuple[str, str, str]]:
    """Yield key, agent and JSON form of every session, except damaged ones, which an examination reports."""
    sql = "SELECT key, agent, packed FROM sessions JOIN summaries ON session = id ORDER BY key"
    for key, agent, packed in store.rows(sql):
        try:
            summary = unpack_summary(packed)
        except DamagedError:
            continue
        yield key, agent, summary


def find_archive_files(folder: str) -> Iterator[str]:
    """Yield the files of the archive and its index that exist."""
    shards = (shard_path(folder, number) for number in range(SHARDS))
    for path in (os.path.join(folder, ARCHIVE_NAME), *shards):
        yield from (found for end in ("", "-wal") if os.path.exists(found := path + end))


_SESSIONS = """
SELECT sessions.id, sessions.uid, key, read_key, kind, parent, sessions.agent, cluster, started_at, stamp, packed
FROM sessions JOIN summaries ON session = sessions.id ORDER BY ifnull(started_at, ''), key
"""
_COPIED = (
    "SELECT session, group_concat(uid, ' ' ORDER BY seq) FROM messages WHERE copied = 2 GROUP BY session"
)
_LEDGER = """
SELECT session, group_concat(uid || ',' || own || ',' || ifnull(picos, ''), ' ' ORDER BY uid) FROM requests GROUP BY session
"""
_FILES = """
SELECT agent, cluster, group_concat(uid || ',' || originals.size || ',' || originals.modified_ns || ',' || is_latest, ' ' ORDER BY uid)
FROM sources JOIN originals ON source = sources.id WHERE cluster IS NOT NULL AND is_latest >= 0 GROUP BY agent, cluster
"""
_SIZES = """
SELECT session, sum(size) FROM session_sources JOIN sources ON sources.id = source WHERE cluster IS NOT NULL GROUP BY session
"""
_REFUSALS = "SELECT agent, label, refusal FROM sources WHERE refusal IS NOT NULL ORDER BY agent, path"
_OWN_COSTS = "SELECT seq, picos FROM requests WHERE session = ? AND own"


class RowDependencies:
    """Everything an exported session's rows depend on. If no value changed, the rows are reused."""

    __slots__ = ("agent", "key", "kind", "parent", "size", "started_at", "uid", "values")

    def __init__(self, row: Row, size: int, values: tuple[object, ...]) -> None:
        _, self.uid, self.key, _, self.kind, self.parent, self.agent, _, self.started_at, *_ = row
        self.size = size
        """The bytes of its files."""
        self.values = values


def load_row_dependencies(store: Store) -> list[RowDependencies]:
    """Return the dependencies of every session in one snapshot, the earliest session first."""
    with store.connection:
        copied, ledger, sizes = (dict(store.rows(sql)) for sql in (_COPIED, _LEDGER, _SIZES))
        files = {(agent, cluster): originals for agent, cluster, originals in store.rows(_FILES)}
        rows = list(store.rows(_SESSIONS))
        renamed = _renamed_keys_by_cluster(store, rows)
    found = []
    for row in rows:
        session, *_, agent, cluster, _, stamp, packed = row
        own = copied.get(session), ledger.get(session)
        of_cluster = files.get((agent, cluster)), renamed.get((agent, cluster))
        found.append(RowDependencies(row, sizes.get(session, 0), (stamp, packed, *own, *of_cluster)))
    return found


def _renamed_keys_by_cluster(store: Store, rows: list[Row]) -> dict[tuple[str, str | None], str]:
    """Return the changed keys of sessions, by agent and cluster: other files name the sessions by their earlier keys."""
    keys = load_renamed_keys(store)
    found: dict[tuple[str, str | None], str] = {}
    for _, _, _, read_key, _, _, agent, cluster, *_ in rows:
        if read_key in keys:
            found[agent, cluster] = f"{found.get((agent, cluster), '')}{read_key}\n{keys[read_key]}\n"
    return found


def load_refusals(store: Store) -> Iterator[Row]:
    """Yield agent, label of the home, and problem as JSON of every file without a conversation."""
    return store.rows(_REFUSALS)


def load_own_costs(store: Store, session: int) -> dict[int, int | None]:
    """Return what the requests cost that count in a session, by their seq."""
    return dict(store.rows(_OWN_COSTS, (session,)))
