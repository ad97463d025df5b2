"""Tables from files that Spark itself reads, from any file system that it knows: the executor gets bytes."""

import os
import pickle
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from retold.agents import NAMES
from retold.agents.protocol import Source
from retold.agents.registry import AGENTS
from retold.lake.batches import TableRequest, batches
from retold.lake.jobs import (
    TableJob,
    TablePlan,
    bundled,
    decoded,
    homes_in,
    planned,
    reunited,
    see_that_there_are_homes,
)
from retold.lake.remote import ListedDisk, ListedFile, labelled, shown_path
from retold.lake.session_rows import UnreadFile
from retold.lake.spark.source import (
    MOST_BYTES,
    parse_agents,
    parse_columns,
    parse_table,
    spark_schema,
    wanted_of,
)
from retold.model.problem import problem
from retold.model.session import Clue

OPENERS = 16
"""How many files are opened at once: most of that time is waiting."""
LARGEST_LISTING = 256 << 20
"""Of what the driver takes in: registries, markers and logs of prompts."""


class Hadoop:
    """Any file system that this Spark reaches."""

    def __init__(self, spark: SparkSession) -> None:
        # There is no other way to a file system that only Spark knows.
        self._jvm: Any = spark._jvm  # noqa: SLF001
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        self._settings: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001

    def files(self, addresses: Iterable[str]) -> dict[str, ListedFile | str]:
        """Return the files that are there, with their content, or with why that cannot be had."""
        asked = list(addresses)
        with ThreadPoolExecutor(OPENERS) as pool:
            found = zip(asked, pool.map(self._file, asked), strict=True)
            return {address: held for address, held in found if held is not None}

    def _file(self, address: str) -> ListedFile | str | None:
        try:
            path = self._jvm.org.apache.hadoop.fs.Path(address)
            system = path.getFileSystem(self._settings)
            status = system.getFileStatus(path)
            if status.isDirectory():
                return None
            if status.getLen() > LARGEST_LISTING:
                return f"larger than {LARGEST_LISTING:,} bytes, which is what the driver takes in at most"
            return self._read(system, path, status)
        except Py4JJavaError as error:
            thrown = error.java_exception
            is_none_there = is_instance_of(self._gateway, thrown, "java.io.FileNotFoundException")
            return None if is_none_there else str(thrown.toString())
        except (Py4JError, PySparkException) as error:  # PySpark makes its own of some that Java throws
            return str(error)

    @staticmethod
    def _read(system: Any, path: Any, status: Any) -> ListedFile:
        stream = system.open(path)
        try:
            data = bytes(stream.readAllBytes())
        finally:
            stream.close()
        return ListedFile(len(data), status.getModificationTime() * 1_000_000, data)


_LOCAL = re.compile(r"file:/+")
_ROUNDS = 5
"""How often what one file says may lead to others: a registry to markers, and these to nothing."""
_MILLION = 1_000_000
Folders = Sequence[tuple[str | None, Path]]
"""Folders that may be homes, each with its label."""


def path_of(address: str) -> str:
    """Return an address as a path: this machine's without `file:`, others with one slash behind their scheme."""
    return shown_path(_LOCAL.sub("/", address))


