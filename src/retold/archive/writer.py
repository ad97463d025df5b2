"""The writer of the archive: it writes cluster updates, each of them whole or not at all."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

import apsw
import msgspec

from retold.archive.annotations import HiddenPaths, move_annotations
from retold.archive.database import MACHINE_ERRORS, RetoldError
from retold.archive.growth import insert_rows
from retold.archive.ledger import SUM_TABLES, insert_sums
from retold.archive.rows import SessionRows, format_time, insert_cost, usage_json
from retold.archive.store import Chunk, Store, as_stored, as_text, pack_summary
from retold.model.problem import Problem, problem
from retold.model.report import format_dollars
from retold.model.serialization import encode_problem
from retold.model.session import LARGEST_INTEGER, Kind, Session, clamp_figure, root_hash
from retold.model.spool import SpoolError, remove_spool
from retold.reading.disk import printable_path

if TYPE_CHECKING:
    from retold.archive.ledger import Price


Cluster = tuple[str, str]
"""An agent, and a cluster of its files."""


class ClusterMerger:
    """Merges clusters that turn out to have the same conversations. Each file's row has the cluster that it belongs to."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._leaders: dict[Cluster, str] = {}
        self._waiting: set[Cluster] = set()

    def state(self) -> tuple[dict[Cluster, str], set[Cluster]]:
        """Return what `restore` takes."""
        return dict(self._leaders), set(self._waiting)

    def restore(self, state: tuple[dict[Cluster, str], set[Cluster]]) -> None:
        """Go back to an earlier state."""
        self._leaders, self._waiting = dict(state[0]), set(state[1])

    def leader(self, agent: str, cluster: str | None) -> str | None:
        """Return the cluster that a cluster was merged into, or the cluster itself."""
        while cluster is not None and (agent, cluster) in self._leaders:
            cluster = self._leaders[agent, cluster]
        return cluster

    def is_waiting(self, agent: str, cluster: str | None) -> bool:
        """Return whether a cluster has still to be read with all of its files."""
        return cluster is not None and (agent, cluster) in self._waiting

    def must_merge(self, agent: str, known: str | None, cluster: str | None) -> bool:
        """Return whether a conversation of one cluster is known from present files of another."""
        if known is None or cluster is None or known == cluster:
            return False
        sql = "SELECT 1 FROM sources WHERE agent = ? AND cluster = ? AND NOT is_companion"
        return self._connection.execute(sql, (agent, known)).get is not None

    def merge(self, agent: str, leader: str, clusters: Iterable[str]) -> None:
        """Merge clusters, to be read again; if the process is killed, the next sync reads them."""
        for other in {*clusters} - {leader}:
            for table in ("sources", "sessions"):
                sql = f"UPDATE {table} SET cluster = ? WHERE agent = ? AND cluster = ?"  # noqa: S608 - ours
                self._connection.execute(sql, (leader, agent, other))
            self._leaders[agent, other] = leader
            self._waiting.discard((agent, other))
        self._waiting.add((agent, leader))

    def mark_unread(self, agent: str, cluster: str | None) -> None:
        """Mark a cluster as not read with all of its files."""
        sql = "UPDATE sources SET revision = 0 WHERE agent = ? AND cluster = ?"
        self._connection.execute(sql, (agent, cluster))

    def take_waiting(self) -> dict[str, set[str]]:
        """Return the merged clusters by agent; the caller reads them."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for agent, cluster in self._waiting:
            found[agent].add(cluster)
        self._waiting.clear()
        return dict(found)


class NewContent(msgspec.Struct):
    """An original that is new, or has grown."""

    uid: int
    size: int
    modified_ns: int
    checksum: bytes
    chunks: list[Chunk]
    start: int = 0
    """The position of the first of the chunks: behind those that stay."""
    spool: str | None = None
    """The spool that holds the chunks; None if they are in memory."""


class FileState(msgspec.Struct):
    """A file as it was when it was read."""

    path: str
    home: str
    folder: str
    label: str | None
    cluster: str | None
    is_companion: bool
    size: int
    modified_ns: int
    tail: bytes
    identity: str
    read_ns: int
    refusal: str | None = None
    new_content: NewContent | None = None
    """None if its content is archived already."""
    superseded: tuple[int, ...] = ()
    """The uids of earlier originals whose content this one has."""
    bookmark: bytes | None = None
    """What a reading of only its later lines needs."""


class ClusterUpdate(msgspec.Struct):
    """The files and sessions of a cluster, or a file of many conversations with the sessions that only it has."""

    agent: str
    cluster: str | None
    files: list[FileState]
    sessions: list[SessionRows]
    scraps: dict[int, bytes] = {}
    """For files of many conversations: digests of their scraps, by uid."""
    aliases: dict[int, int] = {}
    """Uids of rows that list a conversation a second time, each with the uid of that conversation."""
    roots: dict[str, str] = {}
    """Roots of projects that the agent found by their hashes."""
    excluded: list[int] = []
    """Uids of conversations that are no longer archived; archived parts stay."""
    forgotten: list[str] = []
    """Files of forgotten conversations and roots of their projects: only their hashes are stored."""
    problems: list[Problem] = []
    """Files that could not be opened or read."""
    failures: dict[str, str] = {}
    """Problems as JSON, by the path of the file that could not be read because of a bug or of damage.

    If there is one, sessions of the cluster that are not in the update stay as they are.
    """
    unwritten: list[str] = []
    """Files of sessions that cannot be written: they are archived even if their paths are hidden."""

    def remove_spools(self) -> None:
        """Remove the spools of its contents, which are not needed once it is committed."""
        for file in self.files:
            if file.new_content is not None and file.new_content.spool is not None:
                remove_spool(file.new_content.spool)


def drop_sessions(update: ClusterUpdate, error: Exception) -> ClusterUpdate:
    """Return an update without its sessions, which cannot be written because of an error, and with a problem for each file."""
    own = [file.path for file in update.files if not file.is_companion]
    unwritten = list(dict.fromkeys(path for rows in update.sessions for path in rows.sources))
    paths = [path for path in own if path in unwritten] or unwritten or own
    text = f"{type(error).__name__}: {error}"
    problems = [problem("reader-failed", text, printable_path(path)) for path in paths]
    failures = {path: encode_problem(one).decode() for path, one in zip(paths, problems, strict=True)}
    return ClusterUpdate(
        update.agent,
        update.cluster,
        [msgspec.structs.replace(file, bookmark=None) for file in update.files],
        [],
        excluded=update.excluded,
        forgotten=update.forgotten,
        problems=[*update.problems, *problems],
        failures={**failures, **update.failures},
        unwritten=unwritten,
    )


_SESSION = (
    "uid", "stamp", "agent", "cluster", "key", "read_key", "native_id", "kind", "read_kind", "parent", "read_parent",
    "root", "native_key", "hash", "evidence", "title", "read_title", "started_at", "ended_at", "status", "messages", "tool_calls",
    "total", "estimated", "are_times_derived", "usage", "is_spoken",
)  # fmt: skip
_INSERT = f"INSERT INTO sessions ({', '.join(_SESSION)}) VALUES (?{', ?' * (len(_SESSION) - 1)})"  # noqa: S608 - ours
_UPDATE = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in _SESSION)} WHERE id = ?"  # noqa: S608 - ours
_ROW = "INSERT OR IGNORE INTO {} VALUES (?, {})"
_DERIVED = (
    "summaries", "session_sources", "models", "messages", "tool_calls", "files", "requests", "problems", *SUM_TABLES,
)  # fmt: skip
PROMPTS_ONLY: Kind = "prompts-only"
EMPTY_SIZE = 2
"""Bytes of a file without content: at most an empty list."""
SUPERSEDED = -1
"""Value of `is_latest` for an original whose content is all in a later one."""
_HOLDERS = (
    "SELECT DISTINCT other.session FROM {0} one JOIN {0} other ON other.uid = one.uid WHERE one.session = ?"
)


class Writer:
    """Writes updates from workers into the archive, in transactions that readers see whole."""

    def __init__(self, store: Store, revision: int, price: "Price") -> None:
        self._store, self._revision, self._price = store, revision, price
        self._connection = store.connection
        self.changed_sessions: set[int] = set()
        """Sessions whose relations must be resolved."""
        self.just_written: set[int] = set()
        """Those of them that were just written and copied no request: their rows are right if they share nothing."""
        self.merger = ClusterMerger(self._connection)
        self.hidden = HiddenPaths(store)
        self.new_sessions: set[int] = set()
        """Sessions that were not in the archive before."""
        self._unnamed: set[int] = set()
        """Those of them that get their key when all of their files are read."""
        self._uncommitted: list[ClusterUpdate] = []
        """The updates in the transaction."""
        self._unsummed: set[int] = set()
        """The sessions in the transaction whose sums are inserted before it is committed."""
        self._save_state()

    def begin(self) -> None:
        """Begin a transaction, unless one is open."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit the transaction, so that readers see it."""
        if self._connection.in_transaction:
            insert_sums(self._connection, self._unsummed)
            self._connection.execute("COMMIT")
        for update in self._uncommitted:
            update.remove_spools()
        self._unsummed.clear()
        self._uncommitted.clear()
        self._save_state()

    def _save_state(self) -> None:
        """Save the state that a rollback restores."""
        self._merged = self.merger.state()
        sets = self.changed_sessions, self.just_written, self.new_sessions, self._unnamed
        self._sessions = [{*one} for one in sets]

    def _roll_back(self) -> None:
        """Undo the transaction, and restore the state before it."""
        self._connection.execute("ROLLBACK")
        self._unsummed.clear()
        self.merger.restore(self._merged)
        self.changed_sessions, self.just_written, self.new_sessions, self._unnamed = self._sessions
        self.hidden = HiddenPaths(self._store)
        self._store.originals.reset()

    def put(self, update: ClusterUpdate) -> ClusterUpdate:
        """Write an update: its files, its sessions, and the removal of other sessions of its cluster. Return what was written.

        If that fails, its files are written without its sessions, and with a problem. A transaction has only updates: it is repeated
        without these sessions. A savepoint for each update would cost more.
        """
        self.begin()
        try:
            self._put(update)
        except SpoolError as error:
            raise RetoldError(str(error)) from error
        except Exception as error:
            if isinstance(error, (RetoldError, *MACHINE_ERRORS)):
                raise
            return self._put_without_sessions(update, error)
        self._uncommitted.append(update)
        return update

    def _put_without_sessions(self, update: ClusterUpdate, error: Exception) -> ClusterUpdate:
        self._roll_back()
        written = drop_sessions(update, error)
        self.begin()
        self._uncommitted.append(written)
        for one in self._uncommitted:
            self._put(one)
        self.commit()
        return written

    def _put(self, update: ClusterUpdate) -> None:
        self._put_files(update)
        self._connection.executemany(
            "UPDATE sources SET refusal = ? WHERE agent = ? AND path = ?",
            [(failure, update.agent, as_stored(path)) for path, failure in update.failures.items()],
        )
        for alias, uid in update.aliases.items():
            self._unite(alias, uid)
        for rows in update.sessions:
            self._put_session(rows)
        cluster = self.merger.leader(update.agent, update.cluster)
        if self.merger.is_waiting(update.agent, cluster):
            self.merger.mark_unread(update.agent, cluster)
        elif update.cluster is not None:
            self._close_cluster(update)
        self._connection.executemany("INSERT OR REPLACE INTO scraps VALUES (?, ?)", update.scraps.items())
        for project_hash, root in update.roots.items():
            self._put_root(project_hash, root)

    def _unite(self, alias: int, uid: int) -> None:
        """Merge two rows of one conversation, with the title and tags of both."""
        execute = self._connection.execute
        move_annotations(self._store, alias, uid)
        execute("DELETE FROM scraps WHERE uid = ?", (alias,))
        known = execute("SELECT id FROM sessions WHERE uid = ?", (uid,)).get
        if known is None:
            execute("UPDATE sessions SET uid = ? WHERE uid = ?", (uid, alias))
            return
        self.changed_sessions.add(known)
        self.remove_session(execute("SELECT id FROM sessions WHERE uid = ?", (alias,)).get)

    def _put_root(self, project_hash: str, root: str) -> None:
        """Write a root, and note the sessions whose project was not known."""
        execute = self._connection.execute
        if self.hidden.is_root_hidden(root):
            return
        if execute("SELECT root FROM roots WHERE hash = ?", (project_hash,)).get != root:
            execute("INSERT OR REPLACE INTO roots VALUES (?, ?)", (project_hash, root))
            sql = "SELECT id FROM sessions WHERE hash = ? AND evidence IN ('none', 'guessed')"
            self.changed_sessions.update(session for (session,) in execute(sql, (project_hash,)))

    def _close_cluster(self, update: ClusterUpdate) -> None:
        execute = self._connection.execute
        uids = {*(rows.uid for rows in update.sessions), *update.excluded}
        sql = "SELECT id, uid FROM sessions WHERE agent = ? AND cluster = ?"
        for session, uid in list(execute(sql, (update.agent, update.cluster))):
            if uid not in uids and not update.failures:
                self.remove_session(session)
        self.mark_read(update.agent, update.cluster)

    def mark_read(self, agent: str, cluster: str | None) -> None:
        """Mark the files of a cluster as read by this reader; without a cluster, the files of many conversations."""
        sql = "UPDATE sources SET revision = ? WHERE agent = ? AND cluster IS ?"
        self._connection.execute(sql, (self._revision, agent, cluster))

    def _put_files(self, update: ClusterUpdate) -> None:
        """Write the files of an update; files of forgotten conversations without path and content."""
        hidden, files = self.hidden, update.files
        if update.excluded and not update.sessions and not update.failures:
            # Companions of files without archived content are not archived either.
            files = [file for file in files if not file.is_companion]
        if not hidden and not update.forgotten:
            for file in files:
                self._put_file(update.agent, file)
            return
        archived = {path for rows in update.sessions for path in rows.sources} | {*update.unwritten}
        hidden.hide(update.forgotten)
        for file in files:
            if (
                file.path in hidden
                and file.path not in archived
                and not self._has_content(update.agent, file)
            ):
                hidden.hide_file(file.path, file.home)
                self._put_file(
                    update.agent,
                    msgspec.structs.replace(file, new_content=None, refusal=None),
                    hidden,
                    is_hidden=True,
                )
            else:
                self._put_file(update.agent, file, hidden)

    def _has_content(self, agent: str, file: FileState) -> bool:
        """Return whether a file has archived content, or new content as a file of many conversations."""
        if file.cluster is None and file.new_content is not None:
            return file.new_content.size > EMPTY_SIZE
        sql = (
            "SELECT 1 FROM sources JOIN originals ON source = sources.id WHERE agent = ? AND path = ? LIMIT 1"
        )
        return self._store.row(sql, (agent, as_stored(file.path))) is not None

    def _put_file(
        self, agent: str, file: FileState, hidden: HiddenPaths | None = None, *, is_hidden: bool = False
    ) -> None:
        execute, path = self._connection.execute, as_stored(file.path)
        cluster = self.merger.leader(agent, file.cluster)
        if hidden is not None:
            path, cluster = self._own_row(agent, file, hidden, cluster, is_hidden=is_hidden)
        source, is_own = execute(
            "SELECT id, NOT is_companion FROM sources WHERE agent = ? AND path = ?", (agent, path)
        ).fetchone() or (None, 0)
        if file.is_companion and is_own:
            return  # a session's own file, which its own cluster writes
        state = (
            as_stored(file.home), as_stored(file.folder), file.label, cluster, file.is_companion, 1, file.size,
            file.modified_ns, file.tail, file.read_ns, self._revision, file.refusal, file.identity,
        )  # fmt: skip
        bookmark = None if is_hidden else file.bookmark
        if source is None:
            execute(_ROW.format("sources", ", ".join("?" * 15)), (None, agent, *state[:3], path, *state[3:]))
            source = self._connection.last_insert_rowid()
        else:
            execute("DELETE FROM bookmarks WHERE source = ?", (source,))
            execute(
                "UPDATE sources SET home = ?, folder = ?, label = ?, cluster = ?, is_companion = ?, is_present = ?, size = ?,"
                " modified_ns = ?, tail = ?, read_ns = ?, revision = ?, refusal = ?, identity = ? WHERE id = ?",
                (*state, source),
            )
        if bookmark is not None:
            execute("INSERT INTO bookmarks VALUES (?, ?)", (source, bookmark))
        if file.new_content is not None:
            self._put_original(source, file.new_content)
        # The index refers to them until it is updated.
        for uid in file.superseded:
            execute("UPDATE originals SET is_latest = ? WHERE uid = ?", (SUPERSEDED, uid))

    def _own_row(
        self, agent: str, file: FileState, hidden: HiddenPaths, cluster: str | None, *, is_hidden: bool
    ) -> tuple[str | bytes, str | None]:
        """Let a file have one row, in clear or hidden; return the path and the cluster to write into it."""
        shown, stored = as_stored(file.path), hidden.placeholder(file.path)
        path, other = (stored, shown) if is_hidden else (shown, stored)
        sql = "UPDATE OR IGNORE sources SET path = ? WHERE agent = ? AND path = ?"
        self._connection.execute(sql, (path, agent, other))
        return path, hidden.placeholder(cluster) if is_hidden and cluster is not None else cluster

    def _put_original(self, source: int, content: NewContent) -> None:
        execute = self._connection.execute
        execute("UPDATE originals SET is_latest = 0 WHERE source = ? AND is_latest = 1", (source,))
        original = execute("SELECT id FROM originals WHERE uid = ?", (content.uid,)).get
        if original is None:
            state = (content.uid, source, 1, content.size, content.modified_ns, content.checksum)
            execute("INSERT INTO originals VALUES (NULL, ?, ?, ?, ?, ?, ?)", state)
            original = self._connection.last_insert_rowid()
        else:
            execute(
                "UPDATE originals SET source = ?, is_latest = 1, size = ?, modified_ns = ?, checksum = ? WHERE id = ?",
                (source, content.size, content.modified_ns, content.checksum, original),
            )
        self._store.originals.write(original, content.chunks, content.start)

    def _put_session(self, rows: SessionRows) -> None:
        execute, many, session = self._connection.execute, self._connection.executemany, rows.session
        sql = "SELECT id, key, read_kind, cluster FROM sessions WHERE uid = ?"
        known = execute(sql, (rows.uid,)).fetchone()
        if known is not None and self._has_to_wait(rows, known[0], known[3]):
            return
        # Its log of prompts was written before its own file: the session is not lost.
        is_found = known is not None and known[2] == PROMPTS_ONLY and session.kind != PROMPTS_ONLY
        is_named = known is not None and not is_found and known[0] not in self._unnamed
        key = known[1] if known and is_named else self._free_key(session, known and known[0])
        values = self._values(rows, key)
        if known is None:
            execute(_INSERT, values)
            number = self._connection.last_insert_rowid()
            self.new_sessions.add(number)
        else:
            number = known[0]
            self._add_relatives(number)
            execute(_UPDATE, (*values, number))
            self._remove_derived(number)
        self.changed_sessions.add(number)
        (self.just_written.discard if rows.has_copied_requests else self.just_written.add)(number)
        self._put_sources(number, rows)
        many(_ROW.format("files", "?, ?"), [(number, *row) for row in rows.files])
        costs = [picos for picos in insert_rows(self._store, number, rows, self._price) if picos is not None]
        self._unsummed.add(number)
        cost = format_dollars(sum(costs)) if costs else None
        execute(_ROW.format("summaries", "?"), (number, pack_summary(insert_cost(rows.summary, cost))))

    def _has_to_wait(self, rows: SessionRows, number: int, known: str | None) -> bool:
        """Return whether files of another cluster have more of a conversation, so that it is read with all of them."""
        agent, cluster = rows.session.agent, self.merger.leader(rows.session.agent, rows.cluster)
        if self.merger.must_merge(agent, known, cluster):
            # Later files have the names that the agent gives them, and so belong to that cluster.
            leader = self.merger.leader(agent, rows.named_cluster) or str(known)
            self.merger.merge(agent, leader, (str(known), str(cluster)))
            self._unnamed |= {number} & self.new_sessions
        elif not self.merger.is_waiting(agent, cluster):
            return False
        # So that forgetting the session includes these files.
        self._put_sources(number, rows)
        return True

    def _put_sources(self, number: int, rows: SessionRows) -> None:
        sources = self._source_ids(rows.session.agent, rows.sources)
        self._connection.executemany(
            _ROW.format("session_sources", "?"), [(number, source) for source in sources]
        )

    def _values(self, rows: SessionRows, key: str) -> tuple[object, ...]:
        session = rows.session
        project, usage = session.project, session.usage
        values = (
            rows.uid, rows.stamp, session.agent, self.merger.leader(session.agent, rows.cluster), key, session.key, session.native_id, session.kind,
            session.kind, session.parent, session.parent, project.root, project.native_key, project.hash, project.evidence,
            session.title, session.title, format_time(session.started_at), format_time(session.ended_at), session.status,
            session.counts.messages, session.counts.tool_calls, clamp_figure(usage.total, LARGEST_INTEGER), usage.estimated, session.are_times_derived,
            usage_json(session), rows.is_spoken,
        )  # fmt: skip
        return tuple(as_text(value) if isinstance(value, str) else value for value in values)

    def _free_key(self, session: Session, number: int | None) -> str:
        """Return a key that no other session has: if it is taken, with the project's hash or that of its file's path."""
        names = chain((session.key,), (f"{session.key}~{name[:6]}" for name in _hashes(session)))
        return next(
            name
            for name in names
            if self._connection.execute("SELECT id FROM sessions WHERE key = ?", (name,)).get
            in (None, number)
        )

    def _source_ids(self, agent: str, paths: Sequence[str]) -> Iterator[int]:
        for path in paths:
            sql = "SELECT id FROM sources WHERE agent = ? AND path = ?"
            found = self._connection.execute(sql, (agent, as_stored(path))).get
            if found is not None:
                yield found

    def _add_relatives(self, session: int) -> None:
        """Note the sessions that share something with a session: a change may make it theirs."""
        for table in ("messages", "requests"):
            found = self._connection.execute(_HOLDERS.format(table), (session,))
            self.changed_sessions.update(other for (other,) in found)

    def remove_session(self, session: int) -> None:
        """Remove the rows of a session; its originals stay."""
        self._add_relatives(session)
        above = "SELECT id FROM sessions WHERE key = (SELECT parent FROM sessions WHERE id = ?)"
        self.changed_sessions.update(parent for (parent,) in self._connection.execute(above, (session,)))
        self.changed_sessions.discard(session)
        self._unsummed.discard(session)
        self._remove_derived(session)
        self._connection.execute("DELETE FROM sessions WHERE id = ?", (session,))

    def remove_orphans(self) -> None:
        """Remove the rows of sessions whose own row is missing: they are read again, under other numbers."""
        self.begin()
        for table in _DERIVED:
            sql = (
                f"DELETE FROM {table} WHERE session IS NOT NULL AND session NOT IN (SELECT id FROM sessions)"  # noqa: S608 - ours
            )
            self._connection.execute(sql)

    def _remove_derived(self, session: int) -> None:
        for table in _DERIVED:
            self._connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 - ours

    def mark_absent(self, sources: Iterable[int]) -> None:
        """Mark files as gone, and note the sessions that were read from them."""
        for source in sources:
            self._connection.execute("UPDATE sources SET is_present = 0 WHERE id = ?", (source,))
            sql = "SELECT session FROM session_sources WHERE source = ?"
            self.changed_sessions.update(session for (session,) in self._connection.execute(sql, (source,)))

    def drop_superseded(self) -> None:
        """Delete originals whose content is all in later ones, and unused chunks."""
        sql = "SELECT id FROM originals WHERE is_latest = ?"
        for (original,) in list(self._connection.execute(sql, (SUPERSEDED,))):
            self._store.originals.drop(original)
        self._store.originals.remove_unused_chunks()


def _hashes(session: Session) -> Iterator[str]:
    """Yield suffixes that tell a session from others of the same key, without end."""
    if session.project.hash is not None:
        yield session.project.hash
    path = session.sources[0].path
    yield from (root_hash(f"{path}{number or ''}") for number in count())
