"""The page docs/benchmarks.md, with versions, machine and results."""

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import apsw
from agentsview import OFFLINE
from agentsview import VERSION as AGENTSVIEW_VERSION
from measure import RUNS, Measure
from processes import ROOT

from retold import __version__

PAGE = ROOT / "docs" / "benchmarks.md"
INTRODUCTION = f"""\
<!-- Written by benchmarks/run.py: run `make bench`. -->

# Benchmarks

The results of `make bench`. Every number is a ratio of two times on the clock, or of two sizes, because seconds alone say
more about a machine than about a program. Both sides of a ratio are measured in one run, in random turns. There are {RUNS}
runs: the ratio is their median, and the lowest and the highest ratio beside it show the noise of the machine. What no noise
changes is measured once. The bar is what must be met; a number in brackets is the goal beyond it. CPU is the time of all
processors together.

The corpora are generated and always the same: 2,000 sessions of Gemini CLI in 400 MB unless stated otherwise. The page cache
is warm. The peer is [agentsview](https://github.com/kenn-io/agentsview), which archives and searches sessions as well. It
also does other work, and its full-text search covers messages only, that of retold all text. Its daemon runs before a search begins,
and each search of retold is a new process. Both search all sessions (`--include-one-shot`) and print JSON.
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
        f"agentsview {AGENTSVIEW_VERSION}, {network}",
        f"{os.cpu_count()} CPUs ({_processor()}), {memory:.0f} GB, {platform.system()} {platform.release()}",
    ]


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def page(results: Mapping[str, Sequence[Measure]], missed: Sequence[str], seconds: str) -> str:
    """Return the page: facts, a table for each group by its title, and the missed bars."""
    lines = [INTRODUCTION, *(f"- {fact}" for fact in facts()), f"- measured in {seconds}", ""]
    for title, measures in results.items():
        lines += [
            f"## {title}\n",
            "| measure | ratio | three runs | bar | | from |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_row(measure) for measure in measures]
        lines.append("")
    lines += ["## What falls short\n", *([f"- {what}" for what in missed] or ["Nothing."])]
    return "\n".join(lines) + "\n"


def _row(measure: Measure) -> str:
    verdict = "ok" if measure.holds else "**falls short**"
    cells = (measure.what, f"{measure.ratio:.2f}", measure.spread, measure.bar, verdict, measure.detail)
    return f"| {' | '.join(cells)} |"
