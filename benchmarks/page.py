"""The page docs/benchmarks.md, and the facts that stand above the numbers."""

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import apsw
from counter import VERSION as COUNTER
from measure import Measure
from peers import OFFLINE
from peers import VERSION as PEER
from processes import ROOT

from retold import __version__

PAGE = ROOT / "docs" / "benchmarks.md"
NOTE = "<!-- Written by benchmarks/run.py: run `make bench`. -->\n\n"
INTRODUCTION = """\
What `make bench` measured, written by it. Every number is a ratio of two things measured in one run, in turns, each at
its best, because seconds alone say more about a machine than about a program. The corpora are made up, always the same,
and 2,000 sessions of Gemini CLI in 400 MB unless something else is said; nothing was dropped from the page cache. The
peer is [agentsview](https://github.com/kenn-io/agentsview), which archives and searches sessions as well; it does other
work besides, and its full-text search looks at messages only, ours at everything that was said. It is asked to search
all sessions, as we do (`--include-one-shot`), and both answer in JSON. What was spent is compared with
[ccusage](https://github.com/ccusage/ccusage), which keeps nothing and reads every file each time; its own program is
run, not npm's start of it, and both must count the same tokens.
"""


def facts() -> list[str]:
    """Return what the numbers hang on: versions and the machine."""
    libraries = ("msgspec", "apsw", "zstandard", "orjson")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in libraries)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    network = "without a network" if OFFLINE in os.environ else "with the network as it is"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        f"retold {__version__} on {python}, {versions}, SQLite {apsw.sqlite_lib_version()}",
        f"agentsview {PEER} and ccusage {COUNTER}, {network}",
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
    """Return the page: the facts, a table a group, and what falls short."""
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
