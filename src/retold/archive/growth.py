"""Growth: a file that has grown, as the archive lists it, and the rows of the entries at the end of a session.

A sync imports this module before it knows whether it can read on, so it imports nothing heavy.
"""

from __future__ import annotations

from retold.archive.ledger import load_cost, rebuild_sums
from retold.archive.store import as_stored, as_text, pack_summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from retold.archive.ledger import Price
    from retold.archive.rows import SessionRows
    from retold.archive.store import Chunk, Store


_GROWING = """
SELECT sources.id, home, folder, label, sources.cluster, originals.id, originals.uid, originals.size, packed,
    sessions.id, sessions.uid, stamp, read_key, root, native_key, hash, evidence,
    (SELECT sum(size) FROM sources mate WHERE mate.agent = ?1 AND mate.cluster = sources.cluster AND NOT mate.is_companion)
FROM sources JOIN originals ON originals.source = sources.id AND is_latest = 1
JOIN bookmarks ON bookmarks.source = sources.id
JOIN session_sources ON session_sources.source = sources.id JOIN sessions ON sessions.id = session
WHERE sources.agent = ?1 AND path = ?2 AND revision = ?3 AND is_present AND refusal IS NULL AND NOT is_companion
    AND sessions.cluster = sources.cluster AND is_spoken
    AND NOT EXISTS (SELECT 1 FROM messages WHERE session = sessions.id AND copied)
    AND NOT EXISTS (SELECT 1 FROM requests WHERE session = sessions.id AND NOT own)
"""
_SHARED_FILES = """
SELECT path, size, modified_ns FROM session_sources JOIN sources ON sources.id = source
WHERE session = ? AND source <> ?
"""
_IS_SHARED = (
    "SELECT 1 FROM {} WHERE uid IN (SELECT value FROM json_each(?)) AND (session <> ? OR seq < ?) LIMIT 1"
)


class GrowingFile:
    """A file with a bookmark, as it was when it was read last, and its session."""

    __slots__ = (
        "agent", "bookmark", "cluster", "cluster_size", "folder", "home", "label", "original", "original_uid", "path", "project",
        "read_key", "session", "size", "source", "stamp", "uid",
    )  # fmt: skip

    def __init__(self, agent: str, path: str, row: Sequence[Any]) -> None:
        self.agent, self.path = agent, path
        (
            self.source, self.home, self.folder, self.label, self.cluster, self.original, self.original_uid, self.size,
            self.bookmark, self.session, self.uid, self.stamp, self.read_key, *self.project, self.cluster_size,
        ) = row  # fmt: skip


def load_marks(store: Store, agent: str, path: str, revision: int) -> tuple[int, int, bytes, int, str] | None:
    """Return size, time, tail, time of reading and identity of a file; None if it was not read by this version of the reader."""
    sql = (
        "SELECT size, modified_ns, tail, read_ns, identity FROM sources"
        " WHERE agent = ? AND path = ? AND revision = ? AND is_present AND NOT is_companion"
    )
    return store.row(sql, (agent, as_stored(path), revision))


def load_growing_file(store: Store, agent: str, path: str, revision: int) -> GrowingFile | None:
    """Return a file with a bookmark; None if it has none, or more than one session, or entries that other sessions have."""
    rows = list(store.rows(_GROWING, (agent, as_stored(path), revision)))
    return GrowingFile(agent, path, rows[0]) if len(rows) == 1 else None


def load_other_files(store: Store, file: GrowingFile) -> list[tuple[str | bytes, int, int]]:
    """Return path, size and time of the other files of a session, which hold many conversations."""
    return list(store.rows(_SHARED_FILES, (file.session, file.source)))


class GrownContent:
    """The state of a file after it has grown, and its new chunks."""

    __slots__ = ("checksum", "chunks", "identity", "modified_ns", "read_ns", "size", "start", "tail")

    def __init__(  # noqa: PLR0913 - the columns of a file
        self,
        size: int,
        modified_ns: int,
        identity: str,
        read_ns: int,
        tail: bytes,
        checksum: bytes,
        chunks: Sequence[Chunk],
        start: int,
    ) -> None:
        self.size, self.modified_ns, self.identity, self.read_ns = size, modified_ns, identity, read_ns
        self.tail, self.checksum, self.chunks, self.start = tail, checksum, chunks, start


class GrownSession:
    """The rows of a session whose first entries stay: those from a seq on are replaced."""

    __slots__ = ("bookmark", "changes", "content", "file", "first", "rows")

    def __init__(  # noqa: PLR0913 - everything that is written
        self,
        file: GrowingFile,
        content: GrownContent,
        rows: SessionRows,
        first: int,
        changes: Iterable[tuple[str, int]],
        bookmark: bytes | None,
    ) -> None:
        self.file, self.content, self.rows, self.first, self.bookmark = file, content, rows, first, bookmark
        self.changes = changes
        """The files that calls name, and by how much the number of calls that were to change them has grown."""


