"""Sessions as those who read and re-read them know them: by name, cluster, stamp and key."""

from __future__ import annotations

import os

from retold.archive.database import DamagedError
from retold.archive.index.files import SHARDS, shard_path
from retold.archive.store import NAME, as_path, as_stored, as_text, summary_of

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from retold.archive.store import Store

    Row = tuple[Any, ...]


_PLACED = """
SELECT DISTINCT sessions.cluster FROM sessions JOIN session_sources ON session = sessions.id
JOIN sources ON sources.id = source WHERE sources.home = ? AND sources.agent = ?
AND evidence <> 'recorded' AND sessions.cluster IS NOT NULL
"""


def stamps(record: Store) -> dict[int, bytes]:
    """Return every session by its name, with what it was made from."""
    return dict(record.rows("SELECT name, stamp FROM sessions"))


def stamped_keys(record: Store) -> dict[int, tuple[str, str, bytes]]:
    """Return agent, key and stamp of every session by its name."""
    return {name: (*rest,) for name, *rest in record.rows("SELECT name, agent, key, stamp FROM sessions")}


def keys_of_cluster(record: Store, agent: str, cluster: str) -> list[tuple[int, str]]:
    """Return name and key of the sessions of a cluster."""
    asked = "SELECT name, key FROM sessions WHERE agent = ? AND cluster = ?"
    return list(record.rows(asked, (agent, cluster)))


def clusters(record: Store, agent: str) -> dict[int, str | None]:
    """Return every session of an agent by its name, with its cluster; none where only files of many tell of it."""
    return dict(record.rows("SELECT name, cluster FROM sessions WHERE agent = ?", (agent,)))


def with_lost_files(record: Store, agent: str, cluster: str | None) -> dict[int, tuple[bytes, str]]:
    """Return the stamps and keys of the sessions of a cluster that were read from a file which the archive no longer knows."""
    asked = (
        "SELECT DISTINCT name, stamp, key FROM sessions JOIN session_sources ON session = sessions.id"
        " WHERE agent = ? AND cluster = ? AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.id = source)"
    )
    return {name: (bytes(stamp), key) for name, stamp, key in record.rows(asked, (agent, cluster))}


def kin(record: Store, sessions: Collection[int]) -> list[int]:
    """Return the names of all sessions in the clusters of some: what they tell of each other, their files tell together."""
    asked = (
        "SELECT DISTINCT other.name FROM sessions one JOIN sessions other"
        " ON other.agent = one.agent AND other.cluster = one.cluster WHERE one.id = ?"
    )
    return [name for session in sessions for (name,) in record.rows(asked, (session,))]


def clusters_placed_by(record: Store, home: str, agent: str) -> set[str]:
    """Return the clusters in a home whose projects the agent itself did not write down."""
    return {cluster for (cluster,) in record.rows(_PLACED, (as_stored(home), agent))}


def recorded_with_id(record: Store, agent: str, native_id: str) -> list[tuple[int, str | bytes]]:
    """Return the names of the main sessions with an id that have files of their own, once with each of their files."""
    asked = (
        "SELECT sessions.name, path FROM sessions JOIN session_sources ON session = sessions.id"
        " JOIN sources ON sources.id = source WHERE native_id = ? AND sessions.agent = ?"
        " AND sessions.cluster IS NOT NULL AND read_kind IN ('main', 'prompts-only') ORDER BY sessions.name"
    )
    return list(record.rows(asked, (as_text(native_id), agent)))


def logged_sessions(record: Store, agent: str) -> list[tuple[int, str, str | bytes]]:
    """Return name, id and log of the sessions of which only logs of prompts tell."""
    asked = (
        "SELECT sessions.name, native_id, path FROM sessions JOIN session_sources ON session = sessions.id"
        " JOIN sources ON sources.id = source WHERE sessions.agent = ? AND sessions.cluster IS NULL"
        " AND native_id IS NOT NULL ORDER BY sessions.name"
    )
    return list(record.rows(asked, (agent,)))


def scrap_digests(record: Store) -> dict[int, bytes]:
    """Return what files of many conversations said of each, as a digest."""
    return dict(record.rows("SELECT name, digest FROM scraps"))


