"""Sessions loaded from the archive: read again from their originals, with what the archive knows of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from retold.agents.protocol import Agent, AgentHome, LostSession, Reading, Source
from retold.agents.registry import AGENTS
from retold.archive.database import DamagedError
from retold.archive.queries.lookups import (
    load_archived_files,
    load_copied_messages,
    load_copied_requests,
    load_renamed_keys,
    load_session_originals,
    load_stored_session,
)
from retold.archive.rows import stable_uid
from retold.archive.store import Store, as_path, unpack_summary
from retold.model.problem import Problem
from retold.model.serialization import decode_summary
from retold.model.session import Entry, Message, Part, Session, ToolCall, View
from retold.reading.disk import Disk
from retold.sessions.archive_disk import ArchiveDisk, OriginalFile, PinnedDisk
from retold.sessions.conversations import Scraps, conversation_uid, group_scraps, join_conversations

OriginalRow = Sequence[Any]
"""Path, home, folder, label, cluster, whether it is the latest, and the original's id, size and time."""


class SessionRow(NamedTuple):
    """A session as the archive lists it."""

    id: int
    uid: int
    agent: str
    cluster: str | None
    packed: bytes
    """Its summary."""

    @property
    def summary(self) -> Session:
        """The session without its timeline."""
        return decode_summary(unpack_summary(self.packed))


def find_session(store: Store, key: str) -> SessionRow | None:
    """Return the row of a session; None if there is none with this key."""
    row = load_stored_session(store, key)
    return None if row is None else SessionRow(*row)


class Ownership:
    """The entries of a session that belong to another, from which they were copied."""

    def __init__(self, store: Store, session: int) -> None:
        self._store = store
        self._messages = load_copied_messages(store, session)
        self._requests = load_copied_requests(store, session)

    def is_copied(self, message: str | None, request: str | None) -> bool:
        """Return whether a message belongs to another session, by its own id and the id of its request."""
        if self._requests and request is not None and stable_uid("request", request) in self._requests:
            return True
        return bool(self._messages) and stable_uid("entry", message) in self._messages

    def mark(self, timeline: Iterable[Entry]) -> Iterator[Entry]:
        """Yield entries, the copied ones marked as not the session's own, and calls with the keys of their subagents."""
        entries = list(timeline)
        # Finding renamed keys takes a scan of all sessions.
        renamed = load_renamed_keys(self._store) if _have_child(entries) else {}
        if not (renamed or self._messages or self._requests):
            yield from entries
            return
        for entry in entries:
            marked = entry
            if isinstance(entry, Message):
                if self.is_copied(entry.id, entry.usage.request if entry.usage else None):
                    marked = replace(entry, own=False)
                if renamed and _have_child((entry,)):
                    marked = replace(marked, parts=tuple(_rename_children(entry.parts, renamed)))
            yield marked


def _have_child(entries: Iterable[Entry]) -> bool:
    for entry in entries:
        if isinstance(entry, Message):
            for part in entry.parts:
                if isinstance(part, ToolCall) and part.child is not None:
                    return True
    return False


def _rename_children(parts: Sequence[Part], renamed: Mapping[str, str]) -> Iterator[Part]:
    for part in parts:
        child = renamed.get(part.child or "") if isinstance(part, ToolCall) else None
        yield part if child is None else replace(part, child=child)


def load_session(store: Store, key: str, view: View = "full") -> Session | None:
    """Return a session by its key, in one transaction; None if there is none."""
    session = None
    with store.connection:
        row = find_session(store, key)
        if row is not None:
            session = _mark_copied(store, row, load_raw(store, row, view))
    return session


def load_for_restore(store: Store, key: str) -> LostSession | None:
    """Return everything that the archive has of a session, to write its files back; None if there is none."""
    row = find_session(store, key)
    if row is None:
        return None
    summary = row.summary
    read = _read(store, row, "full", _files_of([summary]))
    disk = ArchiveDisk(store, row.agent)
    rows = load_archived_files(store, row.agent, row.cluster) if row.cluster is not None else ()
    return LostSession(summary, () if read is None else read[0], [_source(disk, *file) for file in rows])


