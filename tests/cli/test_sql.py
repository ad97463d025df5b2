"""`retold sql`: what a query may ask, how its answer is told, and that nothing it does can do harm."""

import csv
import hashlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from retold.archive.sql import LONGEST_QUERY, MISSING_COLUMNS, VIEWS
from retold.cli.console import Console
from retold.export.text.sql_results import format_rows
from retold.model.tables import TABLES
from support.conversation_files import FORMS, turns
from support.demo_person import DemoPerson
from support.gemini_home import GeminiHome, call, gemini, user
from support.person import CommandResult, Person

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sql.md"
QUERIES = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
STEERING = "mend\x1b[31m the \x07neap\u202e tide\r=1+1"
WIDE = ", ".join(f"hex(zeroblob(2000000)) a{number}" for number in range(40))
BLIND = "instr(printf('%.*c', 7000000, 'a'), printf('%.*c', 3500000, 'a') || 'b')"
"""A single step that takes for ever: SQLite looks at no clock meanwhile."""


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody with a conversation in each form, and one that wants to steer terminals."""
    person = Person(tmp_path_factory.mktemp("sql") / "ann")
    home = GeminiHome(person.folder)
    for number, form in enumerate(FORMS.values()):
        form.write(person.folder, number, turns("heron", "otter"))
    edit = call("replace", {"file_path": "/home/ann/dev/tide/neap.py", "old_string": "a"}, 3)
    home.json("tide", 9, 2, [user("u1", 2, STEERING), gemini("g1", 3, "done", [edit])])
    person.age()
    person.sync()
    return person


def rows(person: Person, *arguments: str) -> list[tuple[object, ...]]:
    done = person.run("sql", "--json", *arguments)
    assert (done.code, done.err) == (0, ""), done
    return [tuple(told.values()) for told in done.objects]


def refused(person: Person, *arguments: str) -> str:
    """Return the one line that is told of a query that is at fault."""
    done = person.run("sql", *arguments)
    assert (done.code, done.out) == (2, ""), done
    (line,) = done.err.splitlines()
    return line.removeprefix("retold: ")


def digests(person: Person) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in person.files()}


# Answers -----------------------------------------------------------------------------------------------------------


def test_a_table_fits_the_terminal_with_numbers_on_the_right(ann: Person) -> None:
    query = "SELECT agent, title, summary, total_tokens FROM sessions ORDER BY ended_at DESC, session LIMIT 2"
    done = ann.run("sql", query)
    assert (done.code, done.err) == (0, "")
    heading, *lines = done.out.splitlines()
    assert heading.split() == ["agent", "title", "summary", "total_tokens"]
    assert len(lines) == 2
    assert all(len(line) <= 80 for line in [heading, *lines])
    assert all(line.endswith(("115", "230")) for line in lines)
    assert len({len(line) for line in [heading, *lines]}) == 1


def test_cells_of_text_are_cut_and_numbers_are_not(ann: Person) -> None:
    done = ann.run("sql", f"SELECT '{'x' * 100}' AS long, {10**17} AS number, 0.1 + 0.2, 1.0, NULL AS nought")
    heading, line = done.out.splitlines()
    assert re.search(r"x…  100000000000000000        0\.3  1\.0  NULL$", line)
    assert len(line) <= 80
    assert heading.endswith("nought")


def test_where_columns_do_not_fit_each_row_is_told_apart(ann: Person) -> None:
    done = ann.run("sql", "SELECT * FROM sessions ORDER BY session LIMIT 2")
    first, second = done.out.split("\n\n")
    assert first.startswith("agent                  claude\n")
    assert "\nparent                 NULL\n" in second
    assert all(len(line) <= 80 for line in done.out.splitlines())


def test_rows_behind_the_first_hundreds_are_told_as_they_come(ann: Person) -> None:
    query = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000) SELECT x, 'a' FROM n"
    )
    lines = ann.run("sql", query).out.splitlines()
    assert lines[1] == "  1  a"
    assert lines[-1] == "1000  a"
    assert len(lines) == 1001


def test_null_is_dim_on_a_terminal() -> None:
    out = io.StringIO()
    console = Console({}, out)
    console.has_color = True
    for pieces in format_rows(["a", "b"], [(None, "x")], 80):
        console.write_styled(pieces)
    assert out.getvalue().splitlines()[1] == "\x1b[2mNULL  \x1b[0mx"


def test_an_object_for_each_row(ann: Person) -> None:
    query = "SELECT 1 AS n, 1.5 AS r, 'ä\"' AS t, NULL AS z, x'00ff' AS b, 9e999 AS i, n FROM (SELECT 2 AS n)"
    assert ann.run("sql", "--json", query).out == (
        '{"n":1,"r":1.5,"t":"ä\\"","z":null,"b":"00ff","i":null,"n_2":2}\n'
    )


def test_lists_are_json_and_can_be_taken_apart(ann: Person) -> None:
    query = "SELECT DISTINCT value FROM sessions, json_each(models) WHERE agent = 'gemini'"
    assert rows(ann, query) == [("gemini-2.5-pro",)]


def test_csv_is_what_spreadsheets_read_and_do_not_calculate(ann: Person) -> None:
    query = (
        "SELECT '=1+1' AS \"a,b\", -5 AS n, NULL AS z, 'x\"y' || char(10) || 'z' AS t, '@f' AS f, x'0a' AS b"
    )
    done = ann.run("sql", "--csv", query)
    found = list(csv.reader(io.StringIO(done.out, newline=""), strict=True))
    assert found == [["a,b", "n", "z", "t", "f", "b"], ["'=1+1", "-5", "", 'x"y\nz', "'@f", "0a"]]
    assert ann.run("sql", "--csv", "SELECT NULL AS a UNION ALL SELECT 1").out == 'a\n""\n1\n'


@pytest.mark.parametrize(("form", "out"), [((), "title\n"), (("--csv",), "title\n"), (("--json",), "")])
def test_no_rows_are_an_answer(ann: Person, form: tuple[str, ...], out: str) -> None:
    assert ann.run("sql", *form, "SELECT title FROM sessions WHERE 0") == CommandResult(0, out, "")


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)])
def test_nothing_that_was_said_steers_a_terminal(ann: Person, form: tuple[str, ...]) -> None:
    done = ann.run(
        "sql",
        *form,
        "SELECT title, first_prompt, title AS \"\x1b[1mx\" FROM sessions WHERE title LIKE '%neap%'",
    )
    assert done.code == 0
    assert "neap" in done.out
    assert not set(done.out) & {"\x1b", "\x07", "\r", "\u202e"}
    told = refused(ann, "SELECT \x1b[31mx\u202e\n\ny FROM sessions")
    assert not set(told) & {"\x1b", "\u202e", "\n"}


def test_what_steers_is_a_picture_in_csv_and_itself_in_json(ann: Person) -> None:
    codes = (0, 9, 10, 13, 27, 127, 155, 8238, 228)
    query = f"SELECT char({', '.join(map(str, codes))})"
    lines = ann.spawn("sql", "--csv", query).out
    assert lines.partition("\n")[2] == '"␀\t\n␍␛␡\ufffd\ufffdä"\n'
    assert rows(ann, query) == [("".join(map(chr, codes)),)]


def test_whoever_has_no_archive_is_given_one(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    FORMS["claude"].write(person.folder, 1, turns("heron"))
    done = person.run("sql", "SELECT count(*) AS n FROM sessions", "--json")
    assert (done.code, done.out) == (0, '{"n":1}\n')
    assert done.err.startswith("retold: no archive yet: reading what your agents have kept\n")


# Questions ---------------------------------------------------------------------------------------------------------


def test_a_query_may_come_on_stdin(ann: Person) -> None:
    process = ann.start("sql", "-", "--csv", stdin=subprocess.PIPE)
    out, err = process.communicate(
        "-- how many\nSELECT count(*) AS n\nFROM sessions; -- that is all\n", timeout=60
    )
    assert (process.returncode, out, err) == (0, "n\n5\n", "")


def test_values_are_bound_and_not_pasted(ann: Person) -> None:
    values = (
        "--set",
        "a='); DROP TABLE x",
        "--set",
        "b=007",
        "--set",
        "c=-12",
        "--set",
        "d=1.50",
        "--set",
        "e=",
    )
    query = "SELECT :a, :b, typeof(@c), $d, :e, typeof(:d)"
    assert rows(ann, query, *values) == [("'); DROP TABLE x", "007", "integer", 1.5, "", "real")]
    assert rows(ann, "SELECT count(*) FROM sessions WHERE agent = :agent", "--set", "agent=codex") == [(1,)]
    assert refused(ann, "SELECT :who") == "no value for :who: --set who=VALUE gives it one"


@pytest.mark.parametrize("query", ["SELECT ?", "SELECT ?1", "SELECT :1", "SELECT $a::b(c)", "SELECT :a, ?"])
def test_a_value_that_cannot_be_set_is_told_to_need_a_name(ann: Person, query: str) -> None:
    told = refused(ann, query, "--set", "a=1")
    assert told == "values are given by name: write :name for --set name=VALUE"


@pytest.mark.parametrize(
    "wrong", [("--set", "a"), ("--set", "=1"), ("--set", "a b=1"), ("--timeout", "0"), ("--timeout", "nan"), ("--timeout", "x")]
)  # fmt: skip
def test_options_that_mean_nothing_are_wrong_usage(ann: Person, wrong: tuple[str, str]) -> None:
    done = ann.run("sql", "SELECT 1", *wrong)
    assert (done.code, done.out) == (2, "")
    assert wrong[1] in done.err


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("", "nothing is asked"),
        (" -- only a remark", "nothing is asked"),
        ("SELEC 1", 'near "SELEC": syntax error'),
        ("SELECT 1; SELECT 2", "one statement at a time: this begins another: SELECT 2"),
        ("SELECT 1; garbage", "one statement at a time: this begins another: garbage"),
        ("SELECT nought('x')", "no such function: nought"),
        ("SELECT 1 LIMIT 'x'", "datatype mismatch"),
        ("SELECT CAST(x'ff' AS TEXT)", "a value is no text: hex() shows its bytes"),
        ("SELECT json('{')", "malformed JSON"),
        ('SELECT "text" FROM messages', 'no such column: "text" - should this be a string literal'),
    ],
)
def test_a_query_at_fault_is_told_on_one_line(ann: Person, query: str, told: str) -> None:
    assert refused(ann, query).startswith(told)


def test_who_names_what_is_not_there_is_told_what_there_is(ann: Person) -> None:
    assert refused(ann, "SELECT * FROM talks") == f"no such table: talks: there are {', '.join(VIEWS)}"
    told = refused(ann, "SELECT tokens FROM requests r JOIN sessions s USING (session)")
    assert told.startswith("no such column: tokens; sessions has agent, month,")
    assert (
        "; requests has agent, month, home, project, session, conversation, seq, model, happened_at, input_tokens"
        in told
    )
    assert "messages has" not in told


@pytest.mark.parametrize(
    "query", ["SELECT 1;", "SELECT 1 ; ; ", "SELECT 1 /* a; b */ ; -- c; d", "SELECT 1 /* open", ";SELECT 1"]
)
def test_what_is_blank_is_no_second_statement(ann: Person, query: str) -> None:
    assert rows(ann, query) == [(1,)]


@pytest.mark.parametrize(
    "rest", ["-" * 50_000, "--" * 20_000 + "\n" * 20_000, "/*" * 20_000 + "*/" * 20_000, ";" * 50_000]
)
def test_remarks_without_end_take_no_time(ann: Person, rest: str) -> None:
    start = time.process_time()
    assert refused(ann, f"SELECT 1; {rest}\nx").startswith("one statement at a time")
    assert time.process_time() - start < 5


def test_a_query_starts_without_what_it_does_not_need(ann: Person) -> None:
    telling = "import atexit; atexit.register(lambda: sys.stderr.write(' '.join(sys.modules)))"
    env = {name: value for name, value in ann.env.items() if not name.startswith("COVERAGE")}
    done = ann.spawn("sql", "SELECT session, first_prompt FROM sessions", code=telling, env=env)
    assert done.code == 0
    heavy = {
        "msgspec",
        "json",
        "dataclasses",
        "threading",
        "zstandard",
        "decimal",
        "textwrap",
        "csv",
        "signal",
        "select",
    }
    assert not heavy & set(done.err.split())


# The views ---------------------------------------------------------------------------------------------------------


def test_the_views_are_listed_without_an_archive(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    for arguments in (("sql",), ("sql", "--tables")):
        done = person.run(*arguments)
        assert (done.code, done.err) == (0, "")
        assert [line.split()[0] for line in done.out.splitlines() if not line.startswith(" ")] == list(VIEWS)
        assert all(len(line) <= 80 for line in done.out.splitlines())
    assert [told["view"] for told in person.run("sql", "--json").objects] == list(VIEWS)
    assert not person.archive.exists()


@pytest.mark.parametrize("view", VIEWS)
def test_columns_are_told_with_their_meaning(tmp_path: Path, view: str) -> None:
    person = Person(tmp_path / "ann")
    told = {one["column"]: one["meaning"] for one in person.run("sql", "--tables", view, "--json").objects}
    for column in TABLES[view].columns:
        if not column.is_said and column.name not in MISSING_COLUMNS[view]:
            assert told[column.name] == column.doc
    table = csv.DictReader(io.StringIO(person.run("sql", "--tables", view, "--csv").out, newline=""))
    assert {row["column"]: row["meaning"] for row in table} == told
    lines = person.run("sql", "--tables", view).out
    assert all(f"\n{name} " in lines for name in told)


def test_an_unknown_view_is_wrong_usage(ann: Person) -> None:
    assert refused(ann, "--tables", "events").startswith("no view events: there are sessions,")


# What it must not do -----------------------------------------------------------------------------------------------

HARM = [
    "ATTACH 'other.db' AS other", "ATTACH ':memory:' AS other", "DETACH main", "PRAGMA user_version", "PRAGMA query_only = 0",
    "PRAGMA writable_schema = 1", "PRAGMA journal_mode = DELETE", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA temp_store_directory = '/'",
    "DELETE FROM sessions", "DELETE FROM main.sessions", "UPDATE main.sessions SET title = 'x'", "INSERT INTO main.facts VALUES ('a', 1)",
    "WITH a AS (SELECT 1) INSERT INTO main.facts SELECT 'a', 1", "REPLACE INTO main.tags VALUES (1, 'x')",
    "CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "CREATE VIEW x AS SELECT 1", "CREATE TEMP VIEW x AS SELECT 1",
    "CREATE TEMP TRIGGER t INSTEAD OF DELETE ON sessions BEGIN SELECT 1; END", "CREATE INDEX i ON main.sessions (title)",
    "CREATE VIRTUAL TABLE temp.x USING fts5(a)", "CREATE VIRTUAL TABLE x USING dbstat", "DROP TABLE main.sessions", "DROP VIEW sessions",
    "ALTER TABLE main.sessions RENAME TO x", "BEGIN", "BEGIN EXCLUSIVE", "COMMIT", "SAVEPOINT a", "VACUUM", "VACUUM INTO 'copy.db'",
    "REINDEX", "ANALYZE", "SELECT load_extension('x')", "SELECT fts3_tokenizer('simple')", "SELECT fts3_tokenizer('simple', x'00')",
    "SELECT readfile('archive.db')", "SELECT writefile('x', 'y')", "SELECT edit('x')", "SELECT sqlite_log(1, 'x')",
    "SELECT unpacked(packed) FROM main.summaries", "SELECT unpacked(x'00')", "SELECT last_insert_rowid()", "SELECT * FROM fts3tokenize('simple', 'a')",
    "SELECT * FROM main.sessions", "SELECT packed FROM chunks", "SELECT max(id) FROM main.chunks", "SELECT usage FROM main.sessions",
    "WITH sessions AS (SELECT * FROM main.sessions) SELECT * FROM sessions", "SELECT (SELECT packed FROM main.chunks) FROM sessions",
    "WITH requests AS (SELECT digest AS x FROM main.chunks) SELECT x FROM requests", "SELECT * FROM sqlite_schema", "SELECT * FROM sqlite_temp_schema",
    "SELECT * FROM temp.sqlite_master", "SELECT * FROM dbstat", "SELECT * FROM pragma_table_info('sessions')", "SELECT count(*) FROM pragma_database_list",
    "SELECT * FROM pragma_integrity_check", "EXPLAIN DELETE FROM main.sessions", "SELECT * FROM rtree", "SELECT rtreecheck('main', 'x')",
]  # fmt: skip


@pytest.mark.parametrize("query", HARM)
def test_what_does_more_than_read_the_views_is_refused(
    ann: Person, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = digests(ann)
    assert refused(ann, query)
    assert digests(ann) == before
    assert not list(tmp_path.iterdir())


def test_a_refusal_says_what_may_be_asked(ann: Person) -> None:
    assert refused(ann, "DELETE FROM main.sessions") == "a query may only read: SELECT, WITH or VALUES"
    assert (
        refused(ann, "SELECT digest FROM chunks")
        == f"main.chunks cannot be read: there are {', '.join(VIEWS)}"
    )
    assert refused(ann, "SELECT load_extension('x')") == "the function load_extension is not offered"


@pytest.mark.parametrize(
    "query",
    [
        "VALUES (1)", "SELECT 1 FROM sessions, json_tree(sources) LIMIT 1", "EXPLAIN QUERY PLAN SELECT * FROM sessions",
        "WITH models AS (SELECT 1) SELECT count(*) FROM models", "SELECT row_number() OVER (ORDER BY session) FROM sessions",
        "SELECT strftime('%Y', ended_at) FROM sessions WHERE title GLOB '*' AND title LIKE '%' AND tags -> '$' IS NOT NULL",
        "SELECT avg(total_tokens), group_concat(DISTINCT agent) FROM sessions",
    ],
)  # fmt: skip
def test_what_only_reads_is_answered(ann: Person, query: str) -> None:
    assert rows(ann, query)


@pytest.mark.parametrize(
    ("query", "code", "told"),
    [
        ("SELECT zeroblob(1000000000)", 2, "string or blob too big: a value has at most 8 MB"),
        ("SELECT randomblob(1e9)", 2, "string or blob too big"),
        ("SELECT printf('%.*c', 1000000000, 'x')", 2, "string or blob too big"),
        ("SELECT replace(hex(zeroblob(1e7)), '0', '1234567890')", 2, "string or blob too big"),
        ("WITH RECURSIVE n(x) AS (SELECT zeroblob(1e6) UNION ALL SELECT zeroblob(1e6) FROM n) SELECT x FROM n ORDER BY 1", 4,
         "the query takes more than 256 MB of memory: ask for less at once"),
        (f"SELECT {WIDE}", 2, "string or blob too big: a value has at most 3.2 MB in a row of 40 columns: ask for fewer"),
        (f"SELECT 1{', 1' * 200}", 2, "too many columns in result set: a row has at most 200"),
        (ENDLESS, 4, "the query took longer than 0.3 s: a longer --timeout lets it go on"),
        ("SELECT count(*) FROM messages a, messages b, messages c, messages d, messages e, messages f", 4, "the query took longer"),
    ],
)  # fmt: skip
def test_no_query_takes_the_machine_down(ann: Person, query: str, code: int, told: str) -> None:
    limit = apsw.hard_heap_limit(-1)
    start = time.monotonic()
    done = ann.run("sql", query, "--timeout", "0.3" if "longer" in told else "30")
    assert time.monotonic() - start < 20
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(f"retold: {told}")
    assert done.err.count("\n") == 1
    assert apsw.hard_heap_limit(-1) == limit, "the bound is of the query, and not of the process"


FULL = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 24), t(a) AS MATERIALIZED (SELECT printf('%.*c', 7900000, {}) || {} || x FROM n) SELECT {} FROM t LIMIT 2"
PEAK = r"""
import atexit, re
def told():
    sys.stderr.write(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1])
