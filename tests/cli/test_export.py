"""`retold export`: which conversations, where to, without secrets, and never half."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from retold.cli.main import main
from retold.export.files import file_name, write_file
from retold.export.formats.registry import FORMATS, ExportOptions
from retold.model.serialization import decode_session
from support.gemini_home import GeminiHome, call, gemini, user
from support.html_sessions import PIXEL
from support.person import Json, Person, is_root

KEY = "AIza" + "Sy" + "B1c2D3e4F5g6H7i8J9k0L1m2N3o4P5q6R"
"""Invented, in the form of a key of Google's."""
ALONE = ("share-md", "share-json")
"""Forms that have no place for subagents, as the agent has none in its own."""
MAIL = "ann.tern@reed-and-heron.net"


@pytest.fixture
def home(tmp_path: Path) -> GeminiHome:
    home = GeminiHome(tmp_path / "ann")
    said = [user("u1", 1, f"My key is {KEY}, write to {MAIL}"), gemini("g1", 2, f"I will use {KEY}.")]
    home.lines("den", 1, 1, said, kind="main", root="/home/ann/dev/almanac")
    home.lines(
        "den", 2, 20, [user("u2", 21, "Where do herons nest?"), gemini("g2", 22, "In reeds.")], kind="main"
    )
    return home


@pytest.fixture
def ann(home: GeminiHome) -> Person:
    person = Person(home.folder)
    person.sync()
    return person


