"""Sessions written back: what is written says what was said, is written once, and harms nothing."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from retold.agents.gemini.raw import RESULTS_SUFFIX
from retold.agents.gemini.restore import NO_RESULT, is_well_formed
from retold.agents.protocol import Addition, AgentHome
from retold.archive.database import RetoldError
from retold.demo.home import make_home
from retold.maintenance.restore import write_additions
from support.conversation_files import FORMS, turns
from support.gemini_home import GeminiHome, gemini, sha, user
from support.person import Person

Json = dict[str, Any]


def demo(folder: Path) -> Person:
    make_home(folder / "demo", datetime(2026, 3, 1, tzinfo=UTC))
    return Person(folder / "demo" / "home", folder / "retold")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """A person with weeks of work of all three agents, archived, whose agents have nothing of it any more."""
    person = demo(tmp_path_factory.mktemp("made"))
    person.sync()
    for name in (".gemini", ".claude", ".codex"):
        (person.folder / name).rename(person.folder / f"kept{name}")
    return person


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "den"
    folder.mkdir()
    return folder.resolve()


def mains(person: Person, agent: str) -> list[str]:
    return [
        key
        for key, row in person.rows().items()
        if row["agent"] == agent and row["kind"] == "main" and row["counts"]["prompts"]
    ]


def restored(person: Person, key: str, home: Path, project: Path, *more: str) -> list[Path]:
    """Restore a session into a home; return what was written."""
    done = person.run("restore", key, "--home", str(home), "--project", str(project), *more)
    assert done.code == 0, done
    return [Path(line) for line in done.out.splitlines()]


def make_old(files: Iterable[Path]) -> None:
    """Let files look as if they were written an hour ago: restore waits for a folder that was just written to."""
    then = time.time() - 3600
    for file in files:
        os.utime(file, (then, then))


def conversation(session: Json) -> list[Any]:
    """Return what was said and done, in order, without what only surrounds it."""
    return [said for entry in session["timeline"] if entry["type"] == "message" for said in _said(entry)]


def _said(entry: Json) -> Iterator[Any]:
    for part in entry["parts"]:
        if part["type"] == "text":
            yield entry["role"], part["text"]
        elif part["type"] == "tool_call":
            yield part["name"], part["arguments"], part["result"] or part["error"]


def test_restored_and_read_again_it_is_the_same_conversation(
    made: Person, tmp_path: Path, project: Path
) -> None:
    keys = mains(made, "gemini")
    assert keys
    for number, key in enumerate(keys):
        other = Person(tmp_path / f"bob{number}")
        files = restored(made, key, other.folder, project, "--view", "full")
        assert files[-1].name.startswith("session-")
        records = [json.loads(line) for line in files[-1].read_bytes().splitlines()]
        assert is_well_formed(records[1:])
        other.sync()
        before = made.show(key)
        (found,) = [row for row in other.rows().values() if row["native_id"] == before["native_id"]]
        after = other.show(found["key"])
        assert conversation(after) == conversation(before)
        assert after["started_at"] == before["started_at"]
        assert after["ended_at"] == before["ended_at"]
        assert not any(str(entry["id"]).endswith(RESULTS_SUFFIX) for entry in after["timeline"])


def response(call_id: str | None, told: Json) -> Json:
    """Return a response in the form in which the CLI records it."""
    own = {} if call_id is None else {"id": call_id}
    return {"functionResponse": {**own, "name": "read_file", "response": told}}


def written_results(file: Path) -> list[list[Any]]:
    """Return the parts behind each call of a restored session, in the order of the calls."""
    if file.suffix == ".json":
        _, answer = json.loads(file.read_bytes())["messages"]
        return [call["result"] for call in answer["toolCalls"]]
    *_, results = map(json.loads, file.read_bytes().splitlines())
    found: list[list[Any]] = []
    for part in results["content"]:
        found += [[part]] if "functionResponse" in part else []
        found[-1] += [] if "functionResponse" in part else [part]
    return found


@pytest.mark.parametrize("version", ["0.61.0", "0.38.2"])
def test_each_call_is_written_with_its_own_response_and_the_parts_beside_it(
    tmp_path: Path, project: Path, version: str
) -> None:
    """Since 0.44 a result may hold the responses of other calls, and up to 0.2x the output is beside the response."""
    first, second = response("one", {"output": "of one"}), response("two", {"output": "of two"})
    beside = [{"inlineData": {"mimeType": "image/png", "data": "aGVyb24="}}, {"text": "a heron"}]
    bare = response(None, {"output": "of four"})
    results = {
        "one": [first, second],
        "two": [first, second],
        "three": [response("three", {"output": "Binary content provided"}), *beside],
        "four": [bare],
        "five": [first, second],
        "six": [first],
    }
    calls = [
        {"id": one, "name": "read_file", "args": {}, "result": result} for one, result in results.items()
    ]
    made, person = GeminiHome(tmp_path / "ann"), Person(tmp_path / "ann")
    made.lines("den", 1, 1, [user("u1", 1, "Where is the heron?"), gemini("g1", 2, "I look.", calls)])
    person.sync()
    (key,) = person.rows()
    (*_, file) = restored(person, key, tmp_path / "home", project, "--for", version)
    assert written_results(file) == [
        [first],
        [second],
        results["three"],
        [response("four", {"output": "of four"})],
        [response("five", {"error": NO_RESULT})],
        [response("six", {"error": NO_RESULT})],
    ]


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_other_agents_get_their_files_back_byte_for_byte(made: Person, tmp_path: Path, agent: str) -> None:
    keys = mains(made, agent)
    assert keys
    for key in keys:
        home = tmp_path / "home"
        files = [
            Path(line)
            for line in made.run(
                "restore", key, "--home", str(home), "--project", str(tmp_path)
            ).out.splitlines()
        ]
        assert files
        for file in files:
            kept = original_place(made, key, file.relative_to(home), project_name(tmp_path))
            assert file.read_bytes() == (made.folder / f"kept{kept}").read_bytes()
        make_old(files)


@pytest.mark.skipif(sys.platform == "win32", reason="modes say nothing there")
@pytest.mark.parametrize("agent", ["gemini", "claude", "codex"])
def test_what_is_written_back_is_for_its_owner_alone(made: Person, tmp_path: Path, agent: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    done = made.run("restore", mains(made, agent)[0], "--home", str(home), "--project", str(tmp_path))
    assert done.code == 0, done
    written = sorted(home.rglob("*"))
    assert any(path.is_file() for path in written)
    assert not [path for path in written if path.stat().st_mode & 0o077]


def project_name(root: Path) -> str:
    """Return the name of the folder that Claude Code makes for the sessions of a project."""
    return re.sub("[^A-Za-z0-9]", "-", str(root))


def original_place(person: Person, key: str, place: Path, folder: str) -> Path:
    """Return where a file lay that was written back; Claude Code's lie in the folder of the other project now."""
    if key.startswith("claude:"):
        assert place.parts[:3] == (".claude", "projects", folder)
        native_key = person.rows()[key]["project"]["native_key"]
        return Path(".claude", "projects", native_key, *place.parts[3:])
    return place


