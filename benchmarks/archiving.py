"""The archive: filling it, finding that nothing changed, taking in what grew, listing it, and its size."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
from corpora import CACHE, MEDIUM, Corpus
from growth import WHOLE, JsonLines, WholeFile, grown_home
from measure import Measure, at_least, at_most, told
from ours import FOUND, Retold, synced
from peers import agentsview
from processes import PYTHON, environment, has_pss, run

COLD, WARM, GROWN, STARTS = 2, 10, 5, 25


def sync_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare a first sync, and one that finds nothing new, with the peer's."""
    retold = Retold(corpus.home, corpus.name)
    with agentsview(corpus) as peer:

        def ours() -> float:
            retold.forget()
            return retold.sync().seconds

        def theirs() -> float:
            peer.forget()
            seconds = peer.sync().seconds
            peer.stop()  # what it does afterwards is not to slow us down
            return seconds

        first, their_first = best_of(COLD, ours, theirs)
        detail = f"{corpus}: retold {told(first)}, agentsview {told(their_first)}"
        yield at_least("first sync, times faster than agentsview", their_first / first, 6, detail)
        if has_pss():
            retold.forget()
            peak = retold.peak_of_sync()
            peer.forget()
            their_peak = peer.peak_of_sync()
            detail = f"summed PSS: retold {peak:.0f} MB, agentsview {their_peak:.0f} MB"
            yield at_most("peak memory of a first sync, in agentsview's", peak / their_peak, 2, detail)
        retold.sync()
        peer.sync()
        idle, their_idle = best_of(WARM, lambda: retold.sync().seconds, lambda: peer.sync().seconds)
    detail = f"retold {told(idle)}, agentsview {told(their_idle)} with its daemon warm"
    yield at_least("sync of nothing new, times faster than agentsview", their_idle / idle, 8, detail)
    yield nothing_new(retold, corpus)


def nothing_new(retold: Retold, corpus: Corpus) -> Measure:
    """Compare a sync that finds nothing new with `find` that asks for each file's size and time, and start-up.

    Start-up is a sync that finds nothing new in a home of one session: in an empty home nothing is remembered, and
    retold takes a longer way.
    """
    single = Retold(WHOLE.home, WHOLE.name)
    single.sync()
    find = ["find", str(corpus.home), "-type", "f", "-printf", r"%s %T@\n"]
    idle, start, finding = best_of(
        WARM,
        lambda: retold.sync().seconds,
        lambda: single.sync().seconds,
        lambda: run(find, environment(CACHE)).seconds,
    )
    bar = 4 * finding + start
    detail = f"{told(idle)}; start-up (one session) {told(start)}, `find -printf '%s %T@'`, a process, {told(finding)}"
    return at_most("the same, in 4 x find + stat and start-up", idle / bar, 1, detail)


def growth_measures() -> Iterator[Measure]:
    """Compare a sync after one large session grew by five messages with one that finds nothing new."""
    home = grown_home()
    retold = Retold(home, "grown")
    retold.forget()
    retold.sync()
    lines, whole = JsonLines(home), WholeFile(home)
    idle, times = _grown(retold, lines)
    what = f"{lines.megabytes:.0f} MB JSON lines grew by 5 messages, in syncs of nothing new"
    yield at_most(what, times / idle, 2, f"{told(times)}, {told(idle)}")
    idle, times = _grown(retold, whole)
    loads = min(_seconds(whole.file, orjson.loads) for _ in range(GROWN))
    what = f"{whole.megabytes:.0f} MB JSON grew by 5, in 2 x that + 3 x orjson.loads"
    yield at_most(what, times / (2 * idle + 3 * loads), 1, f"{told(times)}, {told(idle)}, {told(loads)}")


def _grown(retold: Retold, session: JsonLines | WholeFile) -> tuple[float, float]:
    """Return the best times of a sync of nothing new, and of one after growth."""

    def after_growth() -> float:
        word = session.grow()
        seconds = retold.sync().seconds
        if retold.search(word).code != FOUND:
            raise RuntimeError(f"{session.file} grew by {word}, and it cannot be found")
        return seconds

    def idle() -> float:
        retold.sync()  # the first after a growth still looks closely
        return min(retold.sync().seconds for _ in range(2))

    start, grown = best_of(GROWN, idle, after_growth)
    return start, grown


def _seconds(file: Path, decode: Callable[[bytes], object]) -> float:
    content = file.read_bytes()
    start = time.perf_counter()
    decode(content)
    return time.perf_counter() - start


def list_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare listing everything with starting Python."""
    retold = synced(corpus)
    env = environment(CACHE)
    whole, start = best_of(
        STARTS, lambda: retold.list().seconds, lambda: run([PYTHON, "-c", "pass"], env).seconds
    )
    detail = f"{corpus}: {told(whole)}, {told(start)}"
    yield at_most("retold list, in python -c pass", whole / start, 3.5, detail)


def sql_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare a small question in SQL with a list of one conversation: both are start-up, and little else."""
    retold = synced(corpus)
    asked, listed = best_of(
        STARTS,
        lambda: retold.sql("SELECT count(*) FROM sessions").seconds,
        lambda: retold.list("--limit", "1").seconds,
    )
    yield at_most(
        "retold sql, in retold list", asked / listed, 1.1, f"{corpus}: {told(asked)}, {told(listed)}"
    )


def disk_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare the bytes of archive and index with those of the files they were made of."""
    size, raw = synced(corpus).size, sum(file.stat().st_size for file in corpus.files)
    detail = f"{size / 1e6:.0f} MB for {raw / 1e6:.0f} MB"
    yield at_most("archive and index, in raw bytes", size / raw, 0.45, detail)


def best_of(rounds: int, *works: Callable[[], float]) -> list[float]:
    """Return the best time of each, taken in turns."""
    times = [[work() for work in works] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]
