"""Redaction of texts and whole sessions, against `re` with the same patterns one by one."""

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
from retold.redaction.blocks import _PEM, _PEM_END, _PGPASS, _PUTTY, _WEB_KEY
from retold.redaction.detector import find_secrets
from retold.redaction.persons import _DOMAIN, _HOME
from retold.redaction.redactor import TextWalk
from retold.redaction.surroundings import _ADDRESS, _CALLS, _COMMANDS, _COOKIES, _HEADERS, _SENTENCES
from retold.redaction.tokens import _LOOSE, _RUNS, _WITH_SIGN

ROUNDS = 3
FEW, LEAST = 10, 1000
BOUND = 5

PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        *(pattern for _, pattern in _WITH_SIGN),
        *(pattern for _, _, pattern in _LOOSE),
        *(rule.pattern for _, rule in _RUNS),
        *(
            rule.pattern.pattern
            for groups in (_HEADERS, _SENTENCES, _COMMANDS)
            for rules in groups.values()
            for rule in rules
        ),
        *(rf"{name}[ \t=]*{pattern.pattern}" for name, pattern, _, _ in _CALLS),
        *(pattern.pattern for pattern in (_PEM_END, _PUTTY, _WEB_KEY, _PGPASS)),
        *(pattern.pattern for pattern in (_ADDRESS, _PEM, _COOKIES, _HOME)),
        rf"[A-Za-z0-9._%+-]+{_DOMAIN.pattern}",
        rf"(?i){_NAME.pattern}{_BETWEEN.pattern}",
    )
)
"""The rules of the detector, each as one pattern."""


def measures() -> Iterator[Measure]:
    """Yield the measures of redaction."""
    sessions = list(islice(_sessions(), FEW))
    texts = [text for session in sessions for text in _texts(session)]
    large = [text for text in texts if len(text) >= LEAST]
    yield _compare_patterns(
        f"find secrets in texts of {LEAST:,} characters and more, of `re` one by one", large
    )
    yield _compare_patterns("find secrets in all texts, of `re` one by one", texts)
    yield _compare_patterns("redact whole sessions, of `re` one by one", texts, sessions)


def _compare_patterns(what: str, texts: Sequence[str], sessions: Sequence[Session] = ()) -> Measure:
    """Compare detection, or redaction, with a search for each pattern in each text."""
    size = sum(map(len, texts)) / 1e6
    theirs = _best(lambda: [pattern.findall(text) for text in texts for pattern in PATTERNS], rounds=1)
    if sessions:
        ours = _best(lambda: [Redactor().redact(session) for session in sessions])
    else:
        ours = _best(lambda: [find_secrets(text) for text in texts])
    detail = f"{size:.1f} MB: retold {size / ours:.0f} MB/s, re {size / theirs:.1f} MB/s"
    return at_least(what, theirs / ours, BOUND, detail)


def _best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the best processor time of several rounds."""
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
