"""Homes in the archive: `sync`, `list`, `show` and `projects`, as a person runs them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.gemini_home import ROOT, GeminiHome, call, gemini, session_id, user

TALK = [
    user("u1", 1, "How high is the tide?"),
    gemini("g1", 2, "Two metres.", [call("glob", {"pattern": "*.py", "path": f"{ROOT}/src"}, 2)]),
]


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    made = GeminiHome(tmp_path / "ann")
    made.mark("almanac", ROOT)
    made.json("almanac", 1, 1, TALK)
    made.json("charts", 2, 10, [user("u9", 10, "Draw the bay.")], root="/home/ann/dev/charts")
    return made


def retold(made: Path, *arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    agents = ("GEMINI_", "CLAUDE_", "CODEX_", "XDG_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(agents)}
    env |= {"HOME": str(made), "RETOLD_HOME": str(made / "retold"), "COLUMNS": str(columns)}
    command = [sys.executable, "-m", "retold", *arguments]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def objects(finished: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in finished.stdout.splitlines()]


def test_list_tells_one_object_per_conversation_newest_first(made: GeminiHome) -> None:
    assert retold(made.folder, "sync").returncode == 0
    finished = retold(made.folder, "list", "--json")
    rows = objects(finished)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert [row["native_id"] for row in rows] == [session_id(2), session_id(1)]
    assert rows[1]["project"] == {
        "root": ROOT,
        "native_key": "almanac",
        "hash": rows[1]["project"]["hash"],
        "evidence": "recorded",
    }
    assert all(key in rows[0] for key in ("sources", "counts", "usage"))
    assert "timeline" not in rows[0]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_table_fits_the_terminal(made: GeminiHome, columns: int) -> None:
    made.json("almanac", 3, 20, [user("u5", 20, "潮汐表" * 60)])
    lines = retold(made.folder, "list", columns=columns).stdout.splitlines()
    assert len(lines) == 4
    widths = {len(line) + sum("\u4e00" <= character <= "\u9fff" for character in line) for line in lines}
    assert len(widths) == 1
    assert columns == 40 or widths == {columns}


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        (["--project", "alma"], [1]),
        (["--project", "/home/ann/dev/almanac"], [1]),
        (["--tool", "file_search"], [1]),
        (["--file", "almanac/src"], [1]),
        (["--file", "almanac/doc"], []),
        (["--model", "2.5"], [1]),
        (["--status", "interrupted"], [2]),
        (["--role", "assistant"], [1]),
        (["--role", "system"], []),
        (["--since", "2026-03-01T09:12"], [2]),
        (["--until", "2026-02-28"], []),
        (["--until", "2026-03-01"], [2, 1]),
        (["--agent", "claude"], []),
        (["--agent", "GEMINI"], [2, 1]),
        (["--tag", "x"], []),
        (["--limit", "1"], [2]),
    ],
)
def test_filters(made: GeminiHome, filters: list[str], numbers: list[int]) -> None:
    finished = retold(made.folder, "list", "--json", *filters)
    assert [row["native_id"] for row in objects(finished)] == [session_id(number) for number in numbers]
    assert finished.returncode == (0 if numbers else 1)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--limit", "0"],
        ["--limit", "-1"],
        ["--since", "nonsense"],
        ["--status", "odd"],
        ["--agent", "nobody"],
    ],
)
def test_a_filter_that_makes_no_sense_is_wrong_usage(made: GeminiHome, wrong: list[str]) -> None:
    assert retold(made.folder, "list", *wrong).returncode == 2


@pytest.mark.shared
def test_the_made_home_is_listed_and_its_projects_found(shared: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    subprocess.run(
        [sys.executable, shared / "truth" / "make_home.py", home], check=True, stdout=subprocess.DEVNULL
    )
    rows = objects(retold(home, "list", "--json", "--all"))
    assert sorted(row["kind"] for row in rows) == ["checkpoint", *["main"] * 8, "prompts-only", "subagent"]
    listed = {row["key"] for row in objects(retold(home, "list", "--json"))}
    assert listed == {row["key"] for row in rows if row["kind"] in ("main", "prompts-only")}
    assert all(row["project"]["evidence"] == "recorded" and row["sources"] for row in rows)
    (place,) = objects(retold(home, "projects", "alp", "--json"))
    assert place["root"] == str(home / "dev" / "alpha")


def test_every_agent_took_what_the_made_home_says(shared: Path, tmp_path: Path) -> None:
    """The agents count in different words: ours have cache reads and writes in the input, reasoning in no output."""
    home = tmp_path / "home"
    subprocess.run(
        [sys.executable, shared / "truth" / "make_home.py", home], check=True, stdout=subprocess.DEVNULL
    )
    truth = json.loads((home / "EXPECTED.json").read_text())
    used = {agent: used_by(agent, home) for agent in ("gemini", "claude", "codex")}
    tokens = truth["gemini"]["tokens"]
    assert used["gemini"] == [
        (tokens["input"], tokens["cached"], 0, tokens["output"], tokens["thoughts"], tokens["total"])
    ]
    each = truth["claude"]["tokens_each"]
    given = each["input"] + each["cache_read"] + each["cache_write"]
    assert (
        used["claude"]
        == [(given, each["cache_read"], each["cache_write"], each["output"], None, given + each["output"])]
        * truth["claude"]["sessions"]
    )
    each = truth["codex"]["tokens_each"]
    reasoning = 100  # what make_home.py has in the output of each session
    assert (
        used["codex"]
        == [
            (
                each["input"],
                each["cached"],
                0,
                each["output"] - reasoning,
                reasoning,
                each["input"] + each["output"],
            )
        ]
        * truth["codex"]["sessions"]
    )


def used_by(agent: str, home: Path) -> list[tuple[int | None, ...]]:
    """What each session of an agent took; Gemini CLI's truth is that of all of them together."""
    names = ("input", "cached", "cache_write", "output", "reasoning", "total")
    every = objects(retold(home, "list", "--json", "--all", "--agent", agent))
    rows = [row for row in every if row["kind"] != "checkpoint"]  # a copy of what a session holds
    figures = [tuple(row["usage"][name] for name in names) for row in rows]
    if agent != "gemini":
        return figures
    return [tuple(sum(figure or 0 for figure in column) for column in zip(*figures, strict=True))]


