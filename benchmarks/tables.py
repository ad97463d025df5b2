"""Parquet datasets: the time to write one relative to parsing, and its size relative to the files."""

import shutil
import time
from collections.abc import Iterator

from corpora import CACHE, MEDIUM, size_of
from measure import Measure, at_least, at_most, format_seconds
from processes import RETOLD, run
from retold_command import sync_corpus

from retold.agents.protocol import Source
from retold.agents.registry import AGENTS
from retold.model.problem import Problem

ROUNDS = 3
LAKE = CACHE / "work" / "lake"


def measures() -> Iterator[Measure]:
    """Compare the export of everything with parsing the same files on one core, and the sizes."""
    retold = sync_corpus(MEDIUM)
    size = sum(file.stat().st_size for file in MEDIUM.files) / 1e6
    parsing, writing = [], []
    for _ in range(ROUNDS):
        parsing.append(_time_parsing())
        shutil.rmtree(LAKE, ignore_errors=True)
        options = ("--all", "--no-redact", "--format", "parquet", "-o", str(LAKE))
        writing.append(run([RETOLD, "export", *options], retold.env).seconds)
    detail = f"{format_seconds(min(writing))} for {size:.0f} MB; parsing {size / min(parsing):.0f} MB/s"
    yield at_least("parquet of everything, of parsing it", min(parsing) / min(writing), 0.5, detail)
    again = run([RETOLD, "export", *options], retold.env).seconds
    held = size_of(LAKE) / 1e6
    yield at_most(
        "size of the tables, of the files",
        held / size,
        0.25,
        f"{held:.0f} MB, {format_seconds(again)} the next time",
    )


def _time_parsing() -> float:
    """Return the time to read and join all files in this process."""
    agent = AGENTS["gemini"]
    start = time.perf_counter()
    for file in MEDIUM.files:
        readings = agent.read(Source(file))
        if isinstance(readings, Problem):
            raise TypeError(readings.message)
        for reading in readings:
            agent.join([reading])
    return time.perf_counter() - start
