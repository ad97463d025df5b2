"""The views for SQL hold what the tables of the same names do, but for what each says that it lacks."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retold.archive import sql
from retold.archive.database import RetoldError
from retold.archive.sql import EXTRA_COLUMNS, MISSING_COLUMNS, VIEWS, QueryClock, QueryResult, view_columns
from retold.archive.store import Store, pack_summary, unpack_summary
from retold.lake.session_rows import RowSource, UnreadFile, table_rows
from retold.model import FIGURES
from retold.model.serialization import format_utc
from retold.model.session import COPY_KINDS, is_spoken
from retold.model.tables import FILES, STRINGS, TABLES, Column
from support.conversation_files import FORMS, turns
from support.demo_person import DemoPerson
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import Person
from support.synced_archive import SyncedArchive, sync_archive

Rows = list[tuple[Any, ...]]


def answer(folder: Path | str, query: str, values: Mapping[str, int] | None = None) -> Rows:
    with Store(str(folder)) as record, QueryResult(record, query, values or {}, QueryClock(60)) as found:
        return list(found.rows())


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> SyncedArchive:
    """Two homes, one with a label: all forms, a checkpoint, a refused file, problems, tokens beyond all bounds."""
    folder = tmp_path_factory.mktemp("mixed")
    for number, form in enumerate(FORMS.values()):
        form.write(folder / "ann", number, turns("heron", "otter"))
    home = GeminiHome(folder / "bob")
    edit = call("replace", {"file_path": "/home/bob/dev/tide/neap.py", "old_string": "a"}, 3, status="error")
    counted = gemini(
        "g1", 3, "done", [edit, call("read_file", {"file_path": "/home/bob/dev/tide/neap.py"}, 3)]
    )
    counted["tokens"] |= {"input": 10**30}
    counted["toolCalls"][1].pop("timestamp")
    feigned = user("u2", 4, 'the end","view":"full","extra":{}},"view":')
    records = [user("u1", 2, "mend the neap tide\u202e\x1b[31m"), counted, {"type": "odd"}, feigned]
    home.json("tide", 9, 2, records)
    home.write("tmp/tide/chats/session-2026-03-01T09-40-0000ffff.json", "{")
    home.write("tmp/tide/checkpoint-before.json", json.dumps([{"role": "user", "parts": [{"text": "again"}]},
               {"role": "model", "parts": [{"text": "and again"}]}]))  # fmt: skip
    env = {"HOME": str(folder / "ann")}
    return sync_archive(folder / "retold", env, [("barge", folder / "bob")])


@pytest.fixture(scope="module", params=["mixed", "demo"])
def home(request: pytest.FixtureRequest, mixed: SyncedArchive, demo_env: dict[str, str]) -> SyncedArchive:
    return mixed if request.param == "mixed" else sync_archive(demo_env["RETOLD_HOME"], demo_env)


# What there is -----------------------------------------------------------------------------------------------------


def test_there_is_a_view_for_each_table_but_that_of_events() -> None:
    assert set(VIEWS) == set(MISSING_COLUMNS) == TABLES.keys() - {"events"}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_of_its_table_in_their_order_but_for_those_it_says_it_lacks(
    view: str, mixed: SyncedArchive
) -> None:
    query = f"SELECT * FROM {view}"  # noqa: S608 - ours
    with Store(mixed.folder) as record, QueryResult(record, query, {}, QueryClock(9)) as found:
        names = found.names
    known = [column.name for column in TABLES[view].columns if not column.is_said]
    more = [column.name for column in EXTRA_COLUMNS.get(view, ())]
    assert names == [*(name for name in known if name not in MISSING_COLUMNS[view]), *more]
    assert names == [column.name for column in view_columns(view)]
    assert not MISSING_COLUMNS[view].keys() - set(known), "only a column that there is can be lacking"
    assert all(MISSING_COLUMNS[view].values())
    assert not set(more) & set(TABLES[view].names)


def test_what_is_lacking_is_no_more_than_this() -> None:
    assert {view: sorted(lacking) for view, lacking in MISSING_COLUMNS.items() if lacking} == {
        "messages": ["request"],
        "tool_calls": ["call", "child", "exit_code", "native_status"],
        "requests": ["request"],
        "files_touched": [
            "call",
            "canonical",
            "fate",
            "file",
            "happened_at",
            "is_change",
            "own",
            "place",
            "seq",
            "status",
        ],
    }


# The same rows -----------------------------------------------------------------------------------------------------


def tables_of(home: SyncedArchive, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as sessions make them, in the words of the views."""
    columns = {column.name: column for column in TABLES[name].columns}
    with Store(home.folder) as record:
        known = dict(record.rows("SELECT key, uid FROM sessions"))
        labels = dict(record.rows("SELECT path, label FROM sources"))
    tellings: list[RowSource | UnreadFile] = [
        RowSource(session, known[session.key]) for session in home.sessions()
    ]
    tellings += [UnreadFile("gemini", labels[one.path], one) for one in home.refusals()]
    for told in tellings:
        for row in table_rows(name, told):
            yield {
                column.name: in_sql(value, column)
                for column, value in zip(columns.values(), row, strict=True)
            } | _only_in_view(name, told)


