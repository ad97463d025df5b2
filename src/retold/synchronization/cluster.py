"""Clusters: the files of one cluster, as they are and as they were, are read into an update of the archive and the index."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.agents.registry import AGENTS
from retold.archive.annotations import EMPTY_SET, KeyedSet, load_forgotten_uids
from retold.archive.database import DamagedError, RetoldError
from retold.archive.index.documents import TextLocator, make_documents
from retold.archive.index.writer import IndexEntry
from retold.archive.queries.lookups import (
    FAILURE_CODES,
    load_file_versions,
    load_files_of_cluster,
    load_sessions_without_files,
    load_stamps_of_files,
)
from retold.archive.rows import make_session_rows
from retold.archive.store import Store, as_path
from retold.archive.writer import ClusterUpdate, FileState, NewContent
from retold.model.problem import Problem, problem
from retold.model.serialization import encode_problem
from retold.model.session import Clue, Session, SourceFile, SourceState
from retold.model.spool import Spool, SpoolError
from retold.projects.resolver import ProjectResolver
from retold.reading.disk import DISK, EMPTY_DISK, printable_path
from retold.sessions import conversations
from retold.sessions.archive_disk import ArchiveDisk, OriginalFile, PinnedDisk
from retold.sessions.conversations import Scraps, conversation_uid, join_conversations, local_size
from retold.synchronization.fingerprints import REVISION, make_stamp
from retold.synchronization.snapshot import (
    ATTEMPTS,
    LARGEST,
    FileChangedError,
    FrozenFile,
    Snapshot,
    StoredOriginal,
    begins_with,
    pack,
    pack_growth,
)

if TYPE_CHECKING:
    from retold.archive.index.writer import IndexPart
    from retold.synchronization.containment import LaterVersions


_LARGE = 4 << 20
"""Bytes of a new file of which a bookmark is kept; of a smaller one, only after it has grown."""


class ClusterJob(msgspec.Struct, frozen=True):
    """A cluster to read with its files in the homes; without a cluster, a file that holds many conversations."""

    agent: str
    cluster: str | None
    sources: tuple[Source, ...]
    path: str | None = None
    is_known: bool = True
    """Whether the archive may list files of it."""
    is_first: bool = False
    """Whether the archive had nothing of the agent before this sync, so that no file can be gone and no session lost."""
    is_archive_only: bool = False
    """Whether only archived files are read."""


class KnownFile(msgspec.Struct):
    """A file as the archive lists it, with its originals."""

    source: Source
    size: int
    modified_ns: int
    tail: bytes
    identity: str
    revision: int
    """The version of the reader that read it last."""
    originals: list[StoredOriginal]

    def is_same(self, file: FrozenFile) -> bool:
        """Return whether size, times, inode and tail of a file are the same, and all of it is archived."""
        known = (self.size, self.modified_ns, self.tail, self.identity)
        is_same = known == (file.file_size, file.modified_ns, file.tail, file.identity)
        return is_same and self.latest is not None and self.latest.size == file.size

    @property
    def latest(self) -> StoredOriginal | None:
        """The original of its last version."""
        return next((original for original in self.originals if original.is_latest), None)


class ClusterReader:
    """Reads the files of one cluster, or a file that holds many conversations."""

    def __init__(self, store: Store, agent: Agent, job: ClusterJob, forgotten: KeyedSet = EMPTY_SET) -> None:
        """Take the ids of forgotten conversations, as digests: they are removed from files that hold many."""
        self._store, self._agent, self._job = store, agent, job
        self._disk = Snapshot(
            EMPTY_DISK if job.is_first else ArchiveDisk(store, agent.NAME),
            forgotten if job.cluster is None else EMPTY_SET,
            EMPTY_DISK if job.is_archive_only else DISK,
        )
        self._known = self._load_known(job.path) if job.is_known else {}
        self._present = {str(source.path): source for source in job.sources}
        self._refusals: dict[str, Problem] = {}
        self.failures: dict[str, Problem] = {}
        """The problems of files that a bug or damage in the archive made unreadable, by path. Their bytes are kept."""
        self.damaged: dict[str, Problem] = {}
        """The problems of readable files with a damaged earlier version in the archive, by path."""
        self._contents: dict[str, NewContent | None] = {}
        self._beginnings: dict[str, bool] = {}
        """Whether a file begins with its latest original, by path."""
        self._later: LaterVersions | None = None
        self._superseded: dict[str, list[int]] = {}
        self._states: dict[tuple[str, int], list[SourceState]] = defaultdict(list)
        self._excluded: set[str] = set()
        self._bookmarks: dict[str, bytes | None] = {}
        self._spool = Spool(store.folder)

    def _load_known(self, path: str | None) -> dict[str, KnownFile]:
        """Return the archived files of the cluster, or one file, by path."""
        agent = self._agent.NAME
        rows = (
            load_files_of_cluster(self._store, agent, self._job.cluster)
            if path is None
            else load_file_versions(self._store, agent, path)
        )
        files: dict[str, KnownFile] = {}
        for (
            stored,
            home,
            folder,
            label,
            group,
            size,
            modified_ns,
            tail,
            identity,
            revision,
            *original,
        ) in rows:
            own_home = AgentHome(Path(as_path(home)), Path(as_path(folder)), label, self._disk)
            source = Source(Path(as_path(stored)), own_home, group)
            file = files.setdefault(
                as_path(stored), KnownFile(source, size, modified_ns, tail, identity, revision, [])
            )
            if original[0] is not None:
                file.originals.append(StoredOriginal(*original))
        return files

    def read_all(self) -> list[Reading]:
        """Return the readings of all files, and of those earlier versions that have more."""
        readings = list(chain.from_iterable(map(self._read, self._sources())))
        for path, known in self._known.items():
            readings.extend(self._read_earlier(path, known, readings))
        return readings

    def _read_earlier(self, path: str, known: KnownFile, readings: Sequence[Reading]) -> list[Reading]:
        """Return the readings of earlier versions of a file, without versions that later ones contain.

        A version is compared when the file is replaced. It is compared again only if the reader has changed, or if the
        version that is replaced now turns out to be contained: the file has got better.
        """
        found: list[Reading] = []
        is_compared = known.revision == REVISION
        for original, earlier in self._versions(path, known):
            # The originals of a file that is gone all stay.
            if earlier and path in self._present and (original.is_latest or not is_compared):
                from retold.synchronization.containment import LaterVersions

                self._later = self._later or LaterVersions(self._join(readings) or ())
                sessions = self._join(earlier)
                if sessions is not None and self._is_contained(path, original, sessions, self._later):
                    self._superseded.setdefault(path, []).append(original.uid)
                    is_compared = False
                    continue
                self._later.add(sessions or ())
            self._note_state(earlier, "earlier")
            found.extend(earlier)
        return found

    def _is_contained(
        self, path: str, original: StoredOriginal, sessions: Sequence[Session], later: "LaterVersions"
    ) -> bool:
        """Return whether later versions contain all of an earlier one; False, and a failure, if the comparison fails."""
        try:
            return all(map(later.contain, sessions)) and self._contains_bytes(path, original, sessions)
        except FileChangedError as change:
            if self._job.cluster is not None:  # the cluster is read again
                raise
            self.failures[path] = change.problem
        except Exception as error:  # noqa: BLE001 - one bad file costs no other
            self.record_failure([path], error)
        return False

    def _contains_bytes(self, path: str, original: StoredOriginal, sessions: Iterable[Session]) -> bool:
        """Return whether a file has what no session shows of an earlier version: values, and unreadable parts."""
        from retold.synchronization.containment import contains_unread, contains_values

        file = self._disk.files.get(path)
        if file is None:
            return False
        shown = printable_path(path)
        problems = [one for session in sessions for one in session.problems if one.path == shown]
        if file.data is None or original.size > LARGEST:
            has_unread = all(one.severity != "loss" for one in problems)
        else:
            has_unread = contains_unread(file.data, self._store.originals.read(original.id), problems)
        return has_unread and contains_values(file.open(), self._open_original(original))

    def _open_original(self, original: StoredOriginal) -> OriginalFile:
        return OriginalFile(self._store.originals, original.id, original.size, original.modified_ns)

    def _join(self, readings: Sequence[Reading]) -> list[Session] | None:
        """Return the conversations in readings; None, and a failure, if the agent cannot join one."""
        try:
            return [one.session for one in join_conversations(self._agent, readings, Scraps())]
        except Exception as error:  # noqa: BLE001 - one bad cluster costs no other
            self.record_join_failure(readings, error)
            return None

    def _sources(self) -> Iterator[Source]:
        """Yield the files in the homes, then those that are gone."""
        for source in self._present.values():
            yield replace(source.with_disk(self._disk), is_growing=self._is_growing(source))
        for path, known in self._known.items():
            if path in self._present:
                continue
            if known.latest is not None:
                yield known.source
            elif not known.originals and load_stamps_of_files(self._store, self._agent.NAME, [path]):
                why = "the archive lacks all that it kept of the file: bring back a copy of archive.db"
                self.record_failure([path], DamagedError(why))

    def _is_growing(self, source: Source) -> bool:
        """Return whether a file has grown, or is so large that reading it whole again takes long."""
        known = self._known.get(str(source.path))
        latest = None if known is None else known.latest
        least = _LARGE if latest is None else latest.size
        return source.cluster is not None and least < local_size(source) <= LARGEST

    def _read(self, source: Source) -> Sequence[Reading]:
        try:
            readings: Sequence[Reading] | Problem | None = self._agent.read(source)
        except FileChangedError as change:
            if self._job.cluster is not None:  # the cluster is read again
                raise
            self.failures[str(source.path)] = change.problem
            return ()
        except Exception as error:  # noqa: BLE001 - one bad file costs no other
            self.record_failure([str(source.path)], error)
            readings = None
        if readings is None:  # its bytes are kept, even if the reader failed before it opened the file
            _open(source)
            return ()
        if isinstance(readings, Problem):
            problems = self.failures if readings.code in FAILURE_CODES else self._refusals
            problems[str(source.path)] = readings
            return ()
        self._note_state(readings, "present" if str(source.path) in self._present else "gone")
        return readings

    def record_failure(self, paths: Iterable[str], error: Exception) -> None:
        """Record that files could not be read; raise an error of the machine."""
        if isinstance(error, SpoolError):
            raise RetoldError(str(error)) from error
        if isinstance(error, RetoldError) and not isinstance(error, DamagedError):
            raise error
        code = "original-damaged" if isinstance(error, DamagedError) else getattr(error, "problem_code", None)
        message = str(error) if code else f"{type(error).__name__}: {error}"
        for path in paths:
            self.failures[path] = problem(code or "reader-failed", message, printable_path(path))

    def record_join_failure(self, readings: Sequence[Reading], error: Exception) -> None:
        """Record that readings could not be joined into a conversation."""
        own = [str(reading.source.path) for reading in readings]
        self.record_failure([path for path in own if path in self._present or path in self._known], error)

    def open_all(self) -> None:
        """Open every file, so that its bytes are kept although nothing reads them."""
        for source in self._present.values():
            _open(source.with_disk(self._disk))

    @property
    def present_paths(self) -> list[str]:
        """The paths of the files in the homes."""
        return list(self._present)

    @property
    def paths(self) -> list[str]:
        """The paths of all files, those in the homes and those that are gone."""
        return [*self._present, *(path for path in self._known if path not in self._present)]

    def _note_state(self, readings: Sequence[Reading], state: SourceState) -> None:
        """Note the state of each file, in the order in which readings are returned."""
        for shown, size in {(reading.source.display_path, reading.size) for reading in readings}:
            self._states[shown, size].append(state)

    def _versions(self, path: str, known: KnownFile) -> Iterator[tuple[StoredOriginal, Sequence[Reading]]]:
        """Yield the earlier versions of a file that the present one does not begin with, the newest first."""
        for original in sorted(known.originals, key=lambda original: original.id, reverse=True):
            if original.is_latest and not self._is_replaced(path, known):
                continue
            disk = PinnedDisk(self._disk, path, self._open_original(original))
            try:
                readings = self._agent.read(known.source.with_disk(disk))
            except DamagedError as error:
                if path in self._present:  # its present version is read without it
                    self.damaged[path] = problem("original-damaged", str(error), printable_path(path))
                else:
                    self.record_failure([path], error)
                continue
            except Exception as error:  # noqa: BLE001 - one bad file costs no other
                self.record_failure([path], error)
                continue
            if not isinstance(readings, Problem):
                yield original, readings

    def _is_replaced(self, path: str, known: KnownFile) -> bool:
        """Return whether a file in a home no longer begins with its latest original."""
        file = self._disk.files.get(path)
        if path not in self._present or file is None:
            return False
        return path in self._refusals or not self._begins_with_latest(file, known)

    def _begins_with_latest(self, file: FrozenFile, known: KnownFile) -> bool:
        """Return whether a file begins with its latest original, or has none."""
        if file.path not in self._beginnings:
            self._beginnings[file.path] = known.is_same(file) or begins_with(
                file, known.latest, self._store.originals
            )
        return self._beginnings[file.path]

    def _new_content(self, file: FrozenFile) -> NewContent | None:
        """Return the new content of a file; None for a file without conversations."""
        if file.path not in self._contents:
            self._contents[file.path] = None if file.path in self._refusals else self._pack(file)
        return self._contents[file.path]

    def _pack(self, file: FrozenFile) -> NewContent | None:
        known = self._known.get(file.path)
        if known is None and self._job.is_known:
            known = next(iter(self._load_known(file.path).values()), None)
        latest = known.latest if known is not None else None
        if known is None or latest is None:
            return pack(self._agent.NAME, file, self._spool)
        if not self._begins_with_latest(file, known):
            superseded = self._superseded.get(file.path, ())
            has_versions = any(original.uid not in superseded for original in known.originals)
            return pack(self._agent.NAME, file, self._spool, is_version=has_versions)
        if file.size <= latest.size:
            return None
        return pack_growth(file, latest, self._store.originals, self._spool)

    def with_states(self, sources: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
        """Return the files of a session, each with its state."""
        seen: Counter[tuple[str, int]] = Counter()
        marked = []
        for source in sources:
            key = source.path, source.bytes
            states = self._states.get(key) or ["present"]
            marked.append(replace(source, state=states[min(seen[key], len(states) - 1)]))
            seen[key] += 1
        return tuple(marked)

    def keep_bookmark(self, readings: Sequence[Reading], session: Session, entry: IndexEntry) -> None:
        """Keep a bookmark of a session that was read from one growing file."""
        own = [reading for reading in readings if reading.source.cluster is not None]
        if len(own) != 1 or not own[0].source.is_growing or not isinstance(entry.parts, list):
            return
        from retold.synchronization.continuation import count_pages, make_continuation

        with suppress(Exception):  # the file is read whole when it has grown
            self._bookmarks[str(own[0].source.path)] = make_continuation(
                self._agent, own[0], session, count_pages(entry)
            )

    def exclude(self, readings: Sequence[Reading]) -> None:
        """Keep no content of the files of a conversation."""
        self._excluded |= {str(reading.source.path) for reading in readings}

    def exclude_all(self) -> None:
        """Keep no content of any file."""
        self._excluded |= self._present.keys()

    def originals_of(self, readings: Sequence[Reading]) -> list[tuple[int, bytes]]:
        """Return the originals of a conversation, each with its uid and content."""
        found: dict[int, bytes] = {}
        for reading in readings:
            path, disk = str(reading.source.path), reading.source.disk
            file, known = self._disk.files.get(path), self._known.get(path)
            if isinstance(disk, PinnedDisk) or file is None:
                archived = known.latest if known is not None else None
                if known is not None and isinstance(disk, PinnedDisk):
                    archived = next((one for one in known.originals if one.id == disk.original), None)
                if archived is not None and archived.size <= LARGEST:
                    found[archived.uid] = self._store.originals.read(archived.id)
            elif file.data is not None and path in self._present:
                content = self._new_content(file) or (known.latest if known else None)
                if content is not None:
                    found[content.uid] = file.data
        return list(found.items())

    def with_failures(self, update: ClusterUpdate) -> ClusterUpdate:
        """Return an update with the problems of the cluster's files."""
        failures = {**self.damaged, **self.failures}
        # The refusal of a file that was opened is in its state.
        unopened = [one for path, one in self._refusals.items() if path not in self._disk.files]
        encoded = {path: encode_problem(one).decode() for path, one in failures.items()}
        return replace(update, problems=[*unopened, *failures.values()], failures=encoded)

    def file_states(self) -> Iterator[FileState]:
        """Yield every opened file that is to be kept, or only recognised by the next sync."""
        for path, file in self._disk.files.items():
            source = self._present.get(path)
            home = next((one.home for one in (source, *self._present.values()) if one is not None), None)
            refusal = self._refusals.get(path)
            if home is None or (source is None and self._new_content(file) is None):
                continue
            yield FileState(
                path,
                str(home.path),
                str(home.sessions),
                home.label,
                self._job.cluster if source is None else source.cluster,
                source is None,
                file.file_size,
                file.modified_ns,
                file.tail,
                file.identity,
                file.read_ns,
                None if refusal is None else encode_problem(refusal).decode(),
                None if path in self._excluded else self._new_content(file),
                tuple(self._superseded.get(path, ())),
                None if path in self._excluded else self._bookmarks.get(path),
            )


