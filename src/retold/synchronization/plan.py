"""The plan of a sync: the clusters with something new, and the scraps of files that hold many conversations.

A scrap belongs to a conversation of the archive, to one of a cluster, or to one that only such files know.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, Reading
from retold.archive.annotations import HiddenPaths, KeyedSet, load_forgotten_ids
from retold.archive.queries.lookups import (
    load_clusters,
    load_clusters_without_content,
    load_clusters_without_project,
    load_failed_clusters,
    load_logged_sessions,
    load_recorded_sessions,
    load_scrap_digests,
    load_unlisted_clusters,
)
from retold.archive.store import Store, as_path, digest
from retold.archive.sync_state import load_clues
from retold.archive.writer import ClusterUpdate, FileState
from retold.model.serialization import deep_repr
from retold.projects.resolver import ProjectResolver
from retold.reading.disk import DISK
from retold.sessions.conversations import LogPlace, Scraps, conversation_uid, group_scraps, log_places
from retold.synchronization.cluster import ClusterJob, ClusterReader, KeepPolicy
from retold.synchronization.discovery import Discovery
from retold.synchronization.fingerprints import REVISION
from retold.synchronization.snapshot import FileChangedError
from retold.synchronization.workers import TimeLimit, time_budget


class ScrapOwners(NamedTuple):
    """The scraps of an agent by the conversations that they belong to."""

    readings: Mapping[int, Sequence[Reading]]
    """By the uid of the conversation."""
    aliases: Mapping[int, int]
    """Uids under which the archive lists the same prompts a second time, each with the uid of the conversation."""


def assign_scraps(store: Store, agent: Agent, scraps: Scraps, known: Mapping[int, str | None]) -> ScrapOwners:
    """Return the owners of scraps; `known` has the clusters of all sessions of the agent by uid."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for key, group in scraps.keys.items():
        keys[group].append(key)
    assigned: defaultdict[int, list[Reading]] = defaultdict(list)
    aliases: dict[int, int] = {}
    owners: dict[LogPlace, int] = {}
    for group, readings in scraps.groups.items():
        uids = [conversation_uid(agent, key) for key in (group, *keys[group])]
        recorded = next((uid for uid in uids if known.get(uid) is not None), None)
        owner = _owner_by_folder(store, agent, readings) if recorded is None else recorded
        owner = uids[0] if owner is None else owner
        assigned[owner] += readings
        aliases |= {uid: owner for uid in uids if uid != owner and known.get(uid, "") is None}
        owners |= dict.fromkeys(log_places(agent, readings), owner)
    current = {conversation_uid(agent, key) for key in scraps.keys}
    if any(cluster is None and uid not in current for uid, cluster in known.items()):
        # The log of a folder may have had other keys before, for example under an earlier marker of the project.
        for uid, native_id, path in load_logged_sessions(store, agent.NAME):
            place = LogPlace(os.path.dirname(as_path(path)), native_id)
            if uid not in current and owners.get(place, uid) != uid:
                aliases[uid] = owners[place]
    return ScrapOwners(assigned, aliases)


def _owner_by_folder(store: Store, agent: Agent, readings: Sequence[Reading]) -> int | None:
    """Return the session with the same id that has files in the same folder."""
    for folder, native_id in log_places(agent, readings):
        for uid, path in load_recorded_sessions(store, agent.NAME, native_id):
            if as_path(path).startswith(folder + os.sep):
                return uid
    return None


class Exclusions(NamedTuple):
    """Conversations of which nothing is kept."""

    uids: frozenset[int] = frozenset()
    ids: frozenset[bytes] = frozenset()
    """The agent's own ids of them, as digests."""


