"""Tables from files that Spark itself reads, on any of its file systems: executors get the bytes of files."""

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
from retold.lake.batches import TableRequest, read_batches
from retold.lake.jobs import (
    TableJob,
    TablePlan,
    bundle_jobs,
    decode_split,
    find_homes,
    join_split,
    plan_jobs,
    require_homes,
)
from retold.lake.remote import ListedDisk, ListedFile, find_labelled, shown_path
from retold.lake.session_rows import UnreadFile
from retold.lake.spark.source import (
    PARTITION_BYTES,
    parse_agents,
    parse_columns,
    parse_request,
    parse_table,
    spark_schema,
)
from retold.model.problem import problem
from retold.model.session import Clue

OPENERS = 16
"""Files that are opened at the same time: most of the time is waiting."""
LARGEST_LISTING = 256 << 20
"""Bytes of a file that the driver reads at most: registries, markers and logs of prompts."""


class Hadoop:
    """All file systems that a Spark session reaches."""

    def __init__(self, spark: SparkSession) -> None:
        # There is no other way to a file system that only Spark knows.
        self._jvm: Any = spark._jvm  # noqa: SLF001
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        self._settings: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001

    def files(self, addresses: Iterable[str]) -> dict[str, ListedFile | str]:
        """Return the existing files by address, each with its content or the reason why it cannot be read."""
        given = list(addresses)
        with ThreadPoolExecutor(OPENERS) as pool:
            pairs = zip(given, pool.map(self._file, given), strict=True)
            return {address: file for address, file in pairs if file is not None}

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
            is_missing = is_instance_of(self._gateway, thrown, "java.io.FileNotFoundException")
            return None if is_missing else str(thrown.toString())
        except (Py4JError, PySparkException) as error:  # PySpark converts some exceptions of Java
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
"""How many times files may lead to other files: a registry leads to markers, and these to nothing."""
_MILLION = 1_000_000
Folders = Sequence[tuple[str | None, Path]]
"""Folders that may be homes, each with its label."""


def to_path(address: str) -> str:
    """Return the path of an address: a local one without `file:`, others with one slash after the scheme."""
    return shown_path(_LOCAL.sub("/", address))


class Listing:
    """The files of a DataFrame. The driver reads the few that planning needs."""

    def __init__(self, files: DataFrame) -> None:
        """Take the result of `spark.read.format("binaryFile")`; no content is read."""
        columns = ("path", "length", f.unix_millis("modificationTime").alias("modified"))
        rows = files.select(*columns).collect()
        self.addresses: dict[str, str] = {to_path(row.path): row.path for row in rows}
        self.files = {to_path(row.path): ListedFile(row.length, row.modified * _MILLION) for row in rows}
        self._read: dict[str, ListedFile] = {}
        self._unread: dict[str, str] = {}
        """The reason why a file could not be read, by path."""
        self._requested: set[str] = set()
        self._hadoop = Hadoop(files.sparkSession)
        self._slashes = "//" if any("://" in row.path for row in rows) else "/"

    @property
    def hidden(self) -> dict[str, ListedFile]:
        """The files read so far whose names begin with a dot: Spark lists none of them."""
        return {path: file for path, file in self._read.items() if path.rpartition("/")[2].startswith(".")}

    def plan(self, homes: Iterable[str], agents: Sequence[str], label: str | None) -> TablePlan:
        """Return the plan, made again each time planning needs another file."""
        patterns = [to_path(home) if ":" in home else os.path.abspath(home) for home in homes]
        for _ in range(_ROUNDS):
            disk = ListedDisk({**self.files, **self._read})
            folders = find_labelled(patterns, disk, label)
            plan = plan_jobs(folders, agents, disk, disk.size_of)
            missing = disk.missing - self._requested
            if not missing:
                break
            self._read_missing(missing)
        require_homes(plan, patterns)
        unread = [file for file in plan.unread if file.problem.path not in self._unread]
        unread += [
            unread_file(path, why, agents, folders, disk) for path, why in sorted(self._unread.items())
        ]
        return msgspec.structs.replace(plan, unread=unread)

    def _read_missing(self, missing: Collection[str]) -> None:
        """Read files with the driver, if they exist."""
        self._requested |= set(missing)
        paths = {self._address(path): path for path in missing}
        for address, file in self._hadoop.files(paths).items():
            if isinstance(file, ListedFile):
                self._read[paths[address]] = file
            else:
                self._unread[paths[address]] = file

    def _address(self, path: str) -> str:
        if path in self.addresses:
            return self.addresses[path]
        scheme, colon, rest = path.partition(":/")
        return f"{scheme}:{self._slashes}{rest}" if colon and "/" not in scheme else f"file:{path}"


