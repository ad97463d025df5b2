"""A cluster's files to a parcel: what is new is kept, everything is read, and what was said is put into the index."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b

import msgspec

from retold.agents.protocol import Agent, Reading
from retold.agents.registry import AGENTS
from retold.archive.annotations import forgotten_names
from retold.archive.database import DamagedError
from retold.archive.index.documents import SearchDocument, TextLocator, documents
from retold.archive.index.writer import IndexEntry
from retold.archive.queries.lookups import sessions_from, with_lost_files
from retold.archive.rows import rows_of
from retold.archive.store import Store
from retold.archive.writer import ClusterUpdate
from retold.ingest import stretches
from retold.ingest.case import ClusterJob, ClusterReader
from retold.ingest.derive import Scraps, conversation_name, conversations
from retold.ingest.leaving import KeepPolicy, Leaver
from retold.ingest.revision import REVISION
from retold.ingest.snapshot import ATTEMPTS, FileChangedError
from retold.model.serialization import problem_json
from retold.model.session import Clue, Session
from retold.projects.resolver import Atlas

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
        is_long = not left and _size(readings) >= stretches.LONG
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
    timeline = stretches.timeline_of(session.timeline) if is_long else None
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
