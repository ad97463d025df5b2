"""`retold brief`: what a project comes to, as people and programs get it."""

import json
import os
import re
from datetime import datetime
from pathlib import Path
from unittest.mock import ANY, patch

import pytest
from syrupy.assertion import SnapshotAssertion

from retold.archive.store import Store
from retold.search.filters import Filters
from retold.search.listing import ProjectSummary, list_keys
from support.gemini_home import ROOT, GeminiHome, Json, call, gemini, sha, user
from support.hostile_texts import SHORT
from support.person import Person
from support.synced_archive import sync_archive

DOCS = Path(__file__).resolve().parents[2] / "docs" / "brief.md"
TOKEN = "ghp_" + "1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX"


def shell(command: str, minute: int, output: str) -> Json:
    response = {"id": f"sh-{minute}", "name": "run_shell_command", "response": {"output": output}}
    result = [{"functionResponse": response}]
    return call("run_shell_command", {"command": command}, minute, id=f"sh-{minute}", result=result)


def edit(path: str, minute: int) -> Json:
    arguments = {
        "file_path": f"{ROOT}/{path}",
        "old_string": "parse(cell)",
        "new_string": "parse(cell,\n  zone)",
    }
    return call("replace", arguments, minute, id=f"replace-{minute}")


def late_tide(home: GeminiHome) -> None:
    failed = "Output: E   TypeError: no zone\nExit Code: 1"
    records = [
        user("u1", 1, "Why is high tide an hour late?"),
        gemini("g1", 2, "I will run the tests.", [shell("pytest -q tests/test_tides.py", 2, failed)]),
        gemini("g2", 3, "The zone is missing. I would store it with each height."),
        user("u2", 4, "Yes, do that. From now on heights are in centimetres."),
        gemini("g3", 5, "", [edit("tides.py", 5), shell("pytest -q", 6, "Output: 12 passed\nExit Code: 0")]),
        gemini("g4", 7, "Each height has its zone now. All tests pass. Shall I do the moon, too?"),
    ]
    home.lines("almanac", 1, 1, records)
    home.mark("almanac", ROOT)


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    home = GeminiHome(tmp_path / "ann")
    late_tide(home)
    home.lines(
        "almanac-web", 2, 2, [user("w1", 20, "Show the moon"), gemini("w2", 21, "Done.")], root=f"{ROOT}-web"
    )
    home.mark("almanac-web", f"{ROOT}-web")
    person = Person(tmp_path / "ann")
    person.age()
    person.sync()
    return person


def test_a_brief_for_people(ann: Person, snapshot: SnapshotAssertion) -> None:
    done = ann.run("brief", "almanac")
    assert (done.code, done.err) == (0, "")
    assert re.sub(r"\$[\d.]+", "$1.00", done.out) == snapshot  # prices change
    assert ann.run("brief", "almanac").out == done.out


