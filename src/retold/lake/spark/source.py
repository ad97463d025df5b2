"""The data source: homes to tables, planned by conversation and by bytes."""

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
from retold.lake.batches import TableRequest, batches
from retold.lake.jobs import (
    Spread,
    TableJob,
    TablePlan,
    bundled,
    decoded,
    encoded,
    planned,
    reunited,
    see_that_there_are_homes,
)
from retold.lake.remote import found
from retold.model.tables import TABLES

MOST_BYTES = 64 << 20
"""Of the files that one task reads, where nobody says otherwise."""


NAMED = ("table", "columns", "agents", "label", "together", "maxPartitionBytes")
KNOWN = frozenset(name.lower() for name in (*NAMED, "path", "paths"))
"""Spark itself makes options of what `load` is given."""


class Options(msgspec.Struct, frozen=True):
    """A table, some of its columns, and the homes to read."""

    table: str
    columns: tuple[str, ...]
    paths: tuple[str, ...] = ()
    agents: tuple[str, ...] = NAMES
    label: str | None = None
    most: int = MOST_BYTES
    together: tuple[Spread, ...] = ()


def parse_options(given: Mapping[str, str]) -> Options:
    """Understand options as Spark gives them; raises ValueError for those that mean nothing."""
    if unknown := [name for name in given if name.lower() not in KNOWN]:
        raise ValueError(f"no option {unknown[0]!r}: there are {', '.join(NAMED)}")
    table = parse_table(given.get("table"))
    agents = parse_agents(_listed(given.get("agents")) or NAMES)
    return Options(
        table,
        parse_columns(table, _listed(given.get("columns"))),
        _paths(given),
        agents,
        given.get("label"),
        parse_size(given.get("maxPartitionBytes")),
        decoded(given.get("together") or "[]"),
    )


def parse_agents(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of agents; raises ValueError for others."""
    if unknown := [name for name in names if name not in NAMES]:
        raise ValueError(f"no agent {unknown[0]!r}: there are {', '.join(NAMES)}")
    return tuple(names)


def parse_table(name: str | None) -> str:
    """Return the name of a table; raises ValueError for any other."""
    if name is None or name not in TABLES:
        asked = "the option `table` is missing" if name is None else f"no table {name!r}"
        raise ValueError(f"{asked}: there are {', '.join(TABLES)}")
    return name


def parse_columns(table: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return columns of a table, or all of them; raises ValueError for others."""
    known = TABLES[table].names
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"no column {unknown[0]!r} in {table}: there are {', '.join(known)}")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"the column {twice[0]!r} is named twice")
    return tuple(names or known)


def parse_size(text: str | None) -> int:
    """Return a number of bytes, which may be written as `64m`; raises ValueError for anything else."""
    if text is None:
        return MOST_BYTES
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "b")
    shift = {"b": 0, "k": 10, "m": 20, "g": 30}.get(unit)
    if shift is None or not number.isdecimal() or int(number) < 1:
        raise ValueError(f"maxPartitionBytes is {text!r}: a number of bytes, or one such as 64m")
    return int(number) << shift


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    several = given.get("paths") or ""
    # Spark itself hands on several paths as JSON.
    listed = json.loads(several) if several.startswith("[") else _listed(several)
    path = given.get("path") or ""
    # Spark hands on a single path as it is, and a folder may have a comma in its name.
    paths = (*([path] if os.path.isdir(path) else _listed(path)), *listed)
    if not paths:
        raise ValueError("no path: .load('homes/*') names the folders of homes")
    return paths


def _listed(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]


def spark_schema(table: str, columns: tuple[str, ...]) -> StructType:
    """Return the schema of some columns of a table, with what each means as its comment."""
    docs = {column.name: {"comment": column.doc} for column in TABLES[table].columns}
    fields = from_arrow_schema(schema_of(table, columns), prefer_timestamp_ntz=False)
    return StructType([StructField(one.name, one.dataType, one.nullable, docs[one.name]) for one in fields])


def wanted_of(table: str, schema: StructType) -> TableRequest:
    """Return what a schema wants of a table; raises ValueError for columns that it has not, or has otherwise."""
    columns = parse_columns(table, schema.names)
    for own, asked in zip(spark_schema(table, columns), schema, strict=True):
        if own.dataType.simpleString() != asked.dataType.simpleString():
            kinds = f"is {own.dataType.simpleString()}, not {asked.dataType.simpleString()}"
            raise ValueError(f"the column {own.name!r} of {table} {kinds}")
    return TableRequest(table, to_arrow_schema(schema, timezone="UTC"))