atexit.register(told)
"""
"""Says how many kilobytes were taken at most; `resource` would count what this process takes as well."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what is counted differs elsewhere")
@pytest.mark.parametrize(
    ("query", "megabytes"),
    [
        (FULL.format("'x'", "''", ", ".join("a" * 16)), 450),
        (FULL.format("'x'", "char(128512)", ", ".join("a" * 16)), 850),
        ("SELECT printf('%.*c', 7900000, char(127))", 100),
        ("SELECT printf('%.*c', 7900000, char(27))", 100),
        ("SELECT printf('%.*c', 7900000, char(1))", 100),
        (FULL.format("'\"'", "''", "a"), 400),
    ],
    ids=["row", "wide letters", "delete", "escape", "control", "quotes"],
)  # fmt: skip
@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)], ids=["table", "json", "csv"])
def test_no_more_memory_is_taken_than_the_page_says(
    ann: Person, query: str, megabytes: int, form: tuple[str, ...]
) -> None:
    env = {name: value for name, value in ann.env.items() if not name.startswith("COVERAGE")}
    start = time.monotonic()
    done = ann.spawn("sql", *form, query, code=PEAK, env=env, stdout=subprocess.DEVNULL)
    assert done.code == 0
    assert int(done.err) < megabytes * 1000
    assert time.monotonic() - start < 30


