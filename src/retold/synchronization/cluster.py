"""The files of one cluster, as they are and as they were: what they say, and what of them is new."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import msgspec

from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.agents.registry import AGENTS
from retold.archive.annotations import forgotten_names
from retold.archive.database import DamagedError, RetoldError
from retold.archive.index.documents import SearchDocument, TextLocator, documents
from retold.archive.index.writer import IndexEntry
from retold.archive.keyed_hashes import NOBODY, KeyedSet
from retold.archive.queries.lookups import (
    FAILURES,
    clusters,
    known_at,
    known_in_cluster,
    sessions_from,
    unkept_clusters,
    with_lost_files,
)
from retold.archive.rows import rows_of, stable_uid
from retold.archive.store import SMALL, Chunk, Originals, Packer, Store, as_path, digest, seal
from retold.archive.writer import ClusterUpdate, FileState, NewContent
from retold.model.problem import Problem, problem
from retold.model.serialization import problem_json
from retold.model.session import Clue, Session, SourceFile, SourceState
from retold.projects.resolver import Atlas
from retold.reading.disk import DISK, NOWHERE, Disk, printable
from retold.sessions import pages
from retold.sessions.conversations import Scraps, conversation_name, conversations
from retold.sessions.load import ArchiveDisk, KeptFile, PinnedDisk
from retold.synchronization.containment import LaterVersions, hold_unread
from retold.synchronization.disks import ATTEMPTS, LARGEST, FileChangedError, FrozenFile, Snapshot
from retold.synchronization.file_values import hold_values
from retold.synchronization.fingerprints import REVISION
from retold.synchronization.owners import owned
from retold.synchronization.time_limit import TooSlow

_STEP = 1 << 20


class StoredOriginal(msgspec.Struct, frozen=True):
    """An original that is kept of a file."""

    id: int
    name: int
    size: int
    modified_ns: int
    seal: bytes
    is_latest: int


def begins_with(still: FrozenFile, latest: StoredOriginal | None, originals: Originals) -> bool:
    """Tell whether a file begins with the bytes of an original: chunk by chunk, after a look at samples."""
    if latest is None:
        return True
    if latest.size > still.size or seal(latest.size, still.part) != latest.seal:
        return False
    offset = 0
    for (_, size), known in zip(originals.pieces(latest.id), originals.digests(latest.id), strict=True):
        if digest(still.part(offset, size)) != known:
            return False
        offset += size
    return offset == latest.size


def pack(agent: str, still: FrozenFile, *, is_version: bool = False) -> NewContent:
    """Return the whole content of a file as a new original.

    Where earlier versions of the file are kept, chunks are cut by their content, so that equal parts are stored once.
    """
    made = _packed(still, 0, 0, 0, is_version=is_version)
    digests = [chunk.digest.hex() for chunk in made.chunks]
    name = stable_uid("original", agent, still.path, str(still.size), str(still.modified_ns), *digests)
    return msgspec.structs.replace(made, name=name)


def pack_growth(still: FrozenFile, latest: StoredOriginal, originals: Originals) -> NewContent:
    """Return the new end of a file; a small last chunk is packed again with it."""
    pieces = originals.pieces(latest.id)
    start = len(pieces)
    if pieces and pieces[-1][1] <= SMALL:
        start -= 1
    return _packed(still, latest.name, sum(size for _, size in pieces[:start]), start)


def _packed(still: FrozenFile, name: int, offset: int, start: int, *, is_version: bool = False) -> NewContent:
    packer = Packer()
    if still.data is None:
        for place in range(offset, still.size, _STEP):
            packer.add(still.part(place, min(_STEP, still.size - place)))
    elif is_version:
        packer.add_by_content(still.data)
    else:
        packer.add(still.data[offset:] if offset else still.data)
    chunks = packer.ended()
    if not still.is_untouched():
        _compare(still, offset, chunks)
    return NewContent(name, still.size, still.modified_ns, seal(still.size, still.part), chunks, start)


def _compare(still: FrozenFile, offset: int, chunks: Iterable[Chunk]) -> None:
    """Compare chunks with a file that was written to meanwhile: appending is harmless, rewriting is not."""
    for chunk in chunks:
        if digest(still.part(offset, chunk.size)) != chunk.digest:
            raise FileChangedError(still.path)
        offset += chunk.size


class ClusterJob(msgspec.Struct, frozen=True):
    """A cluster to read, with those of its files that are there; or, without one, a file of many conversations."""

    agent: str
    cluster: str | None
    sources: tuple[Source, ...]
    path: str | None = None
    is_known: bool = True
    """Whether the archive may have something of it."""
    is_kept_only: bool = False
    """Whether nothing but what the archive has of it is to be read."""


class KnownFile(msgspec.Struct):
    """What the archive knows of a file."""

    source: Source
    size: int
    modified_ns: int
    tail: bytes
    identity: str
    revision: int
    """The version of the reader that read it last."""
    originals: list[StoredOriginal]

    def is_as_before(self, still: FrozenFile) -> bool:
        """Tell whether a file is the same by its size, times, inode and end, and as much of it is kept."""
        known = (self.size, self.modified_ns, self.tail, self.identity)
        is_same = known == (still.file_size, still.modified_ns, still.tail, still.identity)
        return is_same and self.latest is not None and self.latest.size == still.size

    def original(self, number: int | None) -> StoredOriginal | None:
        """Return what was kept under a number; without one, what it was last."""
        return next((kept for kept in self.originals if kept.id == number), None) if number else self.latest

    @property
    def latest(self) -> StoredOriginal | None:
        """What it was last."""
        return next((kept for kept in self.originals if kept.is_latest), None)


class ClusterReader:
    """The files of one cluster, or a file of many conversations, while they are read."""

    def __init__(self, record: Store, agent: Agent, job: ClusterJob, forgotten: KeyedSet = NOBODY) -> None:
        """Take the ids of forgotten conversations, as digests: a file of many is kept without them."""
        self._record, self._agent, self._job = record, agent, job
        self._disk = Snapshot(
            ArchiveDisk(record, agent.NAME),
            forgotten if job.cluster is None else NOBODY,
            NOWHERE if job.is_kept_only else DISK,
        )
        self._known = (
            _known_files(record, agent.NAME, job.cluster, self._disk, job.path) if job.is_known else {}
        )
        self._live = {str(source.path): source for source in job.sources}
        self._refusals: dict[str, Problem] = {}
        self.failures: dict[str, Problem] = {}
        """Why files could not be read, by path: a bug of the reader, or damage in the archive. Their bytes are kept."""
        self.damaged: dict[str, Problem] = {}
        """Files that could be read, by path, of which the archive has a damaged earlier version."""
        self._fresh: dict[str, NewContent | None] = {}
        self._beginnings: dict[str, bool] = {}
        """Whether a file begins with what was kept of it last, by path."""
        self._later: LaterVersions | None = None
        self._dropped: dict[str, list[int]] = {}
        self._states: dict[tuple[str, int], list[SourceState]] = defaultdict(list)
        self._left: set[str] = set()

    def readings(self) -> list[Reading]:
        """Return what all files say, and what their earlier versions say beyond that."""
        readings = list(chain.from_iterable(map(self._read, self._sources())))
        for path, known in self._known.items():
            readings.extend(self._earlier_readings(path, known, readings))
        return readings

    def _earlier_readings(self, path: str, known: KnownFile, readings: Sequence[Reading]) -> list[Reading]:
        """Return what earlier versions of a file say, without those of which later ones hold everything.

        A version is compared when the file is replaced. It is compared again only if the reader has changed, or if the
        file got better since: if all of the version that is replaced now is held.
        """
        found: list[Reading] = []
        is_compared = known.revision == REVISION
        for kept, earlier in self._versions(path, known):
            # The originals of a file that is gone all stay.
            if earlier and path in self._live and (kept.is_latest or not is_compared):
                self._later = self._later or LaterVersions(self._sessions(readings) or ())
                sessions = self._sessions(earlier)
                if (
                    sessions is not None
                    and all(map(self._later.hold, sessions))
                    and self._holds_bytes(path, kept, sessions)
                ):
                    self._dropped.setdefault(path, []).append(kept.name)
                    is_compared = False
                    continue
                self._later.add(sessions or ())
            self._note(earlier, "earlier")
            found.extend(earlier)
        return found

    def _holds_bytes(self, path: str, kept: StoredOriginal, sessions: Iterable[Session]) -> bool:
        """Tell whether a file holds what no session shows of an earlier version: values, and what could not be read."""
        still = self._disk.files.get(path)
        if still is None:
            return False
        shown = printable(path)
        problems = [one for session in sessions for one in session.problems if one.path == shown]
        if still.data is None or kept.size > LARGEST:
            are_bytes_held = all(one.severity != "loss" for one in problems)
        else:
            are_bytes_held = hold_unread(still.data, self._record.originals.data(kept.id), problems)
        earlier = KeptFile(self._record.originals, kept.id, kept.size, kept.modified_ns)
        return are_bytes_held and hold_values(still.open(), earlier)

    def _sessions(self, readings: Sequence[Reading]) -> list[Session] | None:
        """Return the conversations in some files; None, and a failure, where the agent cannot join one."""
        try:
            return [session for _, _, session in conversations(self._agent, readings, Scraps())]
        except Exception as error:  # noqa: BLE001 - one bad cluster costs no other
            self.fail_to_join(readings, error)
            return None

    def _sources(self) -> Iterator[Source]:
        """Yield the files that are there, then those that were."""
        yield from (source.on(self._disk) for source in self._live.values())
        for path, known in self._known.items():
            if path in self._live:
                continue
            if known.latest is not None:
                yield known.source
            elif not known.originals and sessions_from(self._record, self._agent.NAME, [path]):
                why = "the archive lacks all that it kept of the file: bring back a copy of archive.db"
                self.fail([path], DamagedError(why))

    def _read(self, source: Source) -> Sequence[Reading]:
        try:
            readings: Sequence[Reading] | Problem | None = self._agent.read(source)
        except FileChangedError as change:
            if self._job.cluster is not None:  # the cluster is read again
                raise
            self.failures[str(source.path)] = change.problem
            return ()
        except Exception as error:  # noqa: BLE001 - one bad file costs no other
            self.fail([str(source.path)], error)
            readings = None
        if readings is None:  # its bytes are kept, even if the reader failed before it opened the file
            _open(source)
            return ()
        if isinstance(readings, Problem):
            kept = self.failures if readings.code in FAILURES else self._refusals
            kept[str(source.path)] = readings
            return ()
        self._note(readings, "present" if str(source.path) in self._live else "gone")
        return readings

    def fail(self, paths: Iterable[str], error: Exception) -> None:
        """Take note that files could not be read; raises what concerns the machine and not these files."""
        if isinstance(error, RetoldError) and not isinstance(error, DamagedError):
            raise error
        match error:
            case DamagedError():
                code, message = "original-damaged", str(error)
            case TooSlow():
                code, message = "reader-timeout", str(error)
            case _:
                code, message = "reader-failed", f"{type(error).__name__}: {error}"
        for path in paths:
            self.failures[path] = problem(code, message, printable(path))

    def open_all(self) -> None:
        """Open every file, so that its bytes are kept though nobody reads them."""
        for source in self._live.values():
            _open(source.on(self._disk))

    def fail_to_join(self, readings: Sequence[Reading], error: Exception) -> None:
        """Take note that a conversation could not be made of what its files say."""
        own = [str(one.source.path) for one in readings]
        self.fail([path for path in own if path in self._live or path in self._known], error)

    @property
    def live(self) -> list[str]:
        """The files of the cluster that are there."""
        return list(self._live)

    @property
    def paths(self) -> list[str]:
        """The files of the cluster, those that are there and those that were."""
        return [*self._live, *(path for path in self._known if path not in self._live)]

    def _note(self, readings: Sequence[Reading], state: SourceState) -> None:
        """Take note of what became of a file, in the order in which readings are handed on."""
        for shown, size in {(reading.source.shown, reading.size) for reading in readings}:
            self._states[shown, size].append(state)

    def _versions(self, path: str, known: KnownFile) -> Iterator[tuple[StoredOriginal, Sequence[Reading]]]:
        """Yield the earlier versions of a file that the present one does not begin with, the newest first."""
        for kept in sorted(known.originals, key=lambda kept: kept.id, reverse=True):
            if kept.is_latest and not self._is_replaced(path, known):
                continue
            file = KeptFile(self._record.originals, kept.id, kept.size, kept.modified_ns)
            try:
                readings = self._agent.read(known.source.on(PinnedDisk(self._disk, path, file)))
            except DamagedError as error:
                if path in self._live:  # what the file says now is told without it
                    self.damaged[path] = problem("original-damaged", str(error), printable(path))
                else:
                    self.fail([path], error)
                continue
            except Exception as error:  # noqa: BLE001 - one bad file costs no other
                self.fail([path], error)
                continue
            if not isinstance(readings, Problem):
                yield kept, readings

    def _is_replaced(self, path: str, known: KnownFile) -> bool:
        """Tell whether a file that is there does not begin any more with what was kept last."""
        still = self._disk.files.get(path)
        if path not in self._live or still is None:
            return False
        return path in self._refusals or not self._begins_as_before(still, known)

    def _begins_as_before(self, still: FrozenFile, known: KnownFile) -> bool:
        """Tell whether a file begins with what was kept last, or nothing was."""
        if still.path not in self._beginnings:
            self._beginnings[still.path] = known.is_as_before(still) or begins_with(
                still, known.latest, self._record.originals
            )
        return self._beginnings[still.path]

    def fresh(self, still: FrozenFile) -> NewContent | None:
        """Return what is new in a file; nothing of one that holds no conversation."""
        if still.path not in self._fresh:
            self._fresh[still.path] = None if still.path in self._refusals else self._pack(still)
        return self._fresh[still.path]

    def _pack(self, still: FrozenFile) -> NewContent | None:
        known = self._known_of(still.path)
        latest = known.latest if known is not None else None
        if known is None or latest is None:
            return pack(self._agent.NAME, still)
        if not self._begins_as_before(still, known):
            dropped = self._dropped.get(still.path, ())
            has_versions = any(kept.name not in dropped for kept in known.originals)
            return pack(self._agent.NAME, still, is_version=has_versions)
        return pack_growth(still, latest, self._record.originals) if still.size > latest.size else None

    def _known_of(self, path: str) -> KnownFile | None:
        if path in self._known or not self._job.is_known:
            return self._known.get(path)
        return next(iter(_known_files(self._record, self._agent.NAME, None, self._disk, path).values()), None)

    def told_sources(self, sources: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
        """Return a session's files with what became of each."""
        seen: Counter[tuple[str, int]] = Counter()
        told = []
        for source in sources:
            name = source.path, source.bytes
            states = self._states.get(name) or ["present"]
            told.append(msgspec.structs.replace(source, state=states[min(seen[name], len(states) - 1)]))
            seen[name] += 1
        return tuple(told)

    def leave(self, readings: Sequence[Reading]) -> None:
        """Keep nothing of the files that a conversation was read from."""
        self._left |= {str(reading.source.path) for reading in readings}

    def leave_all(self) -> None:
        """Keep nothing of any of its files."""
        self._left |= self._live.keys()

    def contents(self, readings: Sequence[Reading]) -> list[tuple[int, bytes]]:
        """Return the originals that a conversation was read from, by their names."""
        found: dict[int, bytes] = {}
        for reading in readings:
            path = str(reading.source.path)
            still, known = self._disk.files.get(path), self._known.get(path)
            disk = reading.source.disk
            if isinstance(disk, PinnedDisk) or still is None:
                kept = (
                    known.original(disk.original if isinstance(disk, PinnedDisk) else None) if known else None
                )
                if kept is not None and kept.size <= LARGEST:
                    found[kept.name] = self._record.originals.data(kept.id)
            elif still.data is not None and path in self._live:
                made = self.fresh(still)
                latest = known.latest if known else None
                name = made.name if made is not None else latest.name if latest is not None else None
                if name is not None:
                    found[name] = still.data
        return list(found.items())

    def unopened(self) -> list[Problem]:
        """Return why files that were found could not be opened or read, where nothing else tells it."""
        unopened = [one for path, one in self._refusals.items() if path not in self._disk.files]
        return [*unopened, *{**self.damaged, **self.failures}.values()]

    def with_failures(self, parcel: ClusterUpdate) -> ClusterUpdate:
        """Return a parcel with the problems of the files of this cluster."""
        failures = {
            path: problem_json(one).decode() for path, one in {**self.damaged, **self.failures}.items()
        }
        return msgspec.structs.replace(parcel, problems=self.unopened(), failures=failures)

    def files(self) -> Iterator[FileState]:
        """Yield every file that was opened and is to be kept, or known again."""
        for path, still in self._disk.files.items():
            source = self._live.get(path)
            home = next((one.home for one in (source, *self._live.values()) if one is not None), None)
            refusal = self._refusals.get(path)
            if home is None or (source is None and self.fresh(still) is None):
                continue
            is_left = path in self._left
            yield FileState(
                path,
                str(home.path),
                str(home.sessions),
                home.label,
                self._job.cluster if source is None else source.cluster,
                source is None,
                still.file_size,
                still.modified_ns,
                still.tail,
                still.identity,
                still.read_ns,
                None if refusal is None else problem_json(refusal).decode(),
                None if is_left else self.fresh(still),
                tuple(self._dropped.get(path, ())),
            )


