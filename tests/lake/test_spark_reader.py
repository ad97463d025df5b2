"""The data source by itself, without Spark: what it understands, plans, and sends to the executors."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StringType, StructType

from retold.agents import NAMES
from retold.agents.registry import AGENTS
from retold.lake.arrow import schema_of
from retold.lake.batches import MOST_ROWS, TableRequest, read_batches
from retold.lake.jobs import plan_jobs
from retold.lake.remote import ListedDisk, ListedFile
from retold.lake.session_rows import ROWS, RowSource
from retold.lake.spark import RetoldDataSource
from retold.lake.spark.files import unread_file
from retold.lake.spark.source import RetoldReader, parse_options, parse_size
from retold.model.tables import TABLES
from support.conversation_files import FORMS, ROOT, turns, uuid
from support.gemini_home import sha
from support.home_tables import tables_from_files, two_homes
from support.spark_cluster import QUIET

pytestmark = [pytest.mark.filterwarnings(one) for one in QUIET]


def source(table: str, homes: Path, **options: str) -> RetoldDataSource:
    return RetoldDataSource(CaseInsensitiveDict({"table": table, "path": f"{homes}/*", **options}))


def reader(table: str, homes: Path, **options: str) -> RetoldReader:
    found = source(table, homes, **options)
    return found.reader(found.schema())


def told(made: RetoldReader) -> pa.Table:
    """Return all rows, read as on executors: by what is left of a reader and of each partition that were sent there."""
    sent: RetoldReader = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own
    parts = [pickle.loads(pickle.dumps(part)) for part in made.partitions()]  # noqa: S301 - our own
    found = [batch for part in parts for batch in sent.read(part)]
    return pa.Table.from_batches(found, made.request.schema)


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    """Homes with a log of prompts that is none: whoever plans finds it out."""
    folder = two_homes(tmp_path)
    chat = next((folder / "ann" / ".gemini").rglob("session-*"))
    (chat.parents[1] / "logs.json").write_text("no JSON")
    return folder


@pytest.mark.parametrize("table", TABLES)
def test_what_is_sent_to_executors_reads_all_there_is(table: str, homes: Path) -> None:
    found = told(reader(table, homes, maxPartitionBytes="1"))
    expected = tables_from_files([("ann", homes / "ann"), ("bob", homes / "bob")])[table]
    assert sorted(map(repr, found.to_pylist())) == sorted(repr(row) for row in pa.Table.from_pylist(expected, schema_of(table)).to_pylist())  # fmt: skip


def test_what_stood_in_the_way_of_looking_is_told_once(homes: Path) -> None:
    made = reader("problems", homes, maxPartitionBytes="1")
    assert len(made.partitions()) == 8
    (row,) = told(made).to_pylist()
    assert (row["agent"], row["home"], Path(row["path"]).name) == ("gemini", "ann", "logs.json")


def test_a_file_that_is_not_read_is_told_with_its_home_whatever_fails_in_another(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (homes / "bob" / ".gemini" / "projects.json").write_text("{}")
    path = str(homes / "bob" / ".gemini" / "projects.json")
    disk = ListedDisk({str(file): ListedFile(1, 0) for file in homes.rglob("*") if file.is_file()})
    gemini = AGENTS["gemini"]
    find_home = gemini.find_home

    def failing(folder: Path, *rest: Any) -> Any:
        if folder.name == "ann":
            raise RuntimeError("a bug")
        return find_home(folder, *rest)

    monkeypatch.setattr(gemini, "find_home", failing)
    refused = unread_file(path, "locked", NAMES, [("ann", homes / "ann"), ("bob", homes / "bob")], disk)
    assert (refused.agent, refused.home, refused.problem.message) == ("gemini", "bob", "locked")


def test_a_reader_that_is_sent_holds_no_jobs(homes: Path) -> None:
    made = reader("sessions", homes)
    assert len(made.plan.jobs) == 8
    assert not pickle.loads(pickle.dumps(made)).plan.jobs  # noqa: S301 - our own


@pytest.mark.parametrize(("most", "bundles"), [("1", 8), ("1g", 1)])
def test_jobs_are_bundled_by_bytes(homes: Path, most: str, bundles: int) -> None:
    assert len(reader("sessions", homes, maxPartitionBytes=most).partitions()) == bundles


def test_only_the_agents_that_are_asked_for_are_looked_for(homes: Path) -> None:
    assert {job.agent for job in reader("sessions", homes, agents="codex, claude").plan.jobs} == {
        "claude",
        "codex",
    }


def test_columns_come_in_the_order_in_which_they_are_named(homes: Path) -> None:
    found = told(reader("requests", homes, columns="total_tokens,agent"))
    assert found.column_names == ["total_tokens", "agent"]
    assert found.num_rows


def test_a_column_of_another_type_is_refused(homes: Path) -> None:
    with pytest.raises(ValueError, match="the column 'prompts' of sessions is int, not string"):
        source("sessions", homes).reader(StructType().add("prompts", StringType()))


def test_folders_of_one_label_and_of_several_patterns(homes: Path) -> None:
    patterns = parse_options({"table": "sessions", "paths": f'["{homes}/ann", "{homes.as_uri()}/b*"]'}).paths
    assert patterns == (f"{homes}/ann", f"{homes.as_uri()}/b*")
    made = RetoldDataSource(
        CaseInsensitiveDict({"table": "sessions", "path": ",".join(patterns), "label": "x"})
    )
    found = told(made.reader(made.schema()))
    assert set(found["home"].to_pylist()) == {"x"}
    assert found.num_rows == 8


@pytest.mark.parametrize("pattern", ["nowhere", "nowhere/*", "nowhere*", "*/nowhere"])
def test_a_path_that_leads_nowhere_is_told(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere.*: there is no such folder"):
        told(reader("sessions", tmp_path, path=f"{tmp_path}/{pattern}"))


@pytest.mark.parametrize("pattern", ["", "/*"])
def test_folders_of_which_none_is_a_home_are_told(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "homes" / "ann").mkdir(parents=True)
    made = reader("sessions", tmp_path, path=f"{tmp_path}/homes{pattern}")
    with pytest.raises(ValueError, match=r"/homes.*: no folder that is an agent's home"):
        told(made)


def test_a_home_in_which_nothing_was_said_is_no_rows(tmp_path: Path) -> None:
    (tmp_path / "ann" / ".claude" / "projects").mkdir(parents=True)
    (tmp_path / "ben").mkdir()
    assert told(reader("sessions", tmp_path)).num_rows == 0


def test_a_folder_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    FORMS["claude"].write(tmp_path / "ann, at sea", 7, turns("heron"))
    found = told(reader("sessions", tmp_path, path=f"{tmp_path}/ann, at sea"))
    assert found["home"].to_pylist() == ["ann, at sea"]


def test_what_is_told_of_a_project_does_not_depend_on_what_is_read_together(tmp_path: Path) -> None:
    proving = FORMS["gemini-lines"].write(tmp_path / "ann", 1 << 28, turns("heron", "otter"))
    silent = FORMS["gemini-lines"].write(tmp_path / "ann", 2 << 28, turns("vole"))
    silent.write_text(silent.read_text().replace(f"{ROOT}/", ""))
    project = proving.parents[1]
    (project / ".project_root").unlink()
    project.rename(project.with_name(sha(ROOT)))
    together, apart = (
        told(reader("sessions", tmp_path, maxPartitionBytes=most, columns="prompts,project")).to_pylist()
        for most in ("1g", "1")
    )
    assert together == apart == [{"prompts": 2, "project": ROOT}, {"prompts": 1, "project": None}]


def test_sizes_as_spark_writes_them() -> None:
    assert [parse_size(text) for text in (None, "7", "64m", "1G")] == [64 << 20, 7, 64 << 20, 1 << 30]
    for wrong in ("", "m", "0", "-1", "5t", "ten"):
        with pytest.raises(ValueError, match="maxPartitionBytes is"):
            parse_size(wrong)
    with pytest.raises(ValueError, match="no path"):
        parse_options({"table": "sessions"})


def test_batches_are_neither_large_nor_many(tmp_path: Path) -> None:
    FORMS["gemini-lines"].write(tmp_path / "ann", 1, turns(*map(str, range(MOST_ROWS // 2 + 10))))
    plan = plan_jobs([("ann", tmp_path / "ann")])
    found = list(read_batches(TableRequest("messages", schema_of("messages")), plan.jobs, plan.clues))
    assert len(found) == 2
    assert found[0].num_rows == MOST_ROWS


def test_much_that_was_said_is_not_put_into_one_batch(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retold.lake.batches.MOST_CHARACTERS", 20)
    plan = plan_jobs([("ann", homes / "ann")])
    columns = ("session", "text")
    found = list(
        read_batches(TableRequest("messages", schema_of("messages", columns)), plan.jobs, plan.clues)
    )
    letters = [[len(row["text"] or "") for row in batch.to_pylist()] for batch in found]
    assert (len(letters) > 1, max(map(len, letters)) > 1) == (True, True)
    assert all(sum(batch[:-1]) < 20 <= sum(batch) for batch in letters[:-1])
    short = list(
        read_batches(TableRequest("messages", schema_of("messages", ("session",))), plan.jobs, plan.clues)
    )
    assert len(short) == 1, "where nothing that was said is asked for, nothing is counted"


def test_without_spark_it_is_said_what_to_install() -> None:
    script = "import sys; sys.modules['pyspark'] = None; import retold.lake.batches; import retold.lake.spark"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "pip install 'retold[spark]'" in ran.stderr


def test_a_row_that_arrow_does_not_take_costs_no_other_and_is_a_problem(
    homes: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = ROWS["requests"]

    def larger(one: RowSource) -> Iterator[tuple[object, ...]]:
        for place, row in enumerate(rows(one)):
            yield (2**70, *row[1:]) if one.session.agent == "codex" and place == 0 else row

    before = told(reader("requests", homes)).num_rows
    monkeypatch.setitem(ROWS, "requests", larger)
    assert told(reader("requests", homes)).num_rows == before - 2  # one for each thread
    whose = told(reader("sessions", homes, agents="codex")).to_pylist()
    assert sorted(record.getMessage() for record in caplog.records) == sorted(
        f"a row that Arrow does not take: agent 'codex', home {one['home']!r}, session {one['session']!r}"
        for one in whose
    )
    problems = told(reader("problems", homes)).to_pylist()
    failed = [(row["agent"], row["home"]) for row in problems if row["code"] == "reader-failed"]
    assert failed == [("codex", "ann"), ("codex", "bob")]


def test_a_conversation_that_fails_costs_none_of_those_that_are_read_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):  # of one cluster, by the first digits of their ids
        FORMS["gemini-lines"].write(tmp_path / "ann", number, turns("heron"))
    rows = ROWS["messages"]

    def failing(one: RowSource) -> Iterator[tuple[object, ...]]:
        if one.session.native_id == uuid(1):
            raise RuntimeError("a bug")
        return rows(one)

    monkeypatch.setitem(ROWS, "messages", failing)
    assert len(reader("messages", tmp_path).plan.jobs) == 1
    found = told(reader("messages", tmp_path)).to_pylist()
    assert len({row["session"] for row in found}) == 2
    problems = told(reader("problems", tmp_path)).to_pylist()
    assert [(row["code"], row["message"]) for row in problems] == [("reader-failed", "RuntimeError: a bug")]