def _only_in_view(name: str, told: RowSource | UnreadFile) -> dict[str, Any]:
    """Return the columns that only the view has, made from the session."""
    if name == "sessions" and isinstance(told, RowSource):
        return {"is_spoken": int(is_spoken(told.session))}
    return {}


def in_sql(value: object, column: Column) -> object:
    match value:
        case datetime():
            return format_utc(value)
        case Decimal():
            return float(value)
        case bool():
            return int(value)
    if column.type in (STRINGS, FILES):
        return json.dumps(value, separators=(",", ":"))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


@pytest.mark.parametrize("view", [view for view in VIEWS if view not in ("requests", "files_touched")])
def test_a_view_holds_what_its_table_does(view: str, home: SyncedArchive) -> None:
    names = [column.name for column in view_columns(view)]
    expected = Counter(tuple(row[name] for name in names) for row in tables_of(home, view))
    assert Counter(answer(home.folder, f"SELECT * FROM {view}")) == expected  # noqa: S608 - ours


def test_requests_are_those_of_the_table_and_copies_have_none(home: SyncedArchive) -> None:
    names = [column.name for column in view_columns("requests") if column.name != "cost_usd"]
    copies = {session.key for session in home.sessions() if session.kind in COPY_KINDS}
    rows = list(tables_of(home, "requests"))
    found = answer(home.folder, f"SELECT {', '.join(names)} FROM requests")  # noqa: S608 - ours
    assert Counter(found) == Counter(tuple(row[name] for name in names) for row in rows)
    assert copies, "a home without copies shows nothing"
    assert not copies & {row["session"] for row in rows}


def test_files_are_counted_by_session(mixed: SyncedArchive) -> None:
    named: Counter[tuple[str, str]] = Counter()
    for row in tables_of(mixed, "files_touched"):
        named[row["session"], row["path"]] += row["is_change"]
    rows = answer(mixed.folder, "SELECT session, path, changes FROM files_touched")
    assert {(session, path): changes for session, path, changes in rows} == named
    assert 1 in named.values()


def test_the_made_home_shows_what_is_hard(mixed: SyncedArchive) -> None:
    """What the comparisons above rest on is there: labels, refusals, problems, sums that are too large."""
    assert answer(mixed.folder, "SELECT DISTINCT home FROM messages ORDER BY 1") == [(None,), ("barge",)]
    assert answer(mixed.folder, "SELECT homes FROM sessions WHERE home IS NOT NULL LIMIT 1") == [
        ('["barge"]',)
    ]
    assert answer(mixed.folder, "SELECT home, month FROM problems WHERE session IS NULL") == [
        ("barge", "unknown")
    ]
    assert answer(mixed.folder, "SELECT count(*) > 0 FROM problems WHERE session IS NOT NULL") == [(1,)]
    assert answer(mixed.folder, "SELECT max(input_tokens) FROM sessions") == [(2**63 - 1,)]
    assert answer(mixed.folder, "SELECT count(*) FROM tool_calls WHERE status = 'error'") == [(1,)]
    with Store(mixed.folder) as record:
        assert record.row("SELECT 1 FROM tool_calls WHERE at IS NULL") is not None


