"""The data source: homes to tables, planned by conversation and by bytes."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from retold.lake.batches import Wanted, batches
from retold.lake.job import Job, Plan, bundled, planned
from retold.lake.places import found
from retold.lake.spark.options import Options, parse_options
from retold.lake.spark.schema import spark_schema, wanted_of


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

    def __init__(self, jobs: list[Job], *, is_first: bool) -> None:
        self.jobs, self.is_first = jobs, is_first


class RetoldReader(DataSourceReader):
    """Plans on the driver; reads on the executors, to which it goes with what all tasks need."""

    def __init__(self, asked: Options, wanted: Wanted) -> None:
        self.asked, self.wanted = asked, wanted
        self.homes: frozenset[object] | None = None
        """Those that a filter leaves; None for all."""
        self.agents = asked.agents
        self.pushFilters: Any = _Pushed(self)

    @cached_property
    def plan(self) -> Plan:
        """All that there is to read."""
        places = found(self.asked.paths, self.asked.label)
        return planned(places.folders, self.agents, places.disk, places.size_of)

    def narrowed(self, filters: Iterable[Filter]) -> list[Filter]:
        """Take down which agents and homes are meant; Spark has to look at all filters all the same."""
        kept = list(filters)
        for one in kept:
            column, values = _values(one)
            if column == "agent":
                self.agents = tuple(name for name in self.agents if name in values)
            elif column == "home":
                self.homes = values if self.homes is None else self.homes & values
        return kept

    def partitions(self) -> list[Bundle]:  # Spark takes nothing but a list
        """Return the jobs in bundles of bytes; there is always one, for what stood in the way of looking."""
        jobs = [job for job in self.plan.jobs if self._is_meant(job)]
        bundles = bundled(jobs, self.asked.most) or [[]]
        return [Bundle(jobs, is_first=place == 0) for place, jobs in enumerate(bundles)]

    def _is_meant(self, job: Job) -> bool:
        if self.homes is None:
            return True
        said = [reading.source for readings in job.said.values() for reading in readings]
        return any(source.label in self.homes for source in (*job.sources, *said))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # of Arrow alone
        """Yield the rows of a bundle."""
        assert isinstance(partition, Bundle)  # noqa: S101 - Spark gives back what it was given
        refused = self.plan.refused if partition.is_first else ()
        return batches(self.wanted, partition.jobs, self.plan.clues, refused)

    def __getstate__(self) -> dict[str, Any]:
        # Spark sends the reader once for all tasks, before it asks for partitions: what all of them need goes here,
        # and the jobs, of which each task needs a few, do not.
        plan = Plan((), self.plan.clues, self.plan.refused)
        return {"asked": self.asked, "wanted": self.wanted, "plan": plan}


class _Pushed:
    """Filters, taken where they come.

    Spark refuses a reader with filters of its own unless `spark.sql.python.filterPushdown.enabled` is set, and tells it by
    whose method this is. As nothing depends on being asked, it may be the method of all readers.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: RetoldReader) -> None:
        self._reader = reader

    def __call__(self, filters: Iterable[Filter]) -> list[Filter]:
        return self._reader.narrowed(filters)


def _values(one: Filter) -> tuple[str | None, frozenset[object]]:
    """Return the column that a filter is about, and what it may be there; no column, where it says something else."""
    match one:
        case EqualTo(attribute=(column,), value=value):
            return column, frozenset((value,))
        case In(attribute=(column,), value=values):
            return column, frozenset(values)
    return None, frozenset()