def objects(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_one_conversation_goes_to_stdout(ann: Person) -> None:
    done = ann.run("export", "00000002", "--format", "json")
    assert done.code == 0
    session = decode_session(done.out.encode())
    assert session.first_prompt == "Where do herons nest?"
    assert len(session.timeline) == 2


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_can_be_written_and_is_without_secrets(ann: Person, tmp_path: Path, name: str) -> None:
    target = tmp_path / "out" / f"told{FORMATS[name].suffix}"
    done = ann.run("export", "00000001", "--format", name, "-o", str(target))
    assert done.code == 0, done
    assert done.out == ""
    assert "taken out: " in done.err
    told = target.read_bytes()
    assert told
    for secret in (KEY, MAIL):
        assert secret.encode() not in told
    assert os.name == "nt" or (target.stat().st_mode & 0o777, target.parent.stat().st_mode & 0o777) == (
        0o600,
        0o700,
    )
    whole = tmp_path / "whole"
    done = ann.run("export", "00000001", "--format", name, "-o", str(whole), "--no-redact")
    assert "not redacted" in done.err
    assert KEY.encode() in whole.read_bytes()


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_takes_many(ann: Person, tmp_path: Path, name: str) -> None:
    form = FORMATS[name]
    done = ann.spawn("export", "--all", "--format", name, text=not form.is_binary)
    if form.holds_many:
        assert done.code == 0, done
    else:
        assert (done.code, done.out) == (2, "")
        assert done.err == "retold: 2 conversations: name a folder with -o, for a file each\n"
    done = ann.run("export", "--all", "--format", name, "-o", f"{tmp_path / 'many'}/")
    assert done.code == 0, done
    found = sorted(path.name for path in (tmp_path / "many").iterdir())
    index = ["index.html"] if form.encode_index([], ExportOptions()) else []
    assert [path for path in found if path not in index] == [
        f"2026-03-01-my-key-is-redacted-google-api-key-1-write-to-red-00000001{form.suffix}",
        f"2026-03-01-where-do-herons-nest-00000002{form.suffix}",
    ]
    assert [path for path in found if path in index] == index


def test_the_same_secret_is_the_same_everywhere_and_the_report_says_where(
    ann: Person, tmp_path: Path
) -> None:
    report = tmp_path / "report.jsonl"
    done = ann.run("export", "00000001", "--format", "jsonl", "--report", str(report))
    assert done.out.count("[redacted:google-api-key:1]") == 2
    told = objects(report)
    assert {one["kind"] for one in told} == {"google-api-key", "email", "home"}
    assert {one["entry"] for one in told if one["kind"] == "google-api-key"} >= {"u1", "g1"}
    assert KEY[4:12] not in report.read_text(encoding="utf-8")
    assert MAIL not in report.read_text(encoding="utf-8")


def test_what_only_a_later_conversation_gives_away_is_taken_out_of_an_earlier_one(home: GeminiHome) -> None:
    word = "qV7rTz2LmW9xB4kD8sHn3PyC"
    home.lines("pond", 3, 30, [user("u1", 1, f"It said {word}."), gemini("g1", 2, "B")], kind="main")
    home.lines("pond", 4, 40, [user("u1", 1, f"export API_TOKEN={word}"), gemini("g1", 2, "B")], kind="main")
    ann = Person(home.folder)
    ann.sync()
    for keys in (("00000003", "00000004"), ("00000004", "00000003")):
        done = ann.run("export", *keys, "--format", "jsonl")
        assert done.out.count("[redacted:secret:1]") == 2, done.out
        assert word not in done.out


def test_the_users_own_home_is_taken_out_wherever_it_lies(home: GeminiHome) -> None:
    inside, beside = home.folder / "dev" / "x.py", f"{home.folder}-other/y.py"
    home.lines(
        "pond", 3, 30, [user("u1", 1, f"Look at {inside}, {beside}"), gemini("g1", 2, "B")], kind="main"
    )
    ann = Person(home.folder)
    ann.sync()
    told = ann.run("export", "00000003", "--format", "jsonl").out
    assert f"Look at ~/dev/x.py, {beside}" in told


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (("00000001",), {"00000001"}),
        (("00000001", "00000002", "00000001"), {"00000001", "00000002"}),
        (("--all",), {"00000001", "00000002"}),
        (("--since", "2026-03-01T09:10"), {"00000002"}),
        (("--until", "2026-02-01"), set()),
        (("--agent", "gemini"), {"00000001", "00000002"}),
        (("--agent", "codex"), set()),
    ],
)
def test_what_is_meant_is_exported(
    ann: Person, tmp_path: Path, chosen: tuple[str, ...], found: set[str]
) -> None:
    target = tmp_path / "told.jsonl"
    done = ann.run("export", *chosen, "--format", "jsonl", "-o", str(target))
    if not found:
        assert (done.code, done.err) == (1, "retold: no sessions found\n")
        assert not target.exists()
        return
    sessions = [one["session"] for one in objects(target) if one["event"] == "session_start"]
    assert {session[-8:] for session in sessions} == found
    assert len(sessions) == len(found)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--format", "json"), "name a session or a filter, or --all"),
        (("nothing", "--format", "json"), "no session nothing"),
        (("00000001", "--format", "json", "--templates", "/nowhere"), "/nowhere: no such folder"),
    ],
)
def test_what_is_unclear_is_told(ann: Person, arguments: tuple[str, ...], told: str) -> None:
    done = ann.run("export", *arguments)
    assert done.code in (1, 2)
    assert told in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("asked", "found"),
    [("2-3", ["g1", "u3"]), ("3-", ["u3", "g3"]), ("1", ["u1"]), ("9-", []), ("4-99", ["g3"])],
)
def test_a_range_of_entries(home: GeminiHome, asked: str, found: list[str]) -> None:
    said = [user("u1", 1, "A"), gemini("g1", 2, "B"), user("u3", 3, "C"), gemini("g3", 4, "D")]
    home.lines("pond", 3, 30, said, kind="main")
    ann = Person(home.folder)
    ann.sync()
    done = ann.run("export", "00000003", "--format", "json", "--messages", asked)
    assert [entry["id"] for entry in done.objects[0]["timeline"]] == found


@pytest.mark.parametrize("asked", ["0", "a", "3-b", "-3", "", "5-3x"])
def test_what_is_no_range_is_told(asked: str) -> None:
    with pytest.raises(SystemExit):
        main(["export", "00000001", "--format", "json", "--messages", asked])


