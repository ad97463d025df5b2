"""Search: whole processes against agentsview with a warm daemon."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from agentsview import Agentsview, run_agentsview
from corpora import LARGE, MEDIUM, Corpus
from measure import Measure, Percentiles, at_most, percentiles
from queries import common_terms, phrases, prefixes, rare_terms, substrings, three_words
from retold_command import FOUND, Retold, sync_corpus

ROUNDS = 2
Draw = Callable[[Corpus], list[str]]


class Comparison(NamedTuple):
    """The times of both programs for the same queries."""

    ours: Percentiles
    theirs: Percentiles
    time_ratio: float
    """The sum of our times divided by the sum of theirs."""
    detail: str


def search_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare searches of every kind with the peer's."""
    retold = sync_corpus(corpus)
    with run_agentsview(corpus) as peer:
        peer.sync()
        named: list[tuple[str, Draw]] = [
            ("a rare term", rare_terms),
            ("a phrase", phrases),
            ("three words", three_words),
        ]
        for what, draw in named:
            duel = _compare(retold, peer, draw(corpus))
            ratio = duel.ours.p95 / duel.theirs.p50
            yield at_most(f"search for {what}, p95 in agentsview's p50", ratio, 1, duel.detail)
        yield from _growing_searches(retold, peer, corpus)
        duel = _compare(retold, peer, substrings(corpus), is_substring=True)
        yield at_most("search for a substring, in agentsview's, in sum", duel.time_ratio, 1.5, duel.detail)


def large_measures(corpus: Corpus = LARGE) -> Iterator[Measure]:
    """Compare the searches whose time grows with the corpus, on a large corpus."""
    retold = sync_corpus(corpus)
    with run_agentsview(corpus) as peer:
        peer.sync()
        yield from _growing_searches(retold, peer, corpus)


def _growing_searches(retold: Retold, peer: Agentsview, corpus: Corpus) -> Iterator[Measure]:
    named: list[tuple[str, Draw]] = [("a very common term", common_terms), ("3-letter prefixes", prefixes)]
    for what, draw in named:
        duel = _compare(retold, peer, draw(corpus))
        where = f"{corpus.megabytes:,} MB"
        ratio = duel.ours.p95 / duel.theirs.p95
        yield at_most(f"search for {what}, {where}, p95 in agentsview's", ratio, 1, duel.detail)


def _compare(
    retold: Retold, peer: Agentsview, queries: Sequence[str], *, is_substring: bool = False
) -> Comparison:
    """Search in turns, and take the best time of each query."""
    ours, theirs, found, their_found = [], [], 0, 0
    for query in queries:
        times, their_times = [], []
        for _ in range(ROUNDS):
            ran = retold.search(query, is_substring=is_substring)
            times.append(ran.seconds)
            their_ran = peer.search(query, is_substring=is_substring)
            their_times.append(their_ran.seconds)
        ours.append(min(times))
        theirs.append(min(their_times))
        found += ran.code == FOUND
        their_found += bool(json.loads(their_ran.output)["matches"])
    our_spread, their_spread = percentiles(ours), percentiles(theirs)
    detail = f"retold {our_spread}, agentsview {their_spread}; {len(queries)} queries, {found} and {their_found} found"
    return Comparison(our_spread, their_spread, sum(ours) / sum(theirs), detail)
