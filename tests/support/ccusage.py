"""ccusage, the counter of tokens that people know: installed once, outside the repository, and asked without a network.

What npm installs goes where `real_cli` keeps the Gemini CLI. It is asked for clean homes only: where a session lies
there twice, it counts it twice.
"""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from support.real_gemini import UnavailableError, install_once

VERSION = "20.0.24"
RUN_SECONDS = 60
_OFFLINE = ("unshare", "-rn")
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")

Json = dict[str, Any]


class Tokens(NamedTuple):
    """Tokens in words that both have: each is in one of the figures only."""

    fresh: int
    """Sent, and neither read from a cache nor written to one."""
    cached: int
    cache_write: int
    answered: int


# What ccusage's words mean ----------------------------------------------------------------------------------------
#
# `inputTokens` is what no cache had, whatever the agent writes; with Gemini CLI it has the prompts of tools too.
# `outputTokens` is what the agent's files call output: Claude Code and Codex CLI have the reasoning in it, and Gemini
# CLI has it beside it. There it stands in `totalTokens` alone, which the rows of models lack.

REASONING_IS_OUTPUT = {"gemini": False, "claude": True, "codex": True}


def ccusage_tokens(row: Json) -> Tokens:
    """Return what a row of ccusage says, of a model, a session, a day or all."""
    return Tokens(row["inputTokens"], row["cacheReadTokens"], row["cacheCreationTokens"], row["outputTokens"])


def retold_tokens(agent: str, usage: Json) -> Tokens:
    """Return what a usage of retold says, in the same words."""
    known = {name: figure or 0 for name, figure in usage.items()}
    fresh = known["input"] - known["cached"] - known["cache_write"] + known["tool"]
    reasoning = known["reasoning"] if REASONING_IS_OUTPUT[agent] else 0
    return Tokens(fresh, known["cached"], known["cache_write"], known["output"] + reasoning)


def tokens_by_model(row: Json) -> dict[str, Tokens]:
    """Return what a row says of each model; where a file of Codex CLI names none, ccusage makes one up."""
    if "models" in row:
        return {name: ccusage_tokens(one) for name, one in row["models"].items() if not one["isFallback"]}
    return {one["modelName"]: ccusage_tokens(one) for one in row["modelBreakdowns"]}


def session_id(row: Json) -> str:
    """Return the agent's own id of the session that a row is about."""
    return str(row.get("sessionFile", row["sessionId"]))[-len("00000000-0000-0000-0000-000000000000") :]


# The program ------------------------------------------------------------------------------------------------------


def install_ccusage(cache: Path) -> Path:
    """Return the program itself, without npm's start of it, which takes eighty times as long."""
    folder = cache / f"ccusage-{VERSION}"
    if shutil.which("npm") is None:
        raise UnavailableError("not on PATH: npm")
    package = f"ccusage@{VERSION}"  # brings the program of this platform along
    install_once(folder, ("npm", "install", "--prefix", str(folder), *_OPTIONS, package), {})
    programs = sorted(folder.glob("node_modules/@ccusage/ccusage-*/bin/ccusage*"))
    if not programs:
        raise UnavailableError(f"ccusage {VERSION} has no program for this platform")
    programs[0].chmod(programs[0].stat().st_mode | stat.S_IXUSR)  # in the package it is a plain file
    return programs[0]


@dataclass(frozen=True)
class Ccusage:
    """Tells what the sessions in a home took."""

    program: Path

    def rows(self, home: Path, agent: str, by: str, zone: str = "UTC") -> list[Json]:
        """Return its report by `session` or by `daily`, with the days of a time zone."""
        return list(self._report(home, agent, by, zone)["sessions" if by == "session" else by])

    def totals(self, home: Path, agent: str) -> Json:
        return dict(self._report(home, agent, "daily")["totals"])

    def _report(self, home: Path, agent: str, by: str, zone: str = "UTC") -> Json:
        asked = (agent, by, "--offline", "--json", "--timezone", zone)
        finished = subprocess.run(
            (*_alone(), str(self.program), *asked),
            env={"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_SECONDS,
            check=True,
        )
        report: Json = json.loads(finished.stdout)
        return report


def _alone() -> Sequence[str]:
    """Return what keeps a command from the network, where this system lets us; it is told to stay off it anyway."""
    if shutil.which(_OFFLINE[0]) is None:
        return ()
    tried = subprocess.run((*_OFFLINE, "true"), capture_output=True, timeout=RUN_SECONDS, check=False)
    return () if tried.returncode else _OFFLINE