def _open(source: Source) -> None:
    with suppress(Exception):
        source.disk.open(str(source.path)).close()


def _known_files(
    record: Store, agent: str, cluster: str | None, disk: Disk, path: str | None = None
) -> dict[str, KnownFile]:
    """Return what the archive knows of the files of a cluster, or of one file."""
    rows = known_in_cluster(record, agent, cluster) if path is None else known_at(record, agent, path)
    found: dict[str, KnownFile] = {}
    for stored, home, folder, label, group, size, modified_ns, tail, identity, revision, *original in rows:
        place = as_path(stored)
        source = Source(
            Path(place), AgentHome(Path(as_path(home)), Path(as_path(folder)), label, disk), group
        )
        known = found.setdefault(place, KnownFile(source, size, modified_ns, tail, identity, revision, []))
        if original[0] is not None:
            known.originals.append(StoredOriginal(*original))
    return found


class KeepPolicy:
    """Which conversations are kept: all but those that were forgotten, or whose project is excluded."""

    def __init__(self, forgotten: KeyedSet, excluded: Sequence[str]) -> None:
        self._forgotten, self.excluded = forgotten, excluded

    def is_forgotten(self, name: int) -> bool:
        """Tell whether a conversation is forgotten."""
        return name in self._forgotten

    def accepts(self, name: int, session: Session) -> bool:
        """Tell whether a conversation is to be kept."""
        from retold.projects.matching import is_meant

        return name not in self._forgotten and not any(
            is_meant(session.project.root, session.project.native_key, session.project.hash, project)
            for project in self.excluded
        )


