"""ccusage, the peer that counts tokens: it keeps nothing, and reads every file again each time."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from corpora import CACHE
from processes import Ran, environment, run

VERSION = "20.0.24"


def program() -> Path:
    """Return ccusage's own program, installed if it is not there: npm's start of it costs 240 ms."""
    folder = CACHE / "peers" / f"ccusage-{VERSION}"
    found = _program(folder)
    if found is not None:
        return found
    print(f"installing ccusage {VERSION} into {folder}", file=sys.stderr)
    npm = shutil.which("npm")
    options = ("--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    if npm is not None:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "install", *options, f"ccusage@{VERSION}"], check=False)
    found = _program(folder)
    if found is None:
        raise SystemExit(f"ccusage {VERSION} cannot be installed; name groups that need no peer")
    found.chmod(0o755)  # in the package it is a plain file
    return found


def _program(folder: Path) -> Path | None:
    return next(folder.glob("node_modules/@ccusage/ccusage-*/bin/ccusage*"), None)


class Ccusage:
    """ccusage with a home in which the sessions of one agent are, whom it is told: it looks for no others then."""

    def __init__(self, home: Path, agent: str) -> None:
        self._command: list[str | Path] = [program(), agent, "daily", "--offline", "--json"]
        self._env = environment(home)

    def daily(self) -> Ran:
        """Report what each day took."""
        return run(self._command, self._env)


def total(ran: Ran) -> int:
    """Return all tokens that a report of ccusage tells of."""
    told: dict[str, Any] = json.loads(ran.output)
    return int(told["totals"]["totalTokens"])
