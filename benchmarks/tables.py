"""Tables: the time to write Parquet, or to read on Spark, relative to parsing, and the size of the files."""

import os
import shutil
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from corpora import CACHE, MEDIUM, SMALL, Corpus, size_of
from measure import Cost, Measure, at_least, at_most, describe, ratios, summarize, take_turns, time_call
from retold_command import sync_corpus

from reading import read_file
from retold.lake.batches import load_prices, read_sessions
from retold.lake.jobs import TablePlan, plan_jobs
from retold.projects.resolver import ProjectResolver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAKE = CACHE / "work" / "lake"
CORES = 2
HOMES = (SMALL, *(Corpus(form, 500, 100) for form in ("gemini-jsonl", "claude", "codex")))
"""Homes of all agents."""


def measures() -> Iterator[Measure]:
    """Compare tables with parsing the same files on one core."""
    ours, files = sync_corpus(MEDIUM), MEDIUM.files

    def parse() -> None:
        for file in files:
            read_file(MEDIUM, file)

    def export() -> Cost:
        shutil.rmtree(LAKE, ignore_errors=True)
        return ours.run("export", "--all", "--no-redact", "--format", "parquet", "-o", str(LAKE)).cost

    runs = take_turns(parsing=[lambda: time_call(parse)], export=[export])
    costs = {name: summarize(of_name) for name, of_name in runs.items()}
    yield at_least(
        "Parquet of everything, of parsing it",
        ratios(costs["parsing"], costs["export"]),
        0.5,
        describe(**costs),
    )
    size, raw = size_of(LAKE) / 1e6, sum(file.stat().st_size for file in files) / 1e6
    yield at_most("size of the tables, of the files", [size / raw], 0.25, f"{size:.0f} MB for {raw:.0f} MB")
    yield _measure_spark()


def _measure_spark() -> Measure:
    """Compare the table of requests on a warm Spark with reading the same sessions."""
    plan = plan_jobs([(corpus.name, corpus.home) for corpus in HOMES])
    with _run_spark() as spark:
        _count(spark)
        work = {"spark": partial(_count, spark), "alone": partial(_read, plan)}
        runs = take_turns(**{name: [partial(time_call, each)] for name, each in work.items()})
    costs = {name: summarize(of_name) for name, of_name in runs.items()}
    by_core = [ratio / CORES for ratio in ratios(costs["alone"], costs["spark"])]
    size = sum(job.size for job in plan.jobs) / 1e6
    times = ", ".join(f"{name} {min(each).wall:.1f} s" for name, each in costs.items())
    return at_least(
        "Spark: requests, by the core, in times of reading", by_core, 0.4, f"{size:.0f} MB: {times}"
    )


def _read(plan: TablePlan) -> None:
    resolver = ProjectResolver(plan.clues, {}, "")
    for job in plan.jobs:
        deque(read_sessions(job, resolver, load_prices().cost), maxlen=0)


def _count(spark: "SparkSession") -> None:
    """Compute the table with all its columns, and discard it."""
    paths = [str(corpus.home) for corpus in HOMES]
    table = spark.read.format("retold").options(table="requests", maxPartitionBytes="16m").load(paths)
    table.write.format("noop").mode("overwrite").save()


@contextmanager
def _run_spark() -> "Iterator[SparkSession]":
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