def claude_session(home: Path, name: str, words: Sequence[str], folder: str = "") -> None:
    """Write a session of Claude Code in which these words were answered; the same words are the same lines."""
    lines: list[dict[str, Any]] = []
    for number, said in enumerate(words):
        line = {"sessionId": name, "cwd": "/home/ann/zoo", "timestamp": f"2026-03-01T09:0{number}:00.000Z"}
        asked, answered = f"asked {said:>20}", f"answered {said:>20}"
        usage = {"input_tokens": 100, "output_tokens": 10}
        content = [{"type": "text", "text": f"{said}!"}]
        message = {"id": f"msg_{said}", "model": "claude-x", "content": content, "usage": usage}
        before = lines[-1]["uuid"] if lines else None
        is_aside = bool(folder)
        lines += [
            {**line, "type": "user", "uuid": asked, "parentUuid": before, "isSidechain": is_aside,
             "message": {"role": "user", "content": said}},
            {**line, "type": "assistant", "uuid": answered, "parentUuid": asked, "isSidechain": is_aside,
             "message": message},
        ]  # fmt: skip
    file = home / ".claude" / "projects" / "-home-ann-zoo" / folder / f"{name}.jsonl"
    file = file.with_name("agent-a1.jsonl") if folder else file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_fork_has_a_row_of_its_own_and_a_subagent_none(tmp_path: Path) -> None:
    first, second = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"
    claude_session(tmp_path, first, ["How many owls?"])
    claude_session(tmp_path, first, ["Count them."], f"{first}/subagents")
    claude_session(tmp_path, second, ["How many owls?", "And newts?"])
    rows = [line.split()[-3:] for line in retold(tmp_path, "list").stdout.splitlines()[1:]]
    assert sorted(rows) == [["2", "110", first[:8]], ["4", "110", second[:8]]]
    assert "+1 agent" in retold(tmp_path, "list", columns=120).stdout
    shown = retold(tmp_path, "show", second).stdout
    assert "── you (copied) · 09:00:00" in shown
    assert "── you · 09:01:00" in shown