def load_raw(store: Store, row: SessionRow, view: View) -> Session:
    """Return a session without marks of the entries that belong to others."""
    summary = row.summary
    read = _read(store, row, view, _files_of([summary]))
    if (
        read is None
        and summary.counts.messages
        and next(load_session_originals(store, row.agent, row.cluster, row.id), None) is None
    ):
        raise DamagedError(
            f"the archive lacks all that it kept of {summary.key}: bring back a copy of archive.db"
        )
    return summary if read is None else _with_archived_fields(read[1], summary)


def _mark_copied(store: Store, row: SessionRow, session: Session) -> Session:
    return replace(session, timeline=tuple(Ownership(store, row.id).mark(session.timeline)))


class LoadedSession(NamedTuple):
    """A session with its id and uid in the archive."""

    id: int
    uid: int
    session: Session


def load_many(store: Store, keys: Iterable[str]) -> Iterator[LoadedSession]:
    """Yield sessions in their full view; files that several share are read once. Keys that are gone are left out."""
    by_files: defaultdict[tuple[Any, ...], list[SessionRow]] = defaultdict(list)
    with store.connection:
        for key in keys:
            row = find_session(store, key)
            if row is not None:
                originals = load_session_originals(store, row.agent, row.cluster, row.id)
                by_files[row.agent, *originals].append(row)
    loader = _SharedFilesLoader(store)
    for (agent, *files), rows in by_files.items():
        with store.connection:
            loaded = [
                LoadedSession(row.id, row.uid, _mark_copied(store, row, session))
                for row, session in loader.load(agent, files, rows)
            ]
        yield from loaded


class _SharedFilesLoader:
    """Loads sessions by their files; keeps the scraps of the last files that hold many conversations."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._scraps: tuple[tuple[Any, ...], Scraps] = ((), Scraps())

    def load(
        self, agent: str, files: Sequence[OriginalRow], rows: Sequence[SessionRow]
    ) -> Iterator[tuple[SessionRow, Session]]:
        """Yield each of the sessions that were read from the same files."""
        reader = AGENTS[agent]
        shared, clustered = _split_shared(_sources(self._store, agent, files))
        summaries = {row.uid: row.summary for row in rows}
        own = _files_of(summaries.values())
        key = (agent, *(file for file in files if file[4] is None))
        if key != self._scraps[0]:
            self._scraps = key, group_scraps(reader, _readings(reader, shared, own), _leave_out)
        readings = _readings(reader, clustered, own)
        joined = {
            uid: session
            for uid, _, session in _join(reader, readings, self._scraps[1], summaries, "full", own)
        }
        for row in rows:
            summary, session = summaries[row.uid], joined.get(row.uid)
            yield row, summary if session is None else _with_archived_fields(session, summary)


def _leave_out(readings: Sequence[Reading], error: Exception) -> None:
    """Leave out scraps on which the agent fails: they may be of other sessions."""


class _SessionFiles(NamedTuple):
    """The paths of the files that some sessions were read from."""

    paths: frozenset[str]
    damaged: frozenset[str]
    """Those with a damaged earlier version when a sync read them: the sessions were written without that version."""


def _files_of(sessions: Iterable[Session]) -> _SessionFiles:
    paths, damaged = set[str](), set[str]()
    for session in sessions:
        paths.update(source.path for source in session.sources)
        damaged.update(one.path for one in session.problems if one.code == "original-damaged" and one.path)
    return _SessionFiles(frozenset(paths), frozenset(damaged))


def _read(
    store: Store, row: SessionRow, view: View, own: _SessionFiles
) -> tuple[Sequence[Reading], Session] | None:
    """Return the readings of a session, and the session joined from them; None if no file has it."""
    agent = AGENTS[row.agent]
    files = load_session_originals(store, row.agent, row.cluster, row.id)
    shared, clustered = _split_shared(_sources(store, row.agent, files))
    scraps = group_scraps(agent, _readings(agent, shared, own), _leave_out)
    joined = next(_join(agent, _readings(agent, clustered, own), scraps, [row.uid], view, own), None)
    return None if joined is None else joined[1:]


def _split_shared(sources: Iterable[Source]) -> tuple[list[Source], list[Source]]:
    """Return the files that hold many conversations, and those of a cluster."""
    shared: list[Source] = []
    clustered: list[Source] = []
    for source in sources:
        (shared if source.cluster is None else clustered).append(source)
    return shared, clustered


def _readings(agent: Agent, sources: Iterable[Source], own: _SessionFiles) -> list[Reading]:
    """Return the readings of files. An unreadable file is left out, unless it is one of the sessions' own."""
    readings: list[Reading] = []
    for source in sources:
        try:
            result = agent.read(source)
        except Exception as error:
            is_earlier = isinstance(error, DamagedError) and isinstance(source.disk, PinnedDisk)
            if source.display_path in own.paths and not (is_earlier and source.display_path in own.damaged):
                raise
            continue
        if not isinstance(result, Problem):
            readings.extend(result)
    return readings


