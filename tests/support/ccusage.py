"""ccusage, a widely used token counter: installed once, outside the repository, and run without a network.

npm installs it into the same cache as the Gemini CLI (`real_gemini.cache_folder`). Use it on clean homes only:
it counts a session twice if the home holds two copies.
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
    """Token counts in categories that ccusage and retold share; each token is in exactly one."""

    fresh: int
    """Input tokens that were neither read from a cache nor written to one."""
    cached: int
    cache_write: int
    answered: int


# Meaning of ccusage's fields --------------------------------------------------------------------------------------
#
# `inputTokens` counts uncached input for every agent. For Gemini CLI it includes tool-use prompts.
# `outputTokens` is the output figure in the agent's files. It includes reasoning for Claude Code and Codex CLI,
# but not for Gemini CLI. There, reasoning is only in `totalTokens`, which the rows of models lack.

REASONING_IS_OUTPUT = {"gemini": False, "claude": True, "codex": True}


def ccusage_tokens(row: Json) -> Tokens:
    """Return the tokens of a ccusage row, which is about a model, a session, a day or everything."""
    return Tokens(row["inputTokens"], row["cacheReadTokens"], row["cacheCreationTokens"], row["outputTokens"])


def retold_tokens(agent: str, usage: Json) -> Tokens:
    """Return the tokens of a retold usage."""
    known = {name: figure or 0 for name, figure in usage.items()}
    fresh = known["input"] - known["cached"] - known["cache_write"] + known["tool"]
    reasoning = known["reasoning"] if REASONING_IS_OUTPUT[agent] else 0
    return Tokens(fresh, known["cached"], known["cache_write"], known["output"] + reasoning)


def tokens_by_model(row: Json) -> dict[str, Tokens]:
    """Return a row's tokens by model, without the fallback models that ccusage invents for Codex CLI."""
    if "models" in row:
        return {name: ccusage_tokens(one) for name, one in row["models"].items() if not one["isFallback"]}
    return {one["modelName"]: ccusage_tokens(one) for one in row["modelBreakdowns"]}


def session_id(row: Json) -> str:
    """Return the agent's own session id of a row."""
    return str(row.get("sessionFile", row["sessionId"]))[-len("00000000-0000-0000-0000-000000000000") :]


# The program ------------------------------------------------------------------------------------------------------


def install_ccusage(cache: Path) -> Path:
    """Install ccusage and return its native program, which starts 80 times faster than through npm."""
    folder = cache / f"ccusage-{VERSION}"
    if shutil.which("npm") is None:
        raise UnavailableError("not on PATH: npm")
    package = f"ccusage@{VERSION}"  # includes the program for this platform
    install_once(folder, ("npm", "install", "--prefix", str(folder), *_OPTIONS, package), {})
    programs = sorted(folder.glob("node_modules/@ccusage/ccusage-*/bin/ccusage*"))
    if not programs:
        raise UnavailableError(f"ccusage {VERSION} has no program for this platform")
    programs[0].chmod(programs[0].stat().st_mode | stat.S_IXUSR)  # npm packs it as a plain file
    return programs[0]


@dataclass(frozen=True)
class Ccusage:
    """Runs ccusage on a home."""

    program: Path

    def rows(self, home: Path, agent: str, by: str, zone: str = "UTC") -> list[Json]:
        """Return the report by `session` or `daily`, with days in the given time zone."""
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
    """Return the prefix that runs a command without a network, or nothing if the system does not allow it."""
    if shutil.which(_OFFLINE[0]) is None:
        return ()
    tried = subprocess.run((*_OFFLINE, "true"), capture_output=True, timeout=RUN_SECONDS, check=False)
    return () if tried.returncode else _OFFLINE