def is_shared(store: Store, grown: GrownSession) -> bool:
    """Return whether another session, or an earlier entry, has an entry or a request of a grown session."""
    messages = [uid for _, _, uid, *_ in grown.rows.messages if uid is not None]
    requests = [uid for uid, *_ in grown.rows.requests]
    return any(
        store.row(_IS_SHARED.format(table), (str(uids), grown.file.session, grown.first)) is not None
        for table, uids in (("messages", messages), ("requests", requests))
    )


def write_growth(store: Store, grown: GrownSession, price: Price) -> None:
    """Write a session that has grown, and its file."""
    _write_file(store, grown)
    execute, session = store.connection.execute, grown.file.session
    for table in ("messages", "tool_calls", "requests"):
        execute(f"DELETE FROM {table} WHERE session = ? AND seq >= ?", (session, grown.first))  # noqa: S608 - ours
    execute("DELETE FROM problems WHERE session = ?", (session,))
    insert_rows(store, session, grown.rows, price)
    sql = "INSERT INTO files VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET changes = changes + ?3"
    store.connection.executemany(sql, [(session, path, count) for path, count in grown.changes])
    _write_session(store, session, grown.rows)


def _write_file(store: Store, grown: GrownSession) -> None:
    execute, file, content = store.connection.execute, grown.file, grown.content
    marks = (content.size, content.modified_ns, content.tail, content.read_ns, content.identity)
    sql = "UPDATE sources SET size = ?, modified_ns = ?, tail = ?, read_ns = ?, identity = ? WHERE id = ?"
    execute(sql, (*marks, file.source))
    sql = "UPDATE originals SET size = ?, modified_ns = ?, checksum = ? WHERE id = ?"
    execute(sql, (content.size, content.modified_ns, content.checksum, file.original))
    replaced = list(
        execute(
            "SELECT chunk FROM pieces WHERE original = ? AND position >= ?", (file.original, content.start)
        )
    )
    store.originals.write(file.original, content.chunks, content.start)
    for chunk in replaced:
        sql = "DELETE FROM chunks WHERE id = ? AND NOT EXISTS (SELECT 1 FROM pieces WHERE chunk = chunks.id)"
        execute(sql, chunk)
    execute("DELETE FROM bookmarks WHERE source = ?", (file.source,))
    if grown.bookmark is not None:
        execute("INSERT INTO bookmarks VALUES (?, ?)", (file.source, grown.bookmark))


def _write_session(store: Store, number: int, rows: SessionRows) -> None:
    """Write what the row and the summary of a session say of its entries."""
    from retold.archive.relations import resolve_grown_session
    from retold.archive.rows import format_time, insert_cost, usage_json
    from retold.model.session import LARGEST_INTEGER, clamp_figure

    session = rows.session
    title = None if session.title is None else as_text(session.title)
    store.connection.execute(
        "UPDATE sessions SET stamp = ?, title = ?, read_title = ?, started_at = ?, ended_at = ?, status = ?, messages = ?,"
        " tool_calls = ?, total = ?, usage = ? WHERE id = ?",
        (
            rows.stamp, title, title, format_time(session.started_at), format_time(session.ended_at), session.status,
            session.counts.messages, session.counts.tool_calls, clamp_figure(session.usage.total, LARGEST_INTEGER),
            usage_json(session), number,
        ),
    )  # fmt: skip
    rebuild_sums(store.connection, (number,))
    summary = insert_cost(rows.summary, load_cost(store, number))
    sql = "UPDATE summaries SET packed = ? WHERE session = ?"
    store.connection.execute(sql, (pack_summary(summary), number))
    resolve_grown_session(store, number)


def insert_rows(store: Store, number: int, rows: SessionRows, price: Price) -> list[int | None]:
    """Insert the rows of a session's models, messages, calls, requests and problems; return what each request cost."""
    many = store.connection.executemany
    many(_INSERT.format("models", "?"), [(number, as_text(model)) for model in rows.session.models])
    many(_INSERT.format("messages", ", ".join("?" * 10)), [(number, *row) for row in rows.messages])
    many(_INSERT.format("tool_calls", ", ".join("?" * 8)), [(number, *row) for row in rows.calls])
    costs = [price(row[2], row[3], row[4:12]) for row in rows.requests]
    requests = [(number, *row, cost) for row, cost in zip(rows.requests, costs, strict=True)]
    many(_INSERT.format("requests", ", ".join("?" * 13) + ", 1, ?"), requests)
    problems = [
        (number, one.code, one.severity, as_text(one.message), as_text(one.path), one.line, one.pointer)
        for one in rows.session.problems
    ]
    many(_INSERT.format("problems", ", ".join("?" * 6)), problems)
    return costs


_INSERT = "INSERT OR IGNORE INTO {} VALUES (?, {})"
