"""Spark with real executors tells what an archive tells, whatever befalls them and whatever lies in the homes."""

import json
import os
import shutil
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from retold.demo.home import make_home
from retold.lake.spark import deduplicate, find_split_conversations, from_files
from retold.lake.spark.files import Hadoop
from retold.lake.spark.source import spark_schema
from retold.model.tables import TABLES
from support.conversation_files import FORMS, Turn, turns
from support.export_inputs import NOW
from support.home_tables import (
    generated_homes,
    public_homes,
    real_cli_homes,
    tables_from_archive,
    token_totals,
)
from support.spark_cluster import QUIET, executor_pids
from support.synced_archive import Given

pytestmark = [pytest.mark.spark, *(pytest.mark.filterwarnings(one) for one in QUIET)]
FOLDERS = (".gemini", ".claude", ".codex")


@pytest.fixture(scope="module")
def demo_homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    make_home(folder / "made", NOW)
    (folder / "homes").mkdir()
    (folder / "made" / "home").rename(folder / "homes" / "ann")
    return folder / "homes"


def loaded(spark: SparkSession, table: str, homes: Path, **options: str) -> DataFrame:
    return spark.read.format("retold").options(table=table, **options).load(f"{homes}/*")


def rows(found: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in found.collect()]


def copied(given: Given, folder: Path) -> Given:
    """Copy homes into a folder, each below its label."""
    for label, home in given:
        shutil.copytree(home, folder / str(label), symlinks=True)
    return [(label, folder / str(label)) for label, _ in given]


def hold(spark: SparkSession, homes: Path, given: Given, folder: Path) -> None:
    """Hold Spark to the archive, in rows and in tokens, to the unit."""
    expected = tables_from_archive(folder, given)
    together = find_split_conversations(loaded(spark, "sessions", homes, maxPartitionBytes="1m"))
    for name in TABLES:
        table = loaded(spark, name, homes, maxPartitionBytes="1m", together=together)
        assert table.schema == spark_schema(name, tuple(TABLES[name].names))
        match name:
            case "requests":
                found = rows(deduplicate(table))
                assert token_totals(found) == token_totals(expected[name])
                assert sum(row["cost_usd"] or 0 for row in found) == sum(
                    row["cost_usd"] or 0 for row in expected[name]
                )
            case _:
                found = rows(table)
        assert len(found) == len(expected[name]), name
        assert counted(found) == counted(expected[name]), name


