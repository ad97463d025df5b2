"""Spark: the speed of reading homes per core, relative to one process."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from corpora import IS_TRIAL, MEDIUM, Corpus
from measure import Measure, at_least, format_seconds

from retold.lake.batches import load_prices
from retold.lake.batches import read_sessions as sessions_of
from retold.lake.jobs import TablePlan, plan_jobs
from retold.projects.resolver import ProjectResolver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
ROUNDS = 4
HOMES = (
    (MEDIUM,)
    if IS_TRIAL
    else (MEDIUM, Corpus("gemini-jsonl", 500, 100), Corpus("claude", 500, 100), Corpus("codex", 500, 100))
)
"""Homes of all agents."""
FLOOR = 0.4


def measures() -> Iterator[Measure]:
    """Compare the table of requests on a warm Spark with reading the same sessions."""
    plan = plan_jobs([(made.name, made.home) for made in HOMES])
    size = sum(job.size for job in plan.jobs) / 1e6
    _read(plan)
    alone = _best_time(lambda: _read(plan))
    with _spark() as spark:
        seconds = _best_time(lambda: _count(spark))
    detail = f"{size:.0f} MB: {format_seconds(seconds)} on {CORES} cores, one process alone {format_seconds(alone)}"
    yield at_least(
        "Spark: requests, by the core, in times of reading", alone / seconds / CORES, FLOOR, detail
    )


def _read(plan: TablePlan) -> None:
    atlas = ProjectResolver(plan.clues, {}, "")
    for job in plan.jobs:
        deque(sessions_of(job, atlas, load_prices().cost), maxlen=0)


def _count(spark: "SparkSession") -> None:
    """Compute the table with all its columns, and discard it."""
    paths = [str(made.home) for made in HOMES]
    found = spark.read.format("retold").options(table="requests", maxPartitionBytes="16m").load(paths)
    found.write.format("noop").mode("overwrite").save()


def _best_time(work: Callable[[], object]) -> float:
    """Return the best time of several rounds after a warm-up."""
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


@contextmanager
def _spark() -> "Iterator[SparkSession]":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    from pyspark.sql import SparkSession  # noqa: PLC0415 - where Spark is measured, and nowhere else

    from retold.lake.spark import RetoldDataSource  # noqa: PLC0415 - the same

    with TemporaryDirectory() as folder:
        builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.sql.warehouse.dir", folder).config("spark.local.dir", folder)
        spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
        try:
            spark.sparkContext.setLogLevel("ERROR")
            spark.dataSource.register(RetoldDataSource)
            yield spark
        finally:
            spark.stop()
