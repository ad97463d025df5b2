"""The one writer: parcels to rows, each whole or not at all."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

import apsw
import msgspec

from retold.archive.annotations import move_hand
from retold.archive.database import MACHINE, RetoldError
from retold.archive.keyed_hashes import HiddenPaths
from retold.archive.ledger import TABLES as ROLLUPS
from retold.archive.ledger import add_up, cost_of
from retold.archive.rows import SessionRows, time_or_none, usage_json, with_cost
from retold.archive.store import Chunk, Store, as_stored, as_text, packed_summary
from retold.model.problem import Problem, problem
from retold.model.serialization import problem_json
from retold.model.session import Kind, Session, root_hash
from retold.model.usage import LARGEST, stored_figure
from retold.reading.disk import printable

if TYPE_CHECKING:
    from retold.archive.ledger import Price


Cluster = tuple[str, str]
"""An agent, and a cluster of its files."""


class ClusterMerger:
    """What one run finds out. It is kept with the files themselves: each bears the cluster that it belongs to by now."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._leaders: dict[Cluster, str] = {}
        self._waiting: set[Cluster] = set()

    def state(self) -> tuple[dict[Cluster, str], set[Cluster]]:
        """Return what was found out so far."""
        return dict(self._leaders), set(self._waiting)

    def go_back(self, state: tuple[dict[Cluster, str], set[Cluster]]) -> None:
        """Know no more than what `state` returned."""
        self._leaders, self._waiting = dict(state[0]), set(state[1])

    def leader(self, agent: str, cluster: str | None) -> str | None:
        """Return the cluster that the files of one belong to by now."""
        while cluster is not None and (agent, cluster) in self._leaders:
            cluster = self._leaders[agent, cluster]
        return cluster

    def is_waiting(self, agent: str, cluster: str | None) -> bool:
        """Tell whether a cluster is yet to be read with all of its files."""
        return cluster is not None and (agent, cluster) in self._waiting

    def is_due(self, agent: str, known: str | None, told: str | None) -> bool:
        """Tell whether a conversation that one cluster tells is known from the files of another."""
        if known is None or told is None or known == told:
            return False
        asked = "SELECT 1 FROM sources WHERE agent = ? AND cluster = ? AND NOT is_beside"
        return self._connection.execute(asked, (agent, known)).get is not None

    def unite(self, agent: str, leader: str, clusters: Iterable[str]) -> None:
        """Make clusters one, to be read again: whoever ends us, the next sync does it."""
        for other in {*clusters} - {leader}:
            for table in ("sources", "sessions"):
                asked = f"UPDATE {table} SET cluster = ? WHERE agent = ? AND cluster = ?"  # noqa: S608 - ours
                self._connection.execute(asked, (leader, agent, other))
            self._leaders[agent, other] = leader
            self._waiting.discard((agent, other))
        self._waiting.add((agent, leader))

    def leave_unread(self, agent: str, cluster: str | None) -> None:
        """Take note that a cluster was not read with all of its files."""
        asked = "UPDATE sources SET revision = 0 WHERE agent = ? AND cluster = ?"
        self._connection.execute(asked, (agent, cluster))

    def taken(self) -> dict[str, set[str]]:
        """Return the clusters that are to be read as one, by agent; whoever asks sees to it."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for agent, cluster in self._waiting:
            found[agent].add(cluster)
        self._waiting.clear()
        return dict(found)


class NewContent(msgspec.Struct):
    """An original that is new, or has grown."""

    name: int
    size: int
    modified_ns: int
    seal: bytes
    chunks: list[Chunk]
    start: int = 0
    """The place of the first of the chunks: behind those that stay as they are."""


class FileState(msgspec.Struct):
    """A file, as it was when it was read."""

    path: str
    home: str
    folder: str
    label: str | None
    cluster: str | None
    is_beside: bool
    size: int
    modified_ns: int
    tail: bytes
    identity: str
    read_ns: int
    refusal: str | None = None
    fresh: NewContent | None = None
    """None where its content is known."""
    dropped: tuple[int, ...] = ()
    """The names of earlier originals of which this one says all."""


class ClusterUpdate(msgspec.Struct):
    """A cluster's files and sessions, or a file of many conversations and what only it tells of."""

    agent: str
    cluster: str | None
    files: list[FileState]
    sessions: list[SessionRows]
    scraps: dict[int, bytes] = {}
    """For files of many conversations: what they say of each, as a digest."""
    former: dict[int, int] = {}
    """Names of rows that list a conversation a second time, each with the name of that conversation."""
    roots: dict[str, str] = {}
    """Roots of projects that were found on the way."""
    left: list[int] = []
    """Names of conversations that are not archived further; archived parts stay."""
    forgotten: list[str] = []
    """The files of conversations that are forgotten, and the roots of their projects: they are kept as hashes alone."""
    problems: list[Problem] = []
    """Why files that were found could not be opened or read."""
    failures: dict[str, str] = {}
    """Problems in their JSON form, by the path of the file that could not be read because of a bug or of damage.

    Where there is one, sessions of the cluster that are not in the parcel stay as they are.
    """
    unwritten: list[str] = []
    """The files of sessions that cannot be written: they are kept even where their paths are hidden."""


