"""The archive: first syncs, their memory and answers, syncs without changes, growth, and the size on disk."""

from collections.abc import Iterator

import orjson
from agentsview import run_agentsview
from corpora import IS_TRIAL, MEDIUM, Corpus
from growth import LARGE, GrowingFile, make_grown_home
from measure import Cost, Measure, at_least, at_most, describe, ratios, summarize, take_turns, time_call
from processes import has_pss
from queries import KINDS
from retold_command import FOUND, Retold

import retold

IDLE, GROWN = 6, 3
HUGE = [Corpus(form, 1, 40 if IS_TRIAL else 1000) for form in ("claude", "codex", "gemini-jsonl")]
MEMORY = 350
SAME = 200
"""Searches that must answer the same whatever the number of workers."""


def sync_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare a first sync, and one without changes, with agentsview's."""
    ours = Retold(corpus.home, corpus.name)
    with run_agentsview(corpus) as peer:

        def first() -> Cost:
            ours.remove_archive()
            return ours.sync().cost

        def their_first() -> Cost:
            peer.remove_data()
            cost = peer.sync().cost
            peer.stop()  # its daemon goes on working and would slow down our measurement
            return cost

        firsts = take_turns(retold=[first], agentsview=[their_first])
        own, their = summarize(firsts["retold"]), summarize(firsts["agentsview"])
        detail = f"{corpus}: {describe(retold=own, agentsview=their)}"
        yield at_least("first sync, times faster than agentsview", ratios(their, own), 4.5, detail, 6)
        ours.sync()
        peer.sync()
        works = {"retold": [lambda: ours.sync().cost], "agentsview": [lambda: peer.sync().cost]}
        idles = take_turns(**{name: work * IDLE for name, work in works.items()})
    own, their = summarize(idles["retold"]), summarize(idles["agentsview"])
    detail = f"{describe(retold=own, agentsview=their)}, with its daemon warm"
    yield at_least("sync of nothing new, times faster than agentsview", ratios(their, own), 14, detail)
    size, raw = ours.size, sum(file.stat().st_size for file in corpus.files)
    detail = f"{size / 1e6:.0f} MB for {raw / 1e6:.0f} MB"
    yield at_most("archive and index, in raw bytes", [size / raw], 0.45, detail, 0.4)


def memory_measures() -> Iterator[Measure]:
    """Compare the peak memory of first syncs, of many sessions and of one huge file, with a fixed bound."""
    for corpus in (MEDIUM, *HUGE) if has_pss() else ():
        size = sum(file.stat().st_size for file in corpus.files) / 1e6
        archive = Retold(corpus.home, "memory")
        peak = archive.peak_of_first_sync()
        archive.remove_archive()
        what = f"peak memory of a first sync, {corpus.sessions:,} x {corpus.form}, in {MEMORY} MB"
        yield at_most(what, [peak / MEMORY], 1, f"{peak:.0f} MB for {size:,.0f} MB")


def same_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare the answers of two archives that first syncs with different numbers of workers made."""
    each = SAME // len(KINDS) + 1
    queries = [query for draw in KINDS.values() for query in draw(corpus)[:each]][:SAME]
    answers = []
    for workers in (1, 3):
        archive = Retold(corpus.home, f"{workers}-workers")
        archive.remove_archive()
        archive.sync_with_workers(workers)
        with retold.open(archive.archive) as opened:
            answers.append([list(opened.search(query)) for query in queries])
        archive.remove_archive()
    same = sum(one == other for one, other in zip(*answers, strict=True))
    detail = f"{same} of {len(queries)}, with scores and order"
    yield at_least("same answers after first syncs with 1 and 3 workers", [same / len(queries)], 1, detail)


def growth_measures() -> Iterator[Measure]:
    """Compare a sync after a large session grew by five messages with a sync without changes."""
    home = make_grown_home()
    ours = Retold(home, "grown")
    ours.remove_archive()
    ours.sync()

    def idle() -> Cost:
        ours.sync()  # the first sync after a change compares recent files by content
        return ours.sync().cost

    def grow(file: GrowingFile) -> Cost:
        ours.sync()
        word = file.grow()
        cost = ours.sync().cost
        if ours.search(word).code != FOUND:
            raise RuntimeError(f"{file.path} grew by {word}, and it cannot be found")
        return cost

    files = {corpus.form: GrowingFile(home, corpus) for corpus in LARGE}
    content = files["gemini"].path.read_bytes()
    works = {form: [lambda file=file: grow(file)] * GROWN for form, file in files.items()}
    runs = take_turns(idle=[idle] * GROWN, loads=[lambda: time_call(lambda: orjson.loads(content))], **works)
    nothing, loads = summarize(runs.pop("idle")), summarize(runs.pop("loads"))
    for form, grown in runs.items():
        file, costs = files[form], summarize(grown)
        what, detail = f"{file.megabytes:.0f} MB of {form}", describe(grown=costs, nothing=nothing)
        if file.is_whole:
            limits = [Cost(2 * a.wall + 3 * b.wall, 0) for a, b in zip(nothing, loads, strict=True)]
            what += " grew by 5, in 2 syncs of nothing + 3 x orjson.loads"
            yield at_most(what, ratios(costs, limits), 1, f"{detail}, {describe(loads=loads)}")
        else:
            what += " grew by 5 messages, in syncs of nothing"
            yield at_most(what, ratios(costs, nothing), 3, detail, 2)