def test_a_claude_session_for_another_project_is_in_the_folder_of_that_project(tmp_path: Path) -> None:
    person, project = Person(tmp_path / "ann"), tmp_path / "the.new_zoo 動😀"
    project.mkdir()
    file = FORMS["claude"].write(person.folder, 7, turns("heron"))
    said = file.read_bytes()
    person.sync()
    (place,) = person.run("restore", FORMS["claude"].key(7), "--project", str(project)).out.splitlines()
    assert Path(place) == file.parent.with_name(f"{project_name(tmp_path)}-the-new-zoo----") / file.name
    assert Path(place).read_bytes() == said == file.read_bytes()
    assert person.run("restore", FORMS["claude"].key(7), "--project", str(project)).out == ""
    person.sync()
    assert [row["native_id"] for row in person.rows().values()] == [file.stem]


def test_a_claude_session_for_a_project_with_a_long_path_is_refused(tmp_path: Path) -> None:
    person, project = Person(tmp_path / "ann"), tmp_path / ("a" * 120) / ("b" * 120)
    project.mkdir(parents=True)
    FORMS["claude"].write(person.folder, 7, turns("heron"))
    person.sync()
    done = person.run("restore", FORMS["claude"].key(7), "--project", str(project))
    assert done.code == 4
    assert "more than 200 characters" in done.err


