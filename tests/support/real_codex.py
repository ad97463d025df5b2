"""The real Codex CLI: installed once, outside the repository, and run against a fake API on loopback.

npm installs it into the same cache as the Gemini CLI (`real_gemini.cache_folder`). Nothing leaves the machine:
the CLI sends all other requests to a proxy that does not exist.
"""

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from support.fake_openai import FakeOpenAI
from support.real_gemini import Finished, install_once

MODELS = {
    "0.29.0": "gpt-5",
    "0.42.0": "gpt-5-codex",
    "0.60.1": "gpt-5.1-codex",
    "0.98.0": "gpt-5.1-codex",
    "0.118.0": "gpt-5.4",
    "0.130.0": "gpt-5.4",
    "0.145.0": "gpt-5.4",
    "0.148.0": "gpt-5.5",
    "0.166.0": "gpt-5.5",
}
"""The tested versions, each with a model for which it offers a shell and a patch tool."""
SCRIPTING_MODEL = "gpt-6.1-sol"
"""A model for which 0.166.0 offers a single tool; it runs scripts that call the other tools."""
PROVIDER = "fake"
SEALING_PROVIDER = "OpenAI"
"""The provider name with which the CLI lets the API compact the history into an encrypted summary."""
RUN_SECONDS = 60
ANSWER_SECONDS = 30
END_SECONDS = 10
NOWHERE = "http://127.0.0.1:9"
CONFIG = """\
model = "{model}"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.fake]
name = "{provider}"
base_url = "{url}"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[analytics]
enabled = false
"""
HEADLESS = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")

Json = dict[str, Any]


def install_codex(cache: Path, version: str) -> Path:
    """Install one version once and return its program."""
    folder = cache / "codex" / version
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    install_once(
        folder, ("npm", "install", "--prefix", str(folder), *options, f"@openai/codex@{version}"), {}
    )
    return folder / "node_modules" / ".bin" / "codex"


@dataclass(frozen=True)
class CodexHome:
    """A home and a project for one version of the CLI, and the fake API that it calls."""

    version: str
    model: str
    program: Path
    folder: Path
    fake: FakeOpenAI

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def rollouts(self) -> list[Path]:
        """Return every rollout in the home."""
        return sorted(self.home.glob("*sessions/**/rollout-*.jsonl"))

    def run(self, *arguments: str) -> Finished:
        """Run the CLI until it exits."""
        return subprocess.run(
            (str(self.program), *arguments),
            cwd=self.project,
            env=self.settings(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=RUN_SECONDS,
            check=False,
        )

    def ask(self, prompt: str, *before: str) -> str:
        """Send one prompt headless, after arguments such as `resume <thread>`, and return the thread's id."""
        finished = self.run(*HEADLESS, *before, prompt)
        if finished.returncode:
            raise RuntimeError(f"codex {self.version} ended with {finished.returncode}: {finished.stderr}")
        return next(served.thread for served in reversed(self.fake.served) if prompt in served.prompt)

    def settings(self) -> dict[str, str]:
        """Return the whole environment, which has nothing of the user's own and no network except loopback."""
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), NOWHERE)
        own = {"HOME": str(self.folder), "CODEX_HOME": str(self.home), "FAKE_KEY": "none"}
        return {"PATH": os.environ["PATH"], "NO_PROXY": "127.0.0.1", **proxies, **own}

    @contextmanager
    def app_server(self) -> Iterator["AppServer"]:
        """Run `codex app-server`, which editors use, over pipes, and end it when the block ends."""
        with (
            (self.folder / "app-server.log").open("w") as log,
            subprocess.Popen(
                (str(self.program), "app-server"),
                cwd=self.project,
                env=self.settings(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
            ) as process,
        ):
            try:
                yield AppServer(process)
            finally:
                end_process(process)


def make_codex_home(program: Path, version: str, folder: Path, fake: FakeOpenAI, **config: str) -> CodexHome:
    """Create a home and a project; `model` and `provider` override the defaults."""
    place = CodexHome(version, config.get("model", MODELS[version]), program, folder, fake)
    place.home.mkdir(parents=True)
    place.project.mkdir()
    (place.project / "main.py").write_text("print('hello')\n")
    text = CONFIG.format(model=place.model, provider=config.get("provider", PROVIDER), url=fake.url)
    (place.home / "config.toml").write_text(text)
    return place


def end_process(process: subprocess.Popen[str]) -> None:
    """Close the server's stdin, on which it exits, and kill the server if it does not."""
    if process.stdin:
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
        return
    process.kill()
    process.wait(END_SECONDS)


@dataclass
class AppServer:
    """One connection to `codex app-server`: requests and responses, one JSON object per line."""

    process: subprocess.Popen[str]
    _heard: "queue.Queue[Json]" = field(default_factory=queue.Queue)
    _kept: list[Json] = field(default_factory=list)
    _requests: int = 0

    def __post_init__(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        client = {"name": "retold-tests", "title": "Tests", "version": "1"}
        self.call("initialize", clientInfo=client, capabilities={"experimentalApi": True})
        self._send({"method": "initialized"})

    def call(self, method: str, **params: object) -> Json:
        """Send a request and return its result."""
        self._requests += 1
        asked = self._requests
        self._send({"id": asked, "method": method, "params": params})
        answer = self._until(lambda said: said.get("id") == asked and "method" not in said)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def start(self, project: Path) -> str:
        """Start a conversation and return its id."""
        return str(self.call("thread/start", cwd=str(project))["thread"]["id"])

    def fork(self, thread: str) -> str:
        """Fork a conversation and return the id of the fork."""
        return str(self.call("thread/fork", threadId=thread)["thread"]["id"])

    def say(self, thread: str, text: str) -> str:
        """Start a turn and return its id without waiting for its end."""
        said = self.call("turn/start", threadId=thread, input=[{"type": "text", "text": text}])
        return str(said["turn"]["id"])

    def turn(self, thread: str, text: str) -> str:
        """Start a turn, wait for its end, and return its id."""
        turn = self.say(thread, text)
        self.ended(thread)
        return turn

    def ended(self, thread: str) -> None:
        """Wait for the end of the running turn."""
        self._until(
            lambda said: said.get("method") == "turn/completed" and said["params"]["threadId"] == thread
        )

    def compact(self, thread: str) -> None:
        """Compact the history, which is a turn of its own, and wait for its end."""
        self.call("thread/compact/start", threadId=thread)
        self.ended(thread)

    def interrupt(self, thread: str, turn: str) -> None:
        """Interrupt a running turn and wait for its end."""
        self.call("turn/interrupt", threadId=thread, turnId=turn)
        self.ended(thread)

    def _send(self, said: Json) -> None:
        _open(self.process.stdin).write(json.dumps(said) + "\n")
        _open(self.process.stdin).flush()

    def _listen(self) -> None:
        for line in _open(self.process.stdout):
            self._heard.put(json.loads(line))

    def _until(self, is_meant: Callable[[Json], bool]) -> Json:
        """Return the first message that matches, from those already received or the next ones."""
        deadline = time.monotonic() + ANSWER_SECONDS
        for said in self._kept:
            if is_meant(said):
                self._kept.remove(said)
                return said
        while (left := deadline - time.monotonic()) > 0:
            with suppress(queue.Empty):
                said = self._heard.get(timeout=left)
                if is_meant(said):
                    return said
                self._kept.append(said)
        raise TimeoutError(f"nothing meant among {_names(self._kept)}")


def _names(heard: Sequence[Json]) -> list[str]:
    return [str(said.get("method", said)) for said in heard[-20:]]


def _open(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("the stream was not asked for")
    return stream
