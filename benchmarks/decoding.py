"""Reading alone: decoding, folding and joining, against the decoding of JSON; its memory; and start-up."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import orjson
from corpora import CACHE, Corpus, corpus
from measure import Measure, at_least, at_most, told
from processes import PYTHON, RETOLD, environment, peak_pss, run

from retold.agents.claude import raw as claude_raw
from retold.agents.codex import replay as codex_usual
from retold.agents.protocol import Agent, Source
from retold.agents.registry import AGENTS
from retold.model.problem import Problem

ROUNDS, BATCH = 5, 50
STARTS = 25
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def measures() -> Iterator[Measure]:
    """Yield what reading is held to."""
    yield reading_speed("gemini", 2000, 400, lambda file: orjson.loads(file.read_bytes()), 0.5)
    yield reading_speed("gemini-jsonl", 500, 100, _lines_by_orjson, 0.5)
    yield decoding_speed("claude", 500, 100, claude_raw.DECODER.decode)
    yield decoding_speed("codex", 500, 100, codex_usual.decode)
    yield reading_speed("claude", 500, 100, _lines_by_orjson, 0.4)
    yield reading_speed("codex", 500, 100, _lines_by_orjson, 0.4)
    yield memory()
    yield listing()
    yield from one_large_file("claude")
    yield from one_large_file("codex")
    yield from start_up()


def reading_speed(
    form: str, sessions: int, megabytes: int, limit: Callable[[Path], object], bound: float
) -> Measure:
    """Compare decoding, folding and joining with orjson's decoding alone."""
    files, ours = corpus(form, sessions, megabytes), partial(_by_retold, AGENTS[form.partition("-")[0]])
    return compared(f"read {form}, of orjson.loads alone", files, ours, limit, bound)


def decoding_speed(form: str, sessions: int, megabytes: int, decode: Callable[[bytes], object]) -> Measure:
    """Compare the decoding of lines into typed records alone with orjson's decoding of the same lines."""
    plain = msgspec.json.Decoder().decode

    def typed(file: Path) -> None:
        for line in file.read_bytes().splitlines():
            try:
                decode(line)
            except msgspec.ValidationError:  # not one of the lines that hold the conversation
                plain(line)

    files = corpus(form, sessions, megabytes)
    return compared(f"decode lines of {form} as typed records", files, typed, _lines_by_orjson, 0.4)


def compared(
    what: str,
    files: Sequence[Path],
    ours_alone: Callable[[Path], object],
    limit: Callable[[Path], object],
    bound: float,
) -> Measure:
    """Compare what we do with a limit, batch by batch, each at its best."""
    size = sum(file.stat().st_size for file in files) / 1e6
    batches = [files[start : start + BATCH] for start in range(0, len(files), BATCH)]
    ours, theirs = 0.0, 0.0
    for batch in batches:
        rounds = [(_seconds(limit, batch), _seconds(ours_alone, batch)) for _ in range(ROUNDS)]
        best = [min(times) for times in zip(*rounds, strict=True)]
        theirs += best[0]
        ours += best[1]
    detail = f"{size:.0f} MB: retold {size / ours:.0f} MB/s, orjson {size / theirs:.0f} MB/s"
    return at_least(what, theirs / ours, bound, detail)


def _seconds(work: Callable[[Path], object], files: Sequence[Path]) -> float:
    start = time.perf_counter()
    for file in files:
        work(file)
    return time.perf_counter() - start


def _lines_by_orjson(file: Path) -> None:
    for line in file.read_bytes().splitlines():
        orjson.loads(line)


def _by_retold(agent: Agent, file: Path) -> None:
    readings = agent.read(Source(file))
    if isinstance(readings, Problem):
        raise TypeError(readings.message)
    for reading in readings:
        agent.join([reading])


def memory() -> Measure:
    """Compare the peak memory of reading the largest file with its size; the interpreter is counted in."""
    largest = max(corpus("gemini", 2000, 400), key=lambda file: file.stat().st_size)
    script = (
        "import sys; from pathlib import Path; from retold.agents import gemini; "
        "from retold.agents.protocol import Source; gemini.join(gemini.read(Source(Path(sys.argv[1]))))"
    )
    peak = _high_water(script, [str(largest)])
    size = largest.stat().st_size / 1e6
    what = "peak memory, in sizes of the largest file"
    return at_most(what, peak / size, 6, f"{peak:.0f} MB for {size:.1f} MB")


def _high_water(script: str, arguments: Sequence[str]) -> float:
    """Return the megabytes that a Python script had at most."""
    end = (
        "; import re, resource; status = Path('/proc/self/status'); "
        "told = re.search(r'VmHWM:\\s+(\\d+)', status.read_text()) if status.exists() else None; "
        "peak = int(told[1]) if told else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "sys.stderr.write(f' {peak}')"
    )
    command = [PYTHON, "-c", f"from pathlib import Path; {script}{end}", *arguments]
    return int(run(command, environment(CACHE)).errors.split()[-1]) * RSS_UNIT / 1e6


def listing() -> Measure:
    """Compare the memory of a first list of many sessions, for which all are read, with the size of their files."""
    made = Corpus("gemini", 10_000, 300)
    files = made.files
    peak = _first_list(made.home)
    size = sum(file.stat().st_size for file in files) / 1e6
    detail = f"{peak:.0f} MB for {len(files):,} files of {size:.0f} MB"
    return at_most("peak memory of a first list, in sizes of all files", peak / size, 0.5, detail)


def one_large_file(form: str) -> Iterator[Measure]:
    """Compare the peak memory of listing and of reading one file of a gigabyte with bounds that are not its size."""
    made = Corpus(form, 1, 1000)
    (file,) = made.files
    size = file.stat().st_size / 1e6
    peak = _first_list(made.home)
    what = f"peak memory of a first list, one {form} file, in 300 MB"
    yield at_most(what, peak / 300, 1, f"{peak:.0f} MB for {size:.0f} MB")
    script = "import sys; from retold.cli.main import main; main(['read', '--json', sys.argv[1]])"
    peak = _high_water(script, [str(file)])
    what = f"peak memory of read, one {form} file, in {size:.0f} MB"
    yield at_most(what, peak / size, 3, f"{peak:.0f} MB for {size:.0f} MB")


def _first_list(home: Path) -> float:
    """Return the megabytes of a list that finds no archive, in sum of all its processes."""
    archive = CACHE / "work" / "first"
    shutil.rmtree(archive, ignore_errors=True)
    peak = peak_pss([RETOLD, "list", "--json"], environment(home, RETOLD_HOME=str(archive)))
    shutil.rmtree(archive, ignore_errors=True)
    return peak


def start_up() -> list[Measure]:
    """Compare whole processes with `python -c pass`, one after the other, each at its best."""
    commands = {
        "pass": [PYTHON, "-c", "pass"],
        "--version": [RETOLD, "--version"],
        "--help": [RETOLD, "--help"],
    }
    best = dict.fromkeys(commands, float("inf"))
    env = environment(CACHE)
    for _ in range(STARTS):
        for name, command in commands.items():
            best[name] = min(best[name], run(command, env).seconds)
    return [
        at_most(
            f"retold {name}, in python -c pass",
            best[name] / best["pass"],
            bound,
            f"{told(best[name])}, {told(best['pass'])}",
        )
        for name, bound in (("--version", 2), ("--help", 3))
    ]