def test_a_brief_for_programs_has_the_fields_that_are_documented(ann: Person) -> None:
    (told,) = ann.run("brief", "almanac", "--json", "--no-redact").objects
    rows = dict(
        re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = {
        name: set(re.findall(r"`(\w+)`", text))
        for names, text in rows.items()
        for name in re.findall(r"\w+", names)
    }
    assert set(told) == set(named)
    for name in ("sessions", "open_ends", "decisions", "failures", "files"):
        for one in told[name]:
            assert set(one) - {"session", "turn", "seq", "at"} <= named[name], name
            assert name in ("sessions", "files") or {"session", "turn", "seq", "at"} <= set(one)
    (failure,) = told["failures"]
    assert set(failure["fix"]) <= named["failures"]
    assert (failure["turn"], failure["fix"]["turn"], failure["is_open"]) == (1, 2, False)
    assert failure["fix"]["files"] == [f"{ROOT}/tides.py"]
    assert datetime.fromisoformat(failure["at"]).tzinfo is not None
    assert [one["source"] for one in told["decisions"]] == ["accepted", "said"]


def test_the_project_is_that_of_the_folder_unless_it_is_named(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ann.run("brief", ROOT)
    with patch("os.getcwd", lambda: f"{ROOT}/docs/moon"):
        assert ann.run("brief") == named
    with patch("os.getcwd", lambda: f"{ROOT}-web"):
        assert ann.run("brief").out.startswith("# almanac-web: a brief\n")
    monkeypatch.chdir(ann.folder)
    done = ann.run("brief")
    assert (done.code, done.out) == (1, "")
    assert "no session took place in this folder" in done.err


def test_what_is_meant_must_be_clear(ann: Person) -> None:
    done = ann.run("brief", "alma")
    assert (done.code, done.out) == (2, "")
    assert f"  {ROOT}\n" in done.err
    assert f"  {ROOT}-web\n" in done.err
    assert ann.run("brief", "moon") == (1, "", "retold: no such project\n")
    assert ann.run("brief", "almanac", "--since", "2026-04-01") == (1, "", "retold: no sessions found\n")
    assert ann.run("brief", "almanac", "--until", "2026-03-02").code == 0
    assert ann.run("brief", "almanac", "--since", "soon").code == 2
    assert ann.run("brief", "almanac", "--tokens", "none").code == 2


def test_a_project_whose_root_nobody_knows_is_meant_by_its_hash(tmp_path: Path) -> None:
    home = GeminiHome(tmp_path)
    home.lines(
        sha("/nowhere"), 3, 3, [user("n1", 1, "Show the moon"), gemini("n2", 2, "Done.")], root="/nowhere"
    )
    person = Person(tmp_path)
    person.age()
    person.sync()
    done = person.run("brief", sha("/nowhere")[:8])
    assert done.out.startswith(f"# {sha('/nowhere')[:8]}: a brief\n\n1 session ")
    for here, code in (("/nowhere", 0), ("/nowhere/docs/moon", 0), ("/nowhere-else", 1), ("/", 1)):
        with patch("os.getcwd", lambda here=here: here):
            assert person.run("brief") == (done if code == 0 else (1, "", ANY))


def test_a_project_that_only_its_agent_has_a_name_for_is_no_other(demo_env: dict[str, str]) -> None:
    with Store(demo_env["RETOLD_HOME"]) as record:
        wanted = Filters()
        wanted.add_project(ProjectSummary(None, ["crumb"], None, "none", 1, None))
        assert list_keys(record, wanted) == []


def test_an_archive_with_nothing_in_it(tmp_path: Path) -> None:
    person = Person(tmp_path)
    person.sync()
    assert person.run("brief", "almanac").code == 1


@pytest.mark.parametrize("tokens", [1, 40, 120, 200, 400, 10_000])
def test_there_is_no_more_than_fits_and_what_is_left_out_is_counted(ann: Person, tokens: int) -> None:
    whole, done = (
        ann.run("brief", "almanac", "--tokens", "10000").out,
        ann.run("brief", "almanac", "--tokens", str(tokens)),
    )
    assert done.code == 0
    least = len(re.sub(r"^- .*\n", "- … and 100 more\n", whole, flags=re.MULTILINE).encode())
    assert len(done.out.encode()) <= max(4 * tokens, least)
    for title, lines in _sections(whole).items():
        told = _sections(done.out)[title]
        left = re.fullmatch(r"- … and (\d+) more", told[-1])
        kept = told[:-1] if left else told
        assert kept == lines[: len(kept)]
        assert len(lines) == len(kept) + (int(left[1]) if left else 0)


def _sections(text: str) -> dict[str, list[str]]:
    parts = text.split("\n## ")[1:]
    return {part.partition("\n")[0]: [line for line in part.splitlines()[1:] if line] for part in parts}


def told(tmp_path: Path, *texts: str) -> Person:
    """Return somebody in whose sessions texts stand wherever a brief looks."""
    home = GeminiHome(tmp_path / "ann")
    for number, text in enumerate(texts, 1):
        records = [
            user(f"u{number}", 1, f"Let's use {text}"),
            gemini(
                f"a{number}",
                2,
                f"I would use {text}",
                [shell(f"make {text}", 2, f"error: {text}\nExit Code: 2")],
            ),
            user(f"y{number}", 3, "Yes"),
            gemini(
                f"b{number}", 4, f"Done: {text}", [edit(text, 4), shell(f"make {text}", 5, "Exit Code: 0")]
            ),
            user(f"z{number}", 6, text),
        ]
        home.lines("almanac", number, number, records)
    home.mark("almanac", ROOT)
    person = Person(tmp_path / "ann")
    person.age()
    person.sync()
    return person


def test_hostile_words_are_words(tmp_path: Path) -> None:
    done = told(tmp_path, *SHORT).run("brief", "almanac", "--tokens", "100000", "--no-redact")
    assert done.code == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", done.out)
    for line in done.out.splitlines():
        assert re.match(r"- |## |# |\d+ sessions|$", line), line
        outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", re.sub(r"\\.", "", line))
        assert "<" not in outside, line
        assert not re.search(r"\]\(|\]\[", outside), line


def test_secrets_are_taken_out_unless_they_are_to_stay(tmp_path: Path) -> None:
    person = told(tmp_path, f"the token {TOKEN} for the harbour")
    plain, clean = person.run("brief", "almanac", "--no-redact"), person.run("brief", "almanac")
    assert TOKEN in plain.out
    assert TOKEN[:12] not in clean.out
    assert "[redacted" in clean.out
    assert "taken out" in clean.err
    assert TOKEN not in person.run("brief", "almanac", "--json").out
    assert json.loads(person.run("brief", "almanac", "--json", "--no-redact").out)["project"] == "almanac"


def test_on_a_terminal_lines_are_broken_between_words(ann: Person) -> None:
    import pty  # noqa: PLC0415 - not on every system

    leader, follower = pty.openpty()
    process = ann.start(
        "brief", "almanac", stdout=follower, env=ann.env | {"COLUMNS": "60", "NO_COLOR": "1", "TERM": "xterm"}
    )
    os.close(follower)
    written = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            break
        if not piece:
            break
        written += piece
    assert process.wait() == 0
    os.close(leader)
    assert process.stderr is not None
    process.stderr.close()
    lines = written.decode().replace("\r\n", "\n").splitlines()
    assert all(len(line) <= 60 for line in lines)
    plain = ann.run("brief", "almanac").out
    assert " ".join(" ".join(lines).split()) == " ".join(plain.split())


def test_the_same_sessions_give_the_same_page_to_the_byte(demo_env: dict[str, str], tmp_path: Path) -> None:
    """Whenever they were archived, in whatever order, and however Python happens to order its sets."""
    pages = []
    for seed, order in (("1", ("gemini", "claude", "codex")), ("2", ("codex", "claude", "gemini"))):
        person = Person(Path(demo_env["HOME"]), tmp_path / f"archive-{seed}")
        env = {**person.env, **demo_env, "RETOLD_HOME": str(person.archive), "PYTHONHASHSEED": seed}
        for agent in order:
            sync_archive(person.archive, env, agents=(agent,))
        done = [person.spawn("brief", "crumb-orders", *more, env=env) for more in ((), ("--json",))]
        assert [one.code for one in done] == [0, 0]
        pages.append([one.out for one in done])
    assert pages[0] == pages[1]
    assert "Failed, and what mended it" in pages[0][0]
