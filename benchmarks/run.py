"""Run the benchmarks: ratios against a limit or a peer, measured in one run, with the bounds that are missed.

    benchmarks/run.py                 everything but the 2 GB corpus; writes docs/benchmarks.md
    benchmarks/run.py sync search     only these groups; writes no page

RETOLD_BENCH_LARGE=1, or the group `large`, adds the 2 GB corpus. RETOLD_BENCH_TRIAL=1 uses small corpora, to test the
benchmarks themselves.
"""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import ccusage
import known_items
import mcp_tools
import spark_tables
import stats
import sync
import tables
import web_page
from agentsview import install_agentsview, isolate_network
from corpora import IS_TRIAL
from measure import Measure, format_measure
from processes import compile_sources
from report import PAGE, facts, page

import export
import reading
import redaction
import search


class Group(NamedTuple):
    """A group of measures."""

    title: str
    measures: Callable[[], Iterable[Measure]]


GROUPS = {
    "reading": Group("Reading", reading.measures),
    "export": Group("Export", export.export_measures),
    "lake": Group("Tables", tables.measures),
    "sync": Group("Sync", sync.sync_measures),
    "growth": Group("A session that grew", sync.growth_measures),
    "list": Group("List", sync.list_measures),
    "sql": Group("SQL", sync.sql_measures),
    "disk": Group("Disk", sync.disk_measures),
    "stats": Group("Stats", stats.measures),
    "search": Group("Search", search.search_measures),
    "page": Group("The local page", web_page.measures),
    "mcp": Group("The tools for agents", mcp_tools.measures),
    "known": Group("Known items", known_items.known_measures),
    "redaction": Group("Redaction", redaction.measures),
    "spark": Group("Spark", spark_tables.measures),
    "large": Group("Search in 2 GB", search.large_measures),
}
USUAL = [name for name in GROUPS if name != "large" or os.environ.get("RETOLD_BENCH_LARGE")]
PEERS = {
    "sync": install_agentsview,
    "search": install_agentsview,
    "page": install_agentsview,
    "large": install_agentsview,
    "stats": ccusage.install_ccusage,
}
"""The function that installs the peer of a group."""


def main(arguments: Sequence[str]) -> int:
    """Print each measure; return 1 if a bound is missed."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    asked = parser.parse_args(arguments[1:]).groups
    if unknown := set(asked) - set(GROUPS):
        parser.error(f"no group {', '.join(sorted(unknown))}: there are {', '.join(GROUPS)}")
    names = [name for name in GROUPS if name in (asked or USUAL)]
    for install in {PEERS[name] for name in names if name in PEERS}:
        install()  # while there is a network
    isolate_network(arguments)
    compile_sources()
    print("\n".join(facts()), flush=True)
    results = {name: _run_group(name) for name in names}
    if not asked and not IS_TRIAL:
        PAGE.write_text(
            page(results, {name: group.title for name, group in GROUPS.items()}), encoding="utf-8"
        )
    missed = [measure.what for measures in results.values() for measure in measures if not measure.holds]
    print(f"\nfalls short: {'; '.join(missed)}" if missed else "\nevery goal is met")
    return 1 if missed else 0


def _run_group(name: str) -> list[Measure]:
    print(f"\n{GROUPS[name].title}", flush=True)
    measures = []
    for measure in GROUPS[name].measures():
        print(format_measure(measure), flush=True)
        measures.append(measure)
    return measures


if __name__ == "__main__":
    sys.exit(main(sys.argv))
