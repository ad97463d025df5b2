"""The user's own hand, and what a person sees of the archive: `forget`, `name`, `tag`, `sync`, and `retold` alone."""

import json
import shutil
import sqlite3
import sys
import time
from pathlib import Path

import pytest

import retold
from support.conversation_files import (
    FORMS,
    Form,
    as_lines,
    claude,
    claude_key,
    claude_records,
    codex,
    codex_key,
    gemini_json,
    gemini_key,
    gemini_lines,
    thread,
    turns,
    uuid,
    write_file,
)
from support.gemini_home import GeminiHome, gemini, session_id, user
from support.person import Person, archive_contents, archive_tables, session_text
from support.traces import traces


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


# forget ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def all_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the index keep every session as it does long ones."""
    monkeypatch.setattr("retold.sessions.conversations.LONG_SESSION", 0)


@pytest.mark.usefixtures("all_are_long")
def test_what_is_looked_for_is_there_before(person: Person, form: Form) -> None:
    """The search for traces finds what was not forgotten; else it would prove nothing."""
    form.write(person.folder, 1, turns("quagmire" * 40, "xyloidal"))
    person.sync()
    assert {name.partition(",")[0] for name in traces(person, "xyloidal")} >= {"archive.db"}
    assert any(name.startswith("text-") for name in traces(person, "xyloidal"))
    assert any(name.startswith("text-") and "compressed" in name for name in traces(person, "xyloidal"))


@pytest.mark.usefixtures("all_are_long")
def test_nothing_is_left_of_a_forgotten_session(person: Person, form: Form) -> None:
    rare = ["xyloidal", "zeugmatic", "qwertzuiop"]
    form.write(
        person.folder,
        1,
        turns("camelCaseXyloidal and xyloidal", *rare, *(f"filler {number}" for number in range(50))),
    )
    form.write(person.folder, 2, turns("otherwise"))
    person.sync()
    person.run("name", form.key(1), "about zeugmatic things")
    person.run("tag", form.key(1), "+qwertzuiop")
    before = person.show(form.key(2))
    done = person.run("forget", "-y", form.key(1))
    assert done.code == 0
    assert form.key(1) in done.err
    assert {word: [*traces(person, word)] for word in rare} == {word: [] for word in rare}
    assert person.run("show", form.key(1)).code == 1
    assert person.keys("xyloidal") == []
    assert [*person.rows()] == [form.key(2)]
    assert person.show(form.key(2)) == before
    assert person.keys("otherwise") == [form.key(2)]


def test_a_forgotten_session_stays_forgotten(person: Person, form: Form) -> None:
    file = form.write(person.folder, 1, turns("xyloidal"))
    form.write(person.folder, 2, turns("otherwise"))
    person.sync()
    person.run("forget", "-y", form.key(1))
    for words in (["xyloidal"], ["xyloidal", "growing"], ["xyloidal", "growing", "on"]):
        form.write(person.folder, 1, turns(*words))
        for arguments in ((), ("--reindex",)):
            person.sync(*arguments)
            assert [*person.rows()] == [form.key(2)]
            assert person.keys("xyloidal") == person.keys("growing") == []
            assert [*traces(person, "xyloidal")] == []
    assert file.exists()
    shutil.copytree(file.parent, file.parent.with_name("copy"), dirs_exist_ok=True)
    person.sync()
    assert form.key(1) not in person.rows()


def test_a_rewritten_session_is_forgotten_with_what_it_held_before(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns("xyloidal"))
    person.sync()
    form.write(person.folder, 1, turns("zeugmatic"))
    person.sync()
    assert person.keys("xyloidal") == person.keys("zeugmatic") == [form.key(1)]
    person.run("forget", "-y", form.key(1))
    assert [*traces(person, "xyloidal"), *traces(person, "zeugmatic")] == []


def test_a_session_whose_files_are_gone_is_forgotten(person: Person, form: Form) -> None:
    file = form.write(person.folder, 1, turns("xyloidal"))
    person.sync()
    file.unlink()
    person.sync()
    person.run("forget", "-y", form.key(1))
    assert [*traces(person, "xyloidal")] == []
    person.sync()
    assert person.rows() == {}


