"""What was spent: reports from an archive and straight from the files, against the peer that counts tokens."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from archiving import best_of
from corpora import IS_TRIAL, MEDIUM, PRICED, Corpus, Priced
from counter import Ccusage, total
from measure import Measure, at_least, at_most, told
from ours import Retold, synced
from processes import Ran

WARM, COLD = 15, 5
DAILY = ("--by", "day", "--json")


class Kind(NamedTuple):
    """A form of files, whose it is, and a home of them."""

    agent: str
    corpus: Corpus


_SIZES = (50, 10) if IS_TRIAL else (500, 100)
KINDS = (
    Kind("gemini", MEDIUM),
    Kind("gemini", Corpus("gemini-jsonl", *_SIZES)),
    Kind("claude", Corpus("claude", *_SIZES)),
    Kind("codex", Corpus("codex", *_SIZES)),
)


def measures() -> Iterator[Measure]:
    """Compare reports of all that there is: from an archive that is up to date, then where there is none yet."""
    for corpus in (MEDIUM, PRICED):
        yield from _warm(corpus)
    for kind in KINDS:
        yield _cold(kind)


def _warm(corpus: Corpus | Priced) -> Iterator[Measure]:
    retold, peer = synced(corpus), Ccusage(corpus.home, "gemini")
    _agree(retold.stats(*DAILY), peer.daily(), corpus.name)
    overview, daily, theirs = best_of(
        WARM,
        lambda: retold.stats().seconds,
        lambda: retold.stats(*DAILY).seconds,
        lambda: peer.daily().seconds,
    )
    for what, ours in (("stats", overview), ("stats --by day --json", daily)):
        detail = f"{corpus}: retold {told(ours)}, ccusage {told(theirs)}"
        name = f"{what}, {corpus.megabytes} MB, times faster than ccusage"
        yield at_least(name, theirs / ours, 10, detail)


def _cold(kind: Kind) -> Measure:
    corpus = kind.corpus
    retold, peer = Retold(corpus.home, f"{corpus.name}-stats"), Ccusage(corpus.home, kind.agent)

    def first() -> Ran:
        retold.forget()
        return retold.stats(*DAILY)

    _agree(first(), peer.daily(), corpus.name)
    ours, theirs = best_of(COLD, lambda: first().seconds, lambda: peer.daily().seconds)
    retold.forget()
    detail = f"{corpus}: retold {told(ours)}, ccusage {told(theirs)}"
    return at_most(f"stats of {corpus.form} with no archive yet, in ccusage's", ours / theirs, 1.5, detail)


def _agree(ours: Ran, theirs: Ran, where: str) -> None:
    """Make sure that both did the same work: these homes have no copies, of which ccusage would count each."""
    lines = [json.loads(line) for line in ours.output.splitlines()]
    counted, expected = sum(line["usage"]["total"] or 0 for line in lines), total(theirs)
    if counted != expected:
        raise RuntimeError(f"{where}: retold counts {counted:,} tokens, and ccusage {expected:,}")
