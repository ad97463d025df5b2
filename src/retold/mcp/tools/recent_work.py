"""`recent_work`: what was done last."""

from __future__ import annotations

from collections.abc import Iterator

from retold.archive.queries.conditions import register_functions
from retold.mcp.passages import cleanly_cited
from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, narrowed
from retold.projects.matching import is_meant
from retold.search.pages import BASE, glances

_AT_ONCE = 10
"""Conversations that are asked for at a time."""


class Arguments(Filtered, frozen=True, kw_only=True):
    """Of which conversations."""


def _answer(asking: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.export.load import Quoting, worked

    register_functions(asking.record.connection, is_meant)
    conditions, place = [*BASE, *narrowed(asking, arguments)], asking.first
    while cards := glances(asking.record, conditions, _AT_ONCE, place):
        for card in cards:
            quoting = Quoting(asking.record, card.key, asking.redactors)
            lines = worked(asking.record, card, quoting)
            yield Passage(cleanly_cited(card, quoting.text), "\n".join(lines), is_clean=True)
        place += len(cards)


RECENT_WORK = Tool(
    name="recent_work",
    title="Recent work",
    about="The newest past conversations, each in a few lines: what was asked first and last, which files were changed,"
    " what failed, and how it ended. Ask it at the start of a task, to know where the work stands, or for what was done in"
    " a time (since, until). read_session tells all of one.",
    arguments=Arguments,
    answer=_answer,
    nothing="There are no such conversations within reach.",
)
