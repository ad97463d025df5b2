"""What somebody has to know of a conversation to go on with it: what it came to, what was asked, and its last turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retold.export.load import Quoting, one_line, worked
from retold.export.transcript import TranscriptOptions
from retold.mcp.passage import Passage
from retold.mcp.reading import told, top
from retold.mcp.tool import ToolContext
from retold.model.session import words_of
from retold.search.pages import SessionSummary
from retold.sessions.pages import turn_places

_LAST_TURNS = 3
_MOST_PROMPTS = 40
"""Of a long conversation, the last ones."""


def summed_up(asking: ToolContext, card: SessionSummary) -> Iterator[Passage]:
    """Yield what to know of it, the shortest first."""
    quoting = Quoting(asking.record, card.key, asking.redactors)
    begins = turn_places(asking.record, card.session, card.key)
    yield from top(asking, quoting, len(begins))
    yield Passage("what it came to", "\n".join(worked(asking.record, card, quoting)), is_clean=True)
    yield Passage("what was asked", "\n".join(_prompts(quoting, begins)), is_clean=True)
    yield from told(asking, quoting, begins, TranscriptOptions(), begins[-_LAST_TURNS:][0], None)


def _prompts(quoting: Quoting, begins: Sequence[int]) -> Iterator[str]:
    """Yield what began each turn, on a line."""
    skipped = max(len(begins) - _MOST_PROMPTS, 0)
    for turn, place in enumerate(begins[skipped:], skipped + 1):
        for _, entry in quoting.entries(place, place + 1):
            if line := one_line(words_of(entry)):
                yield f"turn {turn}: {line}"