def _open(source: Source) -> None:
    with suppress(Exception):
        source.disk.open(str(source.path)).close()


class KeepPolicy:
    """Decides which conversations are kept: not those that were forgotten, or whose project is excluded."""

    def __init__(self, forgotten: KeyedSet, excluded: Sequence[str]) -> None:
        self.forgotten, self.excluded = forgotten, excluded

    def accepts(self, uid: int, session: Session) -> bool:
        """Return whether a conversation is kept."""
        from retold.projects.matching import matches_project

        project = session.project
        return uid not in self.forgotten and not any(
            matches_project(project.root, project.native_key, project.hash, excluded)
            for excluded in self.excluded
        )


SharedScraps = Mapping[str, Scraps]
"""The scraps of each agent."""


class ProjectFacts(NamedTuple):
    """The facts from which projects are resolved: clues by home, roots by hash, and the working directory."""

    clues: Mapping[str, Sequence[Clue]]
    roots: Mapping[str, str]
    folder: str


class JobResult(NamedTuple):
    """The result of a job: an update of the archive, and entries for the index."""

    update: ClusterUpdate
    entries: list[IndexEntry]


class JobRunner:
    """Runs jobs: reads clusters and makes updates of them."""

    def __init__(
        self,
        store: Store,
        agents: Mapping[str, Agent],
        resolver: ProjectResolver,
        scraps: SharedScraps,
        policy: KeepPolicy,
    ) -> None:
        self._store, self._agents, self._scraps = store, agents, scraps
        self.resolver, self.policy = resolver, policy

    def run(self, job: ClusterJob) -> JobResult:
        """Read a cluster; a few times, if its files are rewritten meanwhile."""
        for _ in range(ATTEMPTS):
            try:
                return self._run_once(job)
            except FileChangedError as error:
                change = error
        failures = {change.path: encode_problem(change.problem).decode()}
        problems = [change.problem]
        return JobResult(
            ClusterUpdate(job.agent, job.cluster, [], [], problems=problems, failures=failures), []
        )

    def _run_once(self, job: ClusterJob) -> JobResult:
        reader = ClusterReader(self._store, self._agents[job.agent], job)
        try:
            return self._read(reader, job)
        except FileChangedError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad cluster costs no other
            reader.record_failure(reader.paths, error)
        # Here the error is gone, and with its traceback all that was read: the memory may be needed.
        return self._failed(reader, job)

    def postpone(self, job: ClusterJob, error: Exception) -> JobResult:
        """Return an update for a cluster that is not read because of an error: its files are kept, its sessions stay."""
        reader = ClusterReader(self._store, self._agents[job.agent], job)
        reader.record_failure(reader.paths, error)
        reader.open_all()
        return self._failed(reader, job)

    def _read(self, reader: ClusterReader, job: ClusterJob) -> JobResult:
        agent = self._agents[job.agent]
        readings = reader.read_all()
        scraps = self._scraps.get(job.agent, Scraps())
        joined = join_conversations(agent, readings, scraps, fail=reader.record_join_failure)
        unreadable = load_stamps_of_files(self._store, job.agent, reader.failures)
        rows, indexed, kept, excluded, forgotten = [], [], [], [], list[str]()
        for group, own, raw_session in joined:
            uid = conversation_uid(agent, group)
            if uid in unreadable:  # read before from a file that cannot be read now
                continue
            paths = paths_of(own)
            damaged = {reader.damaged[path]: None for path in paths if path in reader.damaged}
            session = replace(
                raw_session,
                project=self.resolver.resolve(raw_session),
                sources=reader.with_states(raw_session.sources),
                problems=(*raw_session.problems, *damaged),
            )
            if not self.policy.accepts(uid, session):
                reader.exclude(own)
                excluded.append(uid)
                if uid in self.policy.forgotten:
                    forgotten += [*paths, *([session.project.root] if session.project.root else [])]
                continue
            stamp = stamp_of(own)
            rows.append(
                make_session_rows(session, uid, stamp, job.cluster, paths, _named_cluster(agent, session))
            )
            indexed.append((session, uid, stamp, reader.originals_of(own)))
            kept.append((own, raw_session))
        lost = self._lost_sessions(reader, job, {*excluded, *(one.uid for one in rows)})
        # Another session may name an excluded one, but does not when it is read from the archive: so no timeline is kept.
        size = _size(readings)
        is_long = not excluded and size >= conversations.LONG_SESSION
        is_large = size > LARGEST
        entries = [make_index_entry(*one, is_long=is_long, is_large=is_large) for one in indexed]
        for one, entry in zip(kept, entries, strict=True):
            reader.keep_bookmark(*one, entry)
        files, roots = list(reader.file_states()), dict(self.resolver.found_roots)
        update = ClusterUpdate(
            job.agent, job.cluster, files, rows, roots=roots, excluded=excluded, forgotten=forgotten
        )
        return JobResult(reader.with_failures(update), [*entries, *_placeholders({**unreadable, **lost})])

    def _failed(self, reader: ClusterReader, job: ClusterJob) -> JobResult:
        """Return an update for an unreadable cluster: its files are kept, and its sessions stay as they are."""
        try:
            files = list(reader.file_states())
        except FileChangedError:  # the next sync keeps it
            files = []
        lost = self._lost_sessions(reader, job, set())
        update = reader.with_failures(ClusterUpdate(job.agent, job.cluster, files, []))
        unreadable = load_stamps_of_files(self._store, job.agent, reader.failures)
        return JobResult(update, _placeholders({**unreadable, **lost}))

    def _lost_sessions(
        self, reader: ClusterReader, job: ClusterJob, read: Collection[int]
    ) -> dict[int, bytes]:
        """Return the stamps of sessions that were not read, because the archive no longer knows their files."""
        if job.is_first:
            return {}
        found = load_sessions_without_files(self._store, job.agent, job.cluster)
        lost = {uid: (stamp, path) for uid, (stamp, path) in found.items() if uid not in read}
        why = "the archive no longer knows its files: bring back a copy of archive.db"
        for _, path in lost.values():
            reader.record_failure([path], DamagedError(why))
        return {uid: stamp for uid, (stamp, _) in lost.items()}


