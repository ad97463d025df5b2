"""MCP resources: sessions and the project under URIs, for people who attach them in their agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext

from retold.archive.queries.listing import CONVERSATIONS, key_prefix_condition
from retold.archive.store import Store, as_text
from retold.mcp import tool
from retold.mcp.passages import cite, short_title
from retold.mcp.reply import MOST, Passage, RequestError, fence_reply, head_line
from retold.mcp.service import QueryService
from retold.mcp.tool import Tool, ToolContext, parse_arguments
from retold.mcp.tools.read_session import READ_SESSION
from retold.mcp.tools.read_session import Arguments as OfSession
from retold.search.facets import count_projects_and_agents
from retold.search.pages import SessionSummary, select_summaries

_NEWEST = 20
_MOST = 50
"""Projects that are listed, those with most sessions."""


class ProjectArguments(tool.ToolArguments, frozen=True, kw_only=True):
    """The budget and the cursor alone."""


def _answer(context: ToolContext, _arguments: ProjectArguments) -> Iterator[Passage]:
    return islice(_passages(context), context.first_passage, None)


def _passages(context: ToolContext) -> Iterator[Passage]:
    from retold.export.text.formatting import plural

    conditions = [*CONVERSATIONS, *context.scope.conditions()]
    found = count_projects_and_agents(context.store, conditions)
    if not found.projects:
        return
    projects = [f"{name}: {plural(count, 'conversation')}" for name, count in found.projects[:_MOST]]
    left = len(found.projects) - _MOST
    more = [f"and {plural(left, 'more project')}"] if left > 0 else []
    agents = ", ".join(f"{agent} {count:,}" for agent, count in found.agents)
    yield Passage("past conversations within reach", "\n".join([agents, *projects, *more]))
    newest = select_summaries(context.store, conditions, _NEWEST)
    yield Passage("the newest", "\n".join(map(cite, newest)))


PROJECT = Tool(
    name="project",
    title="What is within reach",
    about="For a resource: agents ask recent_work.",
    arguments=ProjectArguments,
    answer=_answer,
    empty_text="There are no past conversations within reach.",
)


PAGE = 50
"""Sessions of a page of the list."""
_SESSION, _PROJECT = "retold://session/", "retold://project"
TEMPLATE = f"{_SESSION}{{key}}"
ADDRESSES = {
    _PROJECT: "How many past conversations there are, of which projects and agents, and the newest of them.",
    TEMPLATE: "The transcript of a past conversation, by its session key.",
}
"""The resources, each with its description."""
_MORE = 'There is more: call read_session with the key of this session and cursor "{cursor}".'
_MARKDOWN = "text/markdown"
_MOST_DIGITS = 9
_MOST_COMPLETED = 100
"""The limit of the protocol."""

Context = ServerRequestContext[Any]


def session_uri(key: str) -> str:
    """Return the URI of a session; its key may have any characters."""
    return _SESSION + quote(key, safe="")


class Resources:
    """Handlers of the methods about resources and completion."""

    def __init__(self, service: QueryService) -> None:
        self._service = service

    async def list_resources(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return a page of the newest sessions; the first page begins with the project."""
        first = _parse_page(params.cursor if params else None)
        found = await self._service.ask(lambda store: self._newest(store, first))
        top = [] if first else [_project()]
        following = str(first + PAGE) if len(found) > PAGE else None
        return types.ListResourcesResult(resources=[*top, *found[:PAGE]], next_cursor=following)

    def _newest(self, store: Store, first: int) -> list[types.Resource]:
        """Return the sessions of a page and one more, redacted; runs in a thread, not on the event loop."""
        context = self._service.make_context(store)
        cards = select_summaries(store, [*CONVERSATIONS, *context.scope.conditions()], PAGE + 1, first)
        return [_resource(card, context.redact) for card in cards]

    async def list_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the template of the sessions' URIs."""
        session = types.ResourceTemplate(
            name="session",
            title="A past conversation",
            uri_template=TEMPLATE,
            description=ADDRESSES[TEMPLATE],
            mime_type=_MARKDOWN,
        )
        return types.ListResourceTemplatesResult(resource_templates=[session])

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return a session, or the overview of the project."""
        text = await self._text(params.uri)
        contents = types.TextResourceContents(uri=params.uri, mime_type=_MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _text(self, uri: str) -> str:
        if uri == _PROJECT:
            reply = await self._service.answer(PROJECT, ProjectArguments(budget=MOST))
            more = "There is more: recent_work tells of all of them."
            return fence_reply(reply, more) if reply.passages else PROJECT.empty_text
        if not uri.startswith(_SESSION):
            raise RequestError(
                f"there is no resource {head_line(uri)!r}: there are {_PROJECT} and {TEMPLATE}"
            )
        key = unquote(uri.removeprefix(_SESSION))
        reply = await self._service.answer(
            READ_SESSION, parse_arguments(OfSession, {"session": key, "budget": MOST})
        )
        return fence_reply(reply, _MORE) if reply.passages else READ_SESSION.empty_text

    async def complete(self, _context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return the keys that begin with the typed text, the newest first."""
        ref, argument = params.ref, params.argument
        name = "key" if isinstance(ref, types.ResourceTemplateReference) else "session"
        if argument.name != name:
            return types.CompleteResult(completion=types.Completion(values=[]))
        keys = await self._service.ask(lambda store: self._keys(store, as_text(argument.value)))
        has_more = len(keys) > _MOST_COMPLETED
        completion = types.Completion(values=keys[:_MOST_COMPLETED], has_more=has_more)
        return types.CompleteResult(completion=completion)

    def _keys(self, store: Store, typed: str) -> list[str]:
        conditions = [*CONVERSATIONS, *self._service.scope(store).conditions(), key_prefix_condition(typed)]
        return [head_line(card.key) for card in select_summaries(store, conditions, _MOST_COMPLETED + 1)]


def _parse_page(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _MOST_DIGITS):
        raise RequestError(f"{cursor[:40]!r} is no cursor: give back the one that the last page ended with")
    return int(cursor)


def _resource(card: SessionSummary, redact: Callable[[str], str]) -> types.Resource:
    return types.Resource(
        name=head_line(card.key),
        title=head_line(redact(short_title(card.title) or card.key)),
        uri=session_uri(card.key),
        description=head_line(redact(cite(card))),
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