def test_what_lists_of_many_sessions_say_of_it_is_struck_out(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.mark("almanac", "/home/ann/dev/almanac")
    made.logs("almanac", [(1, "xyloidal prompt"), (2, "zeugmatic prompt"), (3, "prompt of another")])
    made.json("almanac", 1, 1, [user("u1", 1, "xyloidal prompt"), gemini("g1", 2, "Fine.")])
    history = [
        {"session_id": thread(number), "ts": 1_772_355_600 + number, "text": text}
        for number, text in ((1, "xyloidal typed"), (2, "zeugmatic typed"), (3, "typed by another"))
    ]
    write_file(person.folder / ".codex/history.jsonl", as_lines(history))
    codex(person.folder, 1, turns("xyloidal"))
    person.sync()
    lost = f"gemini:lost-{session_id(2)}"
    assert lost in person.rows()
    for key in (f"gemini:session-2026-03-01T09-01-{session_id(1)[:8]}", lost, codex_key(1), codex_key(2)):
        assert person.run("forget", "-y", key).code == 0
    for arguments in ((), ("--reindex",), ()):
        assert [*traces(person, "xyloidal"), *traces(person, "zeugmatic")] == []
        assert person.rows().keys() == {f"gemini:lost-{session_id(3)}", codex_key(3)}
        assert (
            person.keys("another") == sorted(person.rows(), reverse=True) or len(person.keys("another")) == 2
        )
        person.sync(*arguments)
    made.logs(
        "almanac",
        [(1, "xyloidal prompt"), (2, "zeugmatic prompt"), (3, "prompt of another"), (4, "one more")],
    )
    person.sync()
    assert [*traces(person, "xyloidal"), *traces(person, "zeugmatic")] == []
    assert f"gemini:lost-{session_id(4)}" in person.rows()
    assert "prompt of another" in session_text(person.show(f"gemini:lost-{session_id(3)}"))


@pytest.mark.usefixtures("all_are_long")
def test_subagents_go_with_their_session(person: Person) -> None:
    file = claude(person.folder, 1, turns("otherwise"))
    lines = [
        {**record, "isSidechain": True, "agentId": "a1"} for record in claude_records(1, turns("xyloidal"))
    ]
    write_file(file.with_suffix("") / "subagents/agent-a1.jsonl", as_lines(lines))
    write_file(file.with_suffix("") / "tool-results/toolu_1.txt", "xyloidal output")
    person.sync()
    assert f"{claude_key(1)}/a1" in person.rows()
    assert "2 sessions" in person.run("forget", "-y", claude_key(1)).err
    assert person.rows() == {}
    assert [*traces(person, "xyloidal")] == []
    person.sync()
    assert person.rows() == {}


@pytest.mark.usefixtures("all_are_long")
def test_nothing_is_left_though_another_has_the_archive_open(person: Person) -> None:
    claude(person.folder, 1, turns("xyloidal"))
    claude(person.folder, 2, turns("otherwise"))
    person.sync()
    with retold.open(person.archive) as archive:
        assert len(list(archive.sessions())) == len(list(archive.search("asked"))) == 2
        assert person.spawn("forget", "-y", claude_key(1)).code == 0
        assert [*traces(person, "xyloidal")] == []
        assert [found.key for found in archive.search("asked")] == [claude_key(2)]


def test_a_damaged_index_does_not_keep_a_session_from_being_forgotten(person: Person) -> None:
    claude(person.folder, 1, turns("xyloidal"))
    claude(person.folder, 2, turns("otherwise"))
    person.sync()
    for path in (person.archive / "index").glob("*.db"):
        path.write_bytes(b"xyloidal garbage" * 300)
    assert person.run("forget", "-y", claude_key(1)).code == 0
    assert [*traces(person, "xyloidal")] == []
    assert person.run("search", "otherwise").code == 0
    assert person.keys("otherwise") == [claude_key(2)]


def test_a_whole_project_is_forgotten(person: Person) -> None:
    claude(person.folder, 1, turns("xyloidal"))
    codex(person.folder, 2, turns("xyloidal"))
    made = GeminiHome(person.folder)
    made.mark("charts", "/home/ann/dev/charts")
    made.json("charts", 3, 1, [user("u1", 1, "otherwise")], root="/home/ann/dev/charts")
    person.sync()
    done = person.run("forget", "-y", "--project", "almanac")
    assert done.code == 0
    assert [row["project"]["root"] for row in person.rows().values()] == ["/home/ann/dev/charts"]
    assert [*traces(person, "xyloidal")] == []


def test_a_dry_run_changes_nothing(person: Person) -> None:
    claude(person.folder, 1, turns("tide"))
    person.age()
    person.sync()
    before = archive_tables(person.archive)
    for arguments in ([claude_key(1)], ["--project", "almanac"]):
        done = person.run("forget", "--dry-run", *arguments)
        assert done.code == 0
        assert f"would forget {claude_key(1)}" in done.err
    assert archive_tables(person.archive) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["nothing"], 1), ([], 2), (["x", "--project", "y"], 2), (["--project", "nowhere"], 1), (["0000"], 2)],
)
def test_what_is_not_clear_is_not_forgotten(person: Person, arguments: list[str], code: int) -> None:
    claude(person.folder, 1, turns("tide"))
    claude(person.folder, 2, turns("tide"))
    person.sync()
    assert person.run("forget", "-y", *arguments).code == code
    assert len(person.rows()) == 2


