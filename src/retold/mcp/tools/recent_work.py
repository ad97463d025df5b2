"""`recent_work`: the newest sessions, each in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from retold.archive.queries.listing import CONVERSATIONS, register_functions
from retold.mcp.passages import cite_redacted
from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, session_conditions
from retold.projects.matching import matches_project
from retold.search.pages import select_summaries

_AT_ONCE = 10
"""Sessions that are loaded at a time."""


class Arguments(Filtered, frozen=True, kw_only=True):
    """The filters."""


def _answer(context: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.export.redacted_session import RedactedSession, work_summary

    register_functions(context.store.connection, matches_project)
    conditions, place = [*CONVERSATIONS, *session_conditions(context, arguments)], context.first_passage
    while cards := select_summaries(context.store, conditions, _AT_ONCE, place):
        for card in cards:
            redacted = RedactedSession(context.store, card.key, context.make_redactor)
            lines = work_summary(context.store, card, redacted)
            yield Passage(cite_redacted(card, redacted.redact_text), "\n".join(lines), is_redacted=True)
        place += len(cards)


RECENT_WORK = Tool(
    name="recent_work",
    title="Recent work",
    about="The newest past conversations, each in a few lines: what was asked first and last, which files were changed,"
    " what failed, and how it ended. Ask it at the start of a task, to know where the work stands, or for what was done in"
    " a time (since, until). read_session tells all of one.",
    arguments=Arguments,
    answer=_answer,
    empty_text="There are no such conversations within reach.",
)