def test_a_long_prompt_is_within_the_bounds_of_all_columns(tmp_path: Path) -> None:
    person, prompt = Person(tmp_path / "ann"), "heron " * 200_000
    FORMS["claude"].write(person.folder, 1, turns(prompt))
    person.sync()
    done = person.run("sql", "--json", "SELECT * FROM sessions ORDER BY ended_at")
    assert done.code == 0
    assert len(done.objects[0]["first_prompt"]) >= len(prompt)


def test_time_in_which_rows_are_read_by_others_does_not_count(ann: Person) -> None:
    query = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60000) SELECT x FROM n"
    process = ann.start("sql", query, "--csv", "--timeout", "1")
    assert process.stdout
    time.sleep(2.5)  # the pipe is full
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("\n60000\n")


def test_a_step_that_looks_at_no_clock_is_ended_by_force(ann: Person) -> None:
    done = ann.spawn("sql", f"SELECT {BLIND}", "--timeout", "0.5")
    assert (done.code, done.out) == (4, "")
    assert done.err == "retold: the query took longer than 0.5 s, and was ended by force\n"


TELLING = """
from retold.archive.sql import QueryResult
asked = QueryResult._next
def told(self):
    sys.stderr.write(".")
    sys.stderr.flush()
    return asked(self)
QueryResult._next = told
"""
"""Says when a row is looked for."""


