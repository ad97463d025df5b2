"""`project_brief`: the brief of the sessions within scope."""

from __future__ import annotations

from collections.abc import Iterator

from retold.archive.queries.listing import register_functions
from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, session_conditions
from retold.projects.matching import folder_name, matches_project
from retold.search.filters import Filters

_SHARE = 0.6
"""Share of the budget: the brief counts four bytes as a token, a reply three, and it marks each line."""


class Arguments(Filtered, frozen=True, kw_only=True):
    """The filters."""


def _answer(context: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.export.brief import format_brief
    from retold.insights.digest import load_digest

    register_functions(context.store.connection, matches_project)
    filters = Filters()
    filters.sessions += session_conditions(context, arguments)
    digest = load_digest(context.store, filters, conditions=context.scope.conditions())
    if context.first_passage or not digest.sessions:
        return
    if context.make_redactor is not None:
        digest = context.make_redactor().redact_value(digest, is_line=True)
    names = sorted({folder_name(root) for root in digest.roots})
    page = format_brief(digest, ", ".join(names) or "past work", int(arguments.budget * _SHARE), is_utc=True)
    yield Passage("a digest of past conversations", page.rstrip("\n"), is_redacted=True)


PROJECT_BRIEF = Tool(
    name="project_brief",
    title="What the project comes to",
    about="A digest of all past conversations within reach, or of those since a day: the sessions, what was left open, what"
    " was decided, what failed and what mended it, which files were changed most. Each line cites session and turn. Ask it"
    " to get an overview, or before you write a retrospective or a hand-over.",
    arguments=Arguments,
    answer=_answer,
    empty_text="There are no such conversations within reach.",
)
