"""Measure what `make bench` promises: ratios against a limit, taken in one run, and what falls short of its goal."""

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import orjson

from retold import __version__
from retold.agents.claude import raw as claude_raw
from retold.agents.codex import usual as codex_usual
from retold.agents.protocol import Agent, Source
from retold.agents.registry import AGENTS
from retold.model.problem import Problem

SHARED = Path(__file__).resolve().parents[2] / "shared"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "retold-bench"
ROUNDS, BATCH = 5, 50
STARTS = 25
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Measure(NamedTuple):
    """One ratio, with the bound it is held to."""

    what: str
    ratio: float
    bound: float
    is_floor: bool
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the goal is met."""
        return self.ratio >= self.bound if self.is_floor else self.ratio <= self.bound


def main() -> int:
    """Print every measure; 1 if any goal is missed."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("msgspec", "orjson"))
    print(f"retold {__version__} on Python {platform.python_version()}, {versions}, {os.cpu_count()} CPUs\n")
    measures = [
        reading_speed("gemini", 2000, 400, lambda file: orjson.loads(file.read_bytes()), 0.5),
        reading_speed("gemini-jsonl", 500, 100, _lines_by_orjson, 0.5),
        decoding_speed("claude", 500, 100, claude_raw.DECODER.decode),
        decoding_speed("codex", 500, 100, codex_usual.decode),
        reading_speed("claude", 500, 100, _lines_by_orjson, 0.4),
        reading_speed("codex", 500, 100, _lines_by_orjson, 0.4),
        memory(),
        listing(),
        *one_large_file("claude"),
        *one_large_file("codex"),
        *start_up(),
    ]
    for measure in measures:
        sign, verdict = (">=" if measure.is_floor else "<="), ("ok" if measure.holds else "FALLS SHORT")
        print(
            f"{measure.what:<52} {measure.ratio:6.2f}  goal {sign} {measure.bound:<4} {verdict:<12} {measure.detail}"
        )
    missed = [measure.what for measure in measures if not measure.holds]
    print(f"\nfalls short: {', '.join(missed)}" if missed else "\nevery goal is met")
    return 1 if missed else 0


def corpus(form: str, sessions: int, megabytes: int) -> list[Path]:
    """Return the session files of a made-up home, made once and kept outside the repository."""
    home = CACHE / f"{form}-{sessions}-{megabytes}"
    if not (home / "needles.json").exists():
        home.mkdir(parents=True, exist_ok=True)
        maker: list[str | Path] = [
            sys.executable,
            SHARED / "truth" / "make_big_corpus.py",
            home,
            str(sessions),
            str(megabytes),
        ]
        subprocess.run([*maker, "--fmt", form], check=True, stdout=subprocess.DEVNULL)
    patterns = (
        ".gemini/tmp/*/chats/session-*",
        ".claude/projects/*/*.jsonl",
        ".codex/sessions/*/*/*/*.jsonl",
    )
    return sorted(file for pattern in patterns for file in home.glob(pattern))


def _lines_by_orjson(file: Path) -> None:
    for line in file.read_bytes().splitlines():
        orjson.loads(line)


def _by_retold(agent: Agent, file: Path) -> None:
    readings = agent.read(Source(file))
    if isinstance(readings, Problem):
        raise TypeError(readings.message)
    for reading in readings:
        agent.join([reading])


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
        best = [
            min(times)
            for times in zip(
                *((_seconds(limit, batch), _seconds(ours_alone, batch)) for _ in range(ROUNDS)), strict=True
            )
        ]
        theirs += best[0]
        ours += best[1]
    detail = f"{size:.0f} MB: retold {size / ours:.0f} MB/s, orjson {size / theirs:.0f} MB/s"
    return Measure(what, theirs / ours, bound, is_floor=True, detail=detail)


def _seconds(work: Callable[[Path], object], files: Sequence[Path]) -> float:
    start = time.perf_counter()
    for file in files:
        work(file)
    return time.perf_counter() - start


def memory() -> Measure:
    """Compare the peak memory of reading the largest file with its size; the interpreter is counted in."""
    largest = max(corpus("gemini", 2000, 400), key=lambda file: file.stat().st_size)
    script = (
        "import sys; from pathlib import Path; from retold.agents import gemini; "
        "from retold.agents.protocol import Source; session = gemini.join(gemini.read(Source(Path(sys.argv[1])))); "
        "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    told = subprocess.run([sys.executable, "-c", script, largest], check=True, capture_output=True, text=True)
    peak, size = int(told.stdout) * RSS_UNIT / 1e6, largest.stat().st_size / 1e6
    return Measure(
        "peak memory, in sizes of the largest file",
        peak / size,
        6,
        is_floor=False,
        detail=f"{peak:.0f} MB for {size:.1f} MB",
    )


def listing() -> Measure:
    """Compare the peak memory of listing many sessions with the size of their files: what was said must not stay."""
    files = corpus("gemini", 10_000, 300)
    peak, seconds = peak_memory(["list", "--json"], files[0].parents[4])
    size = sum(file.stat().st_size for file in files) / 1e6
    detail = f"{peak:.0f} MB for {len(files):,} files of {size:.0f} MB, {seconds:.1f} s"
    return Measure(
        "peak memory of list, in sizes of all files", peak / size, 0.5, is_floor=False, detail=detail
    )


def one_large_file(form: str) -> list[Measure]:
    """Compare the peak memory of listing and of reading one file of a gigabyte with bounds that are not its size."""
    file = corpus(form, 1, 1000)[0]
    home = next(folder for folder in file.parents if (folder / "needles.json").exists())
    size = file.stat().st_size / 1e6
    measures = []
    for command, unit, bound in ((["list", "--json"], 300, 1), (["read", "--json", str(file)], size, 3)):
        peak, seconds = peak_memory(command, home)
        what = f"peak memory of {command[0]}, one {form} file, in {unit:.0f} MB"
        detail = f"{peak:.0f} MB for {size:.0f} MB, {seconds:.1f} s"
        measures.append(Measure(what, peak / unit, bound, is_floor=False, detail=detail))
    return measures


def peak_memory(command: Sequence[str], home: Path) -> tuple[float, float]:
    """Return the peak memory of a command in megabytes, and its seconds."""
    script = (
        "import resource, sys; from retold.cli.main import main; code = main(sys.argv[1:]); "
        "sys.stderr.write(' ' + str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)); sys.exit(code)"
    )
    env = {**os.environ, "HOME": str(home), "RETOLD_HOME": str(CACHE / "retold")}
    start = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-c", script, *command],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    return int(told.stderr.split()[-1]) * RSS_UNIT / 1e6, time.perf_counter() - start


def start_up() -> list[Measure]:
    """Compare whole processes with `python -c pass`, one after the other, each at its best."""
    retold = str(Path(sys.executable).with_name("retold"))
    commands = {
        "pass": [sys.executable, "-c", "pass"],
        "--version": [retold, "--version"],
        "--help": [retold, "--help"],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(STARTS):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            best[name] = min(best[name], time.perf_counter() - start)
    return [
        Measure(f"retold {name}, in python -c pass", best[name] / best["pass"], bound, is_floor=False,
                detail=f"{best[name] * 1000:.0f} ms, {best['pass'] * 1000:.0f} ms")
        for name, bound in (("--version", 2), ("--help", 3))
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