def _placeholders(stamps: Mapping[int, bytes]) -> list[IndexEntry]:
    """Return entries for sessions whose texts cannot be read, so that the index counts as complete."""
    return [IndexEntry(uid, stamp, (), is_placeholder=True) for uid, stamp in stamps.items()]


def _named_cluster(agent: Agent, session: Session) -> str | None:
    """Return the cluster of the files that have the names which the agent gives the session's files."""
    if session.native_id is None or session.kind not in ("main", "fork"):
        return None
    return agent.cluster_of(session.native_id)


def make_index_entry(  # noqa: PLR0913 - a session, and how it is kept
    session: Session,
    uid: int,
    stamp: bytes,
    originals: Sequence[tuple[int, bytes]],
    *,
    is_long: bool = False,
    is_large: bool = False,
) -> IndexEntry:
    """Return the index entry of a session: its documents with their places in the originals, and a long timeline.

    The documents of a large session are made when they are written.
    """
    locator = TextLocator([(number, data) for number, (_, data) in enumerate(originals)])
    parts = _index_parts(session, locator)
    timeline = None
    if is_long:
        from retold.sessions.timelines import make_timeline

        timeline = make_timeline(session)
    uids = [number for number, _ in originals]
    return IndexEntry(uid, stamp, uids, parts if is_large else list(parts), timeline)


def _index_parts(session: Session, locator: TextLocator) -> "Iterator[IndexPart]":
    for spoken in make_documents(session):
        yield list(zip(spoken.docs, locator.locate(spoken), strict=True)), locator.take_pages()
    yield (), locator.take_pages(is_end=True)


def paths_of(readings: Iterable[Reading]) -> list[str]:
    """Return the paths of the files of readings, each once."""
    return sorted({str(reading.source.path) for reading in readings})


def _size(readings: Iterable[Reading]) -> int:
    """Return the bytes of the files of readings; a file with many conversations counts once."""
    return sum({(reading.source.path, reading.size): reading.size for reading in readings}.values())


def stamp_of(readings: Sequence[Reading]) -> bytes:
    """Return a digest of the files of a conversation and the version of the reader."""
    return make_stamp((str(reading.source.path), reading.size, reading.modified_at) for reading in readings)


def make_runner(
    facts: ProjectFacts, scraps: SharedScraps, excluded: Sequence[str], store: Store
) -> JobRunner:
    """Return a runner; every process makes its own."""
    policy = KeepPolicy(load_forgotten_uids(store), excluded)
    return JobRunner(store, AGENTS, ProjectResolver(*facts), scraps, policy)
