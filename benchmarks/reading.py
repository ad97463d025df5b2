"""Reading of files against the decoding of their JSON, its memory, and start-up."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import orjson
from corpora import CACHE, Corpus
from measure import Measure, at_least, at_most, format_seconds
from processes import PYTHON, RETOLD, environment, peak_pss, run

from retold.agents.claude import raw as claude_raw
from retold.agents.codex.replay import _decode_checked_line
from retold.agents.protocol import Agent, Source
from retold.agents.registry import AGENTS
from retold.model.problem import Problem

ROUNDS, BATCH = 5, 50
STARTS = 25
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def measures() -> Iterator[Measure]:
    """Yield the measures of reading."""
    yield measure_reading("gemini", 2000, 400, lambda file: orjson.loads(file.read_bytes()), 0.5)
    yield measure_reading("gemini-jsonl", 500, 100, _decode_lines, 0.5)
    yield measure_decoding("claude", 500, 100, claude_raw.DECODER.decode)
    yield measure_decoding("codex", 500, 100, _decode_checked_line)
    yield measure_reading("claude", 500, 100, _decode_lines, 0.4)
    yield measure_reading("codex", 500, 100, _decode_lines, 0.4)
    yield measure_memory()
    yield measure_first_list()
    yield from measure_large_file("claude")
    yield from measure_large_file("codex")
    yield from measure_start_up()


def measure_reading(
    form: str, sessions: int, megabytes: int, limit: Callable[[Path], object], bound: float
) -> Measure:
    """Compare reading with orjson's decoding alone."""
    files, ours = Corpus(form, sessions, megabytes).files, partial(_read_file, AGENTS[form.partition("-")[0]])
    return compare(f"read {form}, of orjson.loads alone", files, ours, limit, bound)


def measure_decoding(form: str, sessions: int, megabytes: int, decode: Callable[[bytes], object]) -> Measure:
    """Compare the decoding of lines into typed records with orjson's decoding of the same lines."""
    plain = msgspec.json.Decoder().decode

    def typed(file: Path) -> None:
        for line in file.read_bytes().splitlines():
            try:
                decode(line)
            except msgspec.ValidationError:  # not one of the lines that hold the conversation
                plain(line)

    files = Corpus(form, sessions, megabytes).files
    return compare(f"decode lines of {form} as typed records", files, typed, _decode_lines, 0.4)


def compare(
    what: str,
    files: Sequence[Path],
    ours_alone: Callable[[Path], object],
    limit: Callable[[Path], object],
    bound: float,
) -> Measure:
    """Compare our work with a limit, batch by batch, with the best time of each."""
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


def _decode_lines(file: Path) -> None:
    for line in file.read_bytes().splitlines():
        orjson.loads(line)


def _read_file(agent: Agent, file: Path) -> None:
    readings = agent.read(Source(file))
    if isinstance(readings, Problem):
        raise TypeError(readings.message)
    for reading in readings:
        agent.join([reading])


def measure_memory() -> Measure:
    """Compare the peak memory of reading the largest file with its size; the interpreter is included."""
    largest = max(Corpus("gemini", 2000, 400).files, key=lambda file: file.stat().st_size)
    script = (
        "import sys; from pathlib import Path; from retold.agents import gemini; "
        "from retold.agents.protocol import Source; gemini.join(gemini.read(Source(Path(sys.argv[1]))))"
    )
    peak = _peak_of_script(script, [str(largest)])
    size = largest.stat().st_size / 1e6
    what = "peak memory, in sizes of the largest file"
    return at_most(what, peak / size, 6, f"{peak:.0f} MB for {size:.1f} MB")


def _peak_of_script(script: str, arguments: Sequence[str]) -> float:
    """Return the peak memory of a Python script in MB."""
    end = (
        "; import re, resource; status = Path('/proc/self/status'); "
        "told = re.search(r'VmHWM:\\s+(\\d+)', status.read_text()) if status.exists() else None; "
        "peak = int(told[1]) if told else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "sys.stderr.write(f' {peak}')"
    )
    command = [PYTHON, "-c", f"from pathlib import Path; {script}{end}", *arguments]
    return int(run(command, environment(CACHE)).errors.split()[-1]) * RSS_UNIT / 1e6


def measure_first_list() -> Measure:
    """Compare the peak memory of a first list, which reads all sessions, with the size of their files."""
    made = Corpus("gemini", 10_000, 300)
    files = made.files
    peak = _first_list_peak(made.home)
    size = sum(file.stat().st_size for file in files) / 1e6
    detail = f"{peak:.0f} MB for {len(files):,} files of {size:.0f} MB"
    return at_most("peak memory of a first list, in sizes of all files", peak / size, 0.5, detail)


def measure_large_file(form: str) -> Iterator[Measure]:
    """Compare the peak memory of a first list and of `read` for one file of a gigabyte with fixed bounds."""
    made = Corpus(form, 1, 1000)
    (file,) = made.files
    size = file.stat().st_size / 1e6
    peak = _first_list_peak(made.home)
    what = f"peak memory of a first list, one {form} file, in 300 MB"
    yield at_most(what, peak / 300, 1, f"{peak:.0f} MB for {size:.0f} MB")
    script = "import sys; from retold.cli.main import main; main(['read', '--json', sys.argv[1]])"
    peak = _peak_of_script(script, [str(file)])
    what = f"peak memory of read, one {form} file, in {size:.0f} MB"
    yield at_most(what, peak / size, 3, f"{peak:.0f} MB for {size:.0f} MB")


def _first_list_peak(home: Path) -> float:
    """Return the peak memory of a list without an archive in MB, over all its processes."""
    archive = CACHE / "work" / "first"
    shutil.rmtree(archive, ignore_errors=True)
    peak = peak_pss([RETOLD, "list", "--json"], environment(home, RETOLD_HOME=str(archive)))
    shutil.rmtree(archive, ignore_errors=True)
    return peak


def measure_start_up() -> list[Measure]:
    """Compare whole processes with `python -c pass`, in turns, with the best time of each."""
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
            f"{format_seconds(best[name])}, {format_seconds(best['pass'])}",
        )
        for name, bound in (("--version", 2), ("--help", 3))
    ]
