"""The archive brought up to date: what is new or changed is read, what is gone stays."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Limit, Reading
from retold.agents.registry import AGENTS
from retold.archive.database import MACHINE, RetoldError
from retold.archive.index.files import SHARDS, shard_path
from retold.archive.index.writer import IndexWriter
from retold.archive.ledger import reprice
from retold.archive.queries.listing import conversation_ids
from retold.archive.queries.lookups import FAILURES, clusters, count_failures, count_there, ids, stamps
from retold.archive.relations import resolve_relations
from retold.archive.rows import SessionRows, rows_of
from retold.archive.store import UNREAD, Store
from retold.archive.sync_state import all_clues, keep_answers, keep_clues, keep_limits, roots
from retold.archive.writer import ClusterUpdate, Writer
from retold.model.problem import Problem, problem
from retold.model.serialization import problem_json
from retold.model.session import Clue
from retold.processes import can_start
from retold.synchronization.cluster import (
    AtlasFacts,
    ClusterJob,
    Exclusions,
    Reader,
    Shared,
    index_entry,
    make_reader,
    stamp_of,
)
from retold.synchronization.discovery import (
    Answer,
    Discovery,
    Given,
    RecordingDisk,
    RecordingEnv,
    discover,
    kept_only,
)
from retold.synchronization.disks import LARGEST
from retold.synchronization.fingerprints import FACT, REVISION, CoverageCount, keep_found, with_hidden_paths
from retold.synchronization.owners import owned
from retold.synchronization.plan import SyncPlan, digest_of, work_of
from retold.synchronization.prices import PriceBook
from retold.synchronization.workers import (
    WorkerPool,
    crew_size,
    put_entries,
    run_inline,
    shard_for,
    time_budget,
)


class Order(msgspec.Struct, frozen=True):
    """What a sync is asked to do."""

    folder: str
    scope: str
    env: Mapping[str, str]
    given: Given = ()
    agents: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    is_kept_only: bool = False
    """Whether no home is looked at: what the archive keeps, and has not read, is read."""
    is_reindex: bool = False
    """Whether files are tried again that could not be read before."""


class SyncOutcome(msgspec.Struct, frozen=True):
    """What a sync did."""

    coverage: CoverageCount
    problems: tuple[Problem, ...]
    """What stood in the way of reading folders and files."""


class IndexFiles:
    """The files of the index, opened."""

    def __init__(self, record: Store) -> None:
        """Take the archive."""
        self._folder, self._archive = record.folder, record.id
        self.open()

    def open(self) -> None:
        """Open them; again, when others have written them meanwhile."""
        self.shards = [
            IndexWriter(shard_path(self._folder, number), self._archive) for number in range(SHARDS)
        ]

    def close(self) -> None:
        """Let go of them."""
        for shard in self.shards:
            shard.close()

    def commit(self, generation: int | None = None) -> None:
        """Make what was written be seen; with the generation of the archive that it is of, where it is all of it."""
        for shard in self.shards:
            shard.commit(generation)

    def are_of(self, generation: object) -> bool:
        """Tell whether all of them are what the sync of a generation left."""
        return all(shard.generation() == generation for shard in self.shards)

    def stamps(self) -> dict[int, bytes]:
        """Return the sessions in them, and what each was made from."""
        return {name: stamp for shard in self.shards for name, stamp in shard.stamps().items()}

    def places(self) -> dict[int, int]:
        """Return the sessions in them, and the number of the file that each is in."""
        return {name: number for number, shard in enumerate(self.shards) for name in shard.stamps()}

    def weed(self, known: Mapping[int, bytes]) -> set[int]:
        """Take out what is in the archive no more, or otherwise, or twice; return what is left."""
        there: set[int] = set()
        for shard in self.shards:
            for name, stamp in shard.stamps().items():
                if known.get(name) == stamp and name not in there:
                    there.add(name)
                else:
                    shard.begin()
                    shard.remove(name)
        return there


Tell = Callable[[int, int], None]
"""Hears how many bytes of how many were read."""
TellStale = Callable[[Store, str, Collection[str]], None]
"""Hears of an agent's clusters that they will be written anew, while the archive still has them as they were."""
_MANY = 4
"""Jobs that are fewer are not worth a second process."""
_ROUNDS = 8
"""How often sessions are read again whose index entries were lost."""
_PATIENCE = 1.0
"""Seconds after which what was written is made to be seen."""
_MUCH = 64 << 20
"""Commit after this many bytes, to bound memory."""


