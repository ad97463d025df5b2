"""Taking secrets out: against `re` with the same patterns one by one, and whole sessions."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from corpora import SMALL
from measure import Measure, at_least

from retold.agents.gemini import join, read
from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.model.session import Session
from retold.redaction import Redactor
from retold.redaction.assignments import _BETWEEN, _NAME
from retold.redaction.blocks import _PEM_END, _PGPASS, _PUTTY, _WEB_KEY
from retold.redaction.calls import _CALLS
from retold.redaction.commands import _FLAGS, _OTHERS
from retold.redaction.detector import findings
from retold.redaction.persons import _DOMAIN, _HOME
from retold.redaction.phrases import _RULES as PHRASES
from retold.redaction.redactor import TextWalk
from retold.redaction.surroundings import _ADDRESS, _COOKIES, _PEM
from retold.redaction.surroundings import _RULES as SURROUNDINGS
from retold.redaction.tokens import _JOINED, _LOOSE, _RUNS

ROUNDS = 3
FEW, LEAST = 10, 1000
BOUND = 5

PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        *(pattern for _, pattern in _JOINED),
        *(pattern for _, _, pattern in _LOOSE),
        *(rule.pattern for _, rule in _RUNS),
        *(rule.pattern.pattern for rule in SURROUNDINGS),
        *(rule.pattern.pattern for rule in (*PHRASES, *_FLAGS, *_OTHERS)),
        *(rf"{name}[ \t=]*{pattern.pattern}" for name, pattern, _, _ in _CALLS),
        *(pattern.pattern for pattern in (_PEM_END, _PUTTY, _WEB_KEY, _PGPASS)),
        *(pattern.pattern for pattern in (_ADDRESS, _PEM, _COOKIES, _HOME)),
        rf"[A-Za-z0-9._%+-]+{_DOMAIN.pattern}",
        rf"(?i){_NAME.pattern}{_BETWEEN.pattern}",
    )
)
"""What the detector looks for, each as one pattern."""


def measures() -> Iterator[Measure]:
    """Yield what redaction is held to."""
    sessions = list(islice(_sessions(), FEW))
    texts = [text for session in sessions for text in _texts(session)]
    large = [text for text in texts if len(text) >= LEAST]
    yield _compared(f"find secrets in texts of {LEAST:,} characters and more, of `re` one by one", large)
    yield _compared("find secrets in all texts, of `re` one by one", texts)
    yield _compared("redact whole sessions, of `re` one by one", texts, sessions)


def _compared(what: str, texts: Sequence[str], sessions: Sequence[Session] = ()) -> Measure:
    """Compare finding, or redacting, with looking for each pattern in each text."""
    size = sum(map(len, texts)) / 1e6
    theirs = _best(lambda: [pattern.findall(text) for text in texts for pattern in PATTERNS], rounds=1)
    if sessions:
        ours = _best(lambda: [Redactor().redacted(session) for session in sessions])
    else:
        ours = _best(lambda: [findings(text) for text in texts])
    detail = f"{size:.1f} MB: retold {size / ours:.0f} MB/s, re {size / theirs:.1f} MB/s"
    return at_least(what, theirs / ours, BOUND, detail)


def _best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the seconds of the processor that some work takes at its best."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def _sessions() -> Iterator[Session]:
    for file in SMALL.files:
        readings = read(Source(file))
        if isinstance(readings, Problem):
            raise TypeError(readings.message)
        yield from (join([reading]) for reading in readings)


def _texts(session: Session) -> list[str]:
    texts: list[str] = []

    def noted(text: str, _: TextWalk) -> str:
        texts.append(text)
        return text

    TextWalk(noted).struct(session)
    return texts