def counted(found: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return Counter((row["agent"], row["month"], str(row["home"]), str(row["conversation"])) for row in found)


def test_every_kind_of_home_is_read_as_its_archive_has_it(
    spark: SparkSession, demo_homes: Path, shared: Path, tmp_path: Path
) -> None:
    """Homes of the demo, of the real CLI, of generators with known totals, and of published repositories, in one pass."""
    homes = tmp_path / "homes"
    published = public_homes(shared, homes)
    sessions = loaded(spark, "sessions", homes)
    assert len(json.loads(find_split_conversations(sessions))) == 5
    kept = rows(
        deduplicate(sessions).groupBy("agent").agg(f.count_distinct("conversation"), f.count("session"))
    )
    assert all(row["count(DISTINCT conversation)"] == row["count(session)"] for row in kept)
    others = copied([("ann", demo_homes / "ann"), *real_cli_homes(shared)], homes)
    hold(spark, homes, [*published, *others, *generated_homes(shared, homes)], tmp_path / "archive")


def test_an_executor_that_is_killed_changes_nothing(spark: SparkSession, demo_homes: Path) -> None:
    tracker = spark.sparkContext.statusTracker()
    expected = rows(loaded(spark, "tool_calls", demo_homes).orderBy("session", "seq", "place"))
    before = executor_pids(spark)
    assert len(before) == 2
    one_each = loaded(spark, "tool_calls", demo_homes, maxPartitionBytes="1")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(one_each.collect)
        while not any(_is_under_way(tracker.getStageInfo(stage)) for stage in tracker.getActiveStageIds()):
            assert not asked.done()
            time.sleep(0.01)
        os.kill(before[0], signal.SIGKILL)
        found = [row.asDict(recursive=True) for row in asked.result(120)]
    assert sorted(found, key=_place) == expected
    deadline = time.monotonic() + 60
    while len(after := executor_pids(spark)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(after) == 2, "another one takes its place"
    assert before[0] not in after


def _is_under_way(stage: Any) -> bool:
    return stage is not None and stage.numTasks > 40 and 2 <= stage.numCompletedTasks < 30


def _place(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["session"], row["seq"], row["place"]


def test_files_that_are_none_are_told_and_cost_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "homes" / "ann"
    files = [FORMS["gemini-lines"].write(home, number, turns("heron")) for number in range(5)]
    whole = FORMS["gemini-lines"].write(
        home, 7, [Turn("asked much", "x" * 6_000_000, f"answer {n}") for n in range(10)]
    )
    assert whole.stat().st_size > 60_000_000
    files[1].write_bytes(b"")
    files[2].write_bytes(bytes(range(256)) * 40)
    files[3].write_bytes(files[3].read_bytes()[:-40])
    files[4].unlink()
    files[4].mkdir()
    found = rows(loaded(spark, "sessions", tmp_path / "homes", columns="session,prompts,source_bytes"))
    told = {row["session"]: row["prompts"] for row in found}
    assert told[FORMS["gemini-lines"].key(0)] == 1
    assert told[FORMS["gemini-lines"].key(7)] == 10
    problems = rows(loaded(spark, "problems", tmp_path / "homes"))
    assert {Path(row["path"]).name for row in problems} >= {files[2].name, files[3].name}
    assert "truncated-tail" in {row["code"] for row in problems}


def test_a_second_run_sees_what_changed(spark: SparkSession, tmp_path: Path) -> None:
    write = FORMS["claude"].write
    write(tmp_path / "homes" / "ann", 1, turns("heron"))
    assert [row["prompts"] for row in rows(loaded(spark, "sessions", tmp_path / "homes"))] == [1]
    write(tmp_path / "homes" / "ann", 1, turns("heron", "otter"))
    write(tmp_path / "homes" / "bob", 2, turns("vole"))
    assert sorted(row["prompts"] for row in rows(loaded(spark, "sessions", tmp_path / "homes"))) == [1, 2]


def test_a_filter_is_forgotten_with_its_query(spark: SparkSession, demo_homes: Path) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        sessions = loaded(spark, "sessions", demo_homes, columns="agent,home,session")
        codex = sessions.where("agent = 'codex' AND home IN ('ann', 'bob')").count()
        assert 0 < codex < sessions.count() == loaded(spark, "sessions", demo_homes).count()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_columns_may_be_named_or_given_as_a_schema(spark: SparkSession, demo_homes: Path) -> None:
    named = loaded(spark, "requests", demo_homes, columns="total_tokens, agent")
    assert named.columns == ["total_tokens", "agent"]
    assert named.schema["agent"].metadata["comment"] == "`gemini`, `claude` or `codex`."
    given = spark.read.format("retold").schema("total_tokens long, agent string").option("table", "requests")
    assert sorted(map(tuple, given.load(f"{demo_homes}/*").collect())) == sorted(map(tuple, named.collect()))


def test_wrong_options_are_told(spark: SparkSession, demo_homes: Path) -> None:
    for options, words in (
        ({}, "the option `table` is missing: there are sessions, messages"),
        ({"table": "tools"}, "no table 'tools': there are sessions, messages"),
        (
            {"table": "requests", "columns": "tokens"},
            "no column 'tokens' in requests: there are agent, month",
        ),
        ({"table": "requests", "columns": "home,home"}, "the column 'home' is named twice"),
        ({"table": "requests", "agent": "codex"}, "no option 'agent': there are table, columns, agents"),
        ({"table": "requests", "agents": "cursor"}, "no agent 'cursor': there are claude, codex, gemini"),
        (
            {"table": "requests", "together": "homes"},
            "together is not what `find_split_conversations` returns",
        ),
    ):
        with pytest.raises(AnalysisException, match=words):
            spark.read.format("retold").options(**options).load(f"{demo_homes}/*")


@pytest.fixture
def files(spark: SparkSession, demo_homes: Path) -> DataFrame:
    paths = [f"{demo_homes}/*/{name}" for name in FOLDERS]
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(paths)


@pytest.mark.parametrize("table", TABLES)
def test_bytes_that_spark_itself_reads_tell_the_same(
    spark: SparkSession, demo_homes: Path, files: DataFrame, table: str
) -> None:
    found = from_files(files, table, [f"{demo_homes}/*"], max_partition_bytes=200_000)
    assert found.schema.simpleString() == loaded(spark, table, demo_homes).schema.simpleString()
    assert sorted(map(told, rows(found))) == sorted(map(told, rows(loaded(spark, table, demo_homes))))


def told(row: dict[str, Any]) -> str:
    return json.dumps(row, default=str, sort_keys=True)


def test_files_that_were_renamed_are_one_conversation(spark: SparkSession, tmp_path: Path) -> None:
    write, home = FORMS["gemini-lines"].write, tmp_path / "homes" / "ann"
    for name, words in (("notes.jsonl", ("heron", "vole")), ("b.jsonl", ("stoat",))):
        path = write(home, 7, turns(*words))
        path.rename(path.with_name(name))
    write(home, 7, turns("heron", "otter"))
    homes = [f"{home.parent}/*"]
    paths = [f"{homes[0]}/.gemini"]
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(paths)
    together = find_split_conversations(loaded(spark, "sessions", home.parent))
    assert together == find_split_conversations(from_files(listed, "sessions", homes))
    for found in (
        loaded(spark, "messages", home.parent, together=together),
        from_files(listed, "messages", homes, together=together, max_partition_bytes=1),
    ):
        told = rows(found.where("is_prompt"))
        assert sorted(row["text"] for row in told) == [f"asked {word}" for word in ("heron", "otter", "stoat", "vole")]  # fmt: skip
        assert len({row["session"] for row in told}) == 1


def test_a_file_that_is_too_large_for_spark_is_told(demo_homes: Path, files: DataFrame) -> None:
    found = rows(from_files(files, "problems", [f"{demo_homes}/*"], largest=50_000))
    assert {row["code"] for row in found} >= {"unreadable-file"}
    assert all(
        "larger than 50,000 bytes" in row["message"] for row in found if row["code"] == "unreadable-file"
    )


def test_what_the_driver_may_not_read_is_told_and_what_is_not_there_is_not(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("heron")
    asked = [f"file:{tmp_path}/{name}" for name in ("a", "nowhere", "a/nowhere", "")]
    answers = Hadoop(spark).files([*asked, "otterfs://den/a"])
    assert set(answers) == {asked[0], "otterfs://den/a"}
    assert "otterfs" in str(answers["otterfs://den/a"])
    assert getattr(answers[asked[0]], "data", None) == b"heron"
    monkeypatch.setattr("retold.lake.spark.files.LARGEST_LISTING", 4)
    assert "larger than 4 bytes" in str(Hadoop(spark).files(asked)[asked[0]])


def test_a_marker_that_cannot_be_read_is_a_problem(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, name in enumerate(("ann", "bob"), start=1):
        chat = FORMS["gemini-lines"].write(tmp_path / name, place << 28, turns("heron"))
        FORMS["claude"].write(tmp_path / name, place << 28, turns("vole"))
    marker = chat.parents[1] / ".project_root"
    assert marker.is_file()
    read = Hadoop._read  # noqa: SLF001 - nobody can keep root from reading a file

    def refused(system: Any, path: Any, status: Any) -> Any:
        if path.toString().endswith(str(marker)):
            system.listStatus(spark._jvm.org.apache.hadoop.fs.Path("otterfs://den/a"))  # type: ignore[union-attr] # noqa: SLF001
        return read(system, path, status)

    monkeypatch.setattr(Hadoop, "_read", staticmethod(refused))
    paths = [f"{tmp_path}/*/.gemini", f"{tmp_path}/*/.claude"]
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(paths)
    (row,) = rows(from_files(listed, "problems", [f"{tmp_path}/*"]))
    assert (row["agent"], row["home"], row["path"]) == ("gemini", "bob", str(marker))
    assert row["code"] == "unreadable-file"
    assert "otterfs" in row["message"]
