"""The real Claude Code: installed once, outside the repository, and run against a fake API on loopback.

npm installs it into the same cache as the Gemini CLI (`real_gemini.cache_folder`). Nothing can leave the
machine: the CLI and the API run in a network namespace that has only loopback.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import fake_anthropic
from support.fake_anthropic import RUN_SECONDS, Served, read_log
from support.real_gemini import Finished, UnavailableError, install_once

NEWEST = "2.1.325"
FORKING = ("2.0.76", "2.1.100", NEWEST)
"""Versions that resume a session in its own file, and fork it into another on demand."""
VERSIONS = ("1.0.100", *FORKING)
"""1.0.100 copies a session into a new file on every resume."""
REWINDING = ("2.1.100", NEWEST)

END_SECONDS = 30
ISOLATED = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
HEADLESS = ("--output-format", "json", "--dangerously-skip-permissions")
QUIET = dict.fromkeys(
    (
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_TELEMETRY",
        "IS_SANDBOX",  # the CLI is root in the namespace, and root may skip permissions only in a sandbox
    ),
    "1",
)

Line = dict[str, Any]


def require_isolation() -> None:
    """Raise UnavailableError if this system cannot create a network namespace."""
    missing = [program for program in ("ip", "npm", "unshare") if shutil.which(program) is None]
    if missing:
        raise UnavailableError(f"not on PATH: {', '.join(missing)}")
    tried = subprocess.run((*ISOLATED, "true"), capture_output=True, timeout=END_SECONDS, check=False)
    if tried.returncode:
        raise UnavailableError("no network namespace can be made here")


def install_claude(cache: Path, version: str) -> tuple[str, ...]:
    """Install one version once and return its command: a native program, or Node with a script if it is older."""
    folder = cache / "claude" / version
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    package = f"@anthropic-ai/claude-code@{version}"
    install_once(folder, ("npm", "install", "--prefix", str(folder), *options, package), {})
    packages = folder / "node_modules" / "@anthropic-ai"
    programs = sorted(packages.glob("claude-code-*/claude"))
    return (str(programs[0]),) if programs else ("node", str(packages / "claude-code" / "cli.js"))


@dataclass(frozen=True)
class ClaudeHome:
    """A home and a project for one version of the CLI, and the responses that it got."""

    version: str
    command: tuple[str, ...]
    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def _log(self) -> Path:
        return self.folder / "served.jsonl"

    def served(self) -> list[Served]:
        """Return every response so far, in order."""
        return read_log(self._log)

    def turns(self) -> list[Served]:
        """Return the responses to turns of a conversation, without the CLI's own requests, such as summaries."""
        return [served for served in self.served() if served.has_tools and not served.is_summary]

    def file(self, session: str) -> Path:
        """Return the transcript of one session."""
        (file,) = self.config.glob(f"projects/*/{session}.jsonl")
        return file

    def run(self, *arguments: str) -> Finished:
        """Run the CLI until it exits."""
        api = (sys.executable, fake_anthropic.__file__, str(self._log))
        return subprocess.run(
            (*ISOLATED, *api, *self.command, *arguments),
            cwd=self.project,
            env=self._settings(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=RUN_SECONDS + END_SECONDS,
            check=False,
        )

    def ask(self, prompt: str, *options: str) -> str:
        """Send one prompt headless, with options such as `--resume <session>`, and return the session's id."""
        finished = self.run(*HEADLESS, *options, "-p", prompt)
        if finished.returncode or not finished.stdout.strip():
            raise RuntimeError(f"claude {self.version} ended with {finished.returncode}: {finished.stderr}")
        told = finished.stdout[finished.stdout.index("{") :]
        return str(json.loads(told)["session_id"])

    def _settings(self) -> dict[str, str]:
        """Return the whole environment, which has nothing of the user's own."""
        own = {"HOME": str(self.folder), "CLAUDE_CONFIG_DIR": str(self.config), "ANTHROPIC_API_KEY": "none"}
        return {"PATH": os.environ["PATH"], "SHELL": "/bin/sh", "LANG": "C.UTF-8", **QUIET, **own}


def make_claude_home(command: Sequence[str], version: str, folder: Path) -> ClaudeHome:
    """Create an empty home and a project with one file."""
    place = ClaudeHome(version, tuple(command), folder)
    place.config.mkdir(parents=True)
    place.project.mkdir()
    (place.project / "main.py").write_text("print('hello')\n")
    return place


def read_lines(file: Path) -> list[Line]:
    """Return the records of a whole transcript."""
    return [json.loads(line) for line in file.read_bytes().split(b"\n") if line]


def write_lines(file: Path, lines: Sequence[Line | str]) -> None:
    """Write a transcript again from its records; strings are written unchanged."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
