"""What was spent: reports from an archive, against the peer that counts tokens."""

import json
from collections.abc import Iterator

from archiving import best_of
from corpora import MEDIUM, PRICED, Corpus, Priced
from counter import Ccusage, total
from measure import Measure, at_least, told
from ours import synced
from processes import Ran

WARM = 15
DAILY = ("--by", "day", "--json")


def measures() -> Iterator[Measure]:
    """Compare reports of all that there is, from an archive that is up to date."""
    for corpus in (MEDIUM, PRICED):
        yield from _warm(corpus)


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


def _agree(ours: Ran, theirs: Ran, where: str) -> None:
    """Make sure that both did the same work: these homes have no copies, of which ccusage would count each."""
    lines = [json.loads(line) for line in ours.output.splitlines()]
    counted, expected = sum(line["usage"]["total"] or 0 for line in lines), total(theirs)
    if counted != expected:
        raise RuntimeError(f"{where}: retold counts {counted:,} tokens, and ccusage {expected:,}")