def unread_file(path: str, why: str, agents: Sequence[str], folders: Folders, disk: ListedDisk) -> UnreadFile:
    """Return an unread file with the reason, and with the agent and the home that it belongs to."""
    homes = ((agent, home) for agent in agents for home in find_homes(AGENTS[agent], folders, disk, []))
    own = ((agent, home.label) for agent, home in homes if Path(path).is_relative_to(home.path))
    agent, label = next(own, (agents[0], None))
    return UnreadFile(agent, label, problem("unreadable-file", why, path))


def drop_large_files(plan: TablePlan, largest: int, files: Mapping[str, ListedFile]) -> TablePlan:
    """Return a plan in which files that are too large for Spark are unread files."""
    unread = list(plan.unread)
    jobs: list[TableJob] = []
    for job in plan.jobs:
        large = [source for source in job.sources if files[str(source.path)].size > largest]
        unread += [_too_large(job.agent, source, largest) for source in large]
        rest = tuple(source for source in job.sources if source not in large)
        if rest or job.scraps:
            jobs.append(msgspec.structs.replace(job, sources=rest))
    return TablePlan(jobs, plan.clues, unread)


def _too_large(agent: str, source: Source, largest: int) -> UnreadFile:
    message = f"larger than {largest:,} bytes, which is what Spark was asked to hand on at most"
    return UnreadFile(agent, source.label, problem("unreadable-file", message, source.display_path))


_PREFIX = "session-"
"""The beginning of the name of a folder that is named by a session id."""


class Shipment(msgspec.Struct, frozen=True):
    """Jobs that one task reads, and the files that they need."""

    jobs: Sequence[TableJob]
    paths: Sequence[str]


def plan_shipments(jobs: Iterable[TableJob], files: Mapping[str, ListedFile], most: int) -> list[Shipment]:
    """Return jobs in bundles of bytes, those of a home together, because files of one session may name another."""
    given = list(jobs)
    companions = _companion_files(given, files)
    sized = []
    for number, job in enumerate(given):
        needed = [*_own_paths(job), *companions.get(number, ())]
        size = sum(files[path].size for path in needed)
        sized.append((msgspec.structs.replace(job, size=size), needed))
    sized.sort(key=lambda pair: _order(pair[0]))
    paths = {id(job): needed for job, needed in sized}
    bundles = bundle_jobs([job for job, _ in sized], most)
    return [Shipment(bundle, [path for job in bundle for path in paths[id(job)]]) for bundle in bundles]


def _own_paths(job: TableJob) -> list[str]:
    return [str(source.path) for source in job.sources]


def _order(job: TableJob) -> tuple[str, str, str]:
    if not job.sources or job.sources[0].home is None:
        return job.agent, "", ""
    first = job.sources[0]
    return job.agent, str(job.sources[0].home), str(first.path)


def _companion_files(jobs: Sequence[TableJob], files: Mapping[str, ListedFile]) -> dict[int, list[str]]:
    """Return the files that belong to a job because a folder above them is named by its session, by number of job."""
    own = {path for job in jobs for path in _own_paths(job)}
    clusters: dict[tuple[str, str], int] = {}
    for number, job in enumerate(jobs):
        for source in job.sources:
            clusters[job.agent, source.cluster or ""] = number
    agents = sorted({job.agent for job in jobs})
    companions: dict[int, list[str]] = {}
    known: dict[str, int | None] = {}
    for path in files:
        folder = path.rpartition("/")[0]
        if path not in own:
            if folder not in known:
                known[folder] = _find_job(folder, agents, clusters)
            if (owner := known[folder]) is not None:
                companions.setdefault(owner, []).append(path)
    return companions