def _join(  # noqa: PLR0913 - the files of a cluster, and the sessions to join
    agent: Agent,
    readings: Iterable[Reading],
    scraps: Scraps,
    uids: Iterable[int],
    view: View,
    own: _SessionFiles,
) -> Iterator[tuple[int, Sequence[Reading], Session]]:
    """Yield some of the sessions of a cluster, with their uids and readings.

    A session of other files than `own` that cannot be joined is left out.
    """

    def fail(readings: Sequence[Reading], error: Exception) -> None:
        if any(reading.source.display_path in own.paths for reading in readings):
            raise error

    missing = set(uids)
    for group, joined, session in join_conversations(agent, readings, scraps, view, fail):
        uid = conversation_uid(agent, group)
        if uid in missing:
            missing.remove(uid)
            yield uid, joined, session
    for group, lone in scraps.groups.items() if missing else ():
        uid = conversation_uid(agent, group)
        if uid in missing:
            yield uid, lone, agent.join(lone, view)


def _sources(store: Store, agent: str, files: Iterable[OriginalRow]) -> Iterator[Source]:
    """Yield files as they were last, and their earlier versions that the archive has."""
    disk = ArchiveDisk(store, agent)
    for path, home, folder, label, cluster, is_latest, *original in files:
        file = OriginalFile(store.originals, *original)
        own_disk = disk if is_latest else PinnedDisk(disk, as_path(path), file)
        yield _source(own_disk, path, home, folder, label, cluster)


def _source(  # noqa: PLR0913 - the columns of a file
    disk: Disk,
    path: str | bytes,
    home: str | bytes,
    folder: str | bytes,
    label: str | None,
    cluster: str | None,
) -> Source:
    return Source(
        Path(as_path(path)), AgentHome(Path(as_path(home)), Path(as_path(folder)), label, disk), cluster
    )


_ARCHIVED_FIELDS = (
    "key", "kind", "parent", "children", "project", "title", "tags", "usage", "cost_usd", "sources",
)  # fmt: skip
"""Fields that depend on other sessions or on the user, which files alone do not tell."""


def _with_archived_fields(session: Session, summary: Session) -> Session:
    """Return a session that was read from files, with the fields and problems that only the archive knows."""
    fields: dict[str, Any] = {field: getattr(summary, field) for field in _ARCHIVED_FIELDS}
    damaged = [one for one in summary.problems if one.code == "original-damaged"]
    return replace(session, **fields, problems=(*session.problems, *damaged))
