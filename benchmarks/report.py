"""The page docs/benchmarks.md, with versions, machine and results."""

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import apsw
from agentsview import OFFLINE
from agentsview import VERSION as AGENTSVIEW_VERSION
from ccusage import VERSION as CCUSAGE_VERSION
from measure import Measure
from processes import ROOT

from retold import __version__

PAGE = ROOT / "docs" / "benchmarks.md"
NOTE = "<!-- Written by benchmarks/run.py: run `make bench`. -->\n\n"
INTRODUCTION = """\
The results of `make bench`. Every number is a ratio of two times or sizes, measured in one run, in turns, with the best
value of each, because seconds alone say more about a machine than about a program. The corpora are generated and always
the same: 2,000 sessions of Gemini CLI in 400 MB unless stated otherwise. The page cache is warm. The peer is
[agentsview](https://github.com/kenn-io/agentsview), which archives and searches sessions as well. It also does other
work, and its full-text search covers messages only, ours all text. It searches all sessions, as we do
(`--include-one-shot`), and both print JSON. Reports are compared with [ccusage](https://github.com/ccusage/ccusage),
which has no archive and reads every file each time; it is started without npm, and both must count the same tokens.
"""


def facts() -> list[str]:
    """Return the versions and the machine."""
    libraries = ("msgspec", "apsw", "zstandard", "orjson")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in libraries)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    network = "without a network" if OFFLINE in os.environ else "with the network as it is"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        f"retold {__version__} on {python}, {versions}, SQLite {apsw.sqlite_lib_version()}",
        f"agentsview {AGENTSVIEW_VERSION} and ccusage {CCUSAGE_VERSION}, {network}",
        f"{os.cpu_count()} CPUs ({_processor()}), {memory:.0f} GB, {platform.system()} {platform.release()}",
    ]


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def page(results: Mapping[str, Sequence[Measure]], titles: Mapping[str, str]) -> str:
    """Return the page: facts, a table for each group, and the missed bounds."""
    lines = [f"{NOTE}# Benchmarks\n", INTRODUCTION, *(f"- {fact}" for fact in facts()), ""]
    for group, measures in results.items():
        lines += [f"## {titles[group]}\n", "| measure | ratio | bar | | from |", "|---|---|---|---|---|"]
        lines += [_row(measure) for measure in measures]
        lines.append("")
    missed = [measure.what for measures in results.values() for measure in measures if not measure.holds]
    lines += ["## What falls short\n", *([f"- {what}" for what in missed] or ["Nothing."])]
    if left := [titles[group] for group in titles if group not in results]:
        lines += ["", f"Not measured in this run: {', '.join(left)}."]
    return "\n".join(lines) + "\n"


def _row(measure: Measure) -> str:
    verdict = "ok" if measure.holds else "**falls short**"
    cells = (measure.what, f"{measure.ratio:.2f}", measure.goal.replace(">=", "≥").replace("<=", "≤"))
    return "| " + " | ".join([*cells, verdict, measure.detail]) + " |"