def interrupted(ann: Person, query: str) -> tuple[str, float]:
    """Ask, press Ctrl-C while rows are looked for, and return what was printed, and the seconds until it ended."""
    env = {name: value for name, value in ann.env.items() if not name.startswith("COVERAGE")}
    process = ann.start("sql", query, "--csv", code=TELLING, env=env)
    assert process.stderr
    assert process.stderr.read(2) == ".."
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    return out, time.monotonic() - start


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_ctrl_c_ends_a_query_at_once(ann: Person) -> None:
    out, seconds = interrupted(ann, f"SELECT 'begun' UNION ALL SELECT * FROM ({ENDLESS})")  # noqa: S608 - ours
    assert seconds < 10
    assert out == "'begun'\nbegun\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_ctrl_c_ends_a_step_that_does_not_look_for_it(ann: Person) -> None:
    _, seconds = interrupted(ann, f"SELECT 'begun' UNION ALL SELECT {BLIND}")
    assert seconds < 15


@pytest.mark.skipif(sys.platform != "linux", reason="what is open is not told elsewhere")
def test_who_listens_for_ctrl_c_leaves_nothing_open(ann: Person) -> None:
    before = os.listdir("/proc/self/fd")
    woken = signal.set_wakeup_fd(-1)
    for _ in range(5):
        assert rows(ann, "SELECT 1") == [(1,)]
    assert signal.set_wakeup_fd(woken) == -1
    deadline = time.monotonic() + 60
    while len(os.listdir("/proc/self/fd")) > len(before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) <= len(before)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes differ there")