@pytest.mark.parametrize(
    "command", [("list", "--json"), ("show", "--json", "00000001"), ("search", "--json", "tide")]
)
def test_without_an_archive_the_homes_are_read_first(made: GeminiHome, command: Sequence[str]) -> None:
    first = retold(made.folder, *command)
    assert "no archive yet" in first.stderr
    assert "2 files found: 2 read" in first.stderr
    again = retold(made.folder, *command)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == first.stdout != ""


def test_only_a_sync_reads_the_homes(made: GeminiHome) -> None:
    assert coverage(made.folder)["new_sessions"] == 2
    made.json("almanac", 3, 20, [user("u5", 20, "And at night?")])
    assert len(objects(retold(made.folder, "list", "--json"))) == 2
    assert (coverage(made.folder), coverage(made.folder)) == (
        {"found": 3, "read": 1, "unchanged": 2, "new_sessions": 1, "problems": 0},
        {"found": 3, "read": 0, "unchanged": 3, "new_sessions": 0, "problems": 0},
    )
    assert len(objects(retold(made.folder, "list", "--json"))) == 3


def coverage(made: Path, *arguments: str) -> dict[str, Any]:
    """What a sync came to."""
    (told,) = objects(retold(made, "sync", "--json", *arguments))
    assert told.pop("seconds") >= 0
    return told


def test_retold_alone_reads_the_homes_and_lists_the_newest(made: GeminiHome) -> None:
    finished = retold(made.folder)
    assert finished.returncode == 0
    assert finished.stdout == retold(made.folder, "list").stdout
    assert "2 files found: 2 read" in finished.stderr


def test_retold_alone_says_what_to_do_where_nothing_is(tmp_path: Path) -> None:
    finished = retold(tmp_path)
    assert (finished.returncode, finished.stdout) == (0, "")
    assert "retold demo" in finished.stderr


def test_another_home_is_added_and_listed_by_its_label(made: GeminiHome, tmp_path: Path) -> None:
    other = GeminiHome(tmp_path / "bob")
    other.json("almanac", 7, 30, TALK)
    assert coverage(made.folder, "--home", f"laptop={other.folder}")["found"] == 3
    assert len(objects(retold(made.folder, "list", "--json"))) == 3
    only = objects(retold(made.folder, "list", "--json", "--home", "laptop"))
    assert [row["native_id"] for row in only] == [session_id(7)]
    assert [source["home"] for source in only[0]["sources"]] == ["laptop"]


def test_another_home_needs_no_label(made: GeminiHome, tmp_path: Path) -> None:
    other = GeminiHome(tmp_path / "bob")
    other.json("almanac", 7, 30, TALK)
    assert coverage(made.folder, "--home", str(other.gemini))["found"] == 3
    assert len(objects(retold(made.folder, "list", "--json"))) == 3
    assert coverage(made.folder)["found"] == 2, "it is not remembered"
    assert len(objects(retold(made.folder, "list", "--json"))) == 3, "but what was read is kept"


def test_a_labelled_home_is_remembered(made: GeminiHome, tmp_path: Path) -> None:
    other = GeminiHome(tmp_path / "bob")
    other.json("almanac", 7, 30, TALK)
    config = made.folder / "retold" / "config.toml"
    config.parent.mkdir()
    config.write_text('# mine\n[homes]\n"old" = "/nowhere"\n\n[other]\nlabel = 1\n')
    retold(made.folder, "sync", "--home", f"laptop={other.folder}")
    other.json("almanac", 8, 40, TALK)
    assert coverage(made.folder)["found"] == 4
    assert [
        row["native_id"] for row in objects(retold(made.folder, "list", "--json", "--home", "laptop"))
    ] == [session_id(8), session_id(7)]
    assert config.read_text().startswith('# mine\n[homes]\n"laptop" = ')
    assert '"old" = "/nowhere"\n\n[other]\nlabel = 1\n' in config.read_text()
    moved = shutil.move(other.folder, tmp_path / "moved")
    retold(made.folder, "sync", "--home", f"laptop={moved}")
    assert config.read_text().count("laptop") == 1
    assert str(moved) in config.read_text()
    assert coverage(made.folder)["found"] == 4
    assert len(objects(retold(made.folder, "list", "--json"))) == 4


