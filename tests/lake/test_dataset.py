"""`retold export --format parquet`: what is in it, for whom, and what it takes no part of."""

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from pyarrow import parquet

from retold.archive.store import Store
from retold.model.tables import TABLES
from support.conversation_files import FORMS, turns, uuid
from support.dataset_exports import (
    KEY,
    dataset_rows,
    export_dataset,
    file_states,
    person_with_archive,
    query_dataset,
    table_objects,
)
from support.gemini_home import GeminiHome, gemini, user
from support.person import Person


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return person_with_archive(tmp_path / "ann")


@pytest.fixture
def lake(ann: Person, tmp_path: Path) -> Path:
    export_dataset(ann, tmp_path / "lake", "--all", "--no-redact")
    return tmp_path / "lake"


def kept(person: Person, query: str) -> tuple[Any, ...]:
    with Store(str(person.archive)) as record:
        (found,) = record.rows(query)
        return tuple(found)


def test_files_lie_by_table_agent_and_month(lake: Path) -> None:
    files = {str(file.parent.relative_to(lake)) for file in lake.rglob("part-0000.parquet")}
    assert {"sessions/agent=gemini/month=2026-03", "problems/agent=gemini/month=unknown"} <= files
    one = next(lake.glob("requests/**/*.parquet"))
    schema = parquet.read_schema(one)
    assert schema.names == TABLES["requests"].names[2:]
    assert schema.metadata[b"retold.table"] == b"requests"
    assert schema.field("cost_usd").metadata[b"comment"]
    group = parquet.ParquetFile(one).metadata.row_group(0).column(0)
    assert group.compression == "ZSTD"


def test_counts_and_sums_are_those_of_the_archive(ann: Person, lake: Path) -> None:
    (told,) = query_dataset(
        lake, "SELECT count(*) AS count, sum(total_tokens) AS total, sum(cost_usd) AS cost FROM requests"
    )
    count, total, picos = kept(ann, "SELECT count(*), sum(total), sum(picos) FROM requests WHERE own")
    assert told == {"count": count, "total": total, "cost": Decimal(picos).scaleb(-12)}
    assert picos > 0
    for table, query in {
        "sessions": "SELECT count(*) FROM sessions",
        "messages": "SELECT count(*) FROM messages",
        "tool_calls": "SELECT count(*) FROM tool_calls",
        "problems": "SELECT (SELECT count(*) FROM problems) + (SELECT count(*) FROM sources WHERE refusal IS NOT NULL)",
    }.items():
        assert (len(dataset_rows(lake)[table]),) == kept(ann, query)


def test_duckdb_polars_and_pandas_read_the_same_types(lake: Path) -> None:
    by_duckdb = query_dataset(lake, "SELECT * FROM sessions ORDER BY session")
    by_polars = pl.scan_parquet(f"{lake}/sessions/", hive_partitioning=True).sort("session").collect()
    by_pandas = pd.read_parquet(lake / "sessions", dtype_backend="pyarrow").sort_values("session")
    assert by_polars.schema["started_at"] == pl.Datetime("us", "UTC")
    assert by_polars.schema["cost_usd"] == pl.Decimal(24, 12)
    assert by_polars.schema["source_bytes"] == pl.Int64
    assert str(by_pandas["started_at"].dtype) == "timestamp[us, tz=UTC][pyarrow]"
    for row, one, two in zip(by_duckdb, by_polars.to_dicts(), by_pandas.to_dict("records"), strict=True):
        assert row["agent"] == one["agent"] == two["agent"]
        assert row["month"] == one["month"] == two["month"]
        assert row["cost_usd"] == one["cost_usd"]
        assert isinstance(row["cost_usd"], Decimal | None)
        assert row["started_at"] == one["started_at"] == two["started_at"]
        assert row["started_at"].utcoffset() == datetime.now(UTC).utcoffset()
        assert row["sources"] == one["sources"] == list(two["sources"])
        assert row["models"] == one["models"] == list(two["models"])
        assert (row["summary"] is None) == (one["summary"] is None) == pd.isna(two["summary"])


def test_an_export_imports_arrow_without_pandas_and_numpy(ann: Person, tmp_path: Path) -> None:
    code = "import atexit; atexit.register(lambda: print({'numpy', 'pandas', 'pyarrow'} & set(sys.modules)))"
    arguments = ("--all", "--format", "parquet", "-o", str(tmp_path / "lake"))
    assert ann.spawn("export", *arguments, code=code).out == "{'pyarrow'}\n"


def test_large_numbers_and_moments_are_exact(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path / "bob")
    told = gemini("g1", 2, "So many.")
    told["timestamp"] = "2026-03-01T09:02:00.123Z"
    told["tokens"] |= {"input": 2**39 + 1, "total": 2**39 + 16}
    home.lines("den", 1, 1, [user("u1", 1, "How many?"), told], kind="main")
    person = Person(tmp_path / "bob")
    person.sync()
    export_dataset(person, tmp_path / "lake")
    (found,) = query_dataset(
        tmp_path / "lake", "SELECT input_tokens, epoch_us(happened_at) AS micros FROM requests"
    )
    moment = datetime(2026, 3, 1, 9, 2, 0, 123000, UTC)
    assert found == {"input_tokens": 2**39 + 1, "micros": int(moment.timestamp() * 1_000_000)}


