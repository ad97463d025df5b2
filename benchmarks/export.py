"""Export: the time to write a session, relative to reading it."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from corpora import Corpus
from measure import Measure, at_most, format_seconds

from retold.agents.registry import read
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.session import Session

ROUNDS = 7
MADE = (Corpus("gemini", 1, 22, 44), Corpus("gemini-jsonl", 1, 22, 43))
GOALS = {"md": 3.0}
"""The bound for each measured format."""


def export_measures() -> Iterator[Measure]:
    """Compare Markdown of a session of 20 MB with reading it."""
    for made in MADE:
        (file,) = made.files
        (session,) = read(file)
        size = file.stat().st_size / 1e6
        reading = _seconds(partial(_read, file))
        for form, goal in GOALS.items():
            writing = _seconds(partial(_write, form, session))
            what = f"{form} of a {made.form} session, in times of reading it"
            yield at_most(what, writing / reading, goal, f"{format_seconds(writing)} for {size:.0f} MB")


def _read(file: Path) -> None:
    list(read(file))


def _write(form: str, session: Session) -> None:
    for _ in FORMATS[form].encode([ExportSession(session)], ExportOptions()):
        pass


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time of the fastest of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)
