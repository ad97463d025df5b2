"""Reports from an archive, against ccusage."""

import json
from collections.abc import Iterator

from ccusage import Ccusage, total_tokens
from corpora import MEDIUM, PRICED, Corpus, PricedCorpus
from measure import Measure, at_least, format_seconds
from processes import ProcessResult
from retold_command import sync_corpus
from sync import best_of

WARM = 15
DAILY = ("--by", "day", "--json")


def measures() -> Iterator[Measure]:
    """Compare reports on everything, from an archive that is up to date."""
    for corpus in (MEDIUM, PRICED):
        yield from _compare_reports(corpus)


def _compare_reports(corpus: Corpus | PricedCorpus) -> Iterator[Measure]:
    retold, peer = sync_corpus(corpus), Ccusage(corpus.home, "gemini")
    _check_same_tokens(retold.stats(*DAILY), peer.daily(), corpus.name)
    overview, daily, theirs = best_of(
        WARM,
        lambda: retold.stats().seconds,
        lambda: retold.stats(*DAILY).seconds,
        lambda: peer.daily().seconds,
    )
    for what, ours in (("stats", overview), ("stats --by day --json", daily)):
        detail = f"{corpus}: retold {format_seconds(ours)}, ccusage {format_seconds(theirs)}"
        name = f"{what}, {corpus.megabytes} MB, times faster than ccusage"
        yield at_least(name, theirs / ours, 10, detail)


def _check_same_tokens(ours: ProcessResult, theirs: ProcessResult, where: str) -> None:
    """Check that both count the same tokens; these homes have no copies, which ccusage counts again."""
    lines = [json.loads(line) for line in ours.output.splitlines()]
    counted, expected = sum(line["usage"]["total"] or 0 for line in lines), total_tokens(theirs)
    if counted != expected:
        raise RuntimeError(f"{where}: retold counts {counted:,} tokens, and ccusage {expected:,}")