class Exclusions(msgspec.Struct, frozen=True):
    """Conversations of which nothing is kept."""

    names: frozenset[int] = frozenset()
    ids: frozenset[bytes] = frozenset()
    """The agent's own ids of them, as digests."""


class Leaver:
    """Tells which conversations of an agent are left out, by what is known once their own files were read."""

    def __init__(self, record: Store, agent: Agent, wanted: KeepPolicy, atlas: Atlas) -> None:
        self._record, self._agent, self._wanted, self._atlas = record, agent, wanted, atlas
        self._kept = clusters(record, agent.NAME)
        self._unkept = unkept_clusters(record, agent.NAME)

    def leaving(self, shared: Scraps, left: Collection[int]) -> Exclusions:
        """Return what is left out of all that files of many conversations say; `left` are names that are known to be.

        What the archive has of a conversation stays, and so does what is said of it.
        """
        names: set[int] = set()
        ids: set[bytes] = set()
        for name, said in owned(self._record, self._agent, shared, self._kept).said.items():
            if name in self._kept:
                continue
            if name in left or self._is_left(name, said):
                names.add(name)
                native_ids = {reading.native_id for reading in said if reading.native_id}
                ids |= {digest(native_id.encode("utf-8", "replace")) for native_id in native_ids}
        return Exclusions(frozenset(names), frozenset(ids))

    def _placed(self, said: Sequence[Reading]) -> Session:
        session = self._agent.join(said)
        return msgspec.structs.replace(session, project=self._atlas.project(session))

    def _is_left(self, name: int, said: Sequence[Reading]) -> bool:
        try:
            session = self._placed(said)
        except Exception:  # noqa: BLE001 - nobody knows its project, which may be excluded
            return True
        # A log may not say where a conversation took place; the file of which nothing was kept did.
        cluster = self._agent.cluster_of(session.native_id) if session.native_id else None
        return cluster in self._unkept or not self._wanted.accepts(name, session)