# The same sums -----------------------------------------------------------------------------------------------------

_SPENT = f"""
SELECT agent, count(*), {", ".join(f"sum({figure}_tokens)" for figure in FIGURES)}, sum(cost_usd)
FROM requests WHERE estimated = :estimated GROUP BY agent
"""  # noqa: S608 - ours
_CALLED = """
SELECT agent, count(*), sum(status = 'error') FROM tool_calls
WHERE own AND session IN (SELECT session FROM sessions WHERE kind NOT IN ('checkpoint', 'capture')) GROUP BY agent
"""


def assert_sums_are_those_of_stats(person: Person) -> None:
    lines = person.run("stats", "--by", "agent", "--json").objects
    spent = {row[0]: row[1:] for row in answer(person.archive, _SPENT, {"estimated": 0})}
    guessed = {row[0]: row[1:] for row in answer(person.archive, _SPENT, {"estimated": 1})}
    called = {row[0]: row[1:] for row in answer(person.archive, _CALLED)}
    for line in lines:
        measured = spent.get(line["of"], (0,))
        assert measured[0] == line["requests"]
        if line["requests"]:
            assert_same_spend(measured, line["usage"], line["cost_usd"])
        if line["estimated"]:
            assert guessed[line["of"]][0] == line["estimated"]["requests"]
            assert guessed[line["of"]][7] == line["estimated"]["usage"]["total"]
        assert called.get(line["of"], (0, 0)) == (line["tool_calls"], line["tool_errors"])
    assert {line["of"] for line in lines if line["requests"]} == spent.keys()
    assert {line["of"] for line in lines if line["estimated"]} == guessed.keys()


def assert_same_spend(row: tuple[Any, ...], usage: Mapping[str, int | None], cost: str | None) -> None:
    for figure, found in zip(FIGURES, row[1:9], strict=True):
        assert found == usage.get(figure), figure
    assert (row[9] is None) == (cost is None)
    assert cost is None or round(Decimal(row[9]), 9) == round(Decimal(cost), 9)


def test_sums_of_the_demo_are_those_of_stats(tmp_path: Path) -> None:
    person = DemoPerson(tmp_path)
    assert_sums_are_those_of_stats(person)
    (row,) = answer(person.archive, "SELECT count(*) FROM sessions WHERE kind = 'fork'")
    assert row[0], "what is counted once is held twice"


@pytest.mark.shared
def test_sums_of_a_home_with_known_totals_are_those_of_stats(tmp_path: Path, shared: Path) -> None:
    person = Person(tmp_path / "ann")
    shutil.rmtree(person.folder)
    maker = [sys.executable, str(shared / "truth" / "make_home.py"), str(person.folder)]
    subprocess.run(maker, check=True, capture_output=True)
    person.sync()
    assert_sums_are_those_of_stats(person)
    assert answer(person.archive, "SELECT count(*) > 0 FROM requests") == [(1,)]