class RetoldDataSource(DataSource):
    """Sessions of coding agents as tables: option `table`, and the folders of homes as path."""

    @classmethod
    def name(cls) -> str:
        """Return what `spark.read.format` is given."""
        return "retold"

    def schema(self) -> StructType:
        """Return the columns of the table, or those that the option `columns` names."""
        asked = parse_options(self.options)
        return spark_schema(asked.table, asked.columns)

    def reader(self, schema: StructType) -> "RetoldReader":
        """Return what plans and reads."""
        asked = parse_options(self.options)
        return RetoldReader(asked, wanted_of(asked.table, schema))


class Bundle(InputPartition):
    """The jobs of one task."""

    def __init__(self, jobs: list[TableJob], *, is_first: bool) -> None:
        self.jobs, self.is_first = jobs, is_first


class RetoldReader(DataSourceReader):
    """Plans on the driver; reads on the executors, to which it goes with what all tasks need.

    It takes no filters: Spark 4.3 keeps what a reader planned for a filter, and gives no more than that to whoever uses the
    same DataFrame without it (docs/decisions/0040).
    """

    def __init__(self, asked: Options, wanted: TableRequest) -> None:
        self.asked, self.wanted = asked, wanted

    @cached_property
    def plan(self) -> TablePlan:
        """All that there is to read."""
        places = found(self.asked.paths, self.asked.label)
        plan = planned(places.folders, self.asked.agents, places.disk, places.size_of)
        see_that_there_are_homes(plan, self.asked.paths)
        return reunited(plan, self.asked.together)

    def partitions(self) -> list[Bundle]:  # Spark takes nothing but a list
        """Return the jobs in bundles of bytes; there is always one, for what stood in the way of looking."""
        bundles = bundled(self.plan.jobs, self.asked.most) or [[]]
        return [Bundle(jobs, is_first=place == 0) for place, jobs in enumerate(bundles)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # of Arrow alone
        """Yield the rows of a bundle."""
        assert isinstance(partition, Bundle)  # noqa: S101 - Spark gives back what it was given
        refused = self.plan.refused if partition.is_first else ()
        return batches(self.wanted, partition.jobs, self.plan.clues, refused)

    def __getstate__(self) -> dict[str, Any]:
        # Spark sends the reader once for all tasks, before it asks for partitions: what all of them need goes here,
        # and the jobs, of which each task needs a few, do not.
        plan = TablePlan((), self.plan.clues, self.plan.refused)
        return {"asked": self.asked, "wanted": self.wanted, "plan": plan}


EARLIEST = ("session_started_at", "session_ended_at", "session")
"""By what the sessions that hold a request are put in order: the first has it."""


def settled(rows: DataFrame) -> DataFrame:
    """Return each request once, that of the earliest session that holds it; of sessions, each conversation once.

    Takes the table `requests` or `sessions`, with all of its columns or with those that tell.
    """
    if "request" in rows.columns:
        order = [f.col(name).asc_nulls_last() for name in EARLIEST]
        return _first(rows, ("request",), order)
    # Files of one conversation whose names do not tell so: the session of the larger ones stands for it.
    return _first(rows, ("agent", "conversation"), [f.col("source_bytes").desc(), f.col("session").asc()])


def spread(sessions: DataFrame) -> str:
    """Return the conversations that several rows of the table `sessions` tell, for the option `together`.

    Whoever loads a table with it gets each of them from one job, joined as an archive joins them.
    """
    told = sessions.groupBy("agent", "conversation").agg(
        f.count(f.lit(1)).alias("rows"), f.flatten(f.collect_list("sources.path")).alias("paths")
    )
    several = told.where("rows > 1").orderBy("agent", "conversation").collect()
    return encoded(Spread(row.agent, row.conversation, tuple(sorted(set(row.paths)))) for row in several)


def _first(rows: DataFrame, by: tuple[str, ...], order: list[Column]) -> DataFrame:
    place = f.row_number().over(Window.partitionBy(*by).orderBy(*order))
    return rows.withColumn("_place", place).where(f.col("_place") == 1).drop("_place")