def test_the_session_file_is_written_after_the_files_beside_it(made: Person, tmp_path: Path) -> None:
    """An agent that starts meanwhile must not find a session without its subagents and outputs."""
    counts = []
    for key in mains(made, "claude"):
        *beside, last = restored(made, key, tmp_path / "home", tmp_path)
        assert key == f"claude:{last.stem}"
        counts.append(len(beside))
        make_old((*beside, last))
    assert max(counts) > 0


@pytest.mark.parametrize("form", ["claude", "codex"])
def test_of_a_conversation_in_two_homes_the_longer_file_is_written_back(form: str, tmp_path: Path) -> None:
    person, other = Person(tmp_path / "ann"), tmp_path / "laptop"
    short = FORMS[form].write(person.folder, 7, turns("heron"))
    longer = FORMS[form].write(other, 7, turns("heron", "otter"))
    os.utime(longer, (1, 1))  # what was copied may look old
    person.sync("--home", f"laptop={other}")
    place, said = short.relative_to(person.folder), longer.read_bytes()
    shutil.rmtree(other)
    short.unlink()
    done = person.run("restore", FORMS[form].key(7), "--project", str(tmp_path))
    if form == "claude":
        place = place.parent.with_name(project_name(tmp_path)) / place.name
    assert (done.code, done.out.splitlines()) == (0, [str(person.folder / place)]), done
    assert (person.folder / place).read_bytes() == said


@pytest.mark.parametrize("agent", ["gemini", "claude", "codex"])
def test_restoring_twice_writes_nothing_new(made: Person, tmp_path: Path, project: Path, agent: str) -> None:
    key = mains(made, agent)[0]
    for options in ((), ("--view", "full"), ("--view", "active")) if agent == "gemini" else ((),):
        restored(made, key, tmp_path, project, *options)
        assert restored(made, key, tmp_path, project, *options) == []


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_folder_that_the_cli_is_about_to_move_gets_the_session(
    made: Person, tmp_path: Path, project: Path, *, is_empty: bool
) -> None:
    """At its next start the CLI copies what lies under a project's hash to its name, unless something is there."""
    folders = tmp_path / "home" / ".gemini" / "tmp"
    named, hashed = folders / project.name, folders / sha(str(project))
    for folder in (named, hashed):
        folder.mkdir(parents=True)
    (named / ".project_root").write_text(str(project), encoding="utf-8")
    if not is_empty:
        (named / "logs.json").write_text("[]", encoding="utf-8")
    make_old(folders.rglob("*"))
    (*_, file) = restored(made, mains(made, "gemini")[0], tmp_path / "home", project)
    assert file.parent.parent == (hashed if is_empty else named)


def test_the_archive_knows_what_was_written_back_as_its_own(tmp_path: Path) -> None:
    person = demo(tmp_path)
    person.sync()
    before = person.rows()
    shutil.rmtree(person.folder / ".gemini" / "tmp")
    person.sync()
    placed = [key for key in mains(person, "gemini") if before[key]["project"]["root"]]
    assert placed
    for key in placed:
        done = person.run("restore", key)
        assert done.code == 0
        make_old(map(Path, done.out.splitlines()))
    assert person.sync()["new_sessions"] == 0
    after = person.rows()
    for key, row in before.items():
        changed = {name for name in row if row[name] != after[key][name]}
        assert changed <= {"sources", "coverage", "project"}, (key, changed)
        # The marker that was written tells what only the hash told before.
        assert after[key]["project"]["root"] == row["project"]["root"]


def test_a_dry_run_writes_nothing(made: Person, tmp_path: Path, project: Path) -> None:
    key = mains(made, "gemini")[0]
    done = made.run("restore", key, "--home", str(tmp_path / "home"), "--project", str(project), "--dry-run")
    assert done.code == 0
    assert done.out.startswith("would write ")
    assert not (tmp_path / "home").exists()


