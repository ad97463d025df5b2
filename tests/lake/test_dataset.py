"""`retold export --format parquet`: what is in it, for whom, and what it takes no part of."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from pyarrow import parquet

from datasets import (
    DRAFT,
    KEY,
    MAIL,
    answers,
    archived_person,
    everything,
    exported,
    home_again,
    rows,
    state,
)
from made_home import MadeHome, gemini, user
from made_talks import FORMS, turns, uuid
from persons import Person, is_root
from retold.archive.record import Record
from retold.lake.dataset import Dataset
from retold.lake.folder import Folder
from retold.lake.manifest import NotOurs
from retold.model.tables import TABLES


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return archived_person(tmp_path / "ann")


@pytest.fixture
def lake(ann: Person, tmp_path: Path) -> Path:
    exported(ann, tmp_path / "lake", "--all", "--no-redact")
    return tmp_path / "lake"


def kept(person: Person, query: str) -> tuple[Any, ...]:
    with Record(str(person.archive)) as record:
        (found,) = record.rows(query)
        return found


def objects(folder: Path, table: str) -> list[dict[str, object]]:
    return [json.loads(row) for row in rows(folder)[table]]


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
    (told,) = answers(
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
        assert (len(rows(lake)[table]),) == kept(ann, query)


def test_duckdb_polars_and_pandas_read_the_same_types(lake: Path) -> None:
    by_duckdb = answers(lake, "SELECT * FROM sessions ORDER BY session")
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


def test_large_numbers_and_moments_are_exact(tmp_path: Path) -> None:
    home = MadeHome(tmp_path / "bob")
    told = gemini("g1", 2, "So many.")
    told["timestamp"] = "2026-03-01T09:02:00.123Z"
    told["tokens"] |= {"input": 2**39 + 1, "total": 2**39 + 16}
    home.lines("den", 1, 1, [user("u1", 1, "How many?"), told], kind="main")
    person = Person(tmp_path / "bob")
    person.sync()
    exported(person, tmp_path / "lake")
    (found,) = answers(
        tmp_path / "lake", "SELECT input_tokens, epoch_us(happened_at) AS micros FROM requests"
    )
    moment = datetime(2026, 3, 1, 9, 2, 0, 123000, UTC)
    assert found == {"input_tokens": 2**39 + 1, "micros": int(moment.timestamp() * 1_000_000)}


def test_it_is_without_secrets_and_names_also_in_paths_and_manifest(ann: Person, tmp_path: Path) -> None:
    told = exported(ann, tmp_path / "lake")
    assert "taken out: " in told
    held = everything(tmp_path / "lake")
    for secret in (KEY, MAIL, "ternann"):
        assert secret.encode() not in held
    assert b"[redacted:" in held
    assert json.loads((tmp_path / "lake" / "retold.json").read_bytes())["is_redacted"] is True
    exported(ann, tmp_path / "lake", "--all", "--no-redact")
    assert KEY.encode() in everything(tmp_path / "lake")
    exported(ann, tmp_path / "lake")
    assert KEY.encode() not in everything(tmp_path / "lake")


def test_what_only_a_later_session_gives_away_does_not_stand_in_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retold.lake.layout.ROOM", 1)  # each in a part of its own
    home, word = MadeHome(tmp_path / "bob"), "Quagmire-Plover-77"
    home.lines("den", 1 << 28, 1, [user("u1", 1, f"try {word} again")], kind="main")
    person = Person(tmp_path / "bob")
    person.sync()
    exported(person, tmp_path / "lake")
    assert word.encode() in everything(tmp_path / "lake")
    home.lines("den", 2 << 28, 20, [user("u2", 21, f"DB_PASSWORD={word}")], kind="main")
    person.sync()
    exported(person, tmp_path / "lake")
    assert word.encode() not in everything(tmp_path / "lake")


def test_the_second_time_nothing_is_written(ann: Person, tmp_path: Path) -> None:
    for options in (("--all",), ("--all", "--no-redact")):
        exported(ann, tmp_path / "lake", *options)
        before = state(tmp_path / "lake")
        assert " 0 written, " in exported(ann, tmp_path / "lake", *options)
        assert state(tmp_path / "lake") == before


def test_without_the_key_everything_is_written_anew(ann: Person, lake: Path) -> None:
    before = rows(lake)
    (ann.archive / "dataset.key").unlink()
    assert " 0 unchanged, 0 removed" in exported(ann, lake, "--all", "--no-redact")
    assert rows(lake) == before


def test_a_file_that_was_lost_is_written_again(ann: Person, lake: Path) -> None:
    before = rows(lake)
    next(lake.glob("messages/agent=claude/*/*.parquet")).unlink()
    exported(ann, lake, "--all", "--no-redact")
    assert rows(lake) == before


def test_filters_choose_what_is_in_it_and_the_rest_goes(ann: Person, lake: Path) -> None:
    told = exported(ann, lake, "--agent", "claude", "--no-redact")
    assert {row["agent"] for row in objects(lake, "sessions")} == {"claude"}
    assert not list(lake.glob("*/agent=gemini"))
    assert " 0 removed" not in told
    exported(ann, lake, "00000002", "--no-redact")
    assert [row["first_prompt"] for row in objects(lake, "sessions")] == ["Where do herons nest?"]
    assert objects(lake, "problems") == []


def test_what_is_removed_is_counted_also_where_nothing_of_it_stays(ann: Person, tmp_path: Path) -> None:
    counts = Counter(str(row["agent"]) for row in ann.rows().values())
    assert min(counts["claude"], counts["codex"]) > 0
    exported(ann, tmp_path / "lake", "--agent", "claude", "--no-redact")
    told = exported(ann, tmp_path / "lake", "--agent", "codex", "--no-redact")
    assert f"{counts['codex']} written, 0 unchanged, {counts['claude']} removed" in told


def test_files_that_hold_no_session_are_none_that_is_removed(ann: Person, tmp_path: Path) -> None:
    exported(ann, tmp_path / "lake", "--agent", "gemini", "--no-redact")
    assert objects(tmp_path / "lake", "problems")
    keys = [key for key, row in ann.rows().items() if row["agent"] == "gemini"]
    assert " 0 removed" in exported(ann, tmp_path / "lake", *keys, "--no-redact")
    assert objects(tmp_path / "lake", "problems") == []


def test_a_report_tells_of_everything(ann: Person, tmp_path: Path) -> None:
    exported(ann, tmp_path / "lake")
    exported(ann, tmp_path / "lake", "--all", "--report", str(tmp_path / "report.jsonl"))
    told = (tmp_path / "report.jsonl").read_text(encoding="utf-8")
    assert '"kind":"email"' in told
    assert KEY not in told


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((), "name one with -o"),
        (("-o", "-"), "name one with -o"),
        (("-o", "{}/lake", "--messages", "1-2"), "whole sessions"),
        (("-o", "{}/lake", "--view", "active"), "whole sessions"),
        (("-o", "{}/lake", "--tools", "none"), "whoever reads it chooses"),
        (("-o", "{}/lake", "--templates", "{}"), "whoever reads it chooses"),
        (("-o", "{}/ann"), "other things in it"),
        (("-o", "{}/ann/.gemini/tmp/den/chats/session-2026-03-01T09-55-0000000f.json"), "a file, and"),
    ],
)
def test_what_is_no_place_for_it_is_refused(
    ann: Person, tmp_path: Path, options: tuple[str, ...], word: str
) -> None:
    given = [option.format(tmp_path) for option in options]
    done = ann.run("export", "--all", "--format", "parquet", *given)
    assert done.code == 2
    assert word in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "lake").exists()


def test_a_manifest_of_others_is_left_alone(ann: Person, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "retold.json").write_text('{"mine": 1}')
    done = ann.run("export", "--all", "--format", "parquet", "-o", str(tmp_path / "lake"))
    assert (done.code, (tmp_path / "lake" / "retold.json").read_text()) == (2, '{"mine": 1}')


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_everything_is_for_its_owner_alone(lake: Path, ann: Person) -> None:
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (lake, *lake.rglob("*"))}
    assert modes == {True: 0o700, False: 0o600}
    assert (ann.archive / "dataset.key").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    yield folder
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"kept": "kept"}


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_no_link_leads_out_of_it(ann: Person, lake: Path, elsewhere: Path) -> None:
    before = rows(lake)
    part = next(lake.glob("sessions/agent=gemini/*/part-0000.parquet"))
    part.unlink()
    part.symlink_to(elsewhere / "kept")
    exported(ann, lake, "--all", "--no-redact")
    assert not part.is_symlink()
    assert rows(lake) == before
    folder = lake / "events"
    folder.rename(lake.parent / "away")
    folder.symlink_to(elsewhere)
    done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake), "--no-redact")
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_hostile_texts_stay_in_their_cells(tmp_path: Path) -> None:
    home, text = MadeHome(tmp_path / "bob"), "a\x00b\n../..\u202e\ud800 '; DROP TABLE x; --"
    home.lines(
        "../den%3D=x".replace("/", "_"),
        1,
        1,
        [user("u1", 1, text)],
        kind="main",
        root="/home/bob/a=b%2F/..\n",
    )
    person = Person(tmp_path / "bob")
    person.sync()
    exported(person, tmp_path / "lake", "--all", "--no-redact")
    (row,) = objects(tmp_path / "lake", "sessions")
    assert str(row["first_prompt"]).startswith("a\x00b\n../..")
    files = [file.relative_to(tmp_path / "lake").parts for file in (tmp_path / "lake").rglob("*.parquet")]
    assert {parts[1:] for parts in files} == {("agent=gemini", "month=2026-03", "part-0000.parquet")}


def test_two_at_a_time_are_refused(ann: Person, lake: Path) -> None:
    with Folder(str(lake)):
        done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake))
    assert (done.code, "another retold" in done.err) == (4, True)


def test_a_full_disk_leaves_what_was_there(
    ann: Person, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(lake)
    home_again(tmp_path / "ann").lines("den", 3, 30, [user("u3", 31, "And otters?")], kind="main")
    ann.sync()

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("retold.lake.parts.reach_disk", full)
        done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake), "--no-redact")
    assert (done.code, "No space left" in done.err) == (4, True)
    assert rows(lake) == before
    assert not [file for file in lake.rglob("*") if DRAFT.search(file.name)]
    exported(ann, lake, "--all", "--no-redact")
    assert len(rows(lake)["sessions"]) == len(before["sessions"]) + 1


@pytest.mark.parametrize("what", ["retold.lake.folder.Folder.opened", "retold.lake.parts.ParquetWriter"])
def test_a_file_that_cannot_be_opened_is_told_as_what_it_is(
    ann: Person, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    before = rows(lake)
    home_again(tmp_path / "ann").lines("den", 3, 30, [user("u3", 31, "And otters?")], kind="main")
    ann.sync()

    opened = Folder.opened

    def refused(*given: Any, **_: object) -> Any:
        if "retold.json" in str(given[0]):
            return opened(given[0])
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(what, staticmethod(refused))
        done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake), "--no-redact")
    assert (done.code, "Too many open files" in done.err) == (4, True)
    assert rows(lake) == before
    assert not [file for file in lake.rglob("*") if DRAFT.search(file.name)]


@pytest.mark.skipif(os.name == "nt", reason="there are no such numbers of files there")
def test_a_folder_that_is_not_ours_after_all_is_let_go(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "lake"))
    (tmp_path / "lake" / "retold.json").write_text("{}")
    before = os.open(os.devnull, os.O_RDONLY)
    os.close(before)
    with pytest.raises(NotOurs), folder:
        pass
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert after == before, "the lock is still held"


@pytest.mark.skipif(is_root or os.name == "nt", reason="root may write everywhere")
def test_a_folder_that_nobody_may_write_to_is_told(ann: Person, lake: Path) -> None:
    (lake / ".retold.lock").unlink()
    lake.chmod(0o500)
    done = ann.run("export", "--all", "--format", "parquet", "-o", str(lake))
    lake.chmod(0o700)
    assert done.code == 4


def test_what_a_sync_brings_while_it_is_written_is_without_its_secrets(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Dataset._learn  # noqa: SLF001 - nowhere else is it between the two

    def meanwhile(self: Dataset, show: Callable[[int, int], None]) -> None:
        learn(self, show)
        late = "export DB_PASSWORD=qX7vTr0ub4dor93Zk"
        home_again(ann.folder).lines("den", 2, 20, [user("u2", 21, late), gemini("g2", 22, "In reeds.")])
        ann.sync()

    monkeypatch.setattr(Dataset, "_learn", meanwhile)
    exported(ann, tmp_path / "lake")
    texts = [row["text"] for row in objects(tmp_path / "lake", "messages")]
    assert any("DB_PASSWORD" in str(text) for text in texts), "it came too late to be seen"
    assert "qX7vTr0ub4dor93Zk" not in str(texts)


def bringing(ann: Person, secrets: list[str]) -> Callable[[Dataset, Callable[[int, int], None]], None]:
    """Return what learns, and then lets a sync bring a session with one of some secrets."""
    learn = Dataset._learn  # noqa: SLF001 - nowhere else is it between the two

    def meanwhile(self: Dataset, show: Callable[[int, int], None]) -> None:
        learn(self, show)
        if secrets:
            said = [user("u2", 21, f"DB_PASSWORD={secrets.pop()}"), gemini("g2", 22, "In reeds.")]
            home_again(ann.folder).lines("den", 2, 20, said)
            ann.sync()

    return meanwhile


def test_what_a_sync_gives_away_while_it_is_written_stands_in_no_other_session(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "Quagmire-Plover-77"
    home_again(ann.folder).lines("den", 5 << 28, 5, [user("u5", 6, f"try {word} again")], kind="main")
    ann.sync()
    with monkeypatch.context() as patched:
        patched.setattr(Dataset, "_learn", bringing(ann, [word]))
        exported(ann, tmp_path / "lake")
    held = everything(tmp_path / "lake")
    assert b"DB_PASSWORD" in held, "it came too late to be seen"
    assert word.encode() not in held
    assert json.loads((tmp_path / "lake" / "retold.json").read_bytes())["is_redacted"] is True
    assert " 0 written, " in exported(ann, tmp_path / "lake")


def test_where_syncs_bring_secrets_all_the_while_it_is_not_called_complete(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        secrets = [f"Quagmire-Plover-{number}" for number in range(10, 30)]
        patched.setattr(Dataset, "_learn", bringing(ann, secrets))
        done = ann.run("export", "--all", "--format", "parquet", "-o", str(tmp_path / "lake"))
    assert (done.code, "secrets all the while" in done.err) == (4, True)
    assert len(secrets) == 16, "it gave up soon"
    told = json.loads((tmp_path / "lake" / "retold.json").read_bytes())
    assert (told["is_redacted"], told["is_complete"]) == (False, False)
    exported(ann, tmp_path / "lake")
    told = json.loads((tmp_path / "lake" / "retold.json").read_bytes())
    assert (told["is_redacted"], told["is_complete"]) == (True, True)


def test_what_others_write_without_a_secret_costs_nothing_written_twice(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, brought = Dataset._learn, Dataset._brought  # noqa: SLF001 - nowhere else is it between the two
    rounds: list[int] = []

    def tagged(self: Dataset, show: Callable[[int, int], None]) -> None:
        learn(self, show)
        assert ann.run("tag", min(ann.rows()), "+reeds").code == 0

    def counted(self: Dataset, *given: Any, **named: Any) -> Any:
        rounds.append(1)
        return brought(self, *given, **named)

    monkeypatch.setattr(Dataset, "_learn", tagged)
    monkeypatch.setattr(Dataset, "_brought", counted)
    exported(ann, tmp_path / "lake")
    assert len(rounds) == 1


def test_a_dataset_is_not_called_redacted_before_it_is(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(ann, tmp_path / "lake", "--all", "--no-redact")

    def stopped(*_: object) -> dict[str, int]:
        raise OSError("stopped")

    with monkeypatch.context() as patched:
        patched.setattr("retold.lake.dataset.write_part", stopped)
        assert ann.run("export", "--all", "--format", "parquet", "-o", str(tmp_path / "lake")).code == 4
    told = json.loads((tmp_path / "lake" / "retold.json").read_bytes())
    assert (told["is_redacted"], told["is_complete"]) == (False, False)
    exported(ann, tmp_path / "lake")
    told = json.loads((tmp_path / "lake" / "retold.json").read_bytes())
    assert (told["is_redacted"], told["is_complete"]) == (True, True)


def test_a_session_that_goes_with_its_secret_is_counted_as_gone(ann: Person, tmp_path: Path) -> None:
    exported(ann, tmp_path / "lake")
    (key,) = {
        row["session"] for row in objects(tmp_path / "lake", "messages") if "[redacted" in str(row["text"])
    }
    assert ann.run("forget", str(key)).code == 0
    assert ", 1 removed" in exported(ann, tmp_path / "lake")


def test_what_a_copied_message_took_is_counted_as_a_report_counts_it(tmp_path: Path) -> None:
    path = FORMS["gemini-lines"].write(tmp_path / "ann", 1, turns("heron", "otter"))
    text = path.read_text(encoding="utf-8").replace(f'"sessionId":"{uuid(1)}"', f'"sessionId":"{uuid(2)}"')
    path.with_name(path.name.replace("00000001", "00000002")).write_text(text, encoding="utf-8")
    person = Person(tmp_path / "ann")
    person.sync()
    assert {row["kind"] for row in person.rows().values()} == {"main", "fork"}
    exported(person, tmp_path / "lake")
    (report,) = person.run("stats", "--by", "agent", "--json").objects
    (asked,) = person.run("sql", "--json", "SELECT sum(total_tokens) AS tokens FROM requests").objects
    (found,) = answers(tmp_path / "lake", "SELECT sum(total_tokens)::BIGINT AS tokens FROM requests")
    assert report["usage"]["total"] == asked["tokens"] == found["tokens"]


def test_what_is_forgotten_goes_also_where_nothing_else_was_chosen(ann: Person, tmp_path: Path) -> None:
    chosen = ("--project", "almanac")
    exported(ann, tmp_path / "lake", *chosen)
    count = len(objects(tmp_path / "lake", "sessions"))
    assert count
    assert ann.run("forget", "--project", "almanac").code == 0
    told = exported(ann, tmp_path / "lake", *chosen)
    assert f"sessions: 0 written, 0 unchanged, {count} removed" in told
    assert list((tmp_path / "lake").rglob("*.parquet")) == []


def test_nothing_is_made_of_nothing(tmp_path: Path) -> None:
    person = Person(tmp_path / "eve")
    done = person.run("export", "--all", "--format", "parquet", "-o", str(tmp_path / "lake"))
    assert (done.code, (tmp_path / "lake").exists()) == (1, False)
    assert done.err.endswith("retold: no sessions found\n")