Shared = Mapping[str, Scraps]
"""What files of many conversations say, by agent."""
AtlasFacts = tuple[dict[str, Sequence[Clue]], dict[str, str], str]
"""What is known of where projects lie: what homes say, roots that were found, and where we are."""


class Reader:
    """Reads clusters, with an archive at hand in which earlier files are."""

    def __init__(
        self,
        record: Store,
        agents: Mapping[str, Agent],
        atlas: Atlas,
        shared: Shared,
        wanted: KeepPolicy,
    ) -> None:
        """Take what files of many conversations say, by agent, and who decides what is kept."""
        self._record, self._agents, self._atlas, self._shared = record, agents, atlas, shared
        self._wanted = wanted

    def placed(self, session: Session) -> Session:
        """Return a session with its project."""
        return msgspec.structs.replace(session, project=self._atlas.project(session))

    def leaver(self, agent: Agent) -> Leaver:
        """Return who tells what is left out of files of many conversations."""
        return Leaver(self._record, agent, self._wanted, self._atlas)

    def is_wanted(self, name: int, session: Session) -> bool:
        """Tell whether a conversation is to be kept."""
        return self._wanted.accepts(name, session)

    def parcel(self, job: ClusterJob) -> tuple[ClusterUpdate, list[IndexEntry]]:
        """Return what is to be kept of a cluster, and what is to be put into the index."""
        for _ in range(ATTEMPTS):
            try:
                return self._read(job)
            except FileChangedError as error:
                change = error
        failures = {change.path: problem_json(change.problem).decode()}
        return ClusterUpdate(job.agent, job.cluster, [], [], problems=[change.problem], failures=failures), []

    def _read(self, job: ClusterJob) -> tuple[ClusterUpdate, list[IndexEntry]]:
        agent = self._agents[job.agent]
        case = ClusterReader(self._record, agent, job)
        try:
            return self._parcel(agent, case, job)
        except FileChangedError:
            raise
        except Exception as error:  # noqa: BLE001 - one bad cluster costs no other
            case.fail(case.paths, error)
        # The error is gone by now, and with its traceback all that was read: the memory may be needed.
        return self._failed(case, job)

    def put_off(self, job: ClusterJob, error: Exception) -> tuple[ClusterUpdate, list[IndexEntry]]:
        """Return a cluster that is not read, because of an error: its files are kept, and its sessions stay."""
        case = ClusterReader(self._record, self._agents[job.agent], job)
        case.fail(case.paths, error)
        case.open_all()
        return self._failed(case, job)

    def _parcel(
        self, agent: Agent, case: ClusterReader, job: ClusterJob
    ) -> tuple[ClusterUpdate, list[IndexEntry]]:
        readings = case.readings()
        shared = self._shared.get(job.agent, Scraps())
        found = conversations(agent, readings, shared, fail=case.fail_to_join)
        spared = sessions_from(self._record, job.agent, case.failures)
        kept, wanted, left, forgotten = [], [], [], list[str]()
        for group, told, session in found:
            name = conversation_name(agent, group)
            if name in spared:  # read before from a file that cannot be read now
                continue
            sources = case.told_sources(session.sources)
            damaged = {case.damaged[path]: None for path in _paths(told) if path in case.damaged}
            whole = msgspec.structs.replace(
                self.placed(session), sources=sources, problems=(*session.problems, *damaged)
            )
            if not self.is_wanted(name, whole):
                case.leave(told)
                left.append(name)
                if self._wanted.is_forgotten(name):
                    forgotten += _paths(told)
                    forgotten += [whole.project.root] if whole.project.root else []
                continue
            stamp = stamp_of(told)
            kept.append(rows_of(whole, name, stamp, job.cluster, _paths(told), _named_cluster(agent, whole)))
            wanted.append((whole, name, stamp, case.contents(told)))
        lost = self._lost(case, job, {*left, *(rows.name for rows in kept)})
        # A session that is left may be named by another, and is not when that one is read from the archive.
        is_long = not left and _size(readings) >= pages.LONG
        indexed = [index_entry(*one, is_long=is_long) for one in wanted]
        files, roots = list(case.files()), dict(self._atlas.proven)
        parcel = ClusterUpdate(
            job.agent, job.cluster, files, kept, roots=roots, left=left, forgotten=forgotten
        )
        return case.with_failures(parcel), [*indexed, *_placeholders({**spared, **lost})]

    def _failed(self, case: ClusterReader, job: ClusterJob) -> tuple[ClusterUpdate, list[IndexEntry]]:
        """Return a cluster that could not be read: its files are kept, and its sessions stay as they are."""
        try:
            files = list(case.files())
        except FileChangedError:  # the next sync keeps it
            files = []
        lost = self._lost(case, job, set())
        parcel = case.with_failures(ClusterUpdate(job.agent, job.cluster, files, []))
        return parcel, list(_placeholders({**sessions_from(self._record, job.agent, case.failures), **lost}))

    def _lost(self, case: ClusterReader, job: ClusterJob, told: Collection[int]) -> dict[int, bytes]:
        """Return the stamps of sessions of which nothing is told, because the archive no longer knows their files."""
        found = with_lost_files(self._record, job.agent, job.cluster)
        lost = {name: stamp for name, (stamp, _) in found.items() if name not in told}
        for name in lost:
            case.fail(
                [found[name][1]],
                DamagedError("the archive no longer knows its files: bring back a copy of archive.db"),
            )
        return lost