def test_the_second_time_nothing_is_written(ann: Person, tmp_path: Path) -> None:
    for options in (("--all",), ("--all", "--no-redact")):
        export_dataset(ann, tmp_path / "lake", *options)
        before = file_states(tmp_path / "lake")
        assert " 0 written, " in export_dataset(ann, tmp_path / "lake", *options)
        assert file_states(tmp_path / "lake") == before


def test_without_the_key_everything_is_written_anew(ann: Person, lake: Path) -> None:
    before = dataset_rows(lake)
    (ann.archive / "dataset.key").unlink()
    assert " 0 unchanged, 0 removed" in export_dataset(ann, lake, "--all", "--no-redact")
    assert dataset_rows(lake) == before


def test_a_file_that_was_lost_is_written_again(ann: Person, lake: Path) -> None:
    before = dataset_rows(lake)
    next(lake.glob("messages/agent=claude/*/*.parquet")).unlink()
    export_dataset(ann, lake, "--all", "--no-redact")
    assert dataset_rows(lake) == before


def test_filters_choose_what_is_in_it_and_the_rest_goes(ann: Person, lake: Path) -> None:
    told = export_dataset(ann, lake, "--agent", "claude", "--no-redact")
    assert {row["agent"] for row in table_objects(lake, "sessions")} == {"claude"}
    assert not list(lake.glob("*/agent=gemini"))
    assert " 0 removed" not in told
    export_dataset(ann, lake, "00000002", "--no-redact")
    assert [row["first_prompt"] for row in table_objects(lake, "sessions")] == ["Where do herons nest?"]
    assert table_objects(lake, "problems") == []


def test_what_is_removed_is_counted_also_where_nothing_of_it_stays(ann: Person, tmp_path: Path) -> None:
    counts = Counter(str(row["agent"]) for row in ann.rows().values())
    assert min(counts["claude"], counts["codex"]) > 0
    export_dataset(ann, tmp_path / "lake", "--agent", "claude", "--no-redact")
    told = export_dataset(ann, tmp_path / "lake", "--agent", "codex", "--no-redact")
    assert f"{counts['codex']} written, 0 unchanged, {counts['claude']} removed" in told


def test_files_that_hold_no_session_are_none_that_is_removed(ann: Person, tmp_path: Path) -> None:
    export_dataset(ann, tmp_path / "lake", "--agent", "gemini", "--no-redact")
    assert table_objects(tmp_path / "lake", "problems")
    keys = [key for key, row in ann.rows().items() if row["agent"] == "gemini"]
    assert " 0 removed" in export_dataset(ann, tmp_path / "lake", *keys, "--no-redact")
    assert table_objects(tmp_path / "lake", "problems") == []


def test_a_report_tells_of_everything(ann: Person, tmp_path: Path) -> None:
    export_dataset(ann, tmp_path / "lake")
    export_dataset(ann, tmp_path / "lake", "--all", "--report", str(tmp_path / "report.jsonl"))
    told = (tmp_path / "report.jsonl").read_text(encoding="utf-8")
    assert '"kind":"email"' in told
    assert KEY not in told


def test_what_a_copied_message_took_is_counted_as_a_report_counts_it(tmp_path: Path) -> None:
    path = FORMS["gemini-lines"].write(tmp_path / "ann", 1, turns("heron", "otter"))
    text = path.read_text(encoding="utf-8").replace(f'"sessionId":"{uuid(1)}"', f'"sessionId":"{uuid(2)}"')
    path.with_name(path.name.replace("00000001", "00000002")).write_text(text, encoding="utf-8")
    person = Person(tmp_path / "ann")
    person.sync()
    assert {row["kind"] for row in person.rows().values()} == {"main", "fork"}
    export_dataset(person, tmp_path / "lake")
    (report,) = person.run("stats", "--by", "agent", "--json").objects
    (asked,) = person.run("sql", "--json", "SELECT sum(total_tokens) AS tokens FROM requests").objects
    (found,) = query_dataset(tmp_path / "lake", "SELECT sum(total_tokens)::BIGINT AS tokens FROM requests")
    assert report["usage"]["total"] == asked["tokens"] == found["tokens"]


def test_what_is_forgotten_goes_also_where_nothing_else_was_chosen(ann: Person, tmp_path: Path) -> None:
    chosen = ("--project", "almanac")
    export_dataset(ann, tmp_path / "lake", *chosen)
    count = len(table_objects(tmp_path / "lake", "sessions"))
    assert count
    assert ann.run("forget", "-y", "--project", "almanac").code == 0
    again = ann.run("export", "--format", "parquet", "-o", str(tmp_path / "lake"), *chosen)
    assert again.code == 1, "it may have been a slip"
    assert "retold: no sessions found\n" in again.err
    assert f"sessions: 0 written, 0 unchanged, {count} removed" in again.err
    assert list((tmp_path / "lake").rglob("*.parquet")) == []


def test_nothing_is_made_of_nothing(tmp_path: Path) -> None:
    person = Person(tmp_path / "eve")
    done = person.run("export", "--all", "--format", "parquet", "-o", str(tmp_path / "lake"))
    assert (done.code, (tmp_path / "lake").exists()) == (1, False)
    assert done.err.endswith("retold: no sessions found\n")
