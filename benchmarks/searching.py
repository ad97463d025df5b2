"""Search: whole processes, against the peer with its daemon warm."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from corpora import LARGE, MEDIUM, Corpus
from measure import Measure, Spread, at_most, spread
from ours import FOUND, Retold, synced
from peers import Agentsview, agentsview
from queries import common_terms, phrases, prefixes, rare_terms, substrings, three_words

ROUNDS = 2
Draw = Callable[[Corpus], list[str]]


class Duel(NamedTuple):
    """How both did on the same queries."""

    ours: Spread
    theirs: Spread
    in_sum: float
    """Our time for all of them, in theirs."""
    detail: str


def search_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare searches of every kind with the peer's."""
    retold = synced(corpus)
    with agentsview(corpus) as peer:
        peer.sync()
        named: list[tuple[str, Draw]] = [
            ("a rare term", rare_terms),
            ("a phrase", phrases),
            ("three words", three_words),
        ]
        for what, draw in named:
            duel = _duel(retold, peer, draw(corpus))
            ratio = duel.ours.p95 / duel.theirs.p50
            yield at_most(f"search for {what}, p95 in agentsview's p50", ratio, 1, duel.detail)
        yield from _heavy(retold, peer, corpus)
        duel = _duel(retold, peer, substrings(corpus), is_substring=True)
        yield at_most("search for a substring, in agentsview's, in sum", duel.in_sum, 1.5, duel.detail)


def large_measures(corpus: Corpus = LARGE) -> Iterator[Measure]:
    """Compare the searches that grow with the corpus, on a large one."""
    retold = synced(corpus)
    with agentsview(corpus) as peer:
        peer.sync()
        yield from _heavy(retold, peer, corpus)


def _heavy(retold: Retold, peer: Agentsview, corpus: Corpus) -> Iterator[Measure]:
    named: list[tuple[str, Draw]] = [("a very common term", common_terms), ("3-letter prefixes", prefixes)]
    for what, draw in named:
        duel = _duel(retold, peer, draw(corpus))
        where = f"{corpus.megabytes:,} MB"
        ratio = duel.ours.p95 / duel.theirs.p95
        yield at_most(f"search for {what}, {where}, p95 in agentsview's", ratio, 1, duel.detail)


def _duel(retold: Retold, peer: Agentsview, queries: Sequence[str], *, is_substring: bool = False) -> Duel:
    """Search by turns, each query at its best."""
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
    our_spread, their_spread = spread(ours), spread(theirs)
    detail = f"retold {our_spread}, agentsview {their_spread}; {len(queries)} queries, {found} and {their_found} found"
    return Duel(our_spread, their_spread, sum(ours) / sum(theirs), detail)
