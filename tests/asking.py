"""Agents that ask: the SDK's own client, at a server of ours in the same process."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from mcp.client.client import Client
from mcp_types import CallToolResult, TextContent

from retold.mcp.desk import Desk, Place
from retold.mcp.server import made_server

T = TypeVar("T")


def visited(place: Place, play: Callable[[Client], Awaitable[T]]) -> T:
    """Serve an archive, and return what a client makes of it."""

    async def run() -> T:
        desk = Desk(place)
        try:
            async with Client(made_server(desk)) as client:
                return await play(client)
        finally:
            desk.close()

    return asyncio.run(run())


def called(place: Place, tool: str, **arguments: Any) -> tuple[str, bool]:
    """Return the text that a tool answers with, and whether it is an error."""

    async def play(client: Client) -> tuple[str, bool]:
        return told(await client.call_tool(tool, arguments))

    return visited(place, play)


def told(result: CallToolResult) -> tuple[str, bool]:
    """Return the only text of a result, and whether it is an error."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text, result.is_error


def answer(env: Mapping[str, str], tool: str, **arguments: Any) -> str:
    """Return what a tool answers about all of an archive."""
    text, is_error = called(Place(env["RETOLD_HOME"], "/", is_all=True), tool, **arguments)
    assert not is_error, text
    return text
