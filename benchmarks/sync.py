"""The archive: a first sync, a sync without changes, growth, lists, SQL, and the size on disk."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
from agentsview import run_agentsview
from corpora import CACHE, MEDIUM, Corpus
from growth import WHOLE, JsonLines, WholeFile, make_grown_home
from measure import Measure, at_least, at_most, format_seconds
from processes import PYTHON, environment, has_pss, run
from retold_command import FOUND, Retold, sync_corpus

COLD, WARM, GROWN, STARTS = 2, 10, 5, 25


def sync_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare a first sync, and one without changes, with agentsview's."""
    retold = Retold(corpus.home, corpus.name)
    with run_agentsview(corpus) as peer:

        def ours() -> float:
            retold.remove_archive()
            return retold.sync().seconds

        def theirs() -> float:
            peer.remove_data()
            seconds = peer.sync().seconds
            peer.stop()  # its daemon goes on working and would slow down our measurement
            return seconds

        first, their_first = best_of(COLD, ours, theirs)
        detail = f"{corpus}: retold {format_seconds(first)}, agentsview {format_seconds(their_first)}"
        yield at_least("first sync, times faster than agentsview", their_first / first, 6, detail)
        if has_pss():
            retold.remove_archive()
            peak = retold.peak_of_sync()
            peer.remove_data()
            their_peak = peer.peak_of_sync()
            detail = f"summed PSS: retold {peak:.0f} MB, agentsview {their_peak:.0f} MB"
            yield at_most("peak memory of a first sync, in agentsview's", peak / their_peak, 2, detail)
        retold.sync()
        peer.sync()
        idle, their_idle = best_of(WARM, lambda: retold.sync().seconds, lambda: peer.sync().seconds)
    detail = f"retold {format_seconds(idle)}, agentsview {format_seconds(their_idle)} with its daemon warm"
    yield at_least("sync of nothing new, times faster than agentsview", their_idle / idle, 8, detail)
    yield measure_idle(retold, corpus)


def measure_idle(retold: Retold, corpus: Corpus) -> Measure:
    """Compare a sync without changes with start-up and a `find` that prints size and time of each file.

    Start-up is a sync without changes in a home of one session: for an empty home no fingerprints are remembered, and
    the sync takes longer.
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
    detail = f"{format_seconds(idle)}; start-up (one session) {format_seconds(start)}, `find -printf '%s %T@'`, a process, {format_seconds(finding)}"
    return at_most("the same, in 4 x find + stat and start-up", idle / bar, 1, detail)


def growth_measures() -> Iterator[Measure]:
    """Compare a sync after a large session grew by five messages with a sync without changes."""
    home = make_grown_home()
    retold = Retold(home, "grown")
    retold.remove_archive()
    retold.sync()
    lines, whole = JsonLines(home), WholeFile(home)
    idle, times = _time_growth(retold, lines)
    what = f"{lines.megabytes:.0f} MB JSON lines grew by 5 messages, in syncs of nothing new"
    yield at_most(what, times / idle, 2, f"{format_seconds(times)}, {format_seconds(idle)}")
    idle, times = _time_growth(retold, whole)
    loads = min(_seconds(whole.file, orjson.loads) for _ in range(GROWN))
    what = f"{whole.megabytes:.0f} MB JSON grew by 5, in 2 x that + 3 x orjson.loads"
    yield at_most(
        what,
        times / (2 * idle + 3 * loads),
        1,
        f"{format_seconds(times)}, {format_seconds(idle)}, {format_seconds(loads)}",
    )


def _time_growth(retold: Retold, session: JsonLines | WholeFile) -> tuple[float, float]:
    """Return the best times of a sync without changes and of one after growth."""

    def after_growth() -> float:
        word = session.grow()
        seconds = retold.sync().seconds
        if retold.search(word).code != FOUND:
            raise RuntimeError(f"{session.file} grew by {word}, and it cannot be found")
        return seconds

    def idle() -> float:
        retold.sync()  # the first sync after a change compares recent files by content
        return min(retold.sync().seconds for _ in range(2))

    start, grown = best_of(GROWN, idle, after_growth)
    return start, grown


def _seconds(file: Path, decode: Callable[[bytes], object]) -> float:
    content = file.read_bytes()
    start = time.perf_counter()
    decode(content)
    return time.perf_counter() - start


def list_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare a list of everything with a start of Python."""
    retold = sync_corpus(corpus)
    env = environment(CACHE)
    whole, start = best_of(
        STARTS, lambda: retold.list().seconds, lambda: run([PYTHON, "-c", "pass"], env).seconds
    )
    detail = f"{corpus}: {format_seconds(whole)}, {format_seconds(start)}"
    yield at_most("retold list, in python -c pass", whole / start, 3.5, detail)


def sql_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare a small SQL query with a list of one conversation: both are little more than start-up."""
    retold = sync_corpus(corpus)
    asked, listed = best_of(
        STARTS,
        lambda: retold.sql("SELECT count(*) FROM sessions").seconds,
        lambda: retold.list("--limit", "1").seconds,
    )
    yield at_most(
        "retold sql, in retold list",
        asked / listed,
        1.1,
        f"{corpus}: {format_seconds(asked)}, {format_seconds(listed)}",
    )


def disk_measures(corpus: Corpus = MEDIUM) -> Iterator[Measure]:
    """Compare the size of archive and index with that of the archived files."""
    size, raw = sync_corpus(corpus).size, sum(file.stat().st_size for file in corpus.files)
    detail = f"{size / 1e6:.0f} MB for {raw / 1e6:.0f} MB"
    yield at_most("archive and index, in raw bytes", size / raw, 0.45, detail)


def best_of(rounds: int, *works: Callable[[], float]) -> list[float]:
    """Return the best time of each function, called in turns."""
    times = [[work() for work in works] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]
