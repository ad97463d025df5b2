"""Sessions written back, as the real Gemini CLI finds them: listed, resumed, and still there later."""

import json
import os
import shlex
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from retold.agents.gemini import find_ghosts, find_home
from retold.agents.gemini.restore import hash_root
from support.gemini_requests import last_conversation, parts, unpaired_calls
from support.person import Person
from support.real_gemini import RealCli, free_port

NEW = "0.61.0"
MODEL = ("-m", "gemini-2.5-flash", "--yolo")


class Gemini:
    """The real CLI in one home, and what it sends."""

    def __init__(self, real: RealCli, person: Person, project: Path, version: str = NEW) -> None:
        self.real, self.person, self.project, self.version = real, person, project, version

    def __call__(self, *arguments: str) -> str:
        log = self.real.scratch / "log" / self.version
        shutil.rmtree(log, ignore_errors=True)
        done = self.real.run(self.version, self.person.folder, self.project, *arguments)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout + done.stderr

    def resumed(self, session: str, prompt: str) -> list[dict[str, Any]]:
        """Go on with a session; return the conversation that was sent."""
        self(*MODEL, "--resume", session, "-p", prompt)
        return last_conversation(self.real.scratch / "log" / self.version)

    def delete_all(self) -> None:
        shutil.rmtree(self.person.folder / ".gemini" / "tmp")


@pytest.fixture
def gemini(real_cli: RealCli, tmp_path: Path) -> Gemini:
    project = tmp_path / "My.Proj_01"
    project.mkdir()
    return Gemini(real_cli, Person(tmp_path / "ann"), project.resolve())


def said(turns: list[dict[str, Any]]) -> str:
    return "\n".join(parts(turns, "text"))


def restored_id(person: Person, *arguments: str) -> str:
    """Restore, and return the id that retold names."""
    done = person.run("restore", *arguments)
    assert done.code == 0, done
    return done.err.rpartition("--resume ")[2].strip()


def bare(call_id: str) -> str:
    """Return an id without the tool's name before it, which some versions send and some do not."""
    return call_id.partition("__")[2] or call_id


def ids(turns: list[dict[str, Any]], kind: str) -> list[str]:
    return [bare(part["id"]) for part in parts(turns, kind)]


def calls_of(session: dict[str, Any]) -> list[str]:
    return [
        bare(part["id"])
        for entry in session["timeline"]
        if entry["type"] == "message"
        for part in entry["parts"]
        if part["type"] == "tool_call"
    ]


def begun_earlier(person: Person) -> None:
    """Let the session have begun an hour ago: a resume in another minute leaves a ghost, in the same one it does not."""
    (file,) = person.folder.glob(".gemini/tmp/*/chats/session-*.jsonl")
    head, *rest = file.read_text(encoding="utf-8").split("\n")
    told = json.loads(head)
    at = datetime.fromisoformat(told["startTime"]) - timedelta(hours=1)
    told["startTime"] = f"{at:%Y-%m-%dT%H:%M:%S}.000Z"
    file.write_text("\n".join([json.dumps(told), *rest]), encoding="utf-8")
    file.rename(file.with_name(f"session-{at:%Y-%m-%dT%H-%M}-{told['sessionId'][:8]}.jsonl"))


