"""Homes in a bucket of a real object store, asked by the protocol of S3, are told as those on the disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from conftest import available
from retold.demo.home import make_home
from retold.lake.batches import load_prices, read_sessions
from retold.lake.jobs import plan_jobs
from retold.lake.remote import find_folders
from retold.lake.spark import deduplicate
from retold.model.tables import TABLES
from retold.projects.resolver import ProjectResolver
from support.conversation_files import FORMS, turns
from support.export_inputs import NOW
from support.home_tables import (
    DEPENDENT_COLUMNS,
    row_counts,
    rows_by_table,
    tables_from_archive,
    tables_from_files,
    token_totals,
)
from support.object_store import ObjectStore, run_store
from support.spark_cluster import QUIET, start_spark

pytestmark = [pytest.mark.bucket, *(pytest.mark.filterwarnings(one) for one in QUIET)]
HOMES = "s3a://team/homes/*"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    folder = tmp_path_factory.mktemp("store")
    make_home(folder / "made", NOW)
    (folder / "buckets" / "team" / "homes").mkdir(parents=True)
    (folder / "made" / "home").rename(folder / "buckets" / "team" / "homes" / "ann")
    for place, form in enumerate(FORMS, start=1):
        FORMS[form].write(folder / "buckets" / "team" / "homes" / "bob", place << 28, turns("heron"))
    with available(), run_store(folder / "buckets", folder) as running:
        yield running


@pytest.fixture(autouse=True)
def asking(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in store.env.items():
        monkeypatch.setenv(name, value)


def local(store: ObjectStore) -> list[tuple[str | None, Path]]:
    homes = store.folder / "team" / "homes"
    return [(name, homes / name) for name in ("ann", "bob")]


def in_bucket(pattern: str) -> dict[str, list[dict[str, Any]]]:
    places = find_folders([pattern])
    plan = plan_jobs(places.folders, disk=places.disk, size_of=places.size_of)
    atlas = ProjectResolver(plan.clues, {}, "")
    return rows_by_table(
        [*plan.unread, *(one for job in plan.jobs for one in read_sessions(job, atlas, load_prices().cost))]
    )


def test_a_bucket_tells_what_the_disk_tells(store: ObjectStore) -> None:
    expected, told_there = tables_from_files(local(store)), in_bucket(HOMES)
    for name in TABLES:
        without = {*DEPENDENT_COLUMNS, "sources", "path"} if name in ("sessions", "problems") else set()
        assert len(told_there[name]) > 0 or name == "problems"
        assert row_counts(told_there[name], without) == row_counts(expected[name], without), name


def test_an_object_is_fetched_once(store: ObjectStore) -> None:
    before = store.asked()
    sessions = in_bucket("s3a://team/homes/bob")["sessions"]
    files = sum(len(row["sources"]) for row in sessions)
    assert files == len(FORMS)
    asked = store.asked() - before
    assert asked["GET OBJECT"] <= files + 2
    assert asked["HEAD OBJECT"] <= 3 * files


@pytest.mark.spark
def test_executors_read_the_bucket_themselves(store: ObjectStore, tmp_path: Path) -> None:
    expected = tables_from_archive(tmp_path / "archive", local(store))
    with available(), start_spark(tmp_path / "spark") as spark:
        hold(spark, expected)


def hold(spark: SparkSession, expected: dict[str, list[dict[str, Any]]]) -> None:
    for name in ("sessions", "requests", "tool_calls"):
        table = spark.read.format("retold").options(table=name, maxPartitionBytes="100k").load(HOMES)
        rows = [row.asDict() for row in (deduplicate(table) if name == "requests" else table).collect()]
        assert len(rows) == len(expected[name])
        assert {row["home"] for row in rows} == {"ann", "bob"}
        if name == "requests":
            assert token_totals(rows) == token_totals(expected[name])


@pytest.mark.parametrize(
    "pattern", [HOMES, "s3a://team/homes/ann", "s3a://nobodys/homes/*", "s3a://nobodys/homes/ann"]
)
def test_a_bucket_that_may_not_be_read_is_told(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "team" in pattern:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "otter")
    with pytest.raises(ValueError, match="s3a:/"):
        in_bucket(pattern)
