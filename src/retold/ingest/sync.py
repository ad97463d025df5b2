"""The archive brought up to date: what is new or changed is read, what is gone stays."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b

import msgspec

from retold.agents.protocol import Agent, Reading
from retold.agents.registry import AGENTS
from retold.archive.parcel import Parcel
from retold.archive.record import Record, as_path, as_stored
from retold.archive.rows import Rows, rows_of
from retold.archive.settling import settle
from retold.archive.texts import SHARDS, Shard, shard_path
from retold.archive.writer import Writer
from retold.ingest.answers import FACT, keep_answers
from retold.ingest.coverage import Coverage, keep_found
from retold.ingest.crew import alone, crew_size, home_of, together
from retold.ingest.derive import conversation_name, scraps
from retold.ingest.found import Found, Given, look
from retold.ingest.reader import Case, Job, Reader, Wanted, index_entry, stamp_of
from retold.ingest.revision import REVISION
from retold.ingest.witness import Answer, AskedEnvironment, Witness
from retold.model.problem import Problem
from retold.model.project import Clue
from retold.projects.atlas import Atlas

Tell = Callable[[int, int], None]
"""Hears how many bytes of how many were read."""
_MANY = 4
"""Jobs that are fewer are not worth a second process."""
_PATIENCE = 1.0
"""Seconds after which what was written is made to be seen."""


class Order(msgspec.Struct, frozen=True):
    """What a sync is asked to do."""

    folder: str
    scope: str
    env: Mapping[str, str]
    given: Given = ()
    agents: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """What a sync did."""

    coverage: Coverage
    problems: tuple[Problem, ...]
    """What stood in the way of reading folders and files."""


def sync(record: Record, order: Order, tell: Tell) -> Outcome:
    """Bring the archive and its index up to date; the lock is the caller's."""
    return _Sync(record, order, tell).run()


