"""The data source: homes to tables, planned by conversation and by bytes."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from retold.lake.batches import TableRequest, batches
from retold.lake.job import TableJob, TablePlan, bundled, planned, see_that_there_are_homes
from retold.lake.places import found
from retold.lake.spark.options import Options, parse_options
from retold.lake.spark.schema import spark_schema, wanted_of
from retold.lake.spread import reunited


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