def test_nothing_is_forgotten_where_there_is_no_archive(person: Person) -> None:
    done = person.run("forget", "-y", "x")
    assert done.code in (1, 4)
    assert done.err.startswith("retold: ")
    assert done.err.count("\n") == 1


def test_an_excluded_project_is_kept_out(person: Person) -> None:
    person.archive.mkdir()
    (person.archive / "config.toml").write_text('exclude = ["charts"]\n')
    made = GeminiHome(person.folder)
    made.mark("charts", "/home/ann/dev/charts")
    made.json("charts", 3, 1, [user("u1", 1, "xyloidal")], root="/home/ann/dev/charts")
    claude(person.folder, 1, turns("tide"))
    person.sync()
    assert [*person.rows()] == [claude_key(1)]
    assert [*traces(person, "xyloidal")] == []
    (person.archive / "config.toml").write_text("")
    person.sync()
    assert len(person.rows()) == 2


def logged(person: Person, **prompts: str) -> None:
    """Write the logs of prompts: of Gemini CLI, one for each project, and of Codex CLI, one for all."""
    made = GeminiHome(person.folder)
    for number, (project, word) in enumerate(prompts.items()):
        made.mark(project, f"/home/ann/dev/{project}")
        made.logs(project, [(10 * number + 1, f"{word}-one"), (10 * number + 2, f"{word}-two")])
    lines = [
        {"session_id": thread(number), "ts": number, "text": f"{word}-three"}
        for number, word in enumerate(prompts.values(), start=1)
    ]
    write_file(person.folder / ".codex/history.jsonl", as_lines(lines))


def excluding(person: Person, *projects: str) -> None:
    person.archive.mkdir(exist_ok=True)
    (person.archive / "config.toml").write_text(f"exclude = {json.dumps(projects)}\n")


def test_logs_of_many_conversations_are_kept_without_those_of_an_excluded_project(person: Person) -> None:
    excluding(person, "almanac")
    codex(person.folder, 1, turns("xyloidal"))  # in that project, which its log does not tell
    logged(person, almanac="xyloidal", charts="quincunx")
    person.sync()
    assert [*traces(person, "xyloidal")] == []
    assert len(person.keys("quincunx")) == 3
    logged(person, almanac="xyloidal-later", charts="quincunx")
    assert person.sync()["read"] > 0
    assert [*traces(person, "xyloidal")] == []
    assert person.sync()["read"] == 0
    excluding(person)
    person.sync()
    assert len(person.keys("xyloidal")) == 3
    assert len(person.keys("quincunx")) == 3


def test_a_log_that_was_rewritten_is_kept_where_something_else_is_excluded(person: Person) -> None:
    excluding(person, "almanac")
    logged(person, almanac="xyloidal", charts="quincunx")
    person.sync()
    logged(person, almanac="xyloidal", charts="zeugmata")  # as long as it was
    person.sync()
    for folder in (".gemini", ".codex"):
        shutil.rmtree(person.folder / folder)
    person.sync("--reindex")
    assert len(person.keys("zeugmata")) == len(person.keys("quincunx")) == 3


def test_an_import_takes_logs_without_what_they_say_of_an_excluded_project(
    person: Person, tmp_path: Path
) -> None:
    ben = Person(tmp_path / "ben")
    codex(ben.folder, 1, turns("xyloidal"))
    logged(ben, almanac="xyloidal", charts="quincunx")
    ben.sync()
    assert len(ben.keys("xyloidal")) == 3
    excluding(person, "almanac")
    person.sync()
    for _ in range(2):
        assert person.run("import", str(ben.archive)).code == 0
        assert [*traces(person, "xyloidal")] == []
        assert len(person.keys("quincunx")) == 3