def test_an_id_is_only_a_name(tmp_path: Path, project: Path) -> None:
    person = Person(tmp_path / "ann")
    chats = person.folder / ".gemini" / "tmp" / "den" / "chats"
    chats.mkdir(parents=True)
    head = {
        "sessionId": "../../../../x\u001b[2J y",
        "projectHash": "ab" * 32,
        "startTime": "2026-03-01T10:00:00.000Z",
    }
    said = {
        "id": "m1",
        "type": "user",
        "timestamp": "2026-03-01T10:00:01.000Z",
        "content": "where is the quokka?",
    }
    text = "".join(json.dumps(record) + "\n" for record in (head, said))
    (chats / "session-2026-03-01T10-00-aaaaaaaa.jsonl").write_text(text, encoding="utf-8")
    person.sync()
    (key,) = person.rows()
    (*_, file) = restored(person, key, tmp_path / "home", project)
    assert file.parent == tmp_path / "home" / ".gemini" / "tmp" / "den" / "chats"
    assert file.name == "session-2026-03-01T10-00-r_______.jsonl"


@pytest.mark.parametrize("session_id", ["-p", "--all"])
def test_an_id_that_is_an_option_of_the_agent_is_refused(
    tmp_path: Path, project: Path, session_id: str
) -> None:
    person = Person(tmp_path / "ann")
    said = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": session_id,
        "timestamp": "2026-03-01T10:00:01.000Z",
        "message": {"role": "user", "content": "where is the quokka?"},
    }
    file = person.folder / ".claude" / "projects" / "-den" / f"{session_id}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(said) + "\n", encoding="utf-8")
    person.sync()
    (key,) = person.rows()
    done = person.run("restore", key, "--home", str(tmp_path / "home"), "--project", str(project))
    assert (done.code, done.out) == (4, "")
    assert f"the agent would take its id for an option: {session_id}\n" in done.err
    assert not (tmp_path / "home").exists()


def test_a_file_that_appears_meanwhile_is_never_replaced(tmp_path: Path) -> None:
    """Another program may write the name between the plan and the write."""
    home, path = AgentHome(tmp_path, tmp_path), tmp_path / "session.jsonl"
    first = Addition(tmp_path / "new" / "outputs.txt", b"ours")
    path.write_bytes(b"theirs")
    with pytest.raises(RetoldError, match="nothing was written"):
        write_additions([first, Addition(path, b"ours")], home)
    assert path.read_bytes() == b"theirs"
    assert [one.name for one in tmp_path.iterdir()] == ["session.jsonl"]


