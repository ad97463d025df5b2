"""The steps of a sync: discover, plan, read, write, resolve relations, and commit the index with the archive."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Reading, RetentionLimit
from retold.agents.registry import AGENTS
from retold.archive.database import MACHINE_ERRORS, RetoldError
from retold.archive.index.writer import IndexWriter
from retold.archive.ledger import reprice
from retold.archive.queries.listing import load_conversation_ids
from retold.archive.queries.lookups import (
    FAILURE_CODES,
    count_failures,
    count_present,
    load_clusters,
    load_ids,
    load_stamps,
)
from retold.archive.relations import resolve_relations
from retold.archive.rows import SessionRows, make_session_rows
from retold.archive.store import SHARDS, UNREAD, Store, shard_path
from retold.archive.sync_state import (
    load_all_clues,
    load_roots,
    write_clues,
    write_dependencies,
    write_limits,
)
from retold.archive.writer import ClusterUpdate, Writer
from retold.model.problem import Problem, problem
from retold.model.serialization import encode_problem
from retold.model.session import Clue
from retold.model.spool import remove_spools
from retold.processes import can_start
from retold.synchronization.cluster import (
    ClusterJob,
    ClusterReader,
    JobRunner,
    ProjectFacts,
    SharedScraps,
    make_index_entry,
    make_runner,
    paths_of,
    stamp_of,
)
from retold.synchronization.discovery import (
    Dependency,
    Discovery,
    RecordingDisk,
    RecordingEnv,
    discover,
    discover_archived,
)
from retold.synchronization.fingerprints import FACT, REVISION, CoverageCount, hide_paths, save_coverage
from retold.synchronization.plan import (
    Exclusions,
    SyncPlan,
    assign_scraps,
    find_exclusions,
    make_plan,
    scraps_digest,
)
from retold.synchronization.prices import PriceBook
from retold.synchronization.snapshot import LARGEST
from retold.synchronization.update import SyncOptions
from retold.synchronization.workers import (
    RunnerFactory,
    TimedJob,
    pool_size,
    run_inline,
    shard_for,
    time_budget,
    write_entries,
)

ProgressCallback = Callable[[int, int], None]
"""Gets the bytes that were read, and all bytes to read."""
StaleCallback = Callable[[Store, str, Collection[str]], None]
"""Gets the clusters of an agent that will be written, while the archive still has them as they were."""
_FEWEST_FOR_WORKERS = 4
"""Fewer jobs are not worth a second process."""
_MOST_ROUNDS = 8
"""How often sessions are read again whose index entries were lost."""
_COMMIT_SECONDS = 1.0
"""Seconds after which written updates are committed."""
_COMMIT_BYTES = 64 << 20
"""Bytes of files after which written updates are committed, to bound memory."""


class SyncOutcome(msgspec.Struct, frozen=True):
    """The counts of a sync, and the problems of reading folders and files."""

    coverage: CoverageCount
    problems: tuple[Problem, ...]


class IndexFiles:
    """The files of the text index, opened for writing."""

    def __init__(self, store: Store) -> None:
        self._folder, self._archive = store.folder, store.id
        self.open()

    def open(self) -> None:
        """Open all files; again after other processes have written them."""
        self.shards = [
            IndexWriter(shard_path(self._folder, number), self._archive) for number in range(SHARDS)
        ]

    def close(self) -> None:
        """Close all files."""
        for shard in self.shards:
            shard.close()

    def commit(self, generation: int | None = None) -> None:
        """Commit all files; with the generation of the archive once they have all of it."""
        for shard in self.shards:
            shard.commit(generation)

    def has_generation(self, generation: object) -> bool:
        """Return whether all files have a generation of the archive."""
        return all(shard.generation() == generation for shard in self.shards)

    def stamps(self) -> dict[int, bytes]:
        """Return the stamps of the sessions in the index by uid."""
        return {uid: stamp for shard in self.shards for uid, stamp in shard.stamps().items()}

    def shard_numbers(self) -> dict[int, int]:
        """Return the number of the file that has each session, by uid."""
        return {uid: number for number, shard in enumerate(self.shards) for uid in shard.stamps()}

    def remove_stale(self, stamps: Mapping[int, bytes]) -> set[int]:
        """Remove sessions that the archive does not have, or has with another stamp, and second copies; return the rest."""
        current: set[int] = set()
        for shard in self.shards:
            for uid, stamp in shard.stamps().items():
                if stamps.get(uid) == stamp and uid not in current:
                    current.add(uid)
                else:
                    shard.begin()
                    shard.remove(uid)
        return current


def sync(
    store: Store,
    options: SyncOptions,
    agents: Sequence[str],
    on_progress: ProgressCallback,
    on_stale: StaleCallback = lambda _store, _agent, _clusters: None,
) -> SyncOutcome:
    """Bring the archive and its index up to date with the files of some agents. The caller has the lock."""
    run = _Sync(store, options, agents, on_progress, on_stale)
    try:
        return run.run()
    finally:
        run.close()


class _Sync:
    """A run of a sync."""

    def __init__(
        self,
        store: Store,
        options: SyncOptions,
        agents: Sequence[str],
        on_progress: ProgressCallback,
        on_stale: StaleCallback,
    ) -> None:
        self._store, self._options, self._agents = store, options, agents
        self._on_progress, self._on_stale = on_progress, on_stale
        self._prices = PriceBook(store, options.folder)
        self._writer = Writer(store, REVISION, self._prices.cost)
        self._index = IndexFiles(store)
        self._dependencies: dict[str, list[Dependency]] = {}
        self._limits: dict[str, list[tuple[str, RetentionLimit]]] = {}
        """The retention limits of each agent's own homes."""
        self._problems: defaultdict[str, dict[Problem, None]] = defaultdict(dict)
        self._deaths = 0
        """Workers that died since the index was last checked."""
        self._excluded: set[int] = set()
        """The uids of conversations that were read and are not kept."""
        self._is_behind = not self._index.has_generation(store.fact("generation"))
        """Whether the last sync did not finish, or the index was changed since."""

    def run(self) -> SyncOutcome:
        """Run all steps."""
        remove_spools(self._options.folder)  # of a sync that was killed
        discoveries = self._discover_all()
        missing = self._find_missing() if self._is_behind else set()
        is_reindex = self._options.reindex
        plans = [
            make_plan(self._store, one, missing, is_behind=self._is_behind, is_reindex=is_reindex)
            for one in discoveries
        ]
        if self._is_behind or self._prices.have_changed or any(plan.has_work for plan in plans):
            for plan in plans:
                self._on_stale(self._store, plan.discovery.agent.NAME, plan.clusters)
            generation = self._begin()
            if is_reindex:
                self._writer.remove_orphans()
            self._write(plans)
            self._resolve(discoveries)
            self._finish(generation)
        return self._save_outcome(discoveries)

    def close(self) -> None:
        """Close the index, and remove the spools of updates that were not written."""
        self._index.close()
        remove_spools(self._options.folder)

    def _discover_all(self) -> list[Discovery]:
        """Discover the files of all agents; of one that fails, take the archived files."""
        discoveries = []
        for name in self._agents:
            if self._options.archive_only:
                discoveries.append(discover_archived(self._store, AGENTS[name]))
                continue
            try:
                discoveries.append(self._discover(name))
            except Exception as error:
                if isinstance(error, (RetoldError, *MACHINE_ERRORS)):
                    raise
                failure = problem("reader-failed", f"{type(error).__name__}: {error}", name)
                discoveries.append(replace(discover_archived(self._store, AGENTS[name]), problems=[failure]))
        return discoveries

    def _discover(self, name: str) -> Discovery:
        """Discover the files of an agent, and record everything that was looked at."""
        agent, env, disk = AGENTS[name], RecordingEnv(self._options.env), RecordingDisk()
        excluded = self._store.fact(f"excluded {name}")
        has_new_exclusions = excluded not in (None, self._excluded_fact())
        discovery, dependencies = discover(
            self._store, agent, env, self._options.homes, disk, has_new_exclusions=has_new_exclusions
        )
        # With the same environment and disk, so that the next sync notices a change of the agent's settings.
        self._limits[name] = [
            (str(home.path), agent.read_retention_limit(home)) for home in agent.find_homes(env, disk)
        ]
        facts = (
            Dependency(FACT, "revision", REVISION),
            Dependency(FACT, "prices", self._prices.source),
        )
        self._dependencies[name] = [*dependencies, *env.dependencies(), *disk.dependencies(), *facts]
        return discovery

    def _excluded_fact(self) -> str:
        return repr(sorted(self._options.excluded))

    def _find_missing(self) -> set[int]:
        """Return the sessions that the index lacks; remove those that the archive lacks."""
        stamps = load_stamps(self._store)
        current = self._index.remove_stale(stamps)
        self._index.commit()
        return stamps.keys() - current

    def _begin(self) -> int:
        """Raise the generation of the archive: until the index has it too, the next sync knows that this one did not finish."""
        generation = int(self._store.fact("generation") or 0) + 1
        self._writer.begin()
        self._store.set_fact("generation", generation)
        self._prices.begin()
        self._writer.commit()
        return generation

    def _write(self, plans: Sequence[SyncPlan]) -> None:
        """Read what the plans say, and write it as it comes."""
        scraps: SharedScraps = {plan.discovery.agent.NAME: plan.scraps for plan in plans}
        facts = self._project_facts([plan.discovery for plan in plans])
        factory = partial(make_runner, facts, scraps, self._options.excluded)
        has_exclusions = bool(self._options.excluded)
        for plan in plans:
            # Exclusions are known only after the conversations' own files were read.
            self._write_updates(plan.updates(plan.shared_files, without_content=has_exclusions))
        self._read([job for plan in plans for job in plan.jobs()], factory)
        self._read_merged(plans, factory)
        self._read_lost(plans, factory)
        for plan in plans:
            runner = factory(self._store)
            exclusions = Exclusions()
            if plan.shared_files and has_exclusions:
                exclusions = self._write_shared_files(plan, runner)
            self._write_updates([self._scraps_update(plan, runner, exclusions)])
            self._writer.begin()
            if plan.shared_files:
                self._writer.mark_read(plan.discovery.agent.NAME, None)
            self._writer.mark_absent(plan.discovery.deleted)

    def _write_shared_files(self, plan: SyncPlan, runner: JobRunner) -> Exclusions:
        """Write files that hold many conversations without the excluded ones; return these."""
        agent, policy, resolver = plan.discovery.agent, runner.policy, runner.resolver
        exclusions = find_exclusions(self._store, agent, policy, resolver, plan.scraps, self._excluded)
        readers: Iterable[ClusterReader] = plan.shared_files
        if exclusions.uids:
            readers = plan.shared_files_without(self._store, exclusions)
        self._write_updates(plan.updates(readers))
        return exclusions

    def _read_merged(self, plans: Sequence[SyncPlan], factory: RunnerFactory) -> None:
        """Read clusters as one that turned out to have the same conversation; each time there are fewer clusters."""
        while waiting := self._writer.merger.take_waiting():
            merged = [
                plan.restrict(self._store, waiting.get(plan.discovery.agent.NAME, ())) for plan in plans
            ]
            self._read([job for plan in merged for job in plan.jobs()], factory)

    def _read(
        self,
        jobs: Sequence[tuple[ClusterJob, int]],
        factory: RunnerFactory,
        *,
        is_isolated: bool = False,
    ) -> None:
        """Read clusters, the largest first: in several processes if that is worth their start.

        A single large file, or an isolated job, is read by one other process, because the system may kill it for its memory.
        """
        ordered = sorted(jobs, key=lambda one: (-one[1], one[0].agent, one[0].cluster or ""))
        timed = [TimedJob(job, time_budget(bytes_)) for job, bytes_ in ordered]
        size = sum(bytes_ for _, bytes_ in jobs)
        count = pool_size(size) if len(jobs) >= _FEWEST_FOR_WORKERS else int(is_isolated or size > LARGEST)
        if not count or not can_start():
            self._write_updates(run_inline(timed, factory(self._store), self._index.shards), size)
            return
        from retold.synchronization.worker_pool import WorkerPool  # multiprocessing takes 10 ms to import

        shards = self._shards_of(jobs) if count > 1 else {}
        self._index.close()
        pool = WorkerPool(shards, self._options.folder, factory, count)
        self._write_updates(pool.updates(timed), size)
        self._index.open()
        self._deaths += pool.deaths
        runner = factory(self._store)
        postponed = (runner.postpone(job, error) for job, error in pool.failed)
        self._write_updates(write_entries(result, self._index.shards) for result in postponed)

    def _read_lost(self, plans: Sequence[SyncPlan], factory: RunnerFactory) -> None:
        """Read the sessions again whose index entries were lost with the workers that died."""
        rounds = 0
        while self._deaths:
            rounds += 1
            if rounds > _MOST_ROUNDS:
                raise RetoldError("processes that read sessions keep dying; run the command again")
            self._deaths, missing = 0, self._find_missing()
            for plan in plans:
                known = load_clusters(self._store, plan.discovery.agent.NAME)
                lost = {cluster for uid, cluster in known.items() if uid in missing and cluster is not None}
                if lost:
                    self._read(list(plan.restrict(self._store, lost).jobs()), factory, is_isolated=True)

    def _shards_of(self, jobs: Sequence[tuple[ClusterJob, int]]) -> dict[ClusterJob, int]:
        """Return the number of the index file that has the sessions of each job's cluster, if one has."""
        numbers = self._index.shard_numbers()
        shards: dict[tuple[str, str | None], int] = {}
        for agent in {job.agent for job, _ in jobs}:
            for uid, cluster in load_clusters(self._store, agent).items():
                if uid in numbers:
                    shards[agent, cluster] = numbers[uid]
        return {job: shards[job.agent, job.cluster] for job, _ in jobs if (job.agent, job.cluster) in shards}

    def _write_updates(self, updates: Iterable[ClusterUpdate], size: int = 0) -> None:
        since, done, waiting = time.perf_counter(), 0, 0
        self._writer.commit()
        for one in updates:
            update = self._writer.put(one)
            self._problems[update.agent] |= dict.fromkeys(update.problems)
            self._excluded.update(update.excluded)
            read = sum(file.size for file in update.files)
            done, waiting = done + read, waiting + read
            if size:
                self._on_progress(done, size)
            if time.perf_counter() - since > _COMMIT_SECONDS or waiting > _COMMIT_BYTES:
                self._writer.commit()
                since, waiting = time.perf_counter(), 0
        self._writer.commit()

    def _scraps_update(self, plan: SyncPlan, runner: JobRunner, exclusions: Exclusions) -> ClusterUpdate:
        """Return an update with the conversations that only scraps tell of, if they changed."""
        agent = plan.discovery.agent
        known = load_clusters(self._store, agent.NAME)
        owners = assign_scraps(self._store, agent, plan.scraps, known)
        kept = {uid: scraps for uid, scraps in owners.readings.items() if uid not in exclusions.uids}
        lone = {uid: scraps for uid, scraps in kept.items() if known.get(uid) is None}
        rows = list(self._lone_rows(lone, runner, plan))
        failures = {path: one for reader in plan.shared_files for path, one in reader.failures.items()}
        return ClusterUpdate(
            agent.NAME,
            None,
            [],
            rows,
            {uid: scraps_digest(scraps) for uid, scraps in kept.items()},
            aliases=dict(owners.aliases),
            problems=list(failures.values()),
            failures={path: encode_problem(one).decode() for path, one in failures.items()},
        )

    def _lone_rows(
        self, lone: Mapping[int, Sequence[Reading]], runner: JobRunner, plan: SyncPlan
    ) -> Iterator[SessionRows]:
        """Yield the rows of conversations that only scraps tell of, and write their index entries."""
        indexed = self._index.stamps()
        stamps = load_stamps(self._store) if lone else {}
        for uid, scraps in lone.items():
            stamp = stamp_of(scraps)
            if stamps.get(uid) == indexed.get(uid) == stamp:
                continue
            try:
                session = plan.discovery.agent.join(scraps)
                session = replace(session, project=runner.resolver.resolve(session))
                if not runner.policy.accepts(uid, session):
                    continue
                entry = make_index_entry(session, uid, stamp, ())
                rows = make_session_rows(session, uid, stamp, None, paths_of(scraps))
            except Exception as error:  # noqa: BLE001 - one bad conversation costs no other
                plan.record_join_failure(scraps, error)
                continue
            shard_for(uid, self._index.shards).put(entry)
            yield rows

    def _project_facts(self, discoveries: Sequence[Discovery]) -> ProjectFacts:
        clues: defaultdict[str, list[Clue]] = defaultdict(list)
        for home, row in load_all_clues(self._store):
            clues[home].append(Clue(*row))
        current = {home: found for one in discoveries for home, found in one.clues.items()}
        return ProjectFacts({**clues, **current}, load_roots(self._store), os.getcwd())

    def _resolve(self, discoveries: Sequence[Discovery]) -> None:
        """Resolve the relations between sessions, and write the clues of homes."""
        self._writer.begin()
        for one in discoveries:
            for home, clues in one.clues.items():
                rows = [
                    (clue.root, clue.evidence, clue.native_key)
                    for clue in clues
                    if not self._writer.hidden.is_root_hidden(clue.root)
                ]
                write_clues(self._store, home, rows)
        if self._is_behind:  # the sync that did not finish may not have resolved its sessions
            self._writer.changed_sessions |= load_ids(self._store)
        if self._prices.must_reprice:
            self._writer.changed_sessions.update(reprice(self._store, self._prices.cost))
        self._prices.end()
        # A session that was read without a look at homes has "gone" files until relations are resolved.
        is_archive_only = any(one.is_archive_only for one in discoveries)
        fresh = frozenset[int]() if is_archive_only else self._writer.just_written
        resolve_relations(self._store, self._writer.changed_sessions, fresh)
        self._writer.commit()

    def _finish(self, generation: int) -> None:
        """Commit the index with the generation of the archive."""
        # Two workers may each have written a session: one as it was, one as it is.
        self._index.remove_stale(load_stamps(self._store))
        self._index.commit()
        # The archive is on disk before the index has its generation. Only then does nothing need superseded originals.
        with self._store.commit_durably():
            self._writer.begin()
            self._writer.drop_superseded()
            self._store.set_fact("generation", generation)  # so that there is something to wait for
            self._writer.commit()
        self._index.commit(generation)

    def _count_new(self) -> int:
        """Return how many conversations are new. Subagents are known by their parents, which are resolved by now."""
        new = self._writer.new_sessions
        return len(new.intersection(load_conversation_ids(self._store))) if new else 0

    def _save_outcome(self, discoveries: Sequence[Discovery]) -> SyncOutcome:
        self._writer.begin()
        self._store.set_fact(UNREAD, None)
        for one in () if self._options.archive_only else discoveries:
            name, scope = one.agent.NAME, self._options.scope
            unopened = sum(found.code not in FAILURE_CODES for found in self._problems[name])
            problems = len(one.problems) + unopened + count_failures(self._store, name)
            if name not in self._dependencies:  # the discovery failed: the next sync tries again
                save_coverage(self._store, scope, name, count_present(self._store, name), problems)
                continue
            dependencies = hide_paths(self._store, name, self._dependencies[name])
            write_dependencies(self._store, f"{scope} {name}", dependencies)
            save_coverage(self._store, scope, name, len(one.sources), problems)
            self._store.set_fact(f"excluded {name}", self._excluded_fact())
            limits = [
                (home, limit.seconds, limit.counted_from, limit.exempt_glob)
                for home, limit in self._limits[name]
            ]
            write_limits(self._store, name, limits)
        if not self._options.archive_only:
            self._store.set_fact("synced_at", time.time())
        self._writer.commit()
        found = (one for each in discoveries for one in (*each.problems, *self._problems[each.agent.NAME]))
        read = sum(len(one.changed) for one in discoveries)
        return SyncOutcome(CoverageCount(0, read, 0, self._count_new(), 0, 0.0), tuple(found))