def ids(record: Store) -> set[int]:
    """Return the ids of all sessions."""
    return {number for (number,) in record.rows("SELECT id FROM sessions")}


def ids_of_projects(record: Store, hashes: Collection[str]) -> list[int]:
    """Return the ids of the sessions of some projects."""
    asked = f"SELECT id FROM sessions WHERE hash IN ({', '.join('?' * len(hashes))})"  # noqa: S608 - values are bound
    return [number for (number,) in record.rows(asked, list(hashes))]


def known_by(record: Store, key: str) -> tuple[Any, ...] | None:
    """Return id, name, agent, cluster and the packed summary of a session."""
    asked = (
        "SELECT id, name, agent, cluster, packed FROM sessions JOIN summaries ON session = id WHERE key = ?"
    )
    return record.row(asked, (key,))


def stamp_of_session(record: Store, session: int) -> bytes:
    """Return what a session was made from."""
    return bytes(next(record.rows("SELECT stamp FROM sessions WHERE id = ?", (session,)))[0])


def copied_messages(record: Store, session: int) -> set[int]:
    """Return the names of the messages that belong to another session, as that one shows."""
    return {
        name
        for (name,) in record.rows("SELECT name FROM messages WHERE session = ? AND copied = 2", (session,))
    }


def others_requests(record: Store, session: int) -> set[int]:
    """Return the names of the requests that belong to an earlier session."""
    return {
        name for (name,) in record.rows("SELECT name FROM requests WHERE session = ? AND NOT own", (session,))
    }


def renamed_keys(record: Store) -> dict[str, str]:
    """Return the keys that sessions have instead of those which their files give them."""
    return dict(record.rows("SELECT read_key, key FROM sessions WHERE read_key <> key"))


def count_problems(record: Store) -> int:
    """Return how many problems of sessions there are that are more than notes.

    A damaged copy in the archive is a problem of its file, and is counted there.
    """
    asked = "SELECT count(*) FROM problems WHERE severity <> 'note' AND code <> 'original-damaged'"
    return int(next(record.rows(asked))[0])


def family(record: Store, key: str) -> Iterator[int]:
    """Yield the ids of a session and of all subagents below it."""
    asked = """
        WITH RECURSIVE family (id, key) AS (
            SELECT id, key FROM sessions WHERE key = ?
            UNION SELECT sessions.id, sessions.key FROM sessions JOIN family ON parent = family.key WHERE kind = 'subagent'
        ) SELECT id FROM family
    """
    return (number for (number,) in record.rows(asked, (key,)))


FAILURES = ("reader-failed", "reader-timeout", "original-damaged", "too-long")
"""The problems of files that may hold a conversation and could not be read; the archive keeps their bytes."""
_ORIGINALS = "SELECT originals.id, originals.size, originals.modified_ns FROM sources JOIN originals ON source = sources.id"
_KNOWN = """
SELECT path, home, folder, label, cluster, sources.size, sources.modified_ns, tail, identity, revision,
    originals.id, name, originals.size, originals.modified_ns, seal, is_latest
FROM sources LEFT JOIN originals ON source = sources.id AND is_latest >= 0 WHERE agent = ? AND {which} ORDER BY path
"""
# Two lists by an index each: with an OR, all files of the agent would be gone through for each session.
_OF_SESSION = """
SELECT path, home, folder, label, cluster, is_latest, originals.id, originals.size, originals.modified_ns
FROM sources JOIN originals ON source = sources.id WHERE NOT is_beside AND is_latest >= 0 AND sources.id IN (
    SELECT id FROM sources WHERE agent = ?1 AND cluster = ?2
    UNION ALL SELECT source FROM session_sources JOIN sources ON id = source
    WHERE session = ?3 AND agent = ?1 AND cluster IS NULL
)
ORDER BY is_latest DESC, path, originals.id DESC
"""


def file_rows(record: Store, agent: str) -> Iterator[Row]:
    """Yield every file of an agent that may hold conversations, as it was when it was read last."""
    asked = (
        "SELECT id, path, home, cluster, size, modified_ns, tail, read_ns, revision, is_there, identity FROM sources"
        " WHERE agent = ? AND NOT is_beside"
    )
    return record.rows(asked, (agent,))