class Listing:
    """The files of a DataFrame; what has to be known of a few, the driver itself reads."""

    def __init__(self, files: DataFrame) -> None:
        """Take what `spark.read.format("binaryFile")` loads; no content is read."""
        columns = ("path", "length", f.unix_millis("modificationTime").alias("modified"))
        rows = files.select(*columns).collect()
        self.addresses: dict[str, str] = {path_of(row.path): row.path for row in rows}
        self.files = {path_of(row.path): ListedFile(row.length, row.modified * _MILLION) for row in rows}
        self._read: dict[str, ListedFile] = {}
        self._unread: dict[str, str] = {}
        """Why files that are there could not be read."""
        self._asked: set[str] = set()
        self._hadoop = Hadoop(files.sparkSession)
        self._slashes = "//" if any("://" in row.path for row in rows) else "/"

    @property
    def hidden(self) -> dict[str, ListedFile]:
        """The files whose names begin with a dot, of those that were asked for: no reader of Spark lists them."""
        return {path: held for path, held in self._read.items() if path.rpartition("/")[2].startswith(".")}

    def plan(self, homes: Iterable[str], agents: Sequence[str], label: str | None) -> TablePlan:
        """Return what there is to read; again, as long as a file has to be opened for it that was not yet."""
        patterns = [path_of(home) if ":" in home else os.path.abspath(home) for home in homes]
        for _ in range(_ROUNDS):
            disk = ListedDisk({**self.files, **self._read})
            folders = labelled(patterns, disk, label)
            plan = planned(folders, agents, disk, disk.size_of)
            wanted = disk.wanted - self._asked
            if not wanted:
                break
            self._ask(wanted)
        see_that_there_are_homes(plan, patterns)
        told = [one for one in plan.refused if one.problem.path not in self._unread]
        told += [unread(path, why, agents, folders, disk) for path, why in sorted(self._unread.items())]
        return msgspec.structs.replace(plan, refused=told)

    def _ask(self, wanted: Collection[str]) -> None:
        """Let the driver read files, as far as they are there."""
        self._asked |= set(wanted)
        paths = {self._address(path): path for path in wanted}
        for address, held in self._hadoop.files(paths).items():
            if isinstance(held, ListedFile):
                self._read[paths[address]] = held
            else:
                self._unread[paths[address]] = held

    def _address(self, path: str) -> str:
        if path in self.addresses:
            return self.addresses[path]
        scheme, colon, rest = path.partition(":/")
        return f"{scheme}:{self._slashes}{rest}" if colon and "/" not in scheme else f"file:{path}"


def unread(path: str, why: str, agents: Sequence[str], folders: Folders, disk: ListedDisk) -> UnreadFile:
    """Return why a file is not read, with the agent and the home whose it is."""
    homes = ((agent, home) for agent in agents for home in homes_in(AGENTS[agent], folders, disk, []))
    own = ((agent, home.label) for agent, home in homes if Path(path).is_relative_to(home.path))
    agent, label = next(own, (agents[0], None))
    return UnreadFile(agent, label, problem("unreadable-file", why, path))


def without_large(plan: TablePlan, largest: int, files: Mapping[str, ListedFile]) -> TablePlan:
    """Return a plan without the files that are larger than Spark can hand on, which are told as problems."""
    refused = list(plan.refused)
    jobs: list[TableJob] = []
    for job in plan.jobs:
        large = [source for source in job.sources if files[str(source.path)].size > largest]
        refused += [_too_large(job.agent, source, largest) for source in large]
        kept = tuple(source for source in job.sources if source not in large)
        if kept or job.said:
            jobs.append(msgspec.structs.replace(job, sources=kept))
    return TablePlan(jobs, plan.clues, refused)


def _too_large(agent: str, source: Source, largest: int) -> UnreadFile:
    message = f"larger than {largest:,} bytes, which is what Spark was asked to hand on at most"
    return UnreadFile(agent, source.label, problem("unreadable-file", message, source.shown))


_PREFIX = "session-"
"""What stands before an id in the name of a folder."""


class Shipment(msgspec.Struct, frozen=True):
    """Jobs that are read together, and the files that have to be there for it."""

    jobs: Sequence[TableJob]
    paths: Sequence[str]


def shipments(jobs: Iterable[TableJob], files: Mapping[str, ListedFile], most: int) -> list[Shipment]:
    """Return jobs in bundles of bytes, those of a home together, as files of one thread may name those of another."""
    held = list(jobs)
    beside = _beside(held, files)
    needed = {place: [*_own(job), *beside.get(place, ())] for place, job in enumerate(held)}
    sized = [
        (msgspec.structs.replace(job, size=sum(files[path].size for path in needed[place])), needed[place])
        for place, job in enumerate(held)
    ]
    sized.sort(key=lambda pair: _order(pair[0]))
    paths = {id(job): own for job, own in sized}
    bundles = bundled([job for job, _ in sized], most)
    return [Shipment(bundle, [path for job in bundle for path in paths[id(job)]]) for bundle in bundles]


def _own(job: TableJob) -> list[str]:
    return [str(source.path) for source in job.sources]


def _order(job: TableJob) -> tuple[str, str, str]:
    if not job.sources or job.sources[0].home is None:
        return job.agent, "", ""
    first = job.sources[0]
    return job.agent, str(job.sources[0].home), str(first.path)


