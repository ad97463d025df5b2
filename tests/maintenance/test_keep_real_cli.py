"""The real Gemini CLI with `keep` installed, and without: what it deletes, and what is left."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.gemini_home import session_id
from support.installed_script import InstalledPerson
from support.person import Json
from support.real_gemini import Driver, Gemini, RealCli

pytestmark = [pytest.mark.shared, pytest.mark.real_cli]
VERSION = "0.61.0"
ASKED = "SCENARIO:full please look at @main.py and fix it"
OLD = "Where does the heron nest?"
GENERAL, OFF = '"general": {', '"sessionRetention": {"enabled": false},'


class Story:
    """A home in which the CLI is run, started and resumed."""

    def __init__(self, folder: Path, gemini: Gemini) -> None:
        self.person, self._gemini = InstalledPerson(folder / "ann"), gemini
        self.project = folder / "den"
        self.settings = self.person.folder / ".gemini" / "settings.json"

    def run(self, *arguments: str) -> None:
        done = self._gemini(
            VERSION, self.person.folder, self.project, "-m", "gemini-2.5-flash", "--yolo", *arguments
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def retain(self, *, is_on: bool) -> None:
        """Switch on or off that the CLI deletes old sessions."""
        text = self.settings.read_text(encoding="utf-8")
        assert GENERAL in text  # as the CLI writes it anew, when it moves settings of older versions
        text = text.replace(OFF, "") if is_on else text.replace(GENERAL, GENERAL + OFF)
        self.settings.write_text(text, encoding="utf-8")

    @property
    def below(self) -> list[Path]:
        """The project's folder in the home, and all that is in it."""
        return sorted(path for path in (self.person.folder / ".gemini" / "tmp").rglob("*") if path.is_file())

    @property
    def sessions(self) -> list[Path]:
        return [path for path in self.below if path.parent.name == "chats"]

    def write_old(self) -> Path:
        """Put a session into the home that was last used sixty days ago."""
        then = datetime.now(UTC) - timedelta(days=60)
        at = then.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        head = {"sessionId": session_id(7), "projectHash": "0" * 64, "startTime": at, "lastUpdated": at}
        message = {"id": "m1", "timestamp": at, "type": "user", "content": OLD}
        answer = {"id": "m2", "timestamp": at, "type": "gemini", "content": "In the reeds.", "model": "m"}
        chats = next(path for path in self.sessions).parent
        file = chats / f"session-{then:%Y-%m-%dT%H-%M}-{session_id(7)[:8]}.jsonl"
        rows: list[Json] = [{**head, "kind": "main"}, message, answer]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return file


def test_nothing_is_lost_with_keep_and_much_without(tmp_path: Path, real_gemini: Gemini) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "lost").mkdir()
    kept, lost = Story(tmp_path / "kept", real_gemini), Story(tmp_path / "lost", real_gemini)
    olds = {}
    for story in (kept, lost):
        story.run("--version")  # makes the settings
        story.retain(is_on=False)
    assert kept.person.call("keep", "--install").code == 0
    for story in (kept, lost):
        story.run("-p", ASKED)
        olds[story] = story.write_old()
        story.run("-p", "unrelated, and the old one is there")
    kept.person.settle()
    real = {
        story: next(path for path in story.sessions if ASKED in path.read_text()) for story in (kept, lost)
    }
    outputs = {
        story: [path for path in story.below if "tool-outputs" in path.parts] for story in (kept, lost)
    }
    assert olds[kept].exists()
    assert outputs[kept]
    assert outputs[lost]

    for story in (kept, lost):
        story.retain(is_on=True)
    minute = max(path.name[8:24] for path in real.values())
    while f"{datetime.now(UTC):%Y-%m-%dT%H-%M}" <= minute:
        time.sleep(0.5)
    for story in (kept, lost):
        native_id = json.loads(real[story].read_text().splitlines()[0])["sessionId"]
        story.run("--resume", native_id, "-p", "a resumed question")
        if story is kept:
            story.person.settle()
        story.run("-p", "unrelated one")
        story.run("-p", "unrelated two")
    kept.person.settle()

    # Without: the agent has deleted what was resumed, with all that belongs to it, and what was old.
    assert not real[lost].exists()
    assert not any(path.exists() for path in outputs[lost])
    assert not olds[lost].exists()

    # With: the session is there, alone, and everything is in the archive.
    twins = [path for path in kept.sessions if path.name.endswith(real[kept].name[-14:])]
    assert twins == [real[kept]]
    assert "a resumed question" in real[kept].read_text()
    assert all(path.exists() for path in outputs[kept])
    assert not olds[kept].exists()
    sessions = kept.person.sessions()
    told = json.dumps(list(sessions.values()))
    assert OLD in told
    assert "In the reeds." in told
    resumed = next(one for one in sessions.values() if one["first_prompt"] == ASKED)
    assert "a resumed question" in json.dumps(resumed)
    assert resumed["children"]
    assert set(resumed["children"]) <= set(sessions)

    done = kept.person.call("keep", "--remove")
    assert done.code == 0, done
    assert "retold" not in kept.settings.read_text(encoding="utf-8")
    assert kept.settings.read_bytes() == lost.settings.read_bytes()


def test_in_a_terminal_the_cli_is_content_with_its_hooks(
    tmp_path: Path, real_cli: RealCli, real_gemini: Gemini, driven_gemini: Driver
) -> None:
    story = Story(tmp_path, real_gemini)
    story.run("--version")
    assert story.person.call("keep", "--install").code == 0
    screen = real_cli.scratch / "log-pty" / VERSION / "tty.out"
    seen = screen.stat().st_size if screen.exists() else 0
    done = driven_gemini(VERSION, story.person.folder, story.project, "cancel.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    told = screen.read_bytes()[seen:].decode(errors="replace")
    assert "1 hooks executed successfully" in told
    assert not re.search(r"hook[^\r\n]*(fail|error|timed out)", told, re.IGNORECASE)
    # The driver ends the CLI some seconds after `/quit`; a hook that a busy machine has not let finish ends with it,
    # and what it asked for is left to the next who comes, as here to the timer.
    assert story.person.call("keep", "--now").code == 0
    story.person.settle()
    assert story.person.rows()
    assert not (story.person.archive / "logs").exists()
