"""The agents' files as the archive knows them: which there are, and what they held."""

from __future__ import annotations

from retold.archive.record import as_stored

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from retold.archive.record import Store

    Row = tuple[Any, ...]

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
