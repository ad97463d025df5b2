"""The data source of Spark: tables from homes, in jobs of one cluster and bundles of bytes."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from retold.agents import NAMES
from retold.lake.arrow import schema_of
from retold.lake.batches import TableRequest, read_batches
from retold.lake.jobs import (
    SplitConversation,
    TableJob,
    TablePlan,
    bundle_jobs,
    decode_split,
    encode_split,
    join_split,
    plan_jobs,
    require_homes,
)
from retold.lake.remote import find_folders
from retold.model.tables import TABLES

PARTITION_BYTES = 64 << 20
"""Bytes of the files that one task reads by default."""


NAMED = ("table", "columns", "agents", "label", "together", "maxPartitionBytes")
KNOWN = frozenset(name.lower() for name in (*NAMED, "path", "paths"))
"""Includes `path` and `paths`, in which Spark passes the arguments of `load`."""


class Options(msgspec.Struct, frozen=True):
    """A table, some of its columns, and the homes to read."""

    table: str
    columns: tuple[str, ...]
    paths: tuple[str, ...] = ()
    agents: tuple[str, ...] = NAMES
    label: str | None = None
    most: int = PARTITION_BYTES
    together: tuple[SplitConversation, ...] = ()


def parse_options(given: Mapping[str, str]) -> Options:
    """Return the options that Spark passes; raise ValueError for an unknown option or a wrong value."""
    if unknown := [name for name in given if name.lower() not in KNOWN]:
        raise ValueError(f"no option {unknown[0]!r}: there are {', '.join(NAMED)}")
    table = parse_table(given.get("table"))
    agents = parse_agents(_split_list(given.get("agents")) or NAMES)
    return Options(
        table,
        parse_columns(table, _split_list(given.get("columns"))),
        _paths(given),
        agents,
        given.get("label"),
        parse_size(given.get("maxPartitionBytes")),
        decode_split(given.get("together") or "[]"),
    )


def parse_agents(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of agents; raise ValueError for others."""
    if unknown := [name for name in names if name not in NAMES]:
        raise ValueError(f"no agent {unknown[0]!r}: there are {', '.join(NAMES)}")
    return tuple(names)


def parse_table(name: str | None) -> str:
    """Return the name of a table; raise ValueError for any other."""
    if name is None or name not in TABLES:
        message = "the option `table` is missing" if name is None else f"no table {name!r}"
        raise ValueError(f"{message}: there are {', '.join(TABLES)}")
    return name