def count_there(record: Store, agent: str) -> int:
    """Return how many files of an agent were there when its homes were looked through last, hidden ones too."""
    asked = "SELECT count(*) FROM sources WHERE agent = ? AND NOT is_beside AND is_there"
    return int(next(record.rows(asked, (agent,)))[0])


def count_failures(record: Store, agent: str) -> int:
    """Return how many files of an agent have a problem of FAILURES; also sessions of which a file is not known any more."""
    asked = "SELECT json_extract(refusal, '$.code') FROM sources WHERE agent = ? AND refusal IS NOT NULL"
    failed = sum(code in FAILURES for (code,) in record.rows(asked, (agent,)))
    # Files that are lost are few: with any other order, all sessions of the agent would be gone through for them.
    asked = (
        "SELECT count(DISTINCT session) FROM session_sources CROSS JOIN sessions ON sessions.id = session"
        " WHERE agent = ? AND NOT EXISTS (SELECT 1 FROM sources WHERE sources.id = source)"
    )
    return failed + int(next(record.rows(asked, (agent,)))[0])


def failed_clusters(record: Store, agent: str) -> set[str]:
    """Return the clusters with a file that has a problem of FAILURES."""
    asked = (
        "SELECT cluster, json_extract(refusal, '$.code') FROM sources"
        " WHERE agent = ? AND refusal IS NOT NULL AND cluster IS NOT NULL"
    )
    return {cluster for cluster, code in record.rows(asked, (agent,)) if code in FAILURES}


def unlisted_clusters(record: Store, agent: str) -> set[str]:
    """Return the clusters with a kept file that no session was read from, as far as the archive knows."""
    asked = (
        "SELECT DISTINCT cluster FROM sources WHERE agent = ? AND NOT is_beside AND refusal IS NULL AND cluster IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM originals WHERE source = sources.id)"
        " AND NOT EXISTS (SELECT 1 FROM session_sources JOIN sessions ON sessions.id = session WHERE source = sources.id)"
    )
    return {cluster for (cluster,) in record.rows(asked, (agent,))}


def sessions_from(record: Store, agent: str, paths: Collection[str]) -> dict[int, bytes]:
    """Return the stamps of the sessions that were read from some files, by their names."""
    asked = (
        "SELECT sessions.name, stamp FROM sessions JOIN session_sources ON session = sessions.id"
        " JOIN sources ON sources.id = source WHERE sources.agent = ? AND path = ?"
    )
    return {
        name: bytes(stamp) for path in paths for name, stamp in record.rows(asked, (agent, as_stored(path)))
    }


def unkept_files(record: Store, agent: str) -> set[int]:
    """Return the files that hold conversations of which nothing is kept: forgotten, or of a project that is left out."""
    asked = (
        "SELECT id FROM sources WHERE agent = ? AND NOT is_beside AND refusal IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM originals WHERE source = sources.id)"
    )
    return {number for (number,) in record.rows(asked, (agent,))}


def unkept_clusters(record: Store, agent: str) -> set[str]:
    """Return the clusters with such files, of which no conversation is kept."""
    asked = (
        "SELECT DISTINCT cluster FROM sources WHERE agent = ?1 AND NOT is_beside AND refusal IS NULL AND cluster IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM originals WHERE source = sources.id)"
        " AND NOT EXISTS (SELECT 1 FROM sessions WHERE agent = ?1 AND sessions.cluster = sources.cluster)"
    )
    return {cluster for (cluster,) in record.rows(asked, (agent,))}


def known_in_cluster(record: Store, agent: str, cluster: str | None) -> Iterator[Row]:
    """Yield the files of a cluster, once with each of their originals."""
    return record.rows(_KNOWN.format(which="cluster = ? AND NOT is_beside"), (agent, cluster))


def known_at(record: Store, agent: str, path: str) -> Iterator[Row]:
    """Yield a file, once with each of its originals."""
    return record.rows(_KNOWN.format(which="path = ?"), (agent, as_stored(path)))


