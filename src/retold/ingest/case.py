"""The files of one cluster, as they are and as they were: what they say, and what of them is new."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec

from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.archive.database import DamagedError, RetoldError
from retold.archive.keyed_hashes import NOBODY, KeyedSet
from retold.archive.queries.lookups import FAILURES, known_at, known_in_cluster, sessions_from
from retold.archive.store import Store, as_path
from retold.archive.writer import ClusterUpdate, FileState, NewContent
from retold.ingest.containment import LaterVersions, hold_unread
from retold.ingest.derive import Scraps, conversations
from retold.ingest.file_values import hold_values
from retold.ingest.freshness import StoredOriginal, begins_with, pack, pack_growth
from retold.ingest.kept import ArchiveDisk, KeptFile, PinnedDisk
from retold.ingest.revision import REVISION
from retold.ingest.snapshot import LARGEST, FileChangedError, FrozenFile, Snapshot
from retold.ingest.watch import TooSlow
from retold.model.problem import Problem, problem
from retold.model.serialization import problem_json
from retold.model.session import Session, SourceFile, SourceState
from retold.reading.disk import DISK, NOWHERE, Disk, printable


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