class _Sync:
    """One run."""

    def __init__(self, record: Record, order: Order, tell: Tell) -> None:
        self._record, self._order, self._tell = record, order, tell
        self._writer = Writer(record, REVISION)
        self._shards = [Shard(shard_path(order.folder, number)) for number in range(SHARDS)]
        self._answers: dict[str, list[Answer]] = {}
        self._problems: defaultdict[str, list[Problem]] = defaultdict(list)
        self._shared: dict[str, dict[str, list[Reading]]] = {}
        asked = "SELECT native FROM forgotten WHERE native IS NOT NULL"
        self._forgotten = frozenset(bytes(native) for (native,) in record.rows(asked))
        generation = record.fact("generation")
        self._is_behind = any(shard.generation() != generation for shard in self._shards)
        """Whether the last sync did not get to its end, or the index is not what it left."""

    def run(self) -> Outcome:
        found = self._look()
        missing = self._missing() if self._is_behind else set()
        clusters = {one.agent.NAME: self._stale(one, missing) for one in found}
        loose = {one.agent.NAME: self._loose(one, clusters[one.agent.NAME], missing) for one in found}
        work = {one.agent.NAME: clusters[one.agent.NAME] | self._concerned(one, loose) for one in found}
        has_work = any(work.values()) or any(loose.values()) or any(one.gone for one in found)
        if has_work or self._is_behind:
            self._begin()
            self._write(found, work, loose)
        return self._end(found)

    def _look(self) -> list[Found]:
        found = []
        for name in self._order.agents or tuple(AGENTS):
            env, witness = AskedEnvironment(self._order.env), Witness()
            one, answers = look(self._record, AGENTS[name], env, self._order.given, witness)
            found.append(one)
            self._answers[name] = [*answers, *env.answers(), *witness.answers(), (FACT, "revision", REVISION)]
        return found

    def _missing(self) -> set[int]:
        """Return the sessions that the index lacks; take out of it those that the archive lacks."""
        known = dict(self._record.connection.execute("SELECT name, stamp FROM sessions"))
        there = self._weeded(known)
        for shard in self._shards:
            shard.commit()
        return known.keys() - there

    def _weeded(self, known: Mapping[int, bytes]) -> set[int]:
        """Take out of the index what is in the archive no more, or otherwise, or twice; return what is left."""
        there: set[int] = set()
        for shard in self._shards:
            for name, stamp in shard.stamps().items():
                if known.get(name) == stamp and name not in there:
                    there.add(name)
                else:
                    shard.begin()
                    shard.remove(name)
        return there

    def _stale(self, found: Found, missing: set[int]) -> set[str]:
        """Return the clusters that have to be read."""
        asked = "SELECT name, cluster FROM sessions WHERE agent = ? AND cluster IS NOT NULL"
        lacking = {
            cluster for name, cluster in self._record.rows(asked, (found.agent.NAME,)) if name in missing
        }
        return found.stale() | lacking | self._told_otherwise(found)

    def _told_otherwise(self, found: Found) -> set[str]:
        """Return the clusters whose projects may be known by now: a home says other things about its projects."""
        clusters: set[str] = set()
        for home, clues in found.clues.items():
            known = set(
                self._record.rows(
                    "SELECT native_key, root, evidence FROM clues WHERE home = ?", (as_stored(home),)
                )
            )
            told = {(clue.native_key, clue.root, clue.evidence) for clue in clues}
            if told != known:
                asked = (
                    "SELECT DISTINCT sessions.cluster FROM sessions JOIN session_sources ON session = sessions.id"
                    " JOIN sources ON sources.id = source WHERE sources.home = ? AND sources.agent = ?"
                    " AND evidence <> 'recorded' AND sessions.cluster IS NOT NULL"
                )
                clusters |= {
                    cluster for (cluster,) in self._record.rows(asked, (as_stored(home), found.agent.NAME))
                }
        return clusters

    def _loose(self, found: Found, clusters: set[str], missing: set[int]) -> dict[str, Case]:
        """Return the files of many conversations, opened, where one of them is needed."""
        paths = found.loose
        asked = "SELECT name FROM sessions WHERE agent = ? AND cluster IS NULL"
        lacking = any(name in missing for (name,) in self._record.rows(asked, (found.agent.NAME,)))
        is_stale = any(path in found.changed for path in paths) or any(
            path in found.rows and found.rows[path].revision < REVISION for path in paths
        )
        if not (is_stale or lacking or clusters or self._is_behind):
            return {}
        return {path: self._case(found, path) for path in paths}

    def _case(self, found: Found, path: str) -> Case:
        source = found.sources.get(path)
        job = Job(found.agent.NAME, None, (source,) if source else (), path)
        return Case(self._record, found.agent, job, self._forgotten)

    def _concerned(self, found: Found, loose: Mapping[str, Mapping[str, Case]]) -> set[str]:
        """Return the clusters of which files of many conversations say something else than before."""
        agent = found.agent
        readings = [reading for case in loose[agent.NAME].values() for reading in case.readings()]
        shared = self._shared[agent.NAME] = scraps(agent, readings)
        clusters: set[str] = set()
        for group, said in shared.items():
            name = conversation_name(agent, group)
            row = self._record.row(
                "SELECT cluster, digest FROM sessions LEFT JOIN scraps ON scraps.name = sessions.name WHERE sessions.name = ?",
                (name,),
            )
            if row is not None and row[0] is not None and row[1] != digest_of(said):
                clusters.add(row[0])
        return clusters

    def _begin(self) -> None:
        """Say that the index is behind, until the end: whoever ends us, the next sync knows."""
        self._writer.begin()
        self._generation = (self._record.fact("generation") or 0) + 1
        self._writer.set_fact("generation", self._generation)
        self._writer.commit()

    def _write(
        self, found: Sequence[Found], work: Mapping[str, set[str]], loose: Mapping[str, Mapping[str, Case]]
    ) -> None:
        jobs = self._jobs(found, work)
        make = partial(make_reader, self._atlas_facts(found), self._shared, self._order.excluded)
        for one in found:
            for case in loose[one.agent.NAME].values():
                self._put([Parcel(one.agent.NAME, None, list(case.files()), [], problems=case.unopened())], 0)
        size = sum(size for _, size in jobs)
        count = crew_size(size if len(jobs) >= _MANY else 0)
        if count == 1:
            parcels = alone([job for job, _ in jobs], make(self._record), self._shards)
        else:
            for shard in self._shards:
                shard.close()
            parcels = together([job for job, _ in jobs], self._order.folder, make, count)
        self._put(parcels, size)
        if count > 1:
            self._shards = [Shard(shard_path(self._order.folder, number)) for number in range(SHARDS)]
        for one in found:
            self._put([self._lost(one, make(self._record))], 0)
            self._writer.begin()
            if loose[one.agent.NAME]:
                self._writer.mark_read(one.agent.NAME, None)
            self._writer.mark_gone(one.gone)
        self._keep_clues(found)
        if self._is_behind:  # whoever wrote the others may not have got here
            self._writer.touched |= {one for (one,) in self._record.rows("SELECT id FROM sessions")}
        settle(self._record, self._writer.touched, self._writer.fresh)
        self._writer.commit()
        # Two workers may each have told a session: one as it was, one as it is.
        self._weeded(dict(self._record.connection.execute("SELECT name, stamp FROM sessions")))
        for shard in self._shards:
            shard.commit()
        self._writer.begin()
        self._writer.drop_dispensable()
        self._writer.commit()
        for shard in self._shards:
            shard.commit(self._generation)

    def _jobs(self, found: Sequence[Found], work: Mapping[str, set[str]]) -> list[tuple[Job, int]]:
        """Return the jobs with the size of their files, the largest first."""
        jobs = []
        for one in found:
            there = one.clusters()
            known = {row.cluster for row in one.rows.values()}
            for cluster in work[one.agent.NAME]:
                sources = tuple(there.get(cluster, ()))
                job = Job(one.agent.NAME, cluster, sources, is_known=cluster in known)
                jobs.append((job, sum(map(_size, sources))))
        return sorted(jobs, key=lambda job: (-job[1], job[0].agent, job[0].cluster))

    def _put(self, parcels: Iterable[Parcel], size: int) -> None:
        since, done = time.perf_counter(), 0
        for parcel in parcels:
            self._writer.begin()
            self._writer.put(parcel)
            self._problems[parcel.agent] += parcel.problems
            done += sum(held.size for held in parcel.files)
            if size:
                self._tell(done, size)
            if time.perf_counter() - since > _PATIENCE:
                self._writer.commit()
                since = time.perf_counter()
        self._writer.commit()

    def _lost(self, found: Found, reader: Reader) -> Parcel:
        """Return the conversations of which only files of many tell, where they changed."""
        agent, shared = found.agent, self._shared.get(found.agent.NAME, {})
        digests = {conversation_name(agent, group): digest_of(said) for group, said in shared.items()}
        asked = "SELECT name, cluster FROM sessions WHERE agent = ?"
        names = dict(self._record.rows(asked, (agent.NAME,)))
        lost = {
            group: said
            for group, said in shared.items()
            if names.get(conversation_name(agent, group)) is None
        }
        return Parcel(agent.NAME, None, [], list(self._lost_rows(agent, lost, reader)), digests)

    def _lost_rows(
        self, agent: Agent, lost: Mapping[str, Sequence[Reading]], reader: Reader
    ) -> Iterator[Rows]:
        there = {name for shard in self._shards for name in shard.stamps()}
        for group, said in lost.items():
            name, stamp = conversation_name(agent, group), stamp_of(said)
            known = self._record.row("SELECT stamp FROM sessions WHERE name = ?", (name,))
            if known is not None and known[0] == stamp and name in there:
                continue
            session = reader.placed(agent.join(said))
            if not reader.is_wanted(name, session):
                continue
            home_of(name, self._shards).put(index_entry(session, name, stamp, ()))
            paths = sorted({str(reading.source.path) for reading in said})
            yield rows_of(session, name, stamp, None, paths)

    def _atlas_facts(self, found: Sequence[Found]) -> "AtlasFacts":
        kept: defaultdict[str, list[Clue]] = defaultdict(list)
        for home, native_key, root, evidence in self._record.rows(
            "SELECT home, native_key, root, evidence FROM clues"
        ):
            kept[as_path(home)].append(Clue(root, evidence, native_key))
        clues = {**kept, **{home: told for one in found for home, told in one.clues.items()}}
        return clues, dict(self._record.rows("SELECT hash, root FROM roots")), os.getcwd()

    def _keep_clues(self, found: Sequence[Found]) -> None:
        ask, many = self._record.connection.execute, self._record.connection.executemany
        for one in found:
            for home, clues in one.clues.items():
                ask("DELETE FROM clues WHERE home = ?", (as_stored(home),))
                rows = [(as_stored(home), clue.native_key, clue.root, clue.evidence) for clue in clues]
                many("INSERT INTO clues VALUES (?, ?, ?, ?)", rows)

    def _end(self, found: Sequence[Found]) -> Outcome:
        self._writer.begin()
        for one in found:
            name, scope = one.agent.NAME, self._order.scope
            keep_answers(self._record, f"{scope} {name}", self._answers[name])
            keep_found(
                self._record, scope, name, len(one.sources), len(one.problems) + len(self._problems[name])
            )
        self._writer.set_fact("synced_at", time.time())
        self._writer.commit()
        for shard in self._shards:
            shard.close()
        problems = (problem for one in found for problem in (*one.problems, *self._problems[one.agent.NAME]))
        read = sum(len(one.changed) for one in found)
        return Outcome(Coverage(0, read, 0, self._writer.new_sessions, 0, 0.0), tuple(problems))


AtlasFacts = tuple[dict[str, Sequence[Clue]], dict[str, str], str]


def make_reader(
    facts: AtlasFacts,
    shared: Mapping[str, Mapping[str, Sequence[Reading]]],
    excluded: Sequence[str],
    record: Record,
) -> Reader:
    """Return a reader with what it has to know: made in each process for itself."""
    clues, roots, here = facts
    forgotten = frozenset(name for (name,) in record.rows("SELECT name FROM forgotten"))
    return Reader(record, AGENTS, Atlas(clues, roots, here), shared, Wanted(forgotten, excluded))


def digest_of(readings: Sequence[Reading]) -> bytes:
    """Return a digest of what files of many conversations say of one."""
    told = "\n".join(sorted(f"{reading.format} {reading.state!r}" for reading in readings))
    return blake2b(told.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _size(source: object) -> int:
    try:
        return os.stat(source.path).st_size  # type: ignore[attr-defined]
    except OSError:
        return 0