def read_from(record: Store, agent: str, cluster: str | None, session: int) -> Iterator[Row]:
    """Yield the originals of a cluster, and of files of many conversations from which a session was read."""
    return record.rows(_OF_SESSION, (agent, cluster, session))


def size_of_cluster(record: Store, agent: str, cluster: str | None) -> int:
    """Return the bytes of the originals of a cluster."""
    asked = (
        "SELECT total(originals.size) FROM sources JOIN originals ON source = sources.id"
        " WHERE agent = ? AND cluster = ? AND NOT is_beside AND is_latest >= 0"
    )
    return int(next(record.rows(asked, (agent, cluster)))[0])


def kept_in_cluster(record: Store, agent: str, cluster: str) -> Iterator[Row]:
    """Yield the files of a cluster of which something is kept, those beside it as well."""
    asked = (
        "SELECT DISTINCT path, home, folder, label, cluster FROM sources JOIN originals ON source = sources.id"
        " WHERE agent = ? AND cluster = ? AND is_latest = 1 ORDER BY path"
    )
    return record.rows(asked, (agent, cluster))


def latest_at(record: Store, agent: str, path: str) -> Row | None:
    """Return id, size and time of the latest that was kept of a file."""
    asked = f"{_ORIGINALS} WHERE agent = ? AND path = ? ORDER BY is_latest DESC, originals.id DESC LIMIT 1"
    return record.row(asked, (agent, as_stored(path)))


def paths_below(record: Store, agent: str, start: str) -> Iterator[str | bytes]:
    """Yield the paths that begin so, of files of which something was kept."""
    # Text sorts before bytes in SQLite: a path that is no text is looked for among its like.
    first = as_stored(start)
    last: str | bytes = first + "\U0010ffff" if isinstance(first, str) else first + b"\xff"
    asked = (
        "SELECT path FROM sources WHERE agent = ? AND path >= ? AND path < ?"
        " AND EXISTS (SELECT 1 FROM originals WHERE source = sources.id)"
    )
    return (path for (path,) in record.rows(asked, (agent, first, last)))


_HELD = """
SELECT path, home, size || ' ' || modified_ns || ' ' || identity, refusal,
    EXISTS (SELECT 1 FROM originals WHERE source = sources.id)
FROM sources WHERE agent = ? AND NOT is_beside
"""
_OWNED = """
SELECT key, sessions.agent, native_id, kind, title, is_spoken, path, sources.home, sources.cluster IS NULL
FROM sessions JOIN session_sources ON session = sessions.id JOIN sources ON sources.id = source
WHERE NOT is_beside ORDER BY sessions.ended_at DESC, key, path
"""
_ALONE = """
SELECT key, agent, title FROM sessions WHERE kind = 'subagent'
AND NOT EXISTS (SELECT 1 FROM sessions above WHERE above.key = sessions.parent) ORDER BY key
"""
_DAMAGED = """
SELECT key, agent, problems.code, problems.message, problems.path, problems.line, count(*)
FROM problems JOIN sessions ON sessions.id = session WHERE problems.severity = 'loss'
GROUP BY key, problems.path ORDER BY key
"""


def held_files(record: Store, agent: str) -> Iterator[tuple[Any, ...]]:
    """Yield path, home, status, the refusal as JSON, and whether anything is kept, of each file of an agent.

    The status is size, time and identity as one text.
    """
    for path, home, status, refusal, is_kept in record.rows(_HELD, (agent,)):
        yield as_path(path), as_path(home), status, refusal, bool(is_kept)


def owned_files(record: Store) -> Iterator[tuple[Any, ...]]:
    """Yield key, agent, native id, kind, title and whether it is a conversation, of each session, once with path and home of each file.

    Last is whether the file may hold something of many sessions, as a log of prompts does.
    """
    for *session, path, home, is_of_many in record.rows(_OWNED):
        yield (*session, as_path(path), as_path(home), bool(is_of_many))


def lone_subagents(record: Store) -> Iterator[tuple[str, str, str | None]]:
    """Yield key, agent and title of the subagents whose session is not in the archive."""
    return ((key, agent, title) for key, agent, title in record.rows(_ALONE))


def damages(record: Store) -> Iterator[tuple[Any, ...]]:
    """Yield key, agent, code, words, path, line and number of what was lost while a session's file was read."""
    return record.rows(_DAMAGED)