def without_sessions(parcel: ClusterUpdate, error: Exception) -> ClusterUpdate:
    """Return the files of a parcel whose sessions cannot be written because of an error, with a problem for each."""
    own = [held.path for held in parcel.files if not held.is_beside]
    unwritten = list(dict.fromkeys(path for rows in parcel.sessions for path in rows.sources))
    paths = [path for path in own if path in unwritten] or unwritten or own
    told = [problem("reader-failed", f"{type(error).__name__}: {error}", printable(path)) for path in paths]
    failures = {path: problem_json(one).decode() for path, one in zip(paths, told, strict=True)}
    return ClusterUpdate(
        parcel.agent,
        parcel.cluster,
        parcel.files,
        [],
        left=parcel.left,
        forgotten=parcel.forgotten,
        problems=[*parcel.problems, *told],
        failures={**failures, **parcel.failures},
        unwritten=unwritten,
    )


_SESSION = (
    "name", "stamp", "agent", "cluster", "key", "read_key", "native_id", "kind", "read_kind", "parent", "read_parent",
    "root", "native_key", "hash", "evidence", "title", "read_title", "started_at", "ended_at", "status", "messages", "tool_calls",
    "total", "estimated", "are_times_derived", "usage", "is_spoken",
)  # fmt: skip
_INSERT = f"INSERT INTO sessions ({', '.join(_SESSION)}) VALUES (?{', ?' * (len(_SESSION) - 1)})"  # noqa: S608 - ours
_UPDATE = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in _SESSION)} WHERE id = ?"  # noqa: S608 - ours
_ROW = "INSERT OR IGNORE INTO {} VALUES (?, {})"
_DERIVED = (
    "summaries",
    "session_sources",
    "models",
    "messages",
    "tool_calls",
    "files",
    "requests",
    "problems",
    *ROLLUPS,
)
LOST: Kind = "prompts-only"
NOTHING = 2
"""Bytes of a file in which nothing is left: an empty list at most."""
DISPENSABLE = -1
"""In the place of whether an original is the latest: a later one says all that it says."""
_HOLDERS = (
    "SELECT DISTINCT other.session FROM {0} one JOIN {0} other ON other.name = one.name WHERE one.session = ?"
)


