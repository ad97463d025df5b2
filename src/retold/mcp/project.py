"""What is within reach: projects, agents, how many conversations there are, and the newest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from retold.mcp import tool
from retold.mcp.citing import cited
from retold.mcp.passage import Passage
from retold.mcp.tool import Tool, ToolContext
from retold.search.facets import extent
from retold.search.pages import BASE, glances

_NEWEST = 20
_MOST = 50
"""Projects that are told of, those with most conversations."""


class ProjectArguments(tool.Arguments, frozen=True, kw_only=True):
    """Nothing but how much, and from where on."""


def _answer(asking: ToolContext, _arguments: ProjectArguments) -> Iterator[Passage]:
    return islice(_passages(asking), asking.first, None)


def _passages(asking: ToolContext) -> Iterator[Passage]:
    from retold.export.transcript import plural

    conditions = [*BASE, *asking.reach.conditions()]
    found = extent(asking.record, conditions)
    if not found.projects:
        return
    told = [f"{name}: {plural(count, 'conversation')}" for name, count in found.projects[:_MOST]]
    left = len(found.projects) - _MOST
    more = [f"and {plural(left, 'more project')}"] if left > 0 else []
    agents = ", ".join(f"{agent} {count:,}" for agent, count in found.agents)
    yield Passage("past conversations within reach", "\n".join([agents, *told, *more]))
    newest = glances(asking.record, conditions, _NEWEST)
    yield Passage("the newest", "\n".join(map(cited, newest)))


PROJECT = Tool(
    name="project",
    title="What is within reach",
    about="For a resource: agents ask recent_work.",
    arguments=ProjectArguments,
    answer=_answer,
    nothing="There are no past conversations within reach.",
)