def _find_job(folder: str, agents: Sequence[str], clusters: Mapping[tuple[str, str], int]) -> int | None:
    for name in reversed(Path(folder).parts):
        for agent in agents:
            number = clusters.get((agent, AGENTS[agent].cluster_of(name.removeprefix(_PREFIX))))
            if number is not None:
                return number
    return None


LARGEST = 1 << 30
"""Bytes of one file at most. Spark holds it in one value, which cannot exceed two thousand million bytes, and copies it."""
_ASSIGNED = pa.schema({"path": pa.string(), "bundle": pa.int32()})
_SHIPPED = pa.schema(
    {"bundle": pa.int32(), "path": pa.string(), "modified": pa.int64(), "content": pa.binary()}
)
ReadBundle = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class SharedInput(msgspec.Struct, frozen=True):
    """The input of every task."""

    request: TableRequest
    clues: Mapping[str, Sequence[Clue]]
    unread: Sequence[UnreadFile]
    """The first bundle yields their rows."""
    hidden: Mapping[str, ListedFile]
    """Markers, which Spark does not list."""


def from_files(  # noqa: PLR0913 - the options of the data source
    files: DataFrame,
    table: str,
    homes: Sequence[str],
    *,
    columns: Sequence[str] = (),
    agents: Sequence[str] = NAMES,
    label: str | None = None,
    together: str = "[]",
    max_partition_bytes: int = PARTITION_BYTES,
    largest: int = LARGEST,
) -> DataFrame:
    """Return a table of the homes in `files`, which `spark.read.format("binaryFile")` loads from any file system."""
    schema = spark_schema(parse_table(table), parse_columns(table, columns))
    listing = Listing(files)
    plan = join_split(listing.plan(homes, parse_agents(agents), label), decode_split(together))
    plan = drop_large_files(plan, largest, listing.files)
    shipments = plan_shipments(plan.jobs, listing.files, max_partition_bytes) or [Shipment((), ())]
    shared = SharedInput(parse_request(table, schema), plan.clues, plan.unread, listing.hidden)
    rows = _ship(files.where(f.col("length") <= largest), listing, shipments)
    return rows.groupBy("bundle").applyInArrow(make_reader(shared), schema)


def _ship(files: DataFrame, listing: Listing, shipments: Sequence[Shipment]) -> DataFrame:
    """Return the files with the numbers of their bundles, and a row for each bundle with its jobs in place of a file."""
    spark = files.sparkSession
    paths = [(listing.addresses[path], number) for number, one in enumerate(shipments) for path in one.paths]
    assigned = pa.table([[path for path, _ in paths], [number for _, number in paths]], schema=_ASSIGNED)
    modified = f.unix_millis("modificationTime").alias("modified")
    contents = files.join(f.broadcast(spark.createDataFrame(assigned)), "path")
    jobs = [(number, None, 0, pickle.dumps(list(one.jobs))) for number, one in enumerate(shipments)]
    job_rows = spark.createDataFrame(pa.table(list(zip(*jobs, strict=True)), schema=_SHIPPED))
    return contents.select("bundle", "path", modified, "content").unionByName(job_rows)


def make_reader(shared: SharedInput) -> ReadBundle:
    """Return the function that reads a bundle on an executor."""

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        jobs: list[TableJob] = []
        files = dict(shared.hidden)
        is_first = False
        for row in (row for batch in given for row in batch.to_pylist()):
            if row["path"] is None:
                jobs = pickle.loads(row["content"])  # noqa: S301 - made by the driver of the same query
                is_first = row["bundle"] == 0
            else:
                data = bytes(row["content"])
                files[to_path(row["path"])] = ListedFile(len(data), row["modified"] * _MILLION, data)
        disk = ListedDisk(files)
        on_disk = [_with_disk(job, disk) for job in jobs]
        yield from read_batches(shared.request, on_disk, shared.clues, shared.unread if is_first else ())

    return read


def _with_disk(job: TableJob, disk: ListedDisk) -> TableJob:
    return msgspec.structs.replace(job, sources=tuple(source.with_disk(disk) for source in job.sources))
