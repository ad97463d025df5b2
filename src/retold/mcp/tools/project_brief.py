"""`project_brief`: what a project comes to."""

from __future__ import annotations

from collections.abc import Iterator

from retold.archive.queries.conditions import register_functions
from retold.mcp.reply import Passage
from retold.mcp.tool import Filtered, Tool, ToolContext, narrowed
from retold.projects.matching import is_meant, last_name
from retold.search.filters import Filters

_SHARE = 0.6
"""Of the tokens that there are: a page counts four bytes for one, an answer three, and marks each line."""


class Arguments(Filtered, frozen=True, kw_only=True):
    """Of which conversations."""


def _answer(asking: ToolContext, arguments: Arguments) -> Iterator[Passage]:
    from retold.export.brief import brief
    from retold.insights.digest import digest

    register_functions(asking.record.connection, is_meant)
    wanted = Filters()
    wanted.sessions += narrowed(asking, arguments)
    found = digest(asking.record, wanted, reach=asking.reach.conditions())
    if asking.first or not found.sessions:
        return
    if asking.redactors is not None:
        found = asking.redactors().redacted_value(found)
    names = sorted({last_name(root) for root in found.roots})
    page = brief(found, ", ".join(names) or "past work", int(arguments.budget * _SHARE), is_utc=True)
    yield Passage("a digest of past conversations", page.rstrip("\n"), is_clean=True)


PROJECT_BRIEF = Tool(
    name="project_brief",
    title="What the project comes to",
    about="A digest of all past conversations within reach, or of those since a day: the sessions, what was left open, what"
    " was decided, what failed and what mended it, which files were changed most. Each line cites session and turn. Ask it"
    " to get an overview, or before you write a retrospective or a hand-over.",
    arguments=Arguments,
    answer=_answer,
    nothing="There are no such conversations within reach.",
)