def _beside(jobs: Sequence[TableJob], files: Mapping[str, ListedFile]) -> dict[int, list[str]]:
    """Return the files that are no job's own, by the place of the job whose id a folder above them is named by."""
    own = {path for job in jobs for path in _own(job)}
    clusters: dict[tuple[str, str], int] = {}
    for place, job in enumerate(jobs):
        for source in job.sources:
            clusters[job.agent, source.cluster or ""] = place
    agents = sorted({job.agent for job in jobs})
    found: dict[int, list[str]] = {}
    known: dict[str, int | None] = {}
    for path in files:
        folder = path.rpartition("/")[0]
        if path not in own:
            if folder not in known:
                known[folder] = _place(folder, agents, clusters)
            if (home := known[folder]) is not None:
                found.setdefault(home, []).append(path)
    return found


def _place(folder: str, agents: Sequence[str], clusters: Mapping[tuple[str, str], int]) -> int | None:
    for name in reversed(Path(folder).parts):
        for agent in agents:
            place = clusters.get((agent, AGENTS[agent].cluster_of(name.removeprefix(_PREFIX))))
            if place is not None:
                return place
    return None


LARGEST = 1 << 30
"""Of one file. Spark holds it in one value, of which two thousand million bytes are the end, and copies it."""
_ASSIGNED = pa.schema({"path": pa.string(), "bundle": pa.int32()})
_SHIPPED = pa.schema(
    {"bundle": pa.int32(), "path": pa.string(), "modified": pa.int64(), "content": pa.binary()}
)
Read = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Shared(msgspec.Struct, frozen=True):
    """What every task needs."""

    wanted: TableRequest
    clues: Mapping[str, Sequence[Clue]]
    refused: Sequence[UnreadFile]
    """Told by the first bundle alone."""
    hidden: Mapping[str, ListedFile]
    """Markers, which no reader of Spark lists."""


def from_files(  # noqa: PLR0913 - what the data source has as options
    files: DataFrame,
    table: str,
    homes: Sequence[str],
    *,
    columns: Sequence[str] = (),
    agents: Sequence[str] = NAMES,
    label: str | None = None,
    together: str = "[]",
    max_partition_bytes: int = MOST_BYTES,
    largest: int = LARGEST,
) -> DataFrame:
    """Return a table of the homes in files that `spark.read.format("binaryFile")` loads, whichever file system has them."""
    schema = spark_schema(parse_table(table), parse_columns(table, columns))
    listing = Listing(files)
    found = reunited(listing.plan(homes, parse_agents(agents), label), decoded(together))
    plan = without_large(found, largest, listing.files)
    sent = shipments(plan.jobs, listing.files, max_partition_bytes) or [Shipment((), ())]
    shared = Shared(wanted_of(table, schema), plan.clues, plan.refused, listing.hidden)
    shipped = _shipped(files.where(f.col("length") <= largest), listing, sent)
    return shipped.groupBy("bundle").applyInArrow(reader_of(shared), schema)


def _shipped(files: DataFrame, listing: Listing, sent: Sequence[Shipment]) -> DataFrame:
    """Return the files with their bundles, and a row for each bundle that holds its jobs in place of a file."""
    spark = files.sparkSession
    paths = [(listing.addresses[path], number) for number, one in enumerate(sent) for path in one.paths]
    assigned = pa.table([[one[0] for one in paths], [one[1] for one in paths]], schema=_ASSIGNED)
    modified = f.unix_millis("modificationTime").alias("modified")
    held = files.join(f.broadcast(spark.createDataFrame(assigned)), "path")
    jobs = [(number, None, 0, pickle.dumps(list(one.jobs))) for number, one in enumerate(sent)]
    told = spark.createDataFrame(pa.table(list(zip(*jobs, strict=True)), schema=_SHIPPED))
    return held.select("bundle", "path", modified, "content").unionByName(told)


def reader_of(shared: Shared) -> Read:
    """Return what reads a bundle, wherever it is sent."""

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        jobs: list[TableJob] = []
        files = dict(shared.hidden)
        is_first = False
        for row in (row for batch in given for row in batch.to_pylist()):
            if row["path"] is None:
                jobs = pickle.loads(row["content"])  # noqa: S301 - our own, of the same query
                is_first = row["bundle"] == 0
            else:
                data = bytes(row["content"])
                files[path_of(row["path"])] = ListedFile(len(data), row["modified"] * _MILLION, data)
        disk = ListedDisk(files)
        own = [_on(job, disk) for job in jobs]
        yield from batches(shared.wanted, own, shared.clues, shared.refused if is_first else ())

    return read


def _on(job: TableJob, disk: ListedDisk) -> TableJob:
    return msgspec.structs.replace(job, sources=tuple(source.on(disk) for source in job.sources))