@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)])
def test_a_reader_that_goes_away_ends_it_quietly(ann: Person, form: tuple[str, ...]) -> None:
    query = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    process = ann.start("sql", query, *form)
    assert process.stdout
    process.stdout.read(100)
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 0


NESTED: dict[str, Callable[[int], str]] = {
    "parentheses": lambda depth: "SELECT " + "(" * depth + "1" + ")" * depth,
    "selects": lambda depth: "SELECT * FROM (" * depth + "SELECT 1" + ")" * depth,  # noqa: S608 - ours
    "signs": lambda depth: "SELECT " + "- " * depth + "1",
    "alternatives": lambda depth: "SELECT 1 WHERE " + " OR ".join(["1"] * depth),
    "unions": lambda depth: " UNION ALL ".join(["SELECT 1"] * depth),
}


@pytest.mark.parametrize("kind", NESTED)
def test_deep_nesting_is_told_to_be_too_deep(ann: Person, kind: str) -> None:
    """In a process of its own: what overflows a stack takes everything with it."""
    done = ann.spawn("sql", "-", stdin=_file(ann, NESTED[kind](30_000)))
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1


def test_a_long_query_is_answered_and_one_too_long_refused(ann: Person) -> None:
    text = "x" * (LONGEST_QUERY - 20)
    assert ann.spawn("sql", "-", "--csv", stdin=_file(ann, f"SELECT length('{text}')")).out.endswith(
        f"\n{len(text)}\n"
    )
    done = ann.spawn("sql", "-", stdin=_file(ann, f"SELECT length('{text * 2}')"))
    assert (done.code, done.err) == (2, "retold: a query is text of at most 1,000,000 bytes\n")
    done = ann.spawn("sql", "-", stdin=_file(ann, "SELECT 1\0; DELETE FROM sessions"))
    assert (done.code, done.err) == (2, "retold: a query is text, and has no NUL in it\n")


