"""Tables from files that Spark itself reads, from any file system that it knows: the executor gets bytes."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from retold.agents import NAMES
from retold.lake.batches import TableRequest, batches
from retold.lake.beside import Shipment, shipments
from retold.lake.held import ListedDisk, ListedFile
from retold.lake.job import TableJob
from retold.lake.spark.listing import Listing, path_of, without_large
from retold.lake.spark.options import MOST_BYTES, parse_agents, parse_columns, parse_table
from retold.lake.spark.schema import spark_schema, wanted_of
from retold.lake.spread import decoded, reunited
from retold.lake.told import UnreadFile
from retold.model.session import Clue

LARGEST = 1 << 30
"""Of one file. Spark holds it in one value, of which two thousand million bytes are the end, and copies it."""
_ASSIGNED = pa.schema({"path": pa.string(), "bundle": pa.int32()})
_SHIPPED = pa.schema(
    {"bundle": pa.int32(), "path": pa.string(), "modified": pa.int64(), "content": pa.binary()}
)
_MILLION = 1_000_000
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
