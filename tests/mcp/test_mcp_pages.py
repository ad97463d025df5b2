"""Answers in pages: together they are the whole answer, each conversation once, wherever the far ones begin."""

import asyncio
import re

import mcp_types as types
import pytest

from retold.mcp.server import ToolHandlers
from retold.mcp.service import QueryService, ServerSettings
from retold.mcp.tools import search_history
from support.mcp_process import answer_text

KEY = re.compile(r"^((?:gemini|claude|codex):\S+) · ", re.MULTILINE)


def keys(counter: ToolHandlers, query: str, budget: int) -> list[str]:
    """Return the conversations that are told of on all pages; one that goes on from page to page is one."""
    found: list[str] = []
    cursor = ""
    for _ in range(500):
        arguments = {"query": query, "budget": budget, "cursor": cursor}
        params = types.CallToolRequestParams(name="search_history", arguments=arguments)
        text = answer_text(asyncio.run(counter.call_tool(None, params)))  # type: ignore[arg-type]  # no context is looked at
        told = KEY.findall(text)
        found += told[1:] if cursor and not cursor.endswith(".0") else told
        if "There is more" not in text:
            return found
        cursor = text.rpartition('and cursor "')[2].partition('"')[0]
    raise AssertionError(cursor)


@pytest.mark.parametrize("few", [1, 3, 20, 200])
@pytest.mark.parametrize("query", ["test", "bread fix", "the order of tests", "-nothing agent:gemini"])
def test_pages_of_any_size_tell_of_the_same_conversations(
    demo_env: dict[str, str], monkeypatch: pytest.MonkeyPatch, query: str, few: int
) -> None:
    desk = QueryService(ServerSettings(demo_env["RETOLD_HOME"], "/nowhere", is_all=True))
    whole = keys(ToolHandlers(desk), query, 20_000)
    monkeypatch.setattr(search_history, "_FEW", few)
    at_once = keys(ToolHandlers(desk), query, 20_000)
    in_pages = keys(ToolHandlers(desk), query, 400)
    assert desk.close()
    assert in_pages == at_once
    assert len(set(at_once)) == len(at_once) > 2
    assert set(at_once) == set(whole)