class Writer:
    """Writes what workers found into the archive, in transactions that readers see whole."""

    def __init__(self, record: Store, revision: int, price: "Price") -> None:
        self._record, self._revision, self._price = record, revision, price
        self._connection = record.connection
        self.touched: set[int] = set()
        """The sessions to be told anew what they are to others."""
        self.fresh: set[int] = set()
        """Those of them that were just written and copied no request: their rows are right if they share nothing."""
        self.reunion = ClusterMerger(self._connection)
        self.hidden = HiddenPaths(record)
        self.born: set[int] = set()
        """The sessions that were not known before."""
        self._unnamed: set[int] = set()
        """Those of them that get their key when all of their files are read."""
        self._uncommitted: list[ClusterUpdate] = []
        """The parcels in the transaction."""
        self._note_state()

    def begin(self) -> None:
        """Begin a transaction, if none is begun."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make what was written be seen."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        self._uncommitted.clear()
        self._note_state()

    def _note_state(self) -> None:
        """Remember what a rollback goes back to."""
        self._united = self.reunion.state()
        self._sessions = {*self.touched}, {*self.fresh}, {*self.born}, {*self._unnamed}

    def _roll_back(self) -> None:
        """Undo the transaction, and all that was found out in it."""
        self._connection.execute("ROLLBACK")
        self.reunion.go_back(self._united)
        self.touched, self.fresh, self.born, self._unnamed = self._sessions
        self.hidden = HiddenPaths(self._record)
        self._record.originals.reset()

    def put(self, parcel: ClusterUpdate) -> ClusterUpdate:
        """Write a parcel: its files, its sessions, and that others of its cluster are no more. Return what was written.

        Where that fails, its files are written without its sessions, and with a problem. A transaction holds nothing but
        parcels: it is repeated without the sessions. A savepoint for each parcel would cost more.
        """
        self.begin()
        try:
            self._put(parcel)
        except Exception as error:
            if isinstance(error, (RetoldError, *MACHINE)):
                raise
            return self._put_without_sessions(parcel, error)
        self._uncommitted.append(parcel)
        return parcel

    def _put_without_sessions(self, parcel: ClusterUpdate, error: Exception) -> ClusterUpdate:
        self._roll_back()
        written = without_sessions(parcel, error)
        self.begin()
        for one in (*self._uncommitted, written):
            self._put(one)
        self.commit()
        return written

    def _put(self, parcel: ClusterUpdate) -> None:
        self._put_files(parcel)
        self._connection.executemany(
            "UPDATE sources SET refusal = ? WHERE agent = ? AND path = ?",
            [(told, parcel.agent, as_stored(path)) for path, told in parcel.failures.items()],
        )
        for former, name in parcel.former.items():
            self._unite(former, name)
        for rows in parcel.sessions:
            self._put_session(rows)
        cluster = self.reunion.leader(parcel.agent, parcel.cluster)
        if self.reunion.is_waiting(parcel.agent, cluster):
            self.reunion.leave_unread(parcel.agent, cluster)
        elif parcel.cluster is not None:
            self._close_cluster(parcel)
        self._connection.executemany("INSERT OR REPLACE INTO scraps VALUES (?, ?)", parcel.scraps.items())
        for project_hash, root in parcel.roots.items():
            self._put_root(project_hash, root)

    def _unite(self, former: int, name: int) -> None:
        """Let a conversation that is listed under two names have one row, with the title and tags of both."""
        ask = self._connection.execute
        move_hand(self._record, former, name)
        ask("DELETE FROM scraps WHERE name = ?", (former,))
        known = ask("SELECT id FROM sessions WHERE name = ?", (name,)).get
        if known is None:
            ask("UPDATE sessions SET name = ? WHERE name = ?", (name, former))
            return
        self.touched.add(known)
        self.remove_session(ask("SELECT id FROM sessions WHERE name = ?", (former,)).get)

    def _put_root(self, name: str, root: str) -> None:
        """Keep a root that was found, and remember those who took place there and were not told of it."""
        ask = self._connection.execute
        if self.hidden.is_root_hidden(root):
            return
        if ask("SELECT root FROM roots WHERE hash = ?", (name,)).get != root:
            ask("INSERT OR REPLACE INTO roots VALUES (?, ?)", (name, root))
            asked = "SELECT id FROM sessions WHERE hash = ? AND evidence IN ('none', 'guessed')"
            self.touched.update(session for (session,) in ask(asked, (name,)))

    def _close_cluster(self, parcel: ClusterUpdate) -> None:
        ask = self._connection.execute
        names = {*(rows.name for rows in parcel.sessions), *parcel.left}
        asked = "SELECT id, name FROM sessions WHERE agent = ? AND cluster = ?"
        for session, name in list(ask(asked, (parcel.agent, parcel.cluster))):
            if name not in names and not parcel.failures:
                self.remove_session(session)
        self.mark_read(parcel.agent, parcel.cluster)

    def mark_read(self, agent: str, cluster: str | None) -> None:
        """Take note that this reader has read all files of a cluster; without one, those of many conversations."""
        asked = "UPDATE sources SET revision = ? WHERE agent = ? AND cluster IS ?"
        self._connection.execute(asked, (self._revision, agent, cluster))

    def _put_files(self, parcel: ClusterUpdate) -> None:
        """Write the files of a parcel; files of forgotten conversations without path and content."""
        hidden, files = self.hidden, parcel.files
        if parcel.left and not parcel.sessions and not parcel.failures:
            # What lies beside files of which nothing is kept is not kept either.
            files = [held for held in files if not held.is_beside]
        if not hidden and not parcel.forgotten:
            for held in files:
                self._put_file(parcel.agent, held)
            return
        kept = {path for rows in parcel.sessions for path in rows.sources} | {*parcel.unwritten}
        hidden.hide(parcel.forgotten)
        for held in files:
            if held.path in hidden and held.path not in kept and not self._has_content(parcel.agent, held):
                hidden.hide_file(held.path, held.home)
                self._put_file(
                    parcel.agent,
                    msgspec.structs.replace(held, fresh=None, refusal=None),
                    hidden,
                    is_hidden=True,
                )
            else:
                self._put_file(parcel.agent, held, hidden)

    def _has_content(self, agent: str, held: FileState) -> bool:
        """Tell whether something of a file is kept, or is to be kept as that of a file of many conversations."""
        if held.cluster is None and held.fresh is not None:
            return held.fresh.size > NOTHING
        asked = (
            "SELECT 1 FROM sources JOIN originals ON source = sources.id WHERE agent = ? AND path = ? LIMIT 1"
        )
        return self._record.row(asked, (agent, as_stored(held.path))) is not None

    def _put_file(
        self, agent: str, held: FileState, hidden: HiddenPaths | None = None, *, is_hidden: bool = False
    ) -> None:
        ask, path = self._connection.execute, as_stored(held.path)
        cluster = self.reunion.leader(agent, held.cluster)
        if hidden is not None:
            path, cluster = self._own_row(agent, held, hidden, cluster, is_hidden=is_hidden)
        source, is_own = ask(
            "SELECT id, NOT is_beside FROM sources WHERE agent = ? AND path = ?", (agent, path)
        ).fetchone() or (None, 0)
        if held.is_beside and is_own:
            return  # a session's own file, which its own cluster sees to
        state = (
            as_stored(held.home), as_stored(held.folder), held.label, cluster, held.is_beside, 1, held.size,
            held.modified_ns, held.tail, held.read_ns, self._revision, held.refusal, held.identity,
        )  # fmt: skip
        if source is None:
            ask(_ROW.format("sources", ", ".join("?" * 15)), (None, agent, *state[:3], path, *state[3:]))
            source = self._connection.last_insert_rowid()
        else:
            ask(
                "UPDATE sources SET home = ?, folder = ?, label = ?, cluster = ?, is_beside = ?, is_there = ?, size = ?,"
                " modified_ns = ?, tail = ?, read_ns = ?, revision = ?, refusal = ?, identity = ? WHERE id = ?",
                (*state, source),
            )
        if held.fresh is not None:
            self._put_original(source, held.fresh)
        # Until the index has followed, it leads to them.
        for name in held.dropped:
            ask("UPDATE originals SET is_latest = ? WHERE name = ?", (DISPENSABLE, name))

    def _own_row(
        self, agent: str, held: FileState, hidden: HiddenPaths, cluster: str | None, *, is_hidden: bool
    ) -> tuple[str | bytes, str | None]:
        """Let a file have one row, in clear or hidden; return the path and the cluster that are written into it."""
        shown, stored = as_stored(held.path), hidden.stored(held.path)
        path, other = (stored, shown) if is_hidden else (shown, stored)
        asked = "UPDATE OR IGNORE sources SET path = ? WHERE agent = ? AND path = ?"
        self._connection.execute(asked, (path, agent, other))
        return path, hidden.stored(cluster) if is_hidden and cluster is not None else cluster

    def _put_original(self, source: int, fresh: NewContent) -> None:
        ask = self._connection.execute
        ask("UPDATE originals SET is_latest = 0 WHERE source = ? AND is_latest = 1", (source,))
        original = ask("SELECT id FROM originals WHERE name = ?", (fresh.name,)).get
        if original is None:
            state = (fresh.name, source, 1, fresh.size, fresh.modified_ns, fresh.seal)
            ask("INSERT INTO originals VALUES (NULL, ?, ?, ?, ?, ?, ?)", state)
            original = self._connection.last_insert_rowid()
        else:
            ask(
                "UPDATE originals SET source = ?, is_latest = 1, size = ?, modified_ns = ?, seal = ? WHERE id = ?",
                (source, fresh.size, fresh.modified_ns, fresh.seal, original),
            )
        self._record.originals.put(original, fresh.chunks, fresh.start)

    def _put_session(self, rows: SessionRows) -> None:
        ask, many, session = self._connection.execute, self._connection.executemany, rows.session
        asked = "SELECT id, key, read_kind, cluster FROM sessions WHERE name = ?"
        known = ask(asked, (rows.name,)).fetchone()
        if known is not None and self._has_to_wait(rows, known[0], known[3]):
            return
        # A log of prompts is written before the session's own file: what was called lost meanwhile is not.
        is_found = known is not None and known[2] == LOST and session.kind != LOST
        is_named = known is not None and not is_found and known[0] not in self._unnamed
        key = known[1] if known and is_named else self._free_key(session, known and known[0])
        values = self._values(rows, key)
        if known is None:
            ask(_INSERT, values)
            number = self._connection.last_insert_rowid()
            self.born.add(number)
        else:
            number = known[0]
            self._touch_relatives(number)
            ask(_UPDATE, (*values, number))
            self._remove_derived(number)
        self.touched.add(number)
        (self.fresh.discard if rows.has_copied_requests else self.fresh.add)(number)
        self._put_sources(number, rows)
        many(_ROW.format("models", "?"), [(number, as_text(model)) for model in session.models])
        many(_ROW.format("messages", ", ".join("?" * 10)), [(number, *row) for row in rows.messages])
        many(_ROW.format("tool_calls", ", ".join("?" * 8)), [(number, *row) for row in rows.calls])
        many(_ROW.format("files", "?, ?"), [(number, *row) for row in rows.files])
        many(
            _ROW.format("requests", ", ".join("?" * 13) + ", 1, ?"),
            [(number, *row, self._price(row[2], row[3], row[4:12])) for row in rows.requests],
        )
        add_up(self._connection, number)
        cost = cost_of(self._record, number)
        ask(_ROW.format("summaries", "?"), (number, packed_summary(with_cost(rows.summary, cost))))
        told = [
            (one.code, one.severity, as_text(one.message), as_text(one.path), one.line, one.pointer)
            for one in session.problems
        ]
        many(_ROW.format("problems", ", ".join("?" * 6)), [(number, *one) for one in told])

    def _has_to_wait(self, rows: SessionRows, number: int, known: str | None) -> bool:
        """Tell whether files of another cluster have more of a conversation: then it is not told by these alone."""
        agent, told = rows.session.agent, self.reunion.leader(rows.session.agent, rows.cluster)
        if self.reunion.is_due(agent, known, told):
            # Files that are yet to come bear the name that the agent gives them, and so go to its cluster.
            leader = self.reunion.leader(agent, rows.named_cluster) or str(known)
            self.reunion.unite(agent, leader, (str(known), str(told)))
            self._unnamed |= {number} & self.born
        elif not self.reunion.is_waiting(agent, told):
            return False
        # Whoever forgets it meanwhile forgets these files as well.
        self._put_sources(number, rows)
        return True

    def _put_sources(self, number: int, rows: SessionRows) -> None:
        sources = self._source_ids(rows.session.agent, rows.sources)
        told = [(number, source) for source in sources]
        self._connection.executemany(_ROW.format("session_sources", "?"), told)

    def _values(self, rows: SessionRows, key: str) -> tuple[object, ...]:
        session = rows.session
        project, usage = session.project, session.usage
        values = (
            rows.name, rows.stamp, session.agent, self.reunion.leader(session.agent, rows.cluster), key, session.key, session.native_id, session.kind,
            session.kind, session.parent, session.parent, project.root, project.native_key, project.hash, project.evidence,
            session.title, session.title, time_or_none(session.started_at), time_or_none(session.ended_at), session.status,
            session.counts.messages, session.counts.tool_calls, stored_figure(usage.total, LARGEST), usage.estimated, session.are_times_derived,
            usage_json(session), rows.is_spoken,
        )  # fmt: skip
        return tuple(as_text(value) if isinstance(value, str) else value for value in values)

    def _free_key(self, session: Session, number: int | None) -> str:
        """Return a key of its own: with the project's hash behind it, or that of its file's path, where it is taken."""
        names = chain((session.key,), (f"{session.key}~{name[:6]}" for name in _hashes(session)))
        return next(
            name
            for name in names
            if self._connection.execute("SELECT id FROM sessions WHERE key = ?", (name,)).get
            in (None, number)
        )

    def _source_ids(self, agent: str, paths: Sequence[str]) -> Iterator[int]:
        for path in paths:
            asked = "SELECT id FROM sources WHERE agent = ? AND path = ?"
            found = self._connection.execute(asked, (agent, as_stored(path))).get
            if found is not None:
                yield found

    def _touch_relatives(self, session: int) -> None:
        """Remember those who hold what a session holds: it may be theirs when it is changed."""
        for table in ("messages", "requests"):
            found = self._connection.execute(_HOLDERS.format(table), (session,))
            self.touched.update(other for (other,) in found)

    def remove_session(self, session: int) -> None:
        """Remove what was derived of a session; its originals stay."""
        self._touch_relatives(session)
        above = "SELECT id FROM sessions WHERE key = (SELECT parent FROM sessions WHERE id = ?)"
        self.touched.update(parent for (parent,) in self._connection.execute(above, (session,)))
        self.touched.discard(session)
        self._remove_derived(session)
        self._connection.execute("DELETE FROM sessions WHERE id = ?", (session,))

    def remove_orphans(self) -> None:
        """Remove what was derived of sessions whose own row is missing: they are read again, under other numbers."""
        self.begin()
        for table in _DERIVED:
            asked = (
                f"DELETE FROM {table} WHERE session IS NOT NULL AND session NOT IN (SELECT id FROM sessions)"  # noqa: S608 - ours
            )
            self._connection.execute(asked)

    def _remove_derived(self, session: int) -> None:
        for table in _DERIVED:
            self._connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 - ours

    def mark_gone(self, sources: Iterable[int]) -> None:
        """Take note that files are not there any more, and tell the sessions that were read from them."""
        for source in sources:
            self._connection.execute("UPDATE sources SET is_there = 0 WHERE id = ?", (source,))
            asked = "SELECT session FROM session_sources WHERE source = ?"
            self.touched.update(session for (session,) in self._connection.execute(asked, (source,)))

    def drop_dispensable(self) -> None:
        """Drop the originals of which later ones say all, and what nothing is made of any more."""
        asked = "SELECT id FROM originals WHERE is_latest = ?"
        for (original,) in list(self._connection.execute(asked, (DISPENSABLE,))):
            self._record.originals.drop(original)
        self._record.originals.sweep()


def _hashes(session: Session) -> Iterator[str]:
    """Yield what tells a session from others of the same key: enough for any number of them."""
    if session.project.hash is not None:
        yield session.project.hash
    path = session.sources[0].path
    yield from (root_hash(f"{path}{number or ''}") for number in count())