# What is asked for, and no more ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "unpacked"),
    [
        ("SELECT count(*) FROM sessions", 0),
        ("SELECT session, title, total_tokens, ended_at FROM sessions ORDER BY ended_at DESC", 0),
        ("SELECT tool, count(*) FROM tool_calls WHERE own GROUP BY tool", 0),
        ("SELECT model, sum(cost_usd) FROM requests GROUP BY model", 0),
        ("SELECT sessions.title FROM sessions LEFT JOIN requests USING (session)", 0),
        ("SELECT first_prompt, last_prompt, tags, models, cost_usd FROM sessions", "sessions"),
        ("SELECT first_prompt FROM sessions LIMIT 1", 1),
    ],
)
def test_a_session_is_unpacked_only_where_that_is_asked_for(
    query: str, unpacked: int | str, mixed: SyncedArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    (count,) = answer(mixed.folder, "SELECT count(*) FROM sessions")[0]
    calls: list[bytes] = []

    def counted(packed: bytes) -> str:
        calls.append(packed)
        return unpack_summary(packed)

    monkeypatch.setattr(sql, "unpack_summary", counted)
    assert answer(mixed.folder, query)
    assert len(calls) == (count if unpacked == "sessions" else unpacked)


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "problems"])
def test_a_session_is_found_by_its_key_without_a_look_at_all(view: str, mixed: SyncedArchive) -> None:
    rows = answer(mixed.folder, f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE session = 'x'")  # noqa: S608 - ours
    assert not [told for *_, told in rows if told.startswith("SCAN") and "json_each" not in told]


# How long it may take -----------------------------------------------------------------------------------------------


def test_time_counts_only_while_a_query_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("retold.archive.sql.time.monotonic", lambda: now)
    clock = QueryClock(10)
    for _ in range(3):
        clock.start()
        now += 3
        assert not clock.is_over()
        clock.stop()
        now += 100
        assert not clock.is_over()
    clock.start()
    assert not clock.is_over()
    now += 1.5
    assert clock.is_over()
    assert not clock.is_over(grace=1)


def test_many_small_steps_are_bounded_as_one_large_one(mixed: SyncedArchive) -> None:
    query = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000000) SELECT x FROM n"
    )
    with Store(mixed.folder) as record, QueryResult(record, query, {}, QueryClock(0.2)) as found:
        assert next(found.rows()) == (1,)
        with pytest.raises(RetoldError, match=r"longer than 0\.2 s"):
            list(found.rows())


def test_a_connection_that_cannot_write_at_all_has_the_views_too(mixed: SyncedArchive) -> None:
    with Store(mixed.folder) as record:
        record.connection.close()
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        record.connection = apsw.Connection(f"{Path(record.path).as_uri()}?immutable=1", flags=flags)
        with QueryResult(record, "SELECT count(first_prompt) FROM sessions", {}, QueryClock(9)) as found:
            assert list(found.rows()) > [(1,)]


def test_the_bound_of_memory_is_that_of_one_query(mixed: SyncedArchive) -> None:
    before = apsw.hard_heap_limit(0)
    try:
        assert answer(mixed.folder, "SELECT 1")
        assert apsw.hard_heap_limit(-1) == 0
    finally:
        apsw.hard_heap_limit(before)


# Times -------------------------------------------------------------------------------------------------------------

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.integers(-(10**15), 10**15 * 9))
@example(-1)
@example(-1000)
@example(1_772_355_600_123_000)
@example(1_772_355_600_123_456)
def test_times_are_told_as_everywhere(at: int) -> None:
    told = apsw.Connection(":memory:").execute(f"SELECT {sql._time('?1')}", (at,)).get  # noqa: SLF001 - ours
    assert told == format_utc(EPOCH + timedelta(microseconds=at))


def test_what_is_nested_deeper_than_sqlite_reads_hides_nothing(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    FORMS["gemini-json"].write(person.folder, 1, turns("heron"))
    person.sync()
    with Store(str(person.archive), can_write=True) as record:
        text = unpack_summary(next(record.rows("SELECT packed FROM summaries"))[0])
        deep = '"extra":{"deep":' + "[" * 3000 + "]" * 3000 + "}}"
        head = text[: text.index('"extra":')]
        record.connection.execute("UPDATE summaries SET packed = ?", (pack_summary(head + deep),))
    assert answer(person.archive, "SELECT first_prompt FROM sessions") == [("asked heron",)]
