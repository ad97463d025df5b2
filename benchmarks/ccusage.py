"""ccusage, the peer for token counts: it has no archive and reads every file each time."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from corpora import CACHE
from processes import ProcessResult, environment, run

VERSION = "20.0.24"


def install_ccusage() -> Path:
    """Return ccusage's program, and install it first if needed; starting it through npm takes 240 ms."""
    folder = CACHE / "peers" / f"ccusage-{VERSION}"
    found = _find_program(folder)
    if found is not None:
        return found
    print(f"installing ccusage {VERSION} into {folder}", file=sys.stderr)
    npm = shutil.which("npm")
    options = ("--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    if npm is not None:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "install", *options, f"ccusage@{VERSION}"], check=False)
    found = _find_program(folder)
    if found is None:
        raise SystemExit(f"ccusage {VERSION} cannot be installed; name groups that need no peer")
    found.chmod(0o755)  # in the package it is a plain file
    return found


def _find_program(folder: Path) -> Path | None:
    return next(folder.glob("node_modules/@ccusage/ccusage-*/bin/ccusage*"), None)


class Ccusage:
    """ccusage for a home with the sessions of one agent; it looks for no other agents."""

    def __init__(self, home: Path, agent: str) -> None:
        self._command: list[str | Path] = [install_ccusage(), agent, "daily", "--offline", "--json"]
        self._env = environment(home)

    def daily(self) -> ProcessResult:
        """Report the tokens of each day."""
        return run(self._command, self._env)


def total_tokens(ran: ProcessResult) -> int:
    """Return the sum of the tokens in a report."""
    told: dict[str, Any] = json.loads(ran.output)
    return int(told["totals"]["totalTokens"])
