"""Work in one process: files read against the decoding of their JSON, Markdown and redaction against reading."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import orjson
from corpora import MEDIUM, SMALL, Corpus
from measure import Cost, Measure, Work, at_least, at_most, describe, ratios, summarize, take_turns, time_call

from retold.agents.protocol import Source
from retold.agents.registry import AGENTS, read
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.problem import Problem
from retold.model.session import Session
from retold.redaction import Redactor

BATCH, REDACTED = 50, 20


def measures() -> Iterator[Measure]:
    """Yield the measures of reading."""
    yield _measure_reading(MEDIUM, 0.5)
    yield _measure_reading(Corpus("gemini-jsonl", 500, 100), 0.5)
    yield _measure_reading(Corpus("claude", 500, 100), 0.4)
    yield _measure_reading(Corpus("codex", 500, 100), 0.4)
    files = Corpus("gemini", 1, 22, 44).files
    yield _measure_writing("Markdown of a 20 MB session", files, _write_markdown, 3)
    yield _measure_writing(f"redaction of {REDACTED} sessions", SMALL.files[:REDACTED], _redact, 10)


def _measure_reading(corpus: Corpus, bound: float) -> Measure:
    """Compare reading with orjson's decoding alone, in batches of files."""
    files, decode = corpus.files, _decode if corpus.form == "gemini" else _decode_lines
    batches = [files[start : start + BATCH] for start in range(0, len(files), BATCH)]
    runs = take_turns(
        retold=[_work(partial(read_file, corpus), batch) for batch in batches],
        orjson=[_work(decode, batch) for batch in batches],
    )
    costs = {name: summarize(of_name, sum) for name, of_name in runs.items()}
    size = sum(file.stat().st_size for file in files) / 1e6
    detail = f"{size:.0f} MB: {describe(**costs)}"
    return at_least(
        f"read {corpus.form}, of orjson.loads alone", ratios(costs["orjson"], costs["retold"]), bound, detail
    )


def _work(each: Callable[[Path], object], files: Sequence[Path]) -> Work:
    return lambda: time_call(lambda: [each(file) for file in files])


def _decode(file: Path) -> None:
    orjson.loads(file.read_bytes())


def _decode_lines(file: Path) -> None:
    for line in file.read_bytes().splitlines():
        orjson.loads(line)


def read_file(corpus: Corpus, file: Path) -> None:
    """Read and join the session in a file of a corpus."""
    agent = AGENTS[corpus.form.partition("-")[0]]
    readings = agent.read(Source(file))
    if isinstance(readings, Problem):
        raise TypeError(readings.message)
    for reading in readings:
        agent.join([reading])


def _measure_writing(
    what: str, files: Sequence[Path], write: Callable[[Session], object], bound: float
) -> Measure:
    """Compare work on the sessions in some files with reading them."""
    sessions = [session for file in files for session in read(file)]

    def write_all() -> Cost:
        return time_call(lambda: [write(session) for session in sessions])

    runs = take_turns(write=[write_all], read=[_work(lambda file: list(read(file)), files)])
    costs = {name: summarize(of_name) for name, of_name in runs.items()}
    return at_most(
        f"{what}, in times of reading", ratios(costs["write"], costs["read"]), bound, describe(**costs)
    )


def _write_markdown(session: Session) -> None:
    for _ in FORMATS["md"].encode([ExportSession(session)], ExportOptions()):
        pass


def _redact(session: Session) -> None:
    Redactor().redact(session)