def test_a_deleted_session_is_listed_and_resumed_again_and_again(gemini: Gemini) -> None:
    person = gemini.person
    gemini(*MODEL, "-p", "SCENARIO:full please look at @main.py and fix it")
    begun_earlier(person)
    person.sync()
    (key,) = (key for key, row in person.rows().items() if row["kind"] == "main")
    before, session = person.rows(), person.show(key)
    gemini.delete_all()
    assert "No previous sessions found" in gemini("--list-sessions")
    found = restored_id(person, key)
    outputs = sorted(person.folder.glob(".gemini/tmp/*/tool-outputs/*/*"))
    assert outputs
    assert sorted(person.folder.glob(".gemini/tmp/*/chats/*/*.jsonl"))
    assert f"[{found}]" in gemini("--list-sessions")
    assert calls_of(session)
    for number in range(1, 4):
        turns = gemini.resumed(found, f"what about the quokka, number {number}?")
        assert unpaired_calls(turns) == []
        assert ids(turns, "functionCall") == calls_of(session)
        assert ids(turns, "functionResponse") == calls_of(session)
        assert "please look at @main.py and fix it" in said(turns)
        assert "Done. I changed main.py" in said(turns)
        assert [f"the quokka, number {one}?" in said(turns) for one in range(1, 5)] == [
            one <= number for one in range(1, 5)
        ]
    gemini(*MODEL, "-p", "something unrelated")
    gemini(*MODEL, "-p", "unrelated as well")
    assert f"[{found}]" in gemini("--list-sessions")
    assert sorted(person.folder.glob(".gemini/tmp/*/tool-outputs/*/*")) == outputs
    person.sync()
    after = person.rows()
    assert after.keys() >= before.keys()
    assert len(after) == len(before) + 2
    assert after[key]["counts"]["messages"] == before[key]["counts"]["messages"] + 6
    assert after[key]["started_at"] == before[key]["started_at"]


@pytest.mark.parametrize("version", ["0.38.2", "0.20.2"])
def test_before_039_a_session_is_one_document(gemini: Gemini, version: str) -> None:
    person = gemini.person
    gemini(*MODEL, "-p", "SCENARIO:full please look at @main.py and fix it")
    person.sync()
    (key,) = (key for key, row in person.rows().items() if row["kind"] == "main")
    session = person.show(key)
    shutil.rmtree(person.folder / ".gemini")
    found = restored_id(person, key, "--for", version)
    (file,) = person.folder.glob(".gemini/tmp/*/chats/session-*")
    assert file.suffix == ".json"
    old = Gemini(gemini.real, person, gemini.project, version)
    assert f"[{found}]" in old("--list-sessions")
    turns = old.resumed(found, "and where is the quokka?")
    assert ids(turns, "functionCall") == calls_of(session)
    assert sorted(ids(turns, "functionResponse")) == sorted(calls_of(session))
    assert "Done. I changed main.py" in said(turns)


@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("0.20.2/headless", None),
        ("0.61.0/interactive-resume-rewind", "full"),  # a turn was rewound
        ("0.61.0/interactive", "full"),  # compressed
        ("0.61.0/resume-same-minute", None),  # the CLI's own view has lost its calls
    ],
)
def test_what_other_versions_and_accidents_left_goes_on(
    gemini: Gemini, shared: Path, name: str, view: str | None
) -> None:
    person = gemini.person
    person.sync("--home", str(shared / "corpus" / "gemini-cli" / name))
    keys = [key for key, row in person.rows().items() if row["kind"] == "main" and row["counts"]["prompts"]]
    assert keys
    for key in keys:
        goes_on(gemini, key, view)


def test_what_the_cli_has_not_moved_to_a_name_yet_is_still_found(gemini: Gemini) -> None:
    person, root = gemini.person, str(gemini.project)
    chats = person.folder / ".gemini" / "tmp" / hash_root(root) / "chats"
    chats.mkdir(parents=True)
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z"
    for short in ("aaaaaaaa", "bbbbbbbb"):
        said = {
            "id": f"{short}-1",
            "timestamp": at,
            "type": "user",
            "content": f"where is the {short} quokka?",
        }
        told = {
            "sessionId": f"{short}-1111-4222-8333-944445555666",
            "projectHash": hash_root(root),
            "startTime": at,
        }
        text = json.dumps(told | {"lastUpdated": at, "messages": [said]}, indent=2)
        (chats / f"session-2026-03-01T10-00-{short}.json").write_text(text, encoding="utf-8")
    person.sync()
    (chats / "session-2026-03-01T10-00-bbbbbbbb.json").unlink()
    assert restored_id(person, "aaaaaaaa", "--project", root).startswith("aaaaaaaa-")  # it is there
    found = restored_id(person, "bbbbbbbb", "--project", root)
    listed = gemini("--list-sessions")
    assert f"[{found}]" in listed
    assert "[aaaaaaaa-1111-4222-8333-944445555666]" in listed