def sync(
    record: Store, order: Order, tell: Tell, tell_stale: TellStale = lambda _record, _agent, _clusters: None
) -> SyncOutcome:
    """Bring the archive and its index up to date; the lock is the caller's."""
    one = _Sync(record, order, tell, tell_stale)
    try:
        return one.run()
    finally:
        one.close()


class _Sync:
    """One run."""

    def __init__(self, record: Store, order: Order, tell: Tell, tell_stale: TellStale) -> None:
        self._record, self._order, self._tell, self._tell_stale = record, order, tell, tell_stale
        self._prices = PriceBook(record, order.folder)
        self._writer = Writer(record, REVISION, self._prices.cost)
        self._index = IndexFiles(record)
        self._answers: dict[str, list[Answer]] = {}
        self._limits: dict[str, list[tuple[str, Limit]]] = {}
        """By agent: its own homes, and how long it keeps sessions there."""
        self._problems: defaultdict[str, dict[Problem, None]] = defaultdict(dict)
        self._deaths = 0
        """Workers that died since the index was looked through."""
        self._left: set[int] = set()
        """Conversations of which nothing is kept, as far as they were read."""
        self._is_behind = not self._index.are_of(record.fact("generation"))
        """Whether the last sync did not get to its end, or the index is not what it left."""

    def run(self) -> SyncOutcome:
        """Look, read, write, and tell what was done."""
        found = self._look()
        missing = self._missing() if self._is_behind else set()
        is_reindex = self._order.is_reindex
        work = [
            work_of(self._record, one, missing, is_behind=self._is_behind, is_reindex=is_reindex)
            for one in found
        ]
        if self._is_behind or self._prices.are_new or any(one.is_any for one in work):
            for one in work:
                self._tell_stale(self._record, one.found.agent.NAME, one.clusters)
            generation = self._begin()
            if is_reindex:
                self._writer.remove_orphans()
            self._write(work)
            self._settle(found)
            self._end(generation)
        return self._outcome(found)

    def close(self) -> None:
        """Let go of the index, however it went."""
        self._index.close()

    def _look(self) -> list[Discovery]:
        """Look for files, and take down what was asked and answered."""
        found, excluded = [], repr(sorted(self._order.excluded))
        for name in self._order.agents or tuple(AGENTS):
            if self._order.is_kept_only:
                found.append(kept_only(self._record, AGENTS[name]))
                continue
            try:
                found.append(self._look_for(name, excluded))
            except Exception as error:
                if isinstance(error, (RetoldError, *MACHINE)):
                    raise
                told = problem("reader-failed", f"{type(error).__name__}: {error}", name)
                found.append(replace(kept_only(self._record, AGENTS[name]), problems=[told]))
        return found

    def _look_for(self, name: str, excluded: str) -> Discovery:
        """Look for the files of an agent."""
        env, witness = RecordingEnv(self._order.env), RecordingDisk()
        has_choice = self._record.fact(f"excluded {name}") not in (None, excluded)
        one, answers = discover(
            self._record, AGENTS[name], env, self._order.given, witness, has_choice=has_choice
        )
        # Looked for like the files, so that a change of the settings is one that a sync sees.
        self._limits[name] = [
            (str(home.path), AGENTS[name].limit(home)) for home in AGENTS[name].homes(env, witness)
        ]
        self._answers[name] = [*answers, *env.answers(), *witness.answers(), *self._facts()]
        return one

    def _facts(self) -> Iterator[Answer]:
        """Yield what has to be as it is now for nothing to be new."""
        yield FACT, "revision", REVISION
        yield FACT, "prices", self._prices.source

    def _missing(self) -> set[int]:
        """Return the sessions that the index lacks; take out of it those that the archive lacks."""
        known = stamps(self._record)
        there = self._index.weed(known)
        self._index.commit()
        return known.keys() - there

    def _begin(self) -> int:
        """Say that the index is behind, until the end: whoever ends us, the next sync knows."""
        generation = int(self._record.fact("generation") or 0) + 1
        self._writer.begin()
        self._record.set_fact("generation", generation)
        self._prices.begin()
        self._writer.commit()
        return generation

    def _write(self, work: Sequence[SyncPlan]) -> None:
        """Read what there is to read, and write it as it comes."""
        shared: Shared = {one.found.agent.NAME: one.shared for one in work}
        make = partial(
            make_reader, self._atlas_facts([one.found for one in work]), shared, self._order.excluded
        )
        for one in work:
            # What is excluded is known only when the conversations' own files were read.
            self._put(one.parcels(one.loose, is_bare=bool(self._order.excluded)))
        self._read([job for one in work for job in one.jobs()], make)
        self._reunite(work, make)
        self._read_lost(work, make)
        for one in work:
            reader = make(self._record)
            leaving = self._leave(one, reader) if one.loose and self._order.excluded else Exclusions()
            self._put([self._lost(one, reader, leaving)])
            self._writer.begin()
            if one.loose:
                self._writer.mark_read(one.found.agent.NAME, None)
            self._writer.mark_gone(one.found.gone)

    def _leave(self, one: SyncPlan, reader: Reader) -> Exclusions:
        """Write files of many conversations without those of which nothing is to be kept; return these."""
        leaving = reader.leaver(one.found.agent).leaving(one.shared, self._left)
        self._put(one.parcels(one.loose_without(self._record, leaving) if leaving.names else one.loose))
        return leaving

    def _reunite(self, work: Sequence[SyncPlan], make: Callable[[Store], Reader]) -> None:
        """Read as one what turned out to be of one conversation; each time there are fewer clusters."""
        while waiting := self._writer.reunion.taken():
            again = [one.again(self._record, waiting.get(one.found.agent.NAME, ())) for one in work]
            self._read([job for one in again for job in one.jobs()], make)

    def _read(
        self,
        jobs: Sequence[tuple[ClusterJob, int]],
        make: Callable[[Store], Reader],
        *,
        is_isolated: bool = False,
    ) -> None:
        """Read clusters, the largest first: by several processes where they are worth their start.

        One process reads a large file, or what `is_isolated` says, because the system may kill it for its memory.
        """
        ordered = sorted(jobs, key=lambda job: (-job[1], job[0].agent, job[0].cluster or ""))
        timed, size = [(job, time_budget(size)) for job, size in ordered], sum(size for _, size in jobs)
        count = crew_size(size) if len(jobs) >= _MANY else int(is_isolated or size > LARGEST)
        if not count or not can_start():
            self._put(run_inline(timed, make(self._record), self._index.shards), size)
            return
        homes = self._homes([job for job, _ in timed]) if count > 1 else {}
        self._index.close()
        crew = WorkerPool(homes, self._order.folder, make, count)
        self._put(crew.parcels(timed), size)
        self._index.open()
        self._deaths += crew.deaths
        reader = make(self._record)
        put_off = (reader.put_off(job, error) for job, error in crew.failed)
        self._put(put_entries(parcel, indexed, self._index.shards) for parcel, indexed in put_off)

    def _read_lost(self, work: Sequence[SyncPlan], make: Callable[[Store], Reader]) -> None:
        """Read the sessions again that workers had not committed to the index when they died."""
        rounds = 0
        while self._deaths:
            rounds += 1
            if rounds > _ROUNDS:
                raise RetoldError("processes that read sessions keep dying; run the command again")
            self._deaths, missing = 0, self._missing()
            for one in work:
                known = clusters(self._record, one.found.agent.NAME)
                lost = {cluster for name, cluster in known.items() if name in missing and cluster is not None}
                if lost:
                    self._read(list(one.again(self._record, lost).jobs()), make, is_isolated=True)

    def _homes(self, jobs: Sequence[ClusterJob]) -> dict[ClusterJob, int]:
        """Return the file of the index in which a cluster's sessions are, where they are in one."""
        held = self._index.places()
        found: dict[tuple[str, str | None], int] = {}
        for agent in {job.agent for job in jobs}:
            for name, cluster in clusters(self._record, agent).items():
                if name in held:
                    found[agent, cluster] = held[name]
        return {job: found[job.agent, job.cluster] for job in jobs if (job.agent, job.cluster) in found}

    def _put(self, parcels: Iterable[ClusterUpdate], size: int = 0) -> None:
        since, done, waiting = time.perf_counter(), 0, 0
        self._writer.commit()
        for one in parcels:
            parcel = self._writer.put(one)
            self._problems[parcel.agent] |= dict.fromkeys(parcel.problems)
            self._left.update(parcel.left)
            read = sum(held.size for held in parcel.files)
            done, waiting = done + read, waiting + read
            if size:
                self._tell(done, size)
            if time.perf_counter() - since > _PATIENCE or waiting > _MUCH:
                self._writer.commit()
                since, waiting = time.perf_counter(), 0
        self._writer.commit()

    def _lost(self, work: SyncPlan, reader: Reader, leaving: Exclusions) -> ClusterUpdate:
        """Return the conversations of which only files of many tell, where they changed."""
        agent = work.found.agent
        known = clusters(self._record, agent.NAME)
        told = owned(self._record, agent, work.shared, known)
        named = {name: said for name, said in told.said.items() if name not in leaving.names}
        lost = {name: said for name, said in named.items() if known.get(name) is None}
        digests = {name: digest_of(said) for name, said in named.items()}
        rows = list(self._lost_rows(lost, reader, work))
        failures = {path: one for case in work.loose for path, one in case.failures.items()}
        return ClusterUpdate(
            agent.NAME,
            None,
            [],
            rows,
            digests,
            former=dict(told.former),
            problems=list(failures.values()),
            failures={path: problem_json(one).decode() for path, one in failures.items()},
        )

    def _lost_rows(
        self, lost: Mapping[int, Sequence[Reading]], reader: Reader, work: SyncPlan
    ) -> Iterator[SessionRows]:
        there = self._index.stamps()
        known = stamps(self._record) if lost else {}
        for name, said in lost.items():
            stamp = stamp_of(said)
            if known.get(name) == there.get(name) == stamp:
                continue
            try:
                session = reader.placed(work.found.agent.join(said))
                if not reader.is_wanted(name, session):
                    continue
                entry = index_entry(session, name, stamp, ())
                rows = rows_of(session, name, stamp, None, sorted({str(one.source.path) for one in said}))
            except Exception as error:  # noqa: BLE001 - one bad conversation costs no other
                work.fail(said, error)
                continue
            shard_for(name, self._index.shards).put(entry)
            yield rows

    def _atlas_facts(self, found: Sequence[Discovery]) -> AtlasFacts:
        """Return what is known of where projects lie."""
        kept: defaultdict[str, list[Clue]] = defaultdict(list)
        for home, told in all_clues(self._record):
            kept[home].append(Clue(*told))
        clues = {**kept, **{home: told for one in found for home, told in one.clues.items()}}
        return clues, roots(self._record), os.getcwd()

    def _settle(self, found: Sequence[Discovery]) -> None:
        """Tell sessions what they are to others, and keep what the homes say about projects."""
        self._writer.begin()
        for one in found:
            for home, clues in one.clues.items():
                told = [
                    (clue.root, clue.evidence, clue.native_key)
                    for clue in clues
                    if not self._writer.hidden.is_root_hidden(clue.root)
                ]
                keep_clues(self._record, home, told)
        if self._is_behind:  # whoever wrote the others may not have got here
            self._writer.touched |= ids(self._record)
        if self._prices.are_new:
            self._writer.touched.update(reprice(self._record, self._prices.cost))
            self._prices.end()
        # A session that was read without a look at its agent's homes says "gone" until `settle` corrects it.
        fresh = frozenset[int]() if any(one.is_kept_only for one in found) else self._writer.fresh
        resolve_relations(self._record, self._writer.touched, fresh)
        self._writer.commit()

    def _end(self, generation: int) -> None:
        """Say that the index is what the archive is."""
        # Two workers may each have told a session: one as it was, one as it is.
        self._index.weed(stamps(self._record))
        self._index.commit()
        # The archive is on disk before the index says that both are in step. Only now does nobody look any more for
        # what the originals held before.
        with self._record.waiting_for_disk():
            self._writer.begin()
            self._writer.drop_dispensable()
            self._record.set_fact("generation", generation)  # so that there is something to wait for
            self._writer.commit()
        self._index.commit(generation)

    def _new_conversations(self) -> int:
        """Return how many conversations are new; only now it is known which subagents have a parent."""
        return len(self._writer.born.intersection(conversation_ids(self._record))) if self._writer.born else 0

    def _outcome(self, found: Sequence[Discovery]) -> SyncOutcome:
        self._writer.begin()
        self._record.set_fact(UNREAD, None)
        for one in () if self._order.is_kept_only else found:
            name, scope = one.agent.NAME, self._order.scope
            unopened = sum(told.code not in FAILURES for told in self._problems[name])
            troubled = len(one.problems) + unopened + count_failures(self._record, name)
            if name not in self._answers:  # the agent failed to look for files: the next sync tries again
                keep_found(self._record, scope, name, count_there(self._record, name), troubled)
                continue
            answers = with_hidden_paths(self._record, name, self._answers[name])
            keep_answers(self._record, f"{scope} {name}", answers)
            keep_found(self._record, scope, name, len(one.sources), troubled)
            self._record.set_fact(f"excluded {name}", repr(sorted(self._order.excluded)))
            told = [(home, kept.seconds, kept.counted_from, kept.spared) for home, kept in self._limits[name]]
            keep_limits(self._record, name, told)
        if not self._order.is_kept_only:
            self._record.set_fact("synced_at", time.time())
        self._writer.commit()
        problems = (told for one in found for told in (*one.problems, *self._problems[one.agent.NAME]))
        read = sum(len(one.changed) for one in found)
        return SyncOutcome(CoverageCount(0, read, 0, self._new_conversations(), 0, 0.0), tuple(problems))