def test_what_logs_said_before_a_project_was_excluded_stays(person: Person) -> None:
    logged(person, almanac="xyloidal", charts="quincunx")
    person.sync()
    excluding(person, "almanac")
    logged(person, almanac="xyloidal", charts="quincunx-later")
    person.sync()
    assert len(person.keys("xyloidal")) == 3
    assert len(person.keys("later")) == 3
    assert [person.show(key)["first_prompt"] for key in sorted(person.keys("xyloidal"))] == [
        "xyloidal-three",
        "xyloidal-one",
        "xyloidal-two",
    ]


def test_what_was_kept_of_a_project_stays_when_it_is_excluded(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.mark("charts", "/home/ann/dev/charts")
    made.json("charts", 3, 1, [user("u1", 1, "xyloidal")], root="/home/ann/dev/charts")
    person.sync()
    (person.archive / "config.toml").write_text('exclude = ["charts"]\n')
    made.json(
        "charts", 3, 1, [user("u1", 1, "xyloidal"), user("u2", 2, "quincunx")], root="/home/ann/dev/charts"
    )
    person.sync()
    assert len(person.rows()) == 1
    assert person.keys("xyloidal")
    assert not person.keys("quincunx")
    assert [*traces(person, "quincunx")] == []


def test_a_configuration_that_is_none_is_told(person: Person) -> None:
    person.archive.mkdir()
    for text in ("exclude = 3", "[homes", "[homes]\nx = 1"):
        (person.archive / "config.toml").write_text(text)
        done = person.run("sync")
        assert done.code in (2, 4)
        assert "config.toml" in done.err
        assert done.err.count("\n") == 1


# name and tag ------------------------------------------------------------------------------------------------------


def test_a_title_of_ones_own_is_shown_and_stays(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns("tide"))
    person.sync()
    assert person.run("name", form.key(1), "The", "great tide").code == 0
    for change in ((), ("sync", "--reindex"), ("sync",)):
        if change:
            form.write(person.folder, 1, turns("tide", f"more{len(change)}"))
            person.run(*change)
        assert person.rows()[form.key(1)]["title"] == person.show(form.key(1))["title"] == "The great tide"
        assert person.search("tide")[0]["title"] == "The great tide"
        assert "The great tide" in person.run("list").out
    assert person.run("name", form.key(1), "").code == 0
    assert person.rows()[form.key(1)]["title"] == "asked tide"


def test_tags_are_printed_and_stay(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns("tide"))
    form.write(person.folder, 2, turns("tide"))
    person.sync()
    assert person.run("tag", form.key(1)) == (0, "", "")
    assert person.run("tag", form.key(1), "+sea", "moon", "+later").out == "later\nmoon\nsea\n"
    assert person.run("tag", form.key(1), "-later", "-never").out == "moon\nsea\n"
    form.write(person.folder, 1, turns("tide", "more"))
    person.sync()
    person.sync("--reindex")
    assert person.run("tag", form.key(1)).out == "moon\nsea\n"
    assert person.rows()[form.key(1)]["tags"] == person.show(form.key(1))["tags"] == ["moon", "sea"]
    assert person.keys("tide", "--tag", "sea") == person.keys("tide tag:moon") == [form.key(1)]
    listed = person.run("list", "--json", "--tag", "sea").objects
    assert [row["key"] for row in listed] == [form.key(1)]
    assert person.run("list", "--tag", "later").code == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["tag", "feed", "+x"], 1), (["tag", "0000", "+x"], 2), (["name", "feed", "x"], 1), (["name", "0000", "x"], 2), (["tag", uuid(1), "+"], 2)],
)  # fmt: skip
def test_a_hand_that_reaches_nothing_is_told(person: Person, arguments: list[str], code: int) -> None:
    claude(person.folder, 1, turns("tide"))
    claude(person.folder, 2, turns("tide"))
    person.sync()
    before = archive_contents(person.archive)
    assert person.run(*arguments).code == code
    assert archive_contents(person.archive) == before


# What a person sees ------------------------------------------------------------------------------------------------