def summaries(record: Store) -> Iterator[tuple[str, str, str]]:
    """Yield key, agent and JSON form of every session, without damaged ones: an examination names these."""
    asked = "SELECT key, agent, packed FROM sessions JOIN summaries ON session = id ORDER BY key"
    for key, agent, packed in record.rows(asked):
        try:
            summary = summary_of(packed)
        except DamagedError:
            continue
        yield key, agent, summary


def own_files(folder: str) -> Iterator[str]:
    """Yield the files in which retold keeps what was said, as far as they are there."""
    for path in (os.path.join(folder, NAME), *(shard_path(folder, number) for number in range(SHARDS))):
        yield from (found for end in ("", "-wal") if os.path.exists(found := path + end))


_SESSIONS = """
SELECT sessions.id, sessions.name, key, read_key, kind, parent, sessions.agent, cluster, started_at, stamp, packed
FROM sessions JOIN summaries ON session = sessions.id ORDER BY ifnull(started_at, ''), key
"""
_COPIED = (
    "SELECT session, group_concat(name, ' ' ORDER BY seq) FROM messages WHERE copied = 2 GROUP BY session"
)
_LEDGER = """
SELECT session, group_concat(name || ',' || own || ',' || ifnull(picos, ''), ' ' ORDER BY name) FROM requests GROUP BY session
"""
_FILES = """
SELECT agent, cluster, group_concat(name || ',' || originals.size || ',' || originals.modified_ns || ',' || is_latest, ' ' ORDER BY name)
FROM sources JOIN originals ON source = sources.id WHERE cluster IS NOT NULL AND is_latest >= 0 GROUP BY agent, cluster
"""
_SIZES = """
SELECT session, sum(size) FROM session_sources JOIN sources ON sources.id = source WHERE cluster IS NOT NULL GROUP BY session
"""
_REFUSALS = "SELECT agent, label, refusal FROM sources WHERE refusal IS NOT NULL ORDER BY agent, path"
_OWN = "SELECT seq, picos FROM requests WHERE session = ? AND own"


class RowDependencies:
    """A session by what it is known by, and all that its telling depends on."""

    __slots__ = ("agent", "key", "kind", "name", "parent", "size", "started_at", "told")

    def __init__(self, row: Row, size: int, told: tuple[object, ...]) -> None:
        _, self.name, self.key, _, self.kind, self.parent, self.agent, _, self.started_at, *_ = row
        self.size = size
        """The bytes of its files."""
        self.told = told


def grounds(record: Store) -> list[RowDependencies]:
    """Return every session, the earliest first, as of one moment."""
    with record.connection:
        copied, ledger, sizes = (dict(record.rows(asked)) for asked in (_COPIED, _LEDGER, _SIZES))
        files = {(agent, cluster): told for agent, cluster, told in record.rows(_FILES)}
        rows = list(record.rows(_SESSIONS))
        renamed = _renamed(record, rows)
    return [
        RowDependencies(
            row,
            sizes.get(row[0], 0),
            (
                *row[-2:],
                copied.get(row[0]),
                ledger.get(row[0]),
                files.get((row[6], row[7])),
                renamed.get((row[6], row[7])),
            ),
        )
        for row in rows
    ]


def _renamed(record: Store, rows: list[Row]) -> dict[tuple[str, str | None], str]:
    """Return, by agent and cluster, the keys that sessions there have instead of those which calls name them by."""
    keys = renamed_keys(record)
    found: dict[tuple[str, str | None], str] = {}
    for row in rows:
        if row[3] in keys:
            place = row[6], row[7]
            found[place] = f"{found.get(place, '')}{row[3]}\n{keys[row[3]]}\n"
    return found


def refusals(record: Store) -> Iterator[Row]:
    """Yield agent, label of the home, and the problem as JSON, of every file that holds no conversation."""
    return record.rows(_REFUSALS)


def own_requests(record: Store, session: int) -> dict[int, int | None]:
    """Return what the requests cost that the ledger counts in a session, by their places in its timeline."""
    return dict(record.rows(_OWN, (session,)))
