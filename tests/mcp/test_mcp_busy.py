"""One request that is busy taking secrets out does not hold the server: others are answered meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event

import pytest
from mcp.client.client import Client

from retold.mcp.resources import session_uri
from retold.mcp.server import make_server
from retold.mcp.service import QueryService, ServerSettings
from support.gemini_home import ROOT, GeminiHome, user
from support.synced_archive import sync_archive

pytestmark = pytest.mark.slow

KEY = "gemini:session-2026-03-01T09-00-00000001"
PATIENCE = 60


class BusyDesk(QueryService):
    """A desk whose redaction goes on until the gate is open."""

    def __init__(self, place: ServerSettings) -> None:
        super().__init__(place)
        self.is_busy, self.gate = Event(), Event()
        self.waits: list[bool] = []

    def make_redact(self) -> Callable[[str], str]:
        def clean(text: str) -> str:
            self.is_busy.set()
            self.waits.append(self.gate.wait(PATIENCE))
            return text

        return clean


REQUESTS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "list resources": lambda client: client.list_resources(),
    "read a resource": lambda client: client.read_resource(session_uri(KEY)),
    "call a tool": lambda client: client.call_tool("recent_work", {}),
    "fill a prompt": lambda client: client.get_prompt("retrospective", {}),
}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_busy_request_holds_no_other(tmp_path: Path, request_name: str) -> None:
    home = GeminiHome(tmp_path / "ann")
    home.mark("almanac", ROOT)
    home.json("almanac", 1, 0, [user("a1", 0, "Count the herons")])
    sync_archive(tmp_path / "archive", {"HOME": str(home.folder)})
    desk = BusyDesk(ServerSettings(str(tmp_path / "archive"), ROOT))

    async def talk() -> None:
        async with Client(make_server(desk, repr)) as client:
            busy = asyncio.ensure_future(REQUESTS[request_name](client))
            assert await asyncio.to_thread(desk.is_busy.wait, PATIENCE)
            assert (await client.list_tools()).tools
            assert not busy.done()
            desk.gate.set()
            assert await busy

    try:
        asyncio.run(talk())
    finally:
        desk.gate.set()
        desk.close()
    assert desk.waits
    assert all(desk.waits), "the event loop itself waited"