class TestBadInput:
    """One clear line, exit code 4, and nothing changed."""

    @pytest.fixture
    def key(self, made: Person) -> str:
        return mains(made, "gemini")[0]

    def refused(self, made: Person, key: str, *arguments: str) -> str:
        done = made.run("restore", key, *arguments)
        assert (done.code, done.out) == (4, ""), done
        assert done.err.count("\n") == 1
        return done.err

    def test_a_home_that_is_a_file(self, made: Person, key: str, tmp_path: Path, project: Path) -> None:
        home = tmp_path / "home"
        home.write_text("mine", encoding="utf-8")
        assert "is no folder" in self.refused(made, key, "--home", str(home), "--project", str(project))
        assert home.read_text(encoding="utf-8") == "mine"

    def test_a_project_that_is_gone(self, made: Person, key: str, tmp_path: Path) -> None:
        told = self.refused(made, key, "--home", str(tmp_path / "home"), "--project", str(tmp_path / "gone"))
        assert "is gone" in told
        assert not (tmp_path / "home").exists()

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
    def test_a_home_that_is_read_only(self, made: Person, key: str, tmp_path: Path, project: Path) -> None:
        home = tmp_path / "home"
        home.mkdir(mode=0o500)
        assert "nothing was written" in self.refused(
            made, key, "--home", str(home), "--project", str(project)
        )

    @pytest.mark.skipif(
        not os.path.isdir("/proc/self"), reason="nobody, not even root, makes folders in /proc"
    )
    def test_a_home_in_which_nothing_can_be_made(self, made: Person, key: str, project: Path) -> None:
        told = self.refused(made, key, "--home", "/proc/retold-home", "--project", str(project))
        assert "/proc/retold-home" in told
        assert "nothing was written" in told

    def test_a_home_that_is_being_written_to(
        self, made: Person, key: str, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chats = tmp_path / ".gemini" / "tmp" / "den" / "chats"
        chats.mkdir(parents=True)
        busy = chats / "session-2026-03-01T10-00-bbbbbbbb.jsonl"
        busy.write_text("{}\n", encoding="utf-8")
        os.utime(busy, (time.time() + 60, time.time() + 60))  # as if it was written to without end
        monkeypatch.setattr("retold.maintenance.restore._PATIENCE", 0.3)
        told = self.refused(made, key, "--home", str(tmp_path), "--project", str(project))
        assert "running agent" in told
        assert list(chats.iterdir()) == [busy]

    def test_a_full_disk(self, made: Person, key: str, tmp_path: Path, project: Path) -> None:
        code = """
import resource, signal
import retold.maintenance.restore as restore
write = restore.write_additions
def add(*given):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
    write(*given)
restore.write_additions = add
"""
        done = made.spawn(
            "restore", key, "--home", str(tmp_path / "home"), "--project", str(project), code=code
        )
        assert (done.code, done.out) == (4, ""), done
        assert "nothing was written" in done.err
        assert not (tmp_path / "home").exists()

    def test_a_folder_that_leads_elsewhere(
        self, made: Person, key: str, tmp_path: Path, project: Path
    ) -> None:
        tmp = tmp_path / "home" / ".gemini" / "tmp"
        tmp.mkdir(parents=True)
        (tmp_path / "elsewhere").mkdir()
        (tmp / "den").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
        told = self.refused(made, key, "--home", str(tmp_path / "home"), "--project", str(project))
        assert "outside" in told
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_subagent_leads_to_its_parent(self, made: Person) -> None:
        rows = made.rows().items()
        key, parent = next(
            (key, row["parent"]) for key, row in rows if row["kind"] == "subagent" and "gemini" in key
        )
        assert f"go on with {parent}" in self.refused(made, key)

    def test_a_session_that_no_agent_goes_on_with(self, made: Person) -> None:
        (checkpoint,) = [key for key, row in made.rows().items() if row["kind"] == "checkpoint"][:1]
        assert "no conversation" in self.refused(made, checkpoint)


def test_whoever_is_writing_there_is_waited_for(made: Person, tmp_path: Path, project: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "den" / "chats"
    chats.mkdir(parents=True)
    (chats / "session-2026-03-01T10-00-bbbbbbbb.jsonl").write_text("{}\n", encoding="utf-8")
    began = time.monotonic()
    assert restored(made, mains(made, "gemini")[0], tmp_path, project)
    assert time.monotonic() - began > 1


KILLED = """
import os, signal
import retold.maintenance.restore
def publish(draft, path):
    os.kill(os.getpid(), signal.SIGKILL)
retold.maintenance.restore._publish = publish
"""


@pytest.mark.skipif(os.name != "posix", reason="only there a process can be asked for")
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_drafts_of_a_killed_restore_are_removed_by_the_next(
    made: Person, tmp_path: Path, project: Path, agent: str
) -> None:
    """The next one may write another session, elsewhere in the home."""
    home = tmp_path / "home"
    first, second = mains(made, agent)[:2]
    place = ("--home", str(home), "--project", str(project))
    assert made.spawn("restore", first, *place, code=KILLED).code == -9
    (left,) = home.rglob("*.part")
    assert left.stat().st_size
    running = left.with_name(left.name.replace(left.name.split("-")[-2], str(os.getpid())))
    others = [running, left.with_name("notes.part"), left.with_name(f"{left.name}.bak")]
    for other in others:
        shutil.copy(left, other)
    make_old(home.rglob("*"))
    restored(made, second, home, project)
    assert not left.exists()
    assert all(other.exists() for other in others)


@pytest.mark.parametrize("form", FORMS)
def test_a_draft_is_no_session(form: str, tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, turns("low"))
    shutil.copy(file, f"{file}.retold-99-0123abcd.part")
    person.age()
    found = person.sync()
    assert (found["found"], found["problems"], len(person.rows())) == (1, 0, 1)
