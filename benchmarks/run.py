"""Run the benchmarks: ratios against a limit or a peer, measured in one run, with the bounds that are missed.

    benchmarks/run.py                 everything; writes docs/benchmarks.md
    benchmarks/run.py sync search     only these groups; writes no page

RETOLD_BENCH_TRIAL=1 uses small corpora, to test the benchmarks themselves.
"""

import sys
import time
import traceback
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import commands
import sync
import tables
from agentsview import install_agentsview, isolate_network
from corpora import IS_TRIAL
from measure import Measure, format_seconds
from processes import compile_sources
from report import PAGE, facts, page

import reading
import search


class Group(NamedTuple):
    """A group of measures."""

    title: str
    measures: Callable[[], Iterable[Measure]]


GROUPS = {
    "sync": Group("Sync", sync.sync_measures),
    "same": Group("Answers", sync.same_measures),
    "growth": Group("A session that grew", sync.growth_measures),
    "memory": Group("Memory", sync.memory_measures),
    "commands": Group("Commands", commands.measures),
    "search": Group("Search", search.search_measures),
    "pages": Group("Pages", search.page_measures),
    "known": Group("Known items", search.known_measures),
    "reading": Group("Reading and writing", reading.measures),
    "tables": Group("Tables", tables.measures),
}
WITH_PEER = {"sync", "search", "pages"}
"""Groups that need agentsview."""


def main(arguments: Sequence[str]) -> int:
    """Print each measure; return 1 if a bound is missed."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    asked = parser.parse_args(arguments[1:]).groups
    if unknown := set(asked) - set(GROUPS):
        parser.error(f"no group {', '.join(sorted(unknown))}: there are {', '.join(GROUPS)}")
    names = [name for name in GROUPS if name in (asked or GROUPS)]
    if not WITH_PEER.isdisjoint(names):
        install_agentsview()  # while there is a network
    isolate_network(arguments)
    compile_sources()
    start = time.monotonic()
    print("\n".join(facts()), flush=True)
    results: dict[str, list[Measure]] = {}
    missed: list[str] = []
    for title, measures in (GROUPS[name] for name in names):
        print(f"\n{title}", flush=True)
        results[title] = []
        try:
            for measure in measures():
                print(measure, flush=True)
                results[title].append(measure)
        except Exception:  # noqa: BLE001 - the other groups are measured nevertheless
            traceback.print_exc()
            missed.append(f"the rest of {title}: it failed")
        missed += [measure.what for measure in results[title] if not measure.holds]
    print(f"\nfalls short: {'; '.join(missed)}" if missed else "\nevery bar is met")
    seconds = format_seconds(time.monotonic() - start)
    print(f"measured in {seconds}")
    if not asked and not IS_TRIAL:
        PAGE.write_text(page(results, missed, seconds), encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
