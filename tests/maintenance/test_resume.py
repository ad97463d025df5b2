"""Going on with a conversation: the line that is told is the line that works."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from support.person import Person

HEAD = {"projectHash": "", "startTime": "2026-03-01T10:00:00.000Z", "lastUpdated": "2026-03-01T10:00:02.000Z"}
ASKED = {
    "id": "m1",
    "type": "user",
    "timestamp": "2026-03-01T10:00:01.000Z",
    "content": "where is the quokka?",
}
ID = "6f1d2c3b-1111-4222-8333-944445555666"


def talk(person: Person, project: Path, session_id: str = ID, *more: object) -> Path:
    """Put a session into a project's folder."""
    folder = person.folder / ".gemini" / "tmp" / "den"
    (folder / "chats").mkdir(parents=True, exist_ok=True)
    (folder / ".project_root").write_text(str(project), encoding="utf-8")
    file = folder / "chats" / "session-2026-03-01T10-00-6f1d2c3b.jsonl"
    records = (HEAD | {"sessionId": session_id, "projectHash": "ab" * 32}, ASKED, *more)
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a 'quoted' $(den)"
    folder.mkdir()
    return folder


def agent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program on PATH that writes down where it was called, and how."""
    folder.mkdir()
    told = folder / "told"
    script = f"#!/bin/sh\npwd > {shlex.quote(str(told))}\nprintf '%s\\n' \"$@\" >> {shlex.quote(str(told))}\nexit 7\n"
    (folder / "gemini").write_text(script, encoding="utf-8")
    (folder / "gemini").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return told


def test_the_line_goes_to_the_project_and_resumes_there(
    person: Person, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(person, project)
    person.sync()
    told = agent(tmp_path / "bin", monkeypatch)
    done = person.run("resume", ID)
    assert (done.code, done.err) == (0, "")
    assert subprocess.run(["/bin/sh", "-c", done.out], check=False).returncode == 7
    assert told.read_text(encoding="utf-8").splitlines() == [str(project.resolve()), "--resume", ID]


def test_it_is_run_without_a_shell_and_its_exit_code_is_ours(
    person: Person, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(person, project)
    told = agent(tmp_path / "bin", monkeypatch)
    assert person.run("resume", ID, "--run").code == 7
    assert told.read_text(encoding="utf-8").splitlines() == [str(project.resolve()), "--resume", ID]


def test_what_is_gone_is_written_back_first(
    person: Person, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = talk(person, project)
    person.sync()
    file.unlink()
    done = person.run("resume", ID)
    assert done.code == 0
    key = "gemini:session-2026-03-01T10-00-6f1d2c3b"
    assert done.out.startswith(f"retold restore {key} --clean && cd ")
    assert done.out.endswith(f"gemini --resume r_{ID}\n")
    told = agent(tmp_path / "bin", monkeypatch)
    assert person.run("resume", ID, "--run").code == 7
    assert told.read_text(encoding="utf-8").splitlines()[1:] == ["--resume", f"r_{ID}"]
    assert (file.parent / "session-2026-03-01T10-00-r_6f1d2c.jsonl").is_file()


def test_a_ghost_is_removed_before_the_agent_starts(
    person: Person, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = talk(person, project)
    ghost = file.with_name("session-2026-03-01T11-00-6f1d2c3b.jsonl")
    ghost.write_text(json.dumps(HEAD | {"sessionId": ID, "projectHash": "ab" * 32}) + "\n", encoding="utf-8")
    person.sync()
    assert "deletes it at its next start" in person.run("resume", ID).err
    agent(tmp_path / "bin", monkeypatch)
    person.run("resume", ID, "--run")
    assert file.is_file()
    assert not ghost.exists()


def test_an_id_that_is_an_option_is_refused(person: Person, project: Path) -> None:
    talk(person, project, "--yolo")
    person.sync()
    done = person.run("resume", "--run", "gemini:")
    assert (done.code, done.out) == (4, ""), done
    assert "option" in done.err


def test_without_the_agent_it_says_what_to_type(
    person: Person, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(person, project)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = person.run("resume", ID, "--run")
    assert done.code == 4
    assert "gemini is not on PATH" in done.err


def test_a_history_that_the_agent_resumes_badly_is_written_anew(person: Person, project: Path) -> None:
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "a quokka"}}}
    call = {
        "id": "c1",
        "name": "read_file",
        "args": {"path": "den.txt"},
        "status": "success",
        "result": [response],
    }
    answer = {
        "id": "m2",
        "type": "gemini",
        "content": "I look.",
        "model": "gemini-2.5-pro",
        "toolCalls": [call],
    }
    twice = {"id": "m3", "type": "user", "content": [response]}
    file = talk(person, project, ID, answer, twice)
    person.sync()
    assert person.run("restore", ID).out == ""  # it is there
    assert person.run("restore", ID, "--clean").out.count("\n") == 1
    written = file.with_name("session-2026-03-01T10-00-r_6f1d2c.jsonl").read_text(encoding="utf-8")
    assert written.count("functionResponse") == 1
    assert person.run("resume", ID).out.endswith(f"gemini --resume r_{ID}\n")