def test_a_file_in_the_place_of_a_folder_is_left_alone(ann: Person, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    done = ann.run("export", "--all", "--format", "json", "-o", str(tmp_path / "there"))
    assert done.code == 2
    assert "a folder is needed" in done.err
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.skipif(is_root, reason="root may write everywhere")
def test_where_nobody_may_write_it_is_told(ann: Person, tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o500)
    done = ann.run("export", "00000001", "--format", "json", "-o", str(tmp_path / "shut" / "x.json"))
    assert done.code == 4
    assert done.err.count("\n") == 1


def test_what_fails_leaves_nothing_half_written(
    ann: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out" / "told.json"
    target.parent.mkdir()
    target.write_text("earlier")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    done = ann.run("export", "00000001", "--format", "json", "-o", str(target))
    assert done.code == 4
    assert [path.name for path in target.parent.iterdir()] == ["told.json"]
    assert target.read_text() == "earlier"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("../../etc/passwd", "2026-03-01-etc-passwd-00000003.json"),
        ("CON", "2026-03-01-con-00000003.json"),
        ("帮我 review 一下", "2026-03-01-帮我-review-一下-00000003.json"),
        ("\x1b[31m<script>\u202e", "2026-03-01-31m-script-00000003.json"),
        ("x" * 300, f"2026-03-01-{'x' * 48}-00000003.json"),
        ("...", "2026-03-01-00000003.json"),
    ],
)
def test_names_of_files_are_harmless(home: GeminiHome, title: str, name: str) -> None:
    home.lines("pond", 3, 30, [user("u1", 1, title), gemini("g1", 2, "B")], kind="main")
    ann = Person(home.folder)
    ann.sync()
    session = decode_session(ann.run("export", "00000003", "--format", "json").out.encode())
    assert file_name(session, ".json") == name
    assert file_name(session, ".json", {name}) == name.replace(".json", "-2.json")


def test_pictures_cannot_be_checked_and_stay_only_if_asked_for(home: GeminiHome) -> None:
    parts = [{"text": "Look at this"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    shown = {**user("u1", 1, ""), "content": parts}
    home.lines("pond", 3, 30, [shown, gemini("g1", 2, "A dot.")], kind="main")
    ann = Person(home.folder)
    ann.sync()
    for asked, is_there in (((), False), (("--images",), True), (("--no-redact",), True)):
        done = ann.run("export", "00000003", "--format", "html", *asked)
        assert (f"data:image/png;base64,{PIXEL}" in done.out) == is_there, asked
        assert ("unchecked" in done.err) == (not is_there), asked


@pytest.mark.slow
def test_subagents_come_with_their_conversation(home: GeminiHome) -> None:
    child = "k3x9qa"
    started = call("codebase_investigator", {"objective": "find it"}, 2, agentId=child)
    home.lines("pond", 3, 30, [user("u1", 1, "A"), gemini("g1", 2, "B", [started])], kind="main")
    rows = [
        {
            "sessionId": child,
            "startTime": "2026-03-01T09:02:00Z",
            "lastUpdated": "2026-03-01T09:02:30Z",
            "kind": "subagent",
        },
        gemini("c1", 2, f"Found {KEY}."),
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    home.write(f"tmp/pond/chats/{'00000003-3b2d-4f68-9a01-5d2e8c4b6f13'}/{child}.jsonl", text)
    ann = Person(home.folder)
    ann.sync()
    for name in FORMATS:
        done = ann.spawn("export", "00000003", "--format", name, text=False)
        assert done.code == 0, (name, done.err)
        assert KEY not in str(done.out)
        assert ("Found" in str(done.out)) == (name not in ALONE), name


def test_a_report_of_nothing_that_was_taken_out_is_refused(ann: Person, tmp_path: Path) -> None:
    done = ann.run("export", "--all", "--format", "jsonl", "--no-redact", "--report", str(tmp_path / "r"))
    assert (done.code, done.out) == (2, "")
    assert "--no-redact takes nothing out" in done.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_is_written_to_and_a_link_stays_one(tmp_path: Path) -> None:
    pipe, link, kept = tmp_path / "pipe", tmp_path / "link", tmp_path / "kept"
    os.mkfifo(pipe)
    link.symlink_to(kept)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        assert write_file(str(pipe), [b"heron", b"otter"]) == 10
        assert read.result(60) == b"heronotter"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert write_file(str(link), [b"vole"]) == 4
    assert link.is_symlink()
    assert (kept.read_bytes(), stat.S_IMODE(kept.stat().st_mode)) == (b"vole", 0o600)