def parse_columns(table: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return columns of a table, or all of them if none are named; raise ValueError for others."""
    known = TABLES[table].names
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no column {unknown[0]!r} in {table}: there are {', '.join(known)}")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"the column {twice[0]!r} is named twice")
    return tuple(names or known)


def parse_size(text: str | None) -> int:
    """Return a number of bytes, which may be written as `64m`; raise ValueError for anything else."""
    if text is None:
        return PARTITION_BYTES
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "b")
    shift = {"b": 0, "k": 10, "m": 20, "g": 30}.get(unit)
    if shift is None or not number.isdecimal() or int(number) < 1:
        raise ValueError(f"maxPartitionBytes is {text!r}: a number of bytes, or one such as 64m")
    return int(number) << shift


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    several = given.get("paths") or ""
    # Spark passes several paths as JSON.
    listed = json.loads(several) if several.startswith("[") else _split_list(several)
    path = given.get("path") or ""
    # Spark passes a single path as it is, and the name of a folder may contain a comma.
    paths = (*([path] if os.path.isdir(path) else _split_list(path)), *listed)
    if not paths:
        raise ValueError("no path: .load('homes/*') names the folders of homes")
    return paths


def _split_list(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]


def spark_schema(table: str, columns: tuple[str, ...]) -> StructType:
    """Return the schema of some columns of a table, with their descriptions as comments."""
    docs = {column.name: {"comment": column.doc} for column in TABLES[table].columns}
    fields = from_arrow_schema(schema_of(table, columns), prefer_timestamp_ntz=False)
    return StructType([StructField(one.name, one.dataType, one.nullable, docs[one.name]) for one in fields])


def parse_request(table: str, schema: StructType) -> TableRequest:
    """Return the request of a schema; raise ValueError for unknown columns and other types."""
    columns = parse_columns(table, schema.names)
    for own, requested in zip(spark_schema(table, columns), schema, strict=True):
        if own.dataType.simpleString() != requested.dataType.simpleString():
            types = f"is {own.dataType.simpleString()}, not {requested.dataType.simpleString()}"
            raise ValueError(f"the column {own.name!r} of {table} {types}")
    return TableRequest(table, to_arrow_schema(schema, timezone="UTC"))


class RetoldDataSource(DataSource):
    """The format `retold`: sessions as tables. The option `table` names the table; the path names folders of homes."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "retold"

    def schema(self) -> StructType:
        """Return the columns of the table, or those in the option `columns`."""
        options = parse_options(self.options)
        return spark_schema(options.table, options.columns)

    def reader(self, schema: StructType) -> "RetoldReader":
        """Return the reader of the columns of a schema."""
        options = parse_options(self.options)
        return RetoldReader(options, parse_request(options.table, schema))


class Bundle(InputPartition):
    """The jobs of one task."""

    def __init__(self, jobs: list[TableJob], *, is_first: bool) -> None:
        self.jobs, self.is_first = jobs, is_first


class RetoldReader(DataSourceReader):
    """Plans on the driver and reads on the executors, which get a copy with the input of all tasks.

    It accepts no filters: Spark 4.3 keeps the plan that a reader made for a filter, and uses it again where the same
    DataFrame is used without the filter (docs/decisions/0040).
    """

    def __init__(self, options: Options, request: TableRequest) -> None:
        self.options, self.request = options, request

    @cached_property
    def plan(self) -> TablePlan:
        """The jobs for all homes."""
        homes = find_folders(self.options.paths, self.options.label)
        plan = plan_jobs(homes.folders, self.options.agents, homes.disk, homes.size_of)
        require_homes(plan, self.options.paths)
        return join_split(plan, self.options.together)

    def partitions(self) -> list[Bundle]:  # Spark requires a list
        """Return the jobs in bundles of bytes; there is always one, for the unread files."""
        bundles = bundle_jobs(self.plan.jobs, self.options.most) or [[]]
        return [Bundle(jobs, is_first=number == 0) for number, jobs in enumerate(bundles)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # batches of Arrow only
        """Yield the rows of a bundle."""
        assert isinstance(partition, Bundle)  # noqa: S101 - Spark returns what `partitions` returned
        unread = self.plan.unread if partition.is_first else ()
        return read_batches(self.request, partition.jobs, self.plan.clues, unread)

    def __getstate__(self) -> dict[str, Any]:
        # Spark sends the reader once for all tasks, before it requests the partitions: the jobs go with these.
        plan = TablePlan((), self.plan.clues, self.plan.unread)
        return {"options": self.options, "request": self.request, "plan": plan}


EARLIEST = ("session_started_at", "session_ended_at", "session")
"""The order of the sessions that have the same request: the first one owns it."""


def deduplicate(rows: DataFrame) -> DataFrame:
    """Return each request once, with the earliest of its sessions; of the table `sessions`, each conversation once.

    The rows need not have all columns of `requests` or `sessions`, only those that decide.
    """
    if "request" in rows.columns:
        order = [f.col(name).asc_nulls_last() for name in EARLIEST]
        return _first(rows, ("request",), order)
    # Several sessions of one conversation come from files without a common name; the one with the most bytes represents it.
    return _first(rows, ("agent", "conversation"), [f.col("source_bytes").desc(), f.col("session").asc()])


def find_split_conversations(sessions: DataFrame) -> str:
    """Return the conversations with several rows in the table `sessions`, for the option `together`.

    With that option, one job reads each of them and joins it as an archive does.
    """
    grouped = sessions.groupBy("agent", "conversation").agg(
        f.count(f.lit(1)).alias("rows"), f.flatten(f.collect_list("sources.path")).alias("paths")
    )
    split = grouped.where("rows > 1").orderBy("agent", "conversation").collect()
    return encode_split(
        SplitConversation(row.agent, row.conversation, tuple(sorted(set(row.paths)))) for row in split
    )


def _first(rows: DataFrame, by: tuple[str, ...], order: list[Column]) -> DataFrame:
    place = f.row_number().over(Window.partitionBy(*by).orderBy(*order))
    return rows.withColumn("_place", place).where(f.col("_place") == 1).drop("_place")
