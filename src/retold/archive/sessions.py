"""Sessions as those who read and re-read them know them: by name, cluster, stamp and key."""

from __future__ import annotations

from retold.archive.record import as_stored, as_text

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from retold.archive.record import Store

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