def _file(person: Person, text: str) -> int:
    path = person.folder / "query.sql"
    path.write_text(text)
    return os.open(path, os.O_RDONLY)


def test_bytes_that_are_no_text_are_told_and_not_a_bug(ann: Person) -> None:
    assert rows(ann, "SELECT '\udcff'") == [("?",)]
    assert rows(ann, "SELECT :a", "--set", "a=\udcff") == [("?",)]


# An archive in trouble ---------------------------------------------------------------------------------------------


def own(tmp_path: Path) -> Person:
    person = Person(tmp_path / "ann")
    for number in range(4):
        FORMS["claude"].write(person.folder, number, turns(*(f"heron{place}" for place in range(20))))
    person.sync()
    return person


def test_an_archive_that_another_has_locked_is_told_to_be(tmp_path: Path) -> None:
    person = own(tmp_path)
    connection = apsw.Connection(str(person.archive / "archive.db"))
    list(connection.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE other (x)"))
    hasty = "from retold.archive.store import Store; Store.__init__.__kwdefaults__['patience'] = 100"
    done = person.spawn("sql", "SELECT count(*) FROM sessions", code=hasty)
    connection.close()
    assert (done.code, done.out) == (4, "")
    assert "another retold is writing; try again" in done.err


@pytest.mark.parametrize("start", [0, 100, 4096, 8192])
def test_a_damaged_archive_is_told_to_be_and_left_as_it_is(tmp_path: Path, start: int) -> None:
    person = own(tmp_path)
    file = person.archive / "archive.db"
    data = file.read_bytes()
    file.write_bytes(data[:start] + b"\xa5" * (len(data) - start))
    before = file.read_bytes()
    done = person.run("sql", "SELECT * FROM sessions JOIN messages USING (session)")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("retold: ")
    assert done.err.count("\n") == 1
    assert file.read_bytes() == before


def test_a_session_that_cannot_be_unpacked_is_damage(tmp_path: Path) -> None:
    person = own(tmp_path)
    connection = apsw.Connection(str(person.archive / "archive.db"))
    connection.execute("UPDATE summaries SET packed = x'789c00'")
    connection.close()
    assert rows(person, "SELECT count(*) FROM sessions WHERE title IS NOT NULL") == [(4,)]
    done = person.run("sql", "SELECT first_prompt FROM sessions")
    assert (done.code, done.out) == (4, "")
    assert "damaged" in done.err


POWERLESS = (
    "import ctypes; ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())"
)
"""Takes from root, as whom tests may run, what lets it write everywhere."""
kept_out = pytest.mark.skipif(
    sys.platform != "linux", reason="whoever may do all cannot be kept out elsewhere"
)


@kept_out
@pytest.mark.parametrize("mode", [0o400, 0o600])
def test_an_archive_where_nobody_may_write_is_asked_as_well(tmp_path: Path, mode: int) -> None:
    person = own(tmp_path)
    (person.archive / "archive.db").chmod(mode)
    before = digests(person)
    person.archive.chmod(0o500)
    try:
        asked = person.spawn("sql", "--csv", "SELECT count(*) AS n FROM sessions", code=POWERLESS)
        listed = person.spawn("list", code=POWERLESS)
    finally:
        person.archive.chmod(0o700)
    assert asked == CommandResult(0, "n\n4\n", "")
    assert (listed.code, listed.err, listed.out.count("\n")) == (0, "", 5)
    assert digests(person) == before


@kept_out
def test_what_waits_to_be_written_is_not_left_out_where_nobody_may_write(tmp_path: Path) -> None:
    person = own(tmp_path)
    connection = apsw.Connection(str(person.archive / "archive.db"))
    connection.execute("UPDATE sessions SET title = 'waiting'")
    waiting = (person.archive / "archive.db-wal").read_bytes()
    connection.close()
    (person.archive / "archive.db-wal").write_bytes(waiting)
    person.archive.chmod(0o500)
    try:
        done = person.spawn("sql", "SELECT title FROM sessions", code=POWERLESS)
    finally:
        person.archive.chmod(0o700)
    assert (done.code, done.out) == (4, "")
    assert "no permission to write there" in done.err


# The page ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo_person(tmp_path_factory: pytest.TempPathFactory) -> DemoPerson:
    return DemoPerson(tmp_path_factory.mktemp("sql-demo"))


def test_the_page_has_ten_questions_worth_asking() -> None:
    assert len(QUERIES) >= 10


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_of_the_page_is_answered(demo_person: DemoPerson, query: str) -> None:
    assert rows(demo_person, query, "--set", "since=2020-01-01", "--set", "word=the")


def test_every_command_of_the_page_runs(demo_person: DemoPerson) -> None:
    commands = re.findall(r"^\$ (retold sql.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands
    for command in commands:
        done = demo_person.run(*shlex.split(command, comments=True)[1:])
        assert done.code == 0, (command, done)
        assert done.out
        assert "--json" not in command or [json.loads(line) for line in done.out.splitlines()]


def test_a_query_and_a_list_of_views_are_two_questions(ann: Person) -> None:
    done = ann.run("sql", "SELECT 1", "--tables")
    assert (done.code, done.out, done.err) == (2, "", "retold: a query, or --tables: one at a time\n")
