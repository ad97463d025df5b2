"""The real Gemini CLI, connected: one question brings back what was done last week, with the session cited."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conftest import available
from support.gemini_home import GeminiHome, session_id, sha
from support.installed_script import InstalledPerson, file_tree
from support.person import Json
from support.real_gemini import Finished, RealCli

pytestmark = [pytest.mark.shared, pytest.mark.real_cli]
VERSION = "0.61.0"
TOOL = "mcp_retold_search_history"
ASKED = "heron nest"
ANSWER = "In the reeds, below the weir."
PROGRAMS = ("install", "run", "drive")
PTY = """\
WAIT 7
TYPE /recall heron nest
ESC
ENTER
EXPECT 30 Told in gemini:session
TYPE /quit
ESC
ENTER
WAIT 4
"""


class Story:
    """A home with a session of last week, in which the CLI is connected and asked."""

    def __init__(self, folder: Path, real_cli: RealCli) -> None:
        folder.mkdir(parents=True)
        self.project, self.made = folder / "my den", GeminiHome(folder / "ann lee")
        self.project.mkdir()
        self.person = InstalledPerson(self.made.folder)
        self.cli = RealCli(_programs(real_cli, folder), real_cli.cache, _made(folder / "scratch"))
        self.key = f"gemini:{self._write_last_week().stem}"

    def _write_last_week(self) -> Path:
        then = datetime.now(UTC) - timedelta(days=7)
        at = then.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        head = {
            "sessionId": session_id(7),
            "projectHash": sha(str(self.project)),
            "startTime": at,
            "lastUpdated": at,
        }
        message = {"id": "m1", "timestamp": at, "type": "user", "content": "Where does the heron nest?"}
        answer = {"id": "m2", "timestamp": at, "type": "gemini", "content": ANSWER, "model": "m"}
        rows: list[Json] = [{**head, "kind": "main"}, message, answer]
        self.made.mark("den", str(self.project))
        name = f"tmp/den/chats/session-{then:%Y-%m-%dT%H-%M}-{session_id(7)[:8]}.jsonl"
        return self.made.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def run(self, *arguments: str) -> Finished:
        """Run the CLI headless, asked before every tool: that is, no tool runs that no policy allows."""
        shutil.rmtree(self.cli.scratch / "log", ignore_errors=True)
        with available():
            return self.cli.run(VERSION, self.person.folder, self.project, *arguments)

    def ask(self, words: str) -> Finished:
        """Say one thing."""
        return self.run("-m", "gemini-2.5-flash", "-p", words)

    def requests(self, kind: str = "log") -> list[Json]:
        """Return what the model was asked, one request after the other."""
        told = [
            json.loads(path.read_text())
            for path in sorted((self.cli.scratch / kind / VERSION).glob("0*.json"))
        ]
        return [one["body"] for one in told if "streamGenerateContent" in one["url"]]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _programs(real_cli: RealCli, folder: Path) -> Path:
    """Return a folder with the shared programs, and a fake API that knows our tools."""
    place = folder / "shared" / "real-cli"
    (place / "scripts").mkdir(parents=True)
    for name in PROGRAMS:
        shutil.copy(real_cli.shared / "real-cli" / name, place / name)
    shutil.copy(Path(__file__).parents[1] / "support" / "fake_gemini.js", place)
    (place / "scripts" / "recall.txt").write_text(PTY, encoding="utf-8")
    return place.parent


def declared(request: Json) -> set[str]:
    return {one["name"] for tool in request.get("tools", ()) for one in tool.get("functionDeclarations", ())}


def answers(request: Json) -> Iterator[str]:
    for part in request["contents"][-1]["parts"]:
        if "functionResponse" in part:
            yield json.dumps(part["functionResponse"])


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, real_cli: RealCli) -> Story:
    made = Story(tmp_path_factory.mktemp("connected") / "here", real_cli)
    done = made.person.call("connect", "gemini", "--yes")
    assert done.code == 0, done
    assert "no archive yet" in done.err
    return made


def test_one_question_brings_back_last_week_with_the_session_cited(story: Story) -> None:
    done = story.ask(f"RECALL {ASKED}")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = story.requests()[:2]
    assert TOOL in declared(first)
    assert "the tools of the MCP server `retold`" in json.dumps(first)  # the context file
    (answer,) = answers(second)
    assert story.key in answer
    assert ANSWER in answer or "heron" in answer
    assert f"Told in {story.key}" in done.stdout


def test_the_end_of_a_session_archives_it(story: Story) -> None:
    words = f"what is new at {time.time_ns()}?"
    done = story.ask(words)
    assert done.returncode == 0, done.stdout + done.stderr
    story.person.settle()
    assert words in [row["first_prompt"] for row in story.person.rows().values()]


def test_the_command_asks_headless(story: Story) -> None:
    done = story.ask(f"/recall {ASKED}")
    assert done.returncode == 0, done.stdout + done.stderr
    cited = re.findall(r"gemini:session[\w-]+", done.stdout)
    assert story.key in cited, (
        done.stdout
    )  # the question of an earlier test may be archived by now, and be cited too


@pytest.mark.flaky(reruns=1)
def test_the_command_asks_in_a_terminal(story: Story) -> None:
    with available():
        done = story.cli.drive(VERSION, story.person.folder, story.project, "recall.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(story.key in answer for request in story.requests("log-pty") for answer in answers(request))


def test_the_cli_finds_the_extension_valid(story: Story) -> None:
    folder = story.person.folder / ".gemini" / "extensions" / "retold"
    done = story.run("extensions", "validate", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "successfully validated" in done.stdout + done.stderr
    done = story.run("extensions", "list")
    assert "retold" in done.stdout + done.stderr
    assert "recall" in done.stdout + done.stderr


def test_when_it_is_removed_the_cli_knows_nothing_of_it(tmp_path: Path, real_cli: RealCli) -> None:
    story = Story(tmp_path / "here", real_cli)
    story.run("--version")
    before = file_tree(story.made.gemini)
    assert story.person.call("connect", "gemini", "--yes").code == 0
    done = story.person.call("connect", "gemini", "--remove", "--yes")
    assert done.code == 0, done
    assert file_tree(story.made.gemini) == before
    assert story.ask(f"RECALL {ASKED}").returncode == 0
    assert not [name for request in story.requests() for name in declared(request) if "retold" in name]