def test_a_damaged_configuration_is_told_and_costs_nothing_that_is_kept(made: GeminiHome) -> None:
    retold(made.folder, "sync")
    (made.folder / "retold" / "config.toml").write_text("[homes")
    refused = retold(made.folder, "sync")
    assert (refused.returncode, refused.stdout) == (4, ""), "it may say what is not to be kept"
    assert str(made.folder / "retold" / "config.toml") in refused.stderr
    finished = retold(made.folder, "list", "--json")
    assert (finished.stderr, len(objects(finished))) == ("", 2)


def test_a_folder_that_cannot_be_written_is_told(made: GeminiHome) -> None:
    (made.folder / "retold").write_text("a file where the folder should be")
    for command in ("sync", "list"):
        finished = retold(made.folder, command)
        assert (finished.returncode, finished.stdout) == (4, "")
        assert str(made.folder / "retold") in finished.stderr
        assert "Traceback" not in finished.stderr
    session = next(made.gemini.rglob("session-*.json"))
    assert retold(made.folder, "read", str(session)).returncode == 0


@pytest.mark.parametrize("place", ["backup/../laptop", "link"])
def test_a_home_is_the_same_however_it_was_named(
    made: GeminiHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    GeminiHome(tmp_path / "laptop").lines("tides", 5, 1, [user("u1", 1, "Low?"), gemini("g1", 2, "At six.")])
    (tmp_path / "backup").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "laptop")
    monkeypatch.chdir(tmp_path)
    first = coverage(made.folder, "--home", f"laptop={place}")
    assert (first["found"], first["read"]) == (3, 3)
    monkeypatch.chdir(tmp_path / "backup")
    again = coverage(made.folder)
    assert (again["found"], again["read"]) == (3, 0)
    rows = objects(retold(made.folder, "list", "--json", "--home", "laptop"))
    assert [len(row["sources"]) for row in rows] == [1]


@pytest.mark.parametrize(
    ("place", "told", "code"), [("nowhere", "no such folder", 1), ("empty", "no agent's home", 0)]
)
@pytest.mark.parametrize("label", ["x=", ""])
def test_a_folder_that_is_no_home_is_told(  # noqa: PLR0913 - what is given, and what comes out
    made: GeminiHome, tmp_path: Path, place: str, told: str, code: int, label: str
) -> None:
    (tmp_path / "empty").mkdir()
    for form in ([], ["--json"]):
        finished = retold(made.folder, "sync", "--home", f"{label}{tmp_path / place}", *form)
        assert finished.stderr.startswith(f"retold: {tmp_path / place}: {told}\n")
        assert finished.returncode == code
        assert len(finished.stdout.splitlines()) == len(form)
    assert len(objects(retold(made.folder, "list", "--json"))) == 2


@pytest.mark.parametrize("command", ["sync", "watch"])
@pytest.mark.parametrize("home", ["", "x="])
def test_a_home_without_a_name_is_wrong_usage(made: GeminiHome, command: str, home: str) -> None:
    finished = retold(made.folder, command, "--home", home)
    assert finished.returncode == 2
    assert f"{home!r} names no folder: write [LABEL=]DIR" in finished.stderr
    assert not (made.folder / "retold").exists()


@pytest.mark.parametrize("command", [("sync",), (), ("doctor",)])
def test_an_unknown_setting_is_told(made: GeminiHome, command: tuple[str, ...]) -> None:
    assert retold(made.folder, "sync").returncode == 0
    known = retold(made.folder, *command)
    config = made.folder / "retold" / "config.toml"
    config.write_text('excluded = ["a"]\nexclude = ["b"]\n[homes]\n[Homes]\nx = "/y"\n')
    finished = retold(made.folder, *command)
    said = [line for line in finished.stderr.splitlines() if "no setting" in line]
    assert said == [
        f"retold: {config}: no setting is called {name}: there are exclude and homes"
        for name in ("excluded", "Homes")
    ]
    assert finished.returncode == known.returncode


