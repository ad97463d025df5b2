"""An MCP client in this process: calls the server's tools, resources and prompts through the SDK's client."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import mcp_types as types
from mcp.client.client import Client

from retold.mcp.reply import NOTE
from retold.mcp.server import make_server
from retold.mcp.service import QueryService, ServerSettings
from support.gemini_home import ROOT
from support.synced_archive import sync_archive

T = TypeVar("T")
_MORE = re.compile(r'cursor "([0-9.]+)"\.$')
_FENCED = re.compile(re.escape(NOTE) + r"\n<(history-[0-9a-f]{8})>\n(.*)\n</\1>", re.DOTALL)


class ToolAnswer(NamedTuple):
    """The text of an answer, and whether it is an error."""

    text: str
    is_error: bool = False

    @property
    def body(self) -> str:
        """The text between the fences."""
        found = _FENCED.search(self.text)
        assert found is not None, self.text
        return found[2]

    @property
    def quotes(self) -> str:
        """The quoted lines of the body, without their mark; the other lines are headings that retold adds."""
        lines = self.body.split("\n")
        return "\n".join(line[2:] for line in lines if line.startswith("> "))

    @property
    def next(self) -> str | None:
        """The cursor of the next page, or None on the last page."""
        found = _MORE.search(self.text)
        return None if found is None else found[1]


class McpClient:
    """Sends requests to an MCP server for a `QueryService`."""

    def __init__(self, desk: QueryService) -> None:
        self.desk = desk

    def said(self, talk: Callable[[Client], Awaitable[T]]) -> T:
        """Run `talk` with a connected client and return its result; protocol errors are raised unwrapped."""

        async def run() -> T | BaseException:
            async with Client(make_server(self.desk, repr)) as client:
                try:
                    return await talk(client)
                except Exception as error:  # noqa: BLE001 - the client would wrap it in an exception group
                    return error

        found = asyncio.run(run())
        if isinstance(found, BaseException):
            raise found
        return found

    def ask(self, tool: str, **arguments: Any) -> ToolAnswer:
        """Call a tool."""
        result = self.said(lambda client: client.call_tool(tool, arguments))
        (content,) = result.content
        assert isinstance(content, types.TextContent)
        return ToolAnswer(content.text, bool(result.is_error))

    def pages(self, tool: str, **arguments: Any) -> list[ToolAnswer]:
        """Call a tool page by page, until there is no next page."""

        async def talk(client: Client) -> list[ToolAnswer]:
            told: list[ToolAnswer] = []
            cursor: str | None = ""
            while cursor is not None:
                result = await client.call_tool(tool, {**arguments, "cursor": cursor})
                (content,) = result.content
                assert isinstance(content, types.TextContent)
                told.append(ToolAnswer(content.text, bool(result.is_error)))
                cursor = told[-1].next
            return told

        return self.said(talk)

    def read(self, uri: str) -> ToolAnswer:
        """Read a resource."""
        result = self.said(lambda client: client.read_resource(uri))
        (content,) = result.contents
        assert isinstance(content, types.TextResourceContents)
        return ToolAnswer(content.text)

    def prompted(self, name: str, **arguments: str) -> ToolAnswer:
        """Get a prompt with its arguments filled in."""
        result = self.said(lambda client: client.get_prompt(name, arguments))
        (message,) = result.messages
        assert isinstance(message.content, types.TextContent)
        return ToolAnswer(message.content.text)


@contextmanager
def connect(
    home: Path, here: str = ROOT, *, is_all: bool = False, is_redacted: bool = True
) -> Iterator[McpClient]:
    """Sync a home into an archive beside it, and yield a client that works in the folder `here`."""
    folder = home.parent / f"{home.name}-archive"
    sync_archive(folder, {"HOME": str(home)})
    with connect_person(str(folder), here, is_all=is_all, is_redacted=is_redacted) as found:
        yield found


@contextmanager
def connect_person(
    folder: str, here: str = ROOT, *, is_all: bool = False, is_redacted: bool = True
) -> Iterator[McpClient]:
    """Yield a client for an existing archive."""
    desk = QueryService(ServerSettings(folder, here, is_all, is_redacted))
    try:
        yield McpClient(desk)
    finally:
        desk.close()
