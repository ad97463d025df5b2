"""What is remembered of conversations, as passages: each cited, and without whatever the conversation gives away as a secret."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from retold.export.load import Quoting
from retold.insights.past_answers import PastAnswer
from retold.mcp.citing import cleanly_cited
from retold.mcp.passage import Passage
from retold.mcp.placing import is_untold
from retold.mcp.tool import ToolContext
from retold.search.pages import SessionSummary, held_rows

Lines = Callable[[ToolContext, PastAnswer, SessionSummary], Iterator[str]]
"""What is told of one."""


def passages(asking: ToolContext, remembered: Iterable[PastAnswer], lines: Lines) -> Iterator[Passage]:
    """Yield a passage for each conversation; those of which nothing is told go with the next."""
    skipped = 0
    for found in remembered:
        if is_untold(asking, found.holding):
            skipped += 1
            continue
        for row in held_rows(asking.record, [found.holding]):
            quoting = Quoting(asking.record, row.card.key, asking.redactors)
            head, told = cleanly_cited(row.card, quoting.text), "\n".join(lines(asking, found, row.card))
            yield Passage(head, quoting.text(told), is_clean=True, numbers=skipped + 1)
            skipped = 0
