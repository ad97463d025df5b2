"""Every tool as it is told to agents, whatever it is called with, and what programs of others say of the server.

The tools are taken from the registry: one that is added is looked at without a change here.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import mcp_types as types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

from conftest import available
from retold.archive.store import Store
from retold.mcp.prompts import PROMPTS
from retold.mcp.reply import LEAST, MOST
from retold.mcp.server import ToolHandlers
from retold.mcp.service import QueryService, ServerSettings
from retold.mcp.tool import Tool
from retold.mcp.tools import TOOLS
from retold.search.scan_job import ScanJob, ScanResult
from support.mcp_arguments import Json, invalid_arguments, plain_arguments, valid_arguments
from support.mcp_inspector import INSPECTOR, Inspector, install_package
from support.mcp_process import TOKEN, answer_text, run_http_server, stdio_client
from support.real_gemini import cache_folder
from support.token_budget import tokens

pytestmark = pytest.mark.slow

WORDS = [
    "the",
    "test",
    "error",
    "bread OR test",
    "fix*",
    "file:py",
    "crumb",
    "1.0",
    "7d",
    "yesterday",
    "gemini",
]
every_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


@pytest.fixture(scope="module")
def counter(demo_env: dict[str, str]) -> Iterator[ToolHandlers]:
    """What answers calls, over the demo archive; a bug of ours is raised."""

    async def scanned(_self: QueryService, _job: ScanJob) -> ScanResult:
        return ScanResult(end="stopped")  # processes have their own tests

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QueryService, "_scan", scanned)
        desk = QueryService(ServerSettings(demo_env["RETOLD_HOME"], "/nowhere", is_all=True))
        yield ToolHandlers(desk)
        assert desk.close()


@pytest.fixture(scope="module")
def words(demo_env: dict[str, str]) -> list[str]:
    """Words of the demo archive, its keys among them."""
    with Store(demo_env["RETOLD_HOME"]) as record:
        keys = [key for (key,) in record.rows("SELECT key FROM sessions ORDER BY ended_at DESC LIMIT 5")]
        files = [path for (path,) in record.rows("SELECT DISTINCT path FROM files ORDER BY path LIMIT 5")]
    return [*WORDS, *keys, *files]


def called(counter: ToolHandlers, tool: Tool, arguments: Mapping[str, Any]) -> types.CallToolResult:
    params = types.CallToolRequestParams(name=tool.name, arguments=dict(arguments))
    return asyncio.run(counter.call_tool(None, params))  # type: ignore[arg-type]  # no tool looks at the context


# What is told of them ---------------------------------------------------------------------------------------------


@every_tool
def test_a_tool_tells_what_it_takes_in_a_schema_that_every_agent_reads(tool: Tool) -> None:
    schema = tool.schema()
    Draft202012Validator.check_schema(schema)
    told = json.dumps(schema)
    assert "$ref" not in told
    assert "$defs" not in told
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert all(about.get("description") for about in schema["properties"].values())
    assert tool.name.replace("_", "").isalnum()
    assert len(tool.name) <= 40  # agents put the server's name before it, and take 63 at most
    assert tool.about
    assert tool.title


@every_tool
def test_defaults_are_what_the_schema_allows(tool: Tool) -> None:
    for about in tool.schema()["properties"].values():
        if "default" in about:
            Draft202012Validator(about).validate(about["default"])


# What they are called with ----------------------------------------------------------------------------------------


@every_tool
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_a_tool_is_called_with_it_answers(
    counter: ToolHandlers, words: list[str], tool: Tool, data: st.DataObject
) -> None:
    arguments = data.draw(invalid_arguments(tool, words))
    result = called(counter, tool, arguments)
    text = answer_text(result)
    assert text
    text.encode()
    is_right = Draft202012Validator(tool.schema()).is_valid(arguments)
    if not is_right:
        assert result.is_error, (arguments, text)


@every_tool
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_an_answer_keeps_to_its_budget_on_every_page(
    counter: ToolHandlers, words: list[str], tool: Tool, data: st.DataObject
) -> None:
    budget = data.draw(st.integers(LEAST, MOST) | st.integers(LEAST, LEAST + 50))
    arguments = {
        name: value
        for name, value in data.draw(valid_arguments(tool, words)).items()
        if name not in ("cursor", "budget")
    }
    cursor, seen = "", set()
    for _ in range(6):
        text = answer_text(called(counter, tool, {**arguments, "budget": budget, "cursor": cursor}))
        assert tokens(text) <= budget, (arguments, budget, cursor)
        *_, more = text.rpartition('and cursor "')
        cursor = more.partition('"')[0] if text.rstrip().endswith('".') and "There is more" in text else ""
        if not cursor:
            break
        assert cursor not in seen  # it goes on, and not in circles
        seen.add(cursor)


def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(counter: ToolHandlers) -> None:
    with pytest.raises(MCPError, match="no tool made_up: there are"):
        asyncio.run(counter.call_tool(None, types.CallToolRequestParams(name="made_up")))  # type: ignore[arg-type]


def test_every_tool_answers_the_sdks_client(demo_env: dict[str, str]) -> None:
    async def ask() -> None:
        async with stdio_client({**os.environ, **demo_env}) as spoken:
            listed = await spoken.list_tools()
            assert [tool.name for tool in listed.tools] == [tool.name for tool in TOOLS]
            for tool in TOOLS:
                answer = answer_text(await spoken.call_tool(tool.name, plain_arguments(tool, "test")))
                assert "bug of retold's" not in answer

    asyncio.run(ask())


# What others say --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    with available():
        folder = install_package(cache_folder(os.environ), "inspector", INSPECTOR)
    return Inspector(folder, tmp_path_factory.mktemp("inspector"))


def _inspected(inspector: Inspector, target: list[str], options: list[str]) -> None:
    def ask(*more: str) -> Json:
        return inspector.asked([*target, *options, *more])

    assert [tool["name"] for tool in ask("--method", "tools/list")["tools"]] == [tool.name for tool in TOOLS]
    found = ask(
        "--method", "tools/call", "--tool-name", "search_history", "--tool-arg", "query=test", "budget=500"
    )
    assert not found["isError"]
    assert "Quoted history" in found["content"][0]["text"]


def test_the_inspector_is_content_over_pipes(inspector: Inspector, demo_env: dict[str, str]) -> None:
    given = [part for name in sorted(demo_env) for part in ("-e", f"{name}={demo_env[name]}")]
    path = ["-e", f"PYTHONPATH={os.environ['PYTHONPATH']}"] if "PYTHONPATH" in os.environ else []
    _inspected(inspector, [*given, *path, sys.executable, "-m", "retold", "mcp", "--scope", "all"], [])


def test_the_inspector_is_content_over_http(inspector: Inspector, demo_env: dict[str, str]) -> None:
    options = ["--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"]
    with run_http_server({**os.environ, **demo_env}) as server:
        _inspected(inspector, [server.address], options)


def test_the_inspector_reads_resources_and_prompts(inspector: Inspector, demo_env: dict[str, str]) -> None:
    options = ["--transport", "http", "--header", f"Authorization: Bearer {TOKEN}", "--method"]
    with run_http_server({**os.environ, **demo_env}) as server:

        def ask(*more: str) -> Json:
            return inspector.asked([server.address, *options, *more])

        *_, last = ask("resources/list")["resources"]
        (read,) = ask("resources/read", "--uri", last["uri"])["contents"]
        assert "Quoted history" in read["text"]
        assert ask("resources/templates/list")["resourceTemplates"]
        offered = [prompt["name"] for prompt in ask("prompts/list")["prompts"]]
        assert offered == [offer.name for offer in PROMPTS]
        (message,) = ask("prompts/get", "--prompt-name", "retrospective")["messages"]
        assert "a brief" in message["content"]["text"]
