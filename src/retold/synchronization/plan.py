"""What a sync has to read: clusters with something new, and files of many conversations."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, Reading
from retold.archive.annotations import forgotten_ids
from retold.archive.keyed_hashes import HiddenPaths, KeyedSet
from retold.archive.queries.lookups import (
    clusters,
    clusters_placed_by,
    failed_clusters,
    scrap_digests,
    unlisted_clusters,
)
from retold.archive.store import Store
from retold.archive.sync_state import clues_of
from retold.archive.writer import ClusterUpdate, FileState
from retold.model.serialization import whole_value
from retold.reading.disk import DISK
from retold.sessions.conversations import Scraps, scraps
from retold.synchronization.cluster import ClusterJob, ClusterReader, Exclusions
from retold.synchronization.discovery import Discovery
from retold.synchronization.disks import FileChangedError
from retold.synchronization.fingerprints import REVISION
from retold.synchronization.owners import owned
from retold.synchronization.time_limit import TimeLimit
from retold.synchronization.workers import time_budget


class SyncPlan(msgspec.Struct, frozen=True):
    """What there is to do for one agent."""

    found: Discovery
    clusters: Collection[str]
    loose: Sequence[ClusterReader]
    """Files of many conversations, opened, if one of them is needed."""
    shared: Scraps
    """What they say of each conversation."""

    @property
    def is_any(self) -> bool:
        """Whether there is something to write."""
        return bool(self.clusters or self.loose or self.found.gone)

    def again(self, record: Store, clusters: Collection[str]) -> "SyncPlan":
        """Return some clusters to be read with all files that belong to them by now."""
        return replace(self, found=self.found.again(record), clusters=clusters)

    def parcels(self, cases: Iterable[ClusterReader], *, is_bare: bool = False) -> Iterator[ClusterUpdate]:
        """Yield files of many conversations as they are written; without what they hold, as long as they are bare."""
        for case in cases:
            try:
                files = [_bare(held) if is_bare else held for held in case.files()]
            except FileChangedError as change:  # the next sync keeps it
                yield ClusterUpdate(self.found.agent.NAME, None, [], [], problems=[change.problem])
                continue
            yield case.with_failures(ClusterUpdate(self.found.agent.NAME, None, files, []))

    def fail(self, readings: Sequence[Reading], error: Exception) -> None:
        """Take note that the agent failed on what files of many conversations say of one."""
        _fail(self.loose, readings, error)

    def loose_without(self, record: Store, leaving: Exclusions) -> Iterator[ClusterReader]:
        """Yield the files of many conversations, opened again, without what is left out; of some nothing is left."""
        agent = self.found.agent
        with TimeLimit() as watch:
            for path in self.found.loose:
                case = _case(record, self.found, path, forgotten_ids(record) | leaving.ids)
                shared = scraps(agent, _readings(watch, case, self.found), case.fail_to_join)
                told = owned(record, agent, shared, clusters(record, agent.NAME))
                if told.said.keys() <= leaving.names:
                    case.leave_all()
                yield case

    def jobs(self) -> Iterable[tuple[ClusterJob, int]]:
        """Yield a job for each cluster, with the size of its files."""
        there = self.found.clusters()
        known: Counter[str | None] = Counter()
        for row in self.found.rows.values():
            known[row.cluster] += row.size
        is_kept_only = self.found.is_kept_only
        for cluster in self.clusters:
            # What watched the search for them need not go to another process.
            sources = tuple(source.on(DISK) for source in there.get(cluster, ()))
            job = ClusterJob(
                self.found.agent.NAME,
                cluster,
                sources,
                is_known=cluster in known,
                is_kept_only=is_kept_only,
            )
            yield job, known[cluster] if is_kept_only else sum(_size(source.path) for source in sources)


def work_of(
    record: Store, found: Discovery, missing: Collection[int], *, is_behind: bool, is_reindex: bool = False
) -> SyncPlan:
    """Return what there is to do for an agent; `missing` are sessions that the index lacks.

    With `is_reindex`, that includes the files that could not be read before, and those whose sessions are missing.
    """
    agent = found.agent
    known = clusters(record, agent.NAME)
    lacking = {cluster for name, cluster in known.items() if name in missing}
    stale = (
        found.stale()
        | _told_otherwise(record, found)
        | {cluster for cluster in lacking if cluster is not None}
        | (
            failed_clusters(record, agent.NAME) | unlisted_clusters(record, agent.NAME)
            if is_reindex
            else set()
        )
    )
    is_needed = bool(stale) or None in lacking or is_behind or _is_stale(found)
    forgotten = forgotten_ids(record)
    loose = [_case(record, found, path, forgotten) for path in found.loose] if is_needed else []
    # Other processes get them too, and the archive behind a disk stays in this one.
    readings = list(_said(loose, found))
    shared = scraps(
        agent,
        [replace(reading, source=reading.source.on(DISK)) for reading in readings],
        lambda told, error: _fail(loose, told, error),
    )
    return SyncPlan(found, stale | _concerned(record, agent, shared, known), loose, shared)


def _is_stale(found: Discovery) -> bool:
    """Tell whether a file of many conversations changed, or was read by an older reader."""
    rows = (found.rows[path] for path in found.loose if path in found.rows)
    return any(path in found.changed for path in found.loose) or any(row.revision < REVISION for row in rows)


def _told_otherwise(record: Store, found: Discovery) -> set[str]:
    """Return the clusters whose projects may be known by now: a home says other things about its projects."""
    concerned: set[str] = set()
    hidden = HiddenPaths(record)
    for home, clues in found.clues.items():
        told = {
            (clue.root, clue.evidence, clue.native_key)
            for clue in clues
            if not hidden.is_root_hidden(clue.root)
        }
        if told != clues_of(record, home):
            concerned |= clusters_placed_by(record, home, found.agent.NAME)
    return concerned


def _bare(held: FileState) -> FileState:
    """Return a file without what it holds, and as one that nobody knows again: until that is written, it counts as changed."""
    return replace(held, fresh=None, dropped=(), tail=b"")


def _said(loose: Sequence[ClusterReader], found: Discovery) -> Iterator[Reading]:
    """Yield what files of many conversations say; one that takes too long is put off."""
    if not loose:
        return
    with TimeLimit() as watch:
        for case in loose:
            yield from _readings(watch, case, found)


def _readings(watch: TimeLimit, case: ClusterReader, found: Discovery) -> list[Reading]:
    """Return what a file of many conversations says, within the time that its size allows."""
    with watch.limit(time_budget(sum(_size(found.sources[path].path) for path in case.live))):
        return case.readings()


def _fail(loose: Iterable[ClusterReader], readings: Sequence[Reading], error: Exception) -> None:
    for case in loose:
        case.fail_to_join(readings, error)


def _case(record: Store, found: Discovery, path: str, forgotten: KeyedSet) -> ClusterReader:
    source = found.sources.get(path)
    there = (source,) if source else ()
    job = ClusterJob(found.agent.NAME, None, there, path, is_kept_only=found.is_kept_only)
    return ClusterReader(record, found.agent, job, forgotten)


def _concerned(record: Store, agent: Agent, shared: Scraps, known: Mapping[int, str | None]) -> set[str]:
    """Return the clusters of which files of many conversations say something else than before."""
    digests = scrap_digests(record) if shared.groups else {}
    concerned: set[str] = set()
    for name, said in owned(record, agent, shared, known).said.items():
        cluster = known.get(name)
        if cluster is not None and digests.get(name) != digest_of(said):
            concerned.add(cluster)
    return concerned


def digest_of(readings: Sequence[Reading]) -> bytes:
    """Return a digest of what files of many conversations say of one."""
    told = "\n".join(sorted(f"{reading.format} {whole_value(reading.state)}" for reading in readings))
    return blake2b(told.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _size(path: os.PathLike[str]) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
