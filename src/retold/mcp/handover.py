"""What somebody has to know of a conversation to go on with it: what it came to, what was asked, and its last turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

import msgspec

from retold.archive.turns import turn_places
from retold.export.quoting import Quoting
from retold.export.transcript import Wanted
from retold.export.worked import one_line, worked
from retold.mcp import tool
from retold.mcp.meaning import session_meant
from retold.mcp.passage import Passage
from retold.mcp.reading import told, top
from retold.mcp.tool import Asking, Tool
from retold.model.entries import words_of

_LAST_TURNS = 3
_MOST_PROMPTS = 40
"""Of a long conversation, the last ones."""


class Arguments(tool.Arguments, frozen=True, kw_only=True):
    """Which conversation."""

    session: Annotated[
        str,
        msgspec.Meta(
            description="the session's key, its native id, or the start of either",
            min_length=1,
            max_length=400,
        ),
    ]


def _answer(asking: Asking, arguments: Arguments) -> Iterator[Passage]:
    return islice(_passages(asking, arguments), asking.first, None)


def _passages(asking: Asking, arguments: Arguments) -> Iterator[Passage]:
    card = session_meant(asking, arguments.session)
    quoting = Quoting(asking.record, card.key, asking.redactors)
    begins = turn_places(asking.record, card.session)
    yield from top(quoting, len(begins))
    yield Passage("what it came to", "\n".join(worked(asking.record, card, quoting)), is_clean=True)
    yield Passage("what was asked", "\n".join(_prompts(quoting, begins)), is_clean=True)
    yield from told(quoting, begins, Wanted(), begins[-_LAST_TURNS:][0], None)


def _prompts(quoting: Quoting, begins: Sequence[int]) -> Iterator[str]:
    """Yield what began each turn, on a line."""
    skipped = max(len(begins) - _MOST_PROMPTS, 0)
    for turn, place in enumerate(begins[skipped:], skipped + 1):
        for _, entry in quoting.entries(place, place + 1):
            if line := one_line(words_of(entry)):
                yield f"turn {turn}: {line}"


HANDOVER = Tool(
    name="handover",
    title="What to know of a conversation",
    about="For prompts: agents read with read_session.",
    arguments=Arguments,
    answer=_answer,
    nothing="There is nothing in it.",
)
