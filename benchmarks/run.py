"""Measure what `make bench` promises: ratios against a limit or a peer, taken in one run, and what falls short.

    benchmarks/run.py                 everything but the 2 GB corpus, and docs/benchmarks.md
    benchmarks/run.py sync search     only these groups, and no page

The 2 GB corpus takes long: RETOLD_BENCH_LARGE=1 adds it, or its name, `large`. With RETOLD_BENCH_TRIAL=1 the corpus is
small, to try the bench itself.
"""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import archiving
import asking
import counter
import counting
import decoding
import exporting
import known_items
import redacting
import searching
import serving
import sparking
import tables
from corpora import IS_TRIAL
from measure import Measure, line
from page import PAGE, facts, page
from peers import binary, leave_the_network
from processes import compile_sources


class Group(NamedTuple):
    """Measures that are taken together."""

    title: str
    measures: Callable[[], Iterable[Measure]]


GROUPS = {
    "reading": Group("Reading", decoding.measures),
    "export": Group("Export", exporting.export_measures),
    "lake": Group("Tables", tables.measures),
    "sync": Group("Sync", archiving.sync_measures),
    "growth": Group("A session that grew", archiving.growth_measures),
    "list": Group("List", archiving.list_measures),
    "sql": Group("SQL", archiving.sql_measures),
    "disk": Group("Disk", archiving.disk_measures),
    "stats": Group("Stats", counting.measures),
    "search": Group("Search", searching.search_measures),
    "page": Group("The local page", serving.measures),
    "mcp": Group("The tools for agents", asking.measures),
    "known": Group("Known items", known_items.known_measures),
    "redaction": Group("Redaction", redacting.measures),
    "spark": Group("Spark", sparking.measures),
    "large": Group("Search in 2 GB", searching.large_measures),
}
USUAL = [name for name in GROUPS if name != "large" or os.environ.get("RETOLD_BENCH_LARGE")]
PEERS = {"sync": binary, "search": binary, "page": binary, "large": binary, "stats": counter.program}
"""What installs the peer of a group."""


def main(arguments: Sequence[str]) -> int:
    """Print every measure as it is taken; 1 if any goal is missed."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    asked = parser.parse_args(arguments[1:]).groups
    if unknown := set(asked) - set(GROUPS):
        parser.error(f"no group {', '.join(sorted(unknown))}: there are {', '.join(GROUPS)}")
    names = [name for name in GROUPS if name in (asked or USUAL)]
    for install in {PEERS[name] for name in names if name in PEERS}:
        install()  # while there is a network
    leave_the_network(arguments)
    compile_sources()
    print("\n".join(facts()), flush=True)
    results = {name: _taken(name) for name in names}
    if not asked and not IS_TRIAL:
        PAGE.write_text(
            page(results, {name: group.title for name, group in GROUPS.items()}), encoding="utf-8"
        )
    missed = [measure.what for measures in results.values() for measure in measures if not measure.holds]
    print(f"\nfalls short: {'; '.join(missed)}" if missed else "\nevery goal is met")
    return 1 if missed else 0


def _taken(name: str) -> list[Measure]:
    print(f"\n{GROUPS[name].title}", flush=True)
    measures = []
    for measure in GROUPS[name].measures():
        print(line(measure), flush=True)
        measures.append(measure)
    return measures


if __name__ == "__main__":
    sys.exit(main(sys.argv))