def _placeholders(sessions: Mapping[int, bytes]) -> Iterable[IndexEntry]:
    """Yield entries for sessions whose texts cannot be read: the index needs not be made again because of them."""
    return (IndexEntry(name, stamp, (), (), (), is_placeholder=True) for name, stamp in sessions.items())


def _named_cluster(agent: Agent, session: Session) -> str | None:
    """Return the cluster of the files of a conversation that bear the names which its agent gives them."""
    if session.native_id is None or session.kind not in ("main", "fork"):
        return None
    return agent.cluster_of(session.native_id)


def index_entry(
    session: Session, name: int, stamp: bytes, contents: Sequence[tuple[int, bytes]], *, is_long: bool = False
) -> IndexEntry:
    """Return a session as the index takes it, with where its texts stand in the originals."""
    finder = TextLocator([(place, data) for place, (_, data) in enumerate(contents)])
    docs: list[tuple[SearchDocument, str]] = []
    for spoken in documents(session):
        docs.extend(zip(spoken.docs, finder.regions(spoken), strict=True))
    timeline = pages.timeline_of(session.timeline) if is_long else None
    return IndexEntry(name, stamp, [number for number, _ in contents], docs, finder.pages(), timeline)


def _paths(readings: Iterable[Reading]) -> list[str]:
    """Return the paths of the files that were read, each once."""
    return sorted({str(reading.source.path) for reading in readings})


def _size(readings: Iterable[Reading]) -> int:
    """Return the bytes of the files that were read: each once, however many conversations it holds."""
    return sum({(reading.source.path, reading.size): reading.size for reading in readings}.values())


def stamp_of(readings: Sequence[Reading]) -> bytes:
    """Return a digest of what a conversation was made from."""
    told = sorted(f"{reading.source.path}\0{reading.size}\0{reading.modified_at}" for reading in readings)
    return blake2b(
        "\n".join([str(REVISION), *told]).encode("utf-8", "surrogatepass"), digest_size=12
    ).digest()


def make_reader(facts: AtlasFacts, shared: Shared, excluded: Sequence[str], record: Store) -> Reader:
    """Return a reader with what it has to know: made in each process for itself."""
    clues, known, here = facts
    wanted = KeepPolicy(forgotten_names(record), excluded)
    return Reader(record, AGENTS, Atlas(clues, known, here), shared, wanted)