def find_exclusions(  # noqa: PLR0913 - everything that decides
    store: Store,
    agent: Agent,
    policy: KeepPolicy,
    resolver: ProjectResolver,
    scraps: Scraps,
    excluded: Collection[int],
) -> Exclusions:
    """Return the conversations of which no scrap is kept; `excluded` has those that are known from their own files.

    The scraps of a conversation in the archive stay.
    """
    archived = load_clusters(store, agent.NAME)
    without_content = load_clusters_without_content(store, agent.NAME)

    def is_excluded(uid: int, readings: Sequence[Reading]) -> bool:
        try:
            session = agent.join(readings)
            session = replace(session, project=resolver.resolve(session))
        except Exception:  # noqa: BLE001 - its project is unknown, and may be excluded
            return True
        # A log may not name the folder of a conversation. Its own file, of which nothing was kept, did.
        cluster = agent.cluster_of(session.native_id) if session.native_id else None
        return cluster in without_content or not policy.accepts(uid, session)

    uids: set[int] = set()
    ids: set[bytes] = set()
    for uid, readings in assign_scraps(store, agent, scraps, archived).readings.items():
        if uid not in archived and (uid in excluded or is_excluded(uid, readings)):
            uids.add(uid)
            native_ids = {reading.native_id for reading in readings if reading.native_id}
            ids |= {digest(native_id.encode("utf-8", "replace")) for native_id in native_ids}
    return Exclusions(frozenset(uids), frozenset(ids))


def scraps_digest(readings: Sequence[Reading]) -> bytes:
    """Return a digest of the scraps of one conversation."""
    text = "\n".join(sorted(f"{reading.format} {deep_repr(reading.state)}" for reading in readings))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


class SyncPlan(msgspec.Struct, frozen=True):
    """The work of a sync for one agent."""

    discovery: Discovery
    clusters: Collection[str]
    """The clusters to read."""
    shared_files: Sequence[ClusterReader]
    """The readers of all files that hold many conversations, if one of them is needed."""
    scraps: Scraps
    """Their readings by conversation."""
    is_first: bool = False
    """Whether the archive had nothing of the agent before."""

    @property
    def has_work(self) -> bool:
        """Whether there is something to write."""
        return bool(self.clusters or self.shared_files or self.discovery.deleted)

    def restrict(self, store: Store, clusters: Collection[str]) -> "SyncPlan":
        """Return a plan for some clusters, with all files that belong to them by now."""
        return replace(self, discovery=self.discovery.reload(store), clusters=clusters, is_first=False)

    def updates(
        self, readers: Iterable[ClusterReader], *, without_content: bool = False
    ) -> Iterator[ClusterUpdate]:
        """Yield the updates of files that hold many conversations; with or without their contents."""
        for reader in readers:
            try:
                files = [_without_content(file) if without_content else file for file in reader.file_states()]
            except FileChangedError as change:  # the next sync keeps it
                yield ClusterUpdate(self.discovery.agent.NAME, None, [], [], problems=[change.problem])
                continue
            yield reader.with_failures(ClusterUpdate(self.discovery.agent.NAME, None, files, []))

    def record_join_failure(self, readings: Sequence[Reading], error: Exception) -> None:
        """Record that the scraps of a conversation could not be joined."""
        for reader in self.shared_files:
            reader.record_join_failure(readings, error)

    def shared_files_without(self, store: Store, exclusions: Exclusions) -> Iterator[ClusterReader]:
        """Yield new readers of the files that hold many conversations, which leave out the excluded ones.

        A file with nothing else is kept without content.
        """
        agent = self.discovery.agent
        forgotten = load_forgotten_ids(store) | exclusions.ids
        with TimeLimit() as limit:
            for path in self.discovery.shared_files:
                reader = _shared_file_reader(store, self.discovery, path, forgotten)
                readings = _read_shared_file(limit, reader, self.discovery)
                scraps = group_scraps(agent, readings, reader.record_join_failure)
                owners = assign_scraps(store, agent, scraps, load_clusters(store, agent.NAME))
                if owners.readings.keys() <= exclusions.uids:
                    reader.exclude_all()
                yield reader

    def jobs(self) -> Iterable[tuple[ClusterJob, int]]:
        """Yield a job for each cluster, with the bytes of its files."""
        present = self.discovery.clusters()
        archived: Counter[str | None] = Counter()
        for row in self.discovery.rows.values():
            archived[row.cluster] += row.size
        is_archive_only = self.discovery.is_archive_only
        for cluster in self.clusters:
            # The recording disk of the discovery need not go to another process.
            sources = tuple(source.with_disk(DISK) for source in present.get(cluster, ()))
            job = ClusterJob(
                self.discovery.agent.NAME,
                cluster,
                sources,
                is_known=cluster in archived,
                is_first=self.is_first,
                is_archive_only=is_archive_only,
            )
            yield job, archived[cluster] if is_archive_only else sum(_size(one.path) for one in sources)