@pytest.mark.parametrize("port", ["99999999", "65536", "-1", "x", "8" * 5_000, "²"])
def test_a_port_that_does_not_exist_is_wrong_usage(made: GeminiHome, port: str) -> None:
    finished = retold(made.folder, "web", "--no-browser", f"--port={port}")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "is no port: write a number from 0 to 65535" in finished.stderr
    assert "bug" not in finished.stderr


def test_show_finds_a_session_by_the_start_of_its_id(made: GeminiHome) -> None:
    finished = retold(made.folder, "show", session_id(1)[:8])
    assert finished.returncode == 0
    assert "How high is the tide?" in finished.stdout
    by_key = retold(made.folder, "show", f"gemini:session-2026-03-01T09-01-{session_id(1)[:8]}", "--json")
    assert objects(by_key)[0]["native_id"] == session_id(1)


def test_show_says_what_it_cannot_tell_apart(made: GeminiHome) -> None:
    finished = retold(made.folder, "show", "0000")
    assert finished.returncode == 2
    assert finished.stderr.count("gemini:session-") == 2
    assert retold(made.folder, "show", "feed").returncode == 1


def test_projects_are_found_by_a_part_of_their_name(made: GeminiHome) -> None:
    (place,) = objects(retold(made.folder, "projects", "alm", "--json"))
    assert {key: place[key] for key in ("root", "native_keys", "evidence", "sessions", "last_at")} == {
        "root": ROOT,
        "native_keys": ["almanac"],
        "evidence": "recorded",
        "sessions": 1,
        "last_at": "2026-03-01T09:06:00.000Z",
    }
    assert "almanac" in retold(made.folder, "projects").stdout
    assert retold(made.folder, "projects", "zzz").returncode == 1


def test_a_scan_finds_a_root_and_keeps_it(made: GeminiHome) -> None:
    root = made.folder / "dev" / "tides"
    root.mkdir(parents=True)
    made.json("x", 4, 40, [user("u1", 40, "Hello.")], root=str(root))
    scanned = retold(made.folder, "projects", "--scan", "--json", "tides")
    assert [(place["root"], place["evidence"]) for place in objects(scanned)] == [(str(root), "hash")]
    assert "found 1 of 2" in scanned.stderr
    later = retold(made.folder, "projects", "--json", "tides")
    assert [place["evidence"] for place in objects(later)] == ["hash"]


def test_an_empty_home_is_told(tmp_path: Path) -> None:
    retold(tmp_path, "sync")
    finished = retold(tmp_path, "list")
    assert (finished.returncode, finished.stdout, finished.stderr) == (1, "", "retold: no sessions found\n")


def test_a_home_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / ".gemini").write_text("not a folder")
    assert retold(tmp_path, "list").returncode == 1


def test_a_cyclic_link_is_not_followed(made: GeminiHome) -> None:
    (made.gemini / "tmp" / "loop").symlink_to(made.gemini / "tmp")
    (made.gemini / "tmp" / "almanac" / "chats" / "loop").symlink_to(made.gemini)
    assert len(objects(retold(made.folder, "list", "--json"))) == 2


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_told(made: GeminiHome) -> None:
    chats = made.gemini / "tmp" / "charts" / "chats"
    chats.chmod(0)
    finished = retold(made.folder, "list", "--json")
    chats.chmod(0o700)
    assert "unreadable-file" in finished.stderr
    assert len(objects(finished)) == 1


def test_other_files_in_the_folders_are_counted(made: GeminiHome) -> None:
    made.write("tmp/almanac/chats/notes.json", '{"a": 1}')
    told = {"found": 3, "read": 3, "unchanged": 0, "new_sessions": 2, "problems": 0}
    assert coverage(made.folder) == told
    assert len(objects(retold(made.folder, "list", "--json"))) == 2


def test_nothing_but_sessions_is_opened(made: GeminiHome) -> None:
    secret = made.write("oauth_creds.json", '{"token": "x"}')
    os.mkfifo(made.gemini / "settings.json")  # opening it would wait for ever
    secret.chmod(0)
    assert len(objects(retold(made.folder, "list", "--json"))) == 2