def goes_on(gemini: Gemini, key: str, view: str | None) -> list[dict[str, Any]]:
    """Restore a session and go on with it: every prompt of the view is sent, and one response for each call."""
    options = ("--view", view) if view else ()
    found = restored_id(gemini.person, key, "--project", str(gemini.project), *options)
    turns = gemini.resumed(found, "and where is the quokka?")
    assert unpaired_calls(turns) == [], json.dumps(turns)[:3000]
    for entry in gemini.person.show(key)["timeline"]:
        is_told = view == "full" or entry["fate"] == "live"
        if is_told and entry.get("prompt") and not entry["prompt"].startswith(("/", "?", "!")):
            assert entry["prompt"].split("\n")[0] in said(turns)
    return turns


def test_a_cancelled_turn_is_answered(gemini: Gemini, real_cli: RealCli) -> None:
    done = real_cli.drive(NEW, gemini.person.folder, gemini.project, "cancel.txt")
    assert done.returncode == 0, done.stdout
    gemini.person.sync()
    (key,) = (key for key, row in gemini.person.rows().items() if row["kind"] == "main")
    turns = goes_on(gemini, key, "full")
    assert "cancel test" in said(turns)
    assert "plain after cancel" in said(turns)


def test_a_prompt_that_failed_is_brought_back(gemini: Gemini) -> None:
    log = gemini.real.run(
        NEW, gemini.person.folder, gemini.project, *MODEL, "-p", "SCENARIO:error400 find the quokka"
    )
    assert log.returncode != 0
    gemini.person.sync()
    (key,) = (key for key, row in gemini.person.rows().items() if row["kind"] == "main")
    found = restored_id(gemini.person, key)
    assert f"[{found}]" in gemini("--list-sessions")
    (file,) = gemini.person.folder.glob(".gemini/tmp/*/chats/session-*r_*")
    assert "find the quokka" in file.read_text(encoding="utf-8")


def test_resume_runs_the_agent_on_a_history_it_resumes_well(
    gemini: Gemini, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = gemini.person
    gemini(*MODEL, "-p", "SCENARIO:full please look at @main.py and fix it")
    person.sync()
    (key,) = (key for key, row in person.rows().items() if row["kind"] == "main")
    before, session = person.rows(), person.show(key)
    put_on_path(gemini, tmp_path / "bin", monkeypatch, "and where is the quokka?")
    done = person.run("resume", key)
    assert done.out.startswith(f"retold restore {key} --clean && cd ")
    done = person.run("resume", key, "--run")
    assert done.code == 0, done
    turns = last_conversation(gemini.real.scratch / "log" / NEW)
    assert unpaired_calls(turns) == []
    assert ids(turns, "functionCall") == calls_of(session)
    assert "and where is the quokka?" in said(turns)
    after = person.rows()
    assert after.keys() == before.keys()
    assert after[key]["counts"]["prompts"] == before[key]["counts"]["prompts"] + 1
    home = find_home(person.folder)
    assert home is not None
    assert list(find_ghosts(home)) == []


def put_on_path(gemini: Gemini, folder: Path, monkeypatch: pytest.MonkeyPatch, prompt: str) -> None:
    """Let `gemini` be the real CLI, asked something: nobody sits before it."""
    folder.mkdir()
    settings = gemini.real.settings(NEW, gemini.person.folder, gemini.project)
    script = [*(f"export {name}={shlex.quote(value)}" for name, value in settings.items())]
    command = ["bash", str(gemini.real.shared / "real-cli" / "run"), NEW, str(free_port()), *MODEL]
    script.append(f'exec {shlex.join(command)} "$@" -p {shlex.quote(prompt)}')
    (folder / "gemini").write_text("#!/bin/sh\n" + "\n".join(script) + "\n", encoding="utf-8")
    (folder / "gemini").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