def make_plan(
    store: Store,
    discovery: Discovery,
    missing: Collection[int],
    *,
    is_behind: bool,
    is_reindex: bool = False,
) -> SyncPlan:
    """Return the plan for an agent; `missing` has the uids of sessions that the index lacks.

    A reindex includes the files that could not be read before, and those whose sessions are missing.
    """
    agent = discovery.agent
    known = load_clusters(store, agent.NAME)
    lacking = {cluster for uid, cluster in known.items() if uid in missing}
    stale = discovery.stale_clusters() | _clusters_with_new_clues(store, discovery)
    stale |= {cluster for cluster in lacking if cluster is not None}
    if is_reindex:
        stale |= load_failed_clusters(store, agent.NAME) | load_unlisted_clusters(store, agent.NAME)
    needs_shared = bool(stale) or None in lacking or is_behind or _is_shared_file_stale(discovery)
    forgotten = load_forgotten_ids(store)
    paths = discovery.shared_files if needs_shared else []
    plan = SyncPlan(
        discovery,
        stale,
        [_shared_file_reader(store, discovery, path, forgotten) for path in paths],
        Scraps(),
        is_first=not known and not discovery.rows,
    )
    readings: list[Reading] = []
    if plan.shared_files:
        with TimeLimit() as limit:
            for reader in plan.shared_files:
                readings += _read_shared_file(limit, reader, discovery)
    # The scraps go to other processes, but the archive behind their disks stays here.
    portable = [replace(reading, source=reading.source.with_disk(DISK)) for reading in readings]
    scraps = group_scraps(agent, portable, plan.record_join_failure)
    return replace(
        plan, clusters=stale | _clusters_with_new_scraps(store, agent, scraps, known), scraps=scraps
    )


def _is_shared_file_stale(discovery: Discovery) -> bool:
    """Return whether a file that holds many conversations changed, or was read by an older reader."""
    paths = discovery.shared_files
    rows = (discovery.rows[path] for path in paths if path in discovery.rows)
    return any(path in discovery.changed for path in paths) or any(row.revision < REVISION for row in rows)


def _clusters_with_new_clues(store: Store, discovery: Discovery) -> set[str]:
    """Return the clusters whose projects may be known now, because a home has other clues about its projects."""
    clusters: set[str] = set()
    hidden = HiddenPaths(store)
    for home, clues in discovery.clues.items():
        current = {
            (clue.root, clue.evidence, clue.native_key)
            for clue in clues
            if not hidden.is_root_hidden(clue.root)
        }
        if current != load_clues(store, home):
            clusters |= load_clusters_without_project(store, home, discovery.agent.NAME)
    return clusters


def _clusters_with_new_scraps(
    store: Store, agent: Agent, scraps: Scraps, known: Mapping[int, str | None]
) -> set[str]:
    """Return the clusters with conversations whose scraps changed."""
    digests = load_scrap_digests(store) if scraps.groups else {}
    clusters: set[str] = set()
    for uid, readings in assign_scraps(store, agent, scraps, known).readings.items():
        cluster = known.get(uid)
        if cluster is not None and digests.get(uid) != scraps_digest(readings):
            clusters.add(cluster)
    return clusters


def _without_content(file: FileState) -> FileState:
    """Return a file without content, and without the tail by which it would be recognised as unchanged."""
    return replace(file, new_content=None, superseded=(), tail=b"")


def _read_shared_file(limit: TimeLimit, reader: ClusterReader, discovery: Discovery) -> list[Reading]:
    """Return the readings of a file that holds many conversations, within the time for its size."""
    with limit.limit(time_budget(sum(_size(discovery.sources[path].path) for path in reader.present_paths))):
        return reader.read_all()


def _shared_file_reader(store: Store, discovery: Discovery, path: str, forgotten: KeyedSet) -> ClusterReader:
    source = discovery.sources.get(path)
    job = ClusterJob(
        discovery.agent.NAME,
        None,
        (source,) if source else (),
        path,
        is_archive_only=discovery.is_archive_only,
    )
    return ClusterReader(store, discovery.agent, job, forgotten)


def _size(path: os.PathLike[str]) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