def test_where_there_is_nothing_the_demo_is_named(person: Person) -> None:
    done = person.run()
    assert (done.code, done.out) == (0, "")
    assert "retold demo" in done.err
    assert person.run("list").code == 1
    assert person.run("list", "--json") == (1, "", "retold: no sessions found\n")
    assert person.run("search", "anything").code == 1


def test_retold_alone_syncs_and_lists(person: Person) -> None:
    for number in range(25):
        claude(person.folder, number, turns(f"tide{number}"))
    done = person.run()
    assert done.code == 0
    assert len(done.out.splitlines()) == 21
    assert "5 more" in done.err
    assert "25 files found: 25 read" in done.err


@pytest.mark.parametrize(
    "command",
    [["list"], ["search", "tide"], ["show", uuid(1)], ["events", uuid(1)], ["projects"]],
    ids=" ".join,
)
def test_without_an_archive_one_is_made_first(person: Person, command: list[str]) -> None:
    claude(person.folder, 1, turns("tide"))
    done = person.run(*command)
    assert done.code == 0
    assert done.out
    assert "no archive yet" in done.err
    assert person.run(*command) == (0, done.out, "")


def test_an_old_archive_says_its_age(person: Person) -> None:
    claude(person.folder, 1, turns("tide"))
    person.sync()
    with sqlite3.connect(person.archive / "archive.db") as connection:
        connection.execute("UPDATE facts SET value = ? WHERE name = 'synced_at'", (time.time() - 3 * 86400,))
    connection.close()
    done = person.run("list")
    assert done.code == 0
    assert done.err.startswith("retold: the archive is 3 days old")
    person.sync()
    assert person.run("list").err == ""


def test_only_sync_reads_the_homes(person: Person) -> None:
    claude(person.folder, 1, turns("tide"))
    person.sync()
    claude(person.folder, 2, turns("tide"))
    assert person.keys("tide") == [claude_key(1)]
    assert [*person.rows()] == [claude_key(1)]
    person.run()
    assert len(person.rows()) == 2


def test_sync_tells_what_it_came_to(person: Person) -> None:
    gemini_json(person.folder, 1, turns("tide"))
    gemini_lines(person.folder, 2, turns("tide"))
    assert person.sync().keys() == {"found", "read", "unchanged", "new_sessions", "problems", "seconds"}
    claude(person.folder, 3, turns("tide"))
    told = person.sync()
    told.pop("seconds")
    assert told == {"found": 3, "read": 1, "unchanged": 2, "new_sessions": 1, "problems": 0}
    assert person.run("sync").err.startswith("3 files found: 0 read, 3 unchanged; 0 problems; ")


def test_an_index_made_anew_for_one_agent_has_all_of_them(person: Person) -> None:
    gemini_json(person.folder, 1, turns("tide"))
    claude(person.folder, 2, turns("tide"))
    person.sync()
    person.sync("--agent", "claude", "--reindex")
    assert set(person.keys("tide")) == {gemini_key(1), claude_key(2)}


def test_a_home_of_another_machine_is_remembered(person: Person, tmp_path: Path) -> None:
    codex(tmp_path / "bob", 1, turns("tide"))
    claude(person.folder, 2, turns("tide"))
    assert person.run("sync", "--home", f"laptop={tmp_path / 'bob'}").code == 0
    codex(tmp_path / "bob", 3, turns("neap"))
    person.sync()
    assert person.keys("neap") == [codex_key(3)]
    listed = person.run("list", "--json", "--home", "laptop").objects
    assert {row["key"] for row in listed} == {codex_key(1), codex_key(3)}
    assert {source["home"] for row in listed for source in row["sources"]} == {"laptop"}
    shutil.rmtree(tmp_path / "bob")
    person.run("sync")
    assert person.keys("neap") == [codex_key(3)]


@pytest.mark.skipif(sys.platform == "win32", reason="paths as POSIX has them")
def test_a_path_that_is_no_text_is_kept(person: Person) -> None:
    file = claude(person.folder, 1, turns("tide"))
    odd = file.parent.with_name("odd-\udcff")
    odd.mkdir()
    file.rename(odd / file.name)
    person.sync()
    assert person.keys("tide") == [claude_key(1)]
    shutil.rmtree(odd)
    person.sync()
    assert "asked tide" in session_text(person.show(claude_key(1)))
    assert json.dumps(person.rows())
