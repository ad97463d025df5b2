"""Conversations as resources: an address each, for people who pick them in their agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext

from retold.archive.queries.listing import begun
from retold.archive.store import Store, as_text
from retold.mcp import tool
from retold.mcp.errors import TROUBLES, as_error
from retold.mcp.passages import cited, title
from retold.mcp.reply import MOST, BadCursor, Passage, fenced, head_line
from retold.mcp.service import QueryService
from retold.mcp.tool import Tool, ToolContext, understood
from retold.mcp.tools.read_session import READ_SESSION
from retold.mcp.tools.read_session import Arguments as OfSession
from retold.search.facets import extent
from retold.search.pages import BASE, SessionSummary, glances

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


PAGE = 50
"""Conversations that are listed at once."""
_SESSION, _PROJECT = "retold://session/", "retold://project"
TEMPLATE = f"{_SESSION}{{key}}"
ADDRESSES = {
    _PROJECT: "How many past conversations there are, of which projects and agents, and the newest of them.",
    TEMPLATE: "The transcript of a past conversation, by its session key.",
}
"""What there is to read, and what each is."""
_MORE = 'There is more: call read_session with the key of this session and cursor "{cursor}".'
_MARKDOWN = "text/markdown"
_MOST_DIGITS = 9
_MOST_COMPLETED = 100
"""As many as the protocol allows."""

Context = ServerRequestContext[Any]


def address(key: str) -> str:
    """Return where a conversation is found, whatever is in its key."""
    return _SESSION + quote(key, safe="")


class Resources:
    """Lists conversations, tells them, and helps to name them."""

    def __init__(self, desk: QueryService) -> None:
        self._desk = desk

    async def listed(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Tell of the newest conversations, a page at a time; before the first, of all that is within reach."""
        try:
            first = _place(params.cursor if params else None)
            found = await self._desk.asked(lambda record: self._newest(record, first))
        except TROUBLES as trouble:
            raise as_error(trouble) from trouble
        top = [] if first else [_project()]
        following = str(first + PAGE) if len(found) > PAGE else None
        return types.ListResourcesResult(resources=[*top, *found[:PAGE]], next_cursor=following)

    def _newest(self, record: Store, first: int) -> list[types.Resource]:
        """Return the conversations of a page and one more, without secrets: a thread makes them, not the event loop."""
        asking = self._desk.asking(record)
        cards = glances(record, [*BASE, *asking.reach.conditions()], PAGE + 1, first)
        return [_resource(card, asking.clean) for card in cards]

    async def templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Tell how any conversation is addressed."""
        session = types.ResourceTemplate(
            name="session",
            title="A past conversation",
            uri_template=TEMPLATE,
            description=ADDRESSES[TEMPLATE],
            mime_type=_MARKDOWN,
        )
        return types.ListResourceTemplatesResult(resource_templates=[session])

    async def read(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Tell a conversation, or what is within reach."""
        try:
            text = await self._text(params.uri)
        except TROUBLES as trouble:
            raise as_error(trouble) from trouble
        told = types.TextResourceContents(uri=params.uri, mime_type=_MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[told])

    async def _text(self, uri: str) -> str:
        if uri == _PROJECT:
            reply = await self._desk.answered(PROJECT, ProjectArguments(budget=MOST))
            more = "There is more: recent_work tells of all of them."
            return fenced(reply, more) if reply.passages else PROJECT.nothing
        if not uri.startswith(_SESSION):
            raise BadCursor(f"there is no resource {head_line(uri)!r}: there are {_PROJECT} and {TEMPLATE}")
        key = unquote(uri.removeprefix(_SESSION))
        reply = await self._desk.answered(
            READ_SESSION, understood(OfSession, {"session": key, "budget": MOST})
        )
        return fenced(reply, _MORE) if reply.passages else READ_SESSION.nothing

    async def completed(self, _context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Tell which keys begin with what was typed so far, the newest first."""
        ref, argument = params.ref, params.argument
        name = "key" if isinstance(ref, types.ResourceTemplateReference) else "session"
        if argument.name != name:
            return types.CompleteResult(completion=types.Completion(values=[]))
        try:
            keys = await self._desk.asked(lambda record: self._begun(record, as_text(argument.value)))
        except TROUBLES as trouble:
            raise as_error(trouble) from trouble
        has_more = len(keys) > _MOST_COMPLETED
        told = types.Completion(values=keys[:_MOST_COMPLETED], has_more=has_more)
        return types.CompleteResult(completion=told)

    def _begun(self, record: Store, typed: str) -> list[str]:
        conditions = [*BASE, *self._desk.reach(record).conditions(), begun(typed)]
        return [head_line(card.key) for card in glances(record, conditions, _MOST_COMPLETED + 1)]


def _place(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _MOST_DIGITS):
        raise BadCursor(f"{cursor[:40]!r} is no cursor: give back the one that the last page ended with")
    return int(cursor)


def _resource(card: SessionSummary, clean: Callable[[str], str]) -> types.Resource:
    return types.Resource(
        name=head_line(card.key),
        title=head_line(clean(title(card.title) or card.key)),
        uri=address(card.key),
        description=head_line(clean(cited(card))),
        mime_type=_MARKDOWN,
        annotations=types.Annotations(last_modified=card.ended_at.isoformat()) if card.ended_at else None,
    )


def _project() -> types.Resource:
    return types.Resource(
        name="project",
        title="What is within reach",
        uri=_PROJECT,
        description=ADDRESSES[_PROJECT],
        mime_type=_MARKDOWN,
    )
