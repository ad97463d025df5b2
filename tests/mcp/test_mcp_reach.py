"""How far an agent sees: whatever it asks, and however, nothing of another project is told."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from retold.mcp.prompts import PROMPTS
from retold.mcp.resources import session_uri
from retold.mcp.tools import TOOLS
from support.gemini_home import ROOT, GeminiHome, call, gemini, user
from support.mcp_client import McpClient, connect, connect_person

OTHER = "/home/ann/dev/tide-clock"
MINE, THEIRS = (
    f"gemini:session-2026-03-01T09-{minute:02}-0000000{number}" for minute, number in ((0, 1), (10, 2))
)
NATIVE = "00000002-3b2d-4f68-9a01-5d2e8c4b6f13"
NOWHERE = "gemini:session-2026-03-01T09-10-0000000f"
SIGNS = ("pendulum", "tide-clock", THEIRS, "escapement")
"""What only the other project's conversation says."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two projects, a conversation in each, both about a file of the same name."""
    home = GeminiHome(tmp_path_factory.mktemp("reach") / "ann")
    said = (
        ("almanac", ROOT, 1, 0, "herons", "frogs"),
        ("tide-clock", OTHER, 2, 10, "pendulum", "escapement"),
    )
    for project, root, number, minute, asked, answered in said:
        home.mark(project, root)
        edit = call("write_file", {"file_path": f"{root}/main.py", "content": answered}, minute + 1)
        talk = [
            user(f"u{number}", minute, f"Tell the error of the {asked}: we decided nothing"),
            gemini(f"g{number}", minute + 1, f"The {answered} is fixed.", [edit]),
        ]
        home.json(project, number, minute, talk, root=root)
    with connect(home.folder) as ann:
        return ann.desk.place.folder


@pytest.fixture
def near(folder: str) -> Iterator[McpClient]:
    with connect_person(folder, ROOT) as found:
        yield found


@pytest.fixture
def far(folder: str) -> Iterator[McpClient]:
    with connect_person(folder, OTHER) as found:
        yield found


QUESTIONS: dict[str, list[dict[str, Any]]] = {
    "search_history": [
        {"query": "error"},
        {"query": "pendulum"},
        {"query": "error", "project": "tide-clock"},
        {"query": "error", "project": OTHER},
        {"query": f"project:{OTHER} error"},
        {"query": NATIVE},
        {"query": THEIRS},
        {"query": "fixed", "mode": "letters"},
        {"query": "fixe.", "mode": "regex", "project": "tide-clock"},
    ],
    "read_session": [{"session": name} for name in (THEIRS, NATIVE, THEIRS[:-3], NATIVE[:8], "gemini:")],
    "file_history": [
        {"path": "main.py"},
        {"path": f"{OTHER}/main.py"},
        {"path": "tide-clock/main.py"},
        {"path": "main.py", "project": "tide-clock"},
    ],
    "find_fix": [
        {"problem": "error"},
        {"problem": "the pendulum error"},
        {"problem": "error", "project": OTHER},
    ],
    "find_decisions": [{"about": "decided"}, {"about": f"project:{OTHER} pendulum"}, {"about": NATIVE}],
    "project_brief": [{}, {"project": "tide-clock"}, {"project": OTHER}, {"since": "2026-01-01"}],
    "recent_work": [{}, {"project": "tide-clock"}, {"project": OTHER}, {"since": "2026-01-01"}],
}
"""What each tool is asked, most of it in order to see more than it should. Every tool has to be here."""


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [(tool.name, arguments) for tool in TOOLS for arguments in QUESTIONS[tool.name]],
)
def test_no_tool_tells_of_another_project(near: McpClient, tool: str, arguments: dict[str, Any]) -> None:
    told = near.ask(tool, **arguments).text
    for value in arguments.values():  # what was asked may be said back
        told = told.replace(repr(value), "")
    assert not any(sign in told for sign in SIGNS), told


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
def test_every_tool_tells_of_its_own_project(near: McpClient, far: McpClient, tool: str) -> None:
    asked = {"read_session": {"session": THEIRS}}.get(tool, QUESTIONS[tool][0])
    assert any(sign in far.ask(tool, **asked).body for sign in SIGNS)
    asked = {"read_session": {"session": MINE}}.get(tool, QUESTIONS[tool][0])
    assert "herons" in near.ask(tool, **asked).body or "frogs" in near.ask(tool, **asked).body


def test_a_session_out_of_reach_is_told_as_one_that_does_not_exist(near: McpClient) -> None:
    ways: list[Callable[[str], str]] = [
        lambda key: near.ask("read_session", session=key).text,
        lambda key: refusal(near, lambda: near.read(session_uri(key))),
        *(lambda key, name=offer.name: refusal(near, lambda: near.prompted(name, session=key))
          for offer in PROMPTS if "session" in offer.arguments),
    ]  # fmt: skip
    for way in ways:
        assert way(THEIRS).replace(THEIRS, "") == way(NOWHERE).replace(NOWHERE, "")
        assert "there is no session" in way(THEIRS)


def refusal(_agent: McpClient, asked: Callable[[], object]) -> str:
    with pytest.raises(MCPError) as found:
        asked()
    assert found.value.code == types.INVALID_PARAMS
    return found.value.message


def test_a_name_out_of_reach_does_not_stand_before_one_within(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Else whoever asks for the start of a name would learn that it is the whole name of another."""
    home = GeminiHome(tmp_path_factory.mktemp("names") / "ann")
    home.mark("almanac", ROOT)
    home.mark("tide-clock", OTHER)
    home.json("almanac", 1, 0, [user("u1", 0, "Mine")], sessionId="abcd-ef")
    home.json("tide-clock", 2, 10, [user("u2", 10, "Theirs")], root=OTHER, sessionId="abcd")
    with connect(home.folder) as ann:
        assert "Mine" in ann.ask("read_session", session="abcd").body
    with connect_person(ann.desk.place.folder, OTHER) as other:
        assert "Theirs" in other.ask("read_session", session="abcd").body


def test_resources_are_those_within_reach(near: McpClient, far: McpClient) -> None:
    listed = near.said(lambda client: client.list_resources()).resources
    assert [one.uri for one in listed] == ["retold://project", session_uri(MINE)]
    assert not any(sign in one.model_dump_json() for one in listed for sign in SIGNS)
    told = near.read("retold://project").text
    assert "almanac: 1 conversation" in told
    assert not any(sign in told for sign in SIGNS)
    assert any(sign in far.read("retold://project").text for sign in SIGNS)


def test_prompts_and_completions_see_no_further(near: McpClient, far: McpClient) -> None:
    told = near.prompted("retrospective")
    assert "herons" in told.body
    assert not any(sign in told.text for sign in SIGNS)
    assert not near.prompted("retrospective", project="tide-clock").text.count(NATIVE[:8])
    ref = types.ResourceTemplateReference(uri="retold://session/{key}")
    for typed, mine, theirs in (("gemini:", [MINE], [THEIRS]), (THEIRS[:-1], [], [THEIRS]), ("%", [], [])):
        argument = {"name": "key", "value": typed}
        assert near.said(lambda client: client.complete(ref, argument)).completion.values == mine  # noqa: B023
        assert far.said(lambda client: client.complete(ref, argument)).completion.values == theirs  # noqa: B023


def test_a_subagent_that_worked_elsewhere_is_not_told_of(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It is found by its parent, which is within reach, and not by where it was."""
    home = tmp_path_factory.mktemp("subagents") / "ann"
    parent, child = "11111111-2222-4333-8444-555555555555", "abc1234"
    common = {"userType": "external", "version": "2.0.50", "sessionId": parent}
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "cwd": ROOT, "isSidechain": False,
         "message": {"role": "user", "content": "Count the herons"}},
        {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "cwd": ROOT, "isSidechain": False,
         "message": {"id": "m1", "role": "assistant", "model": "claude-sonnet-4-5", "content": [
             {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"prompt": "look elsewhere"}}]}},
        {"type": "user", "uuid": "u2", "parentUuid": "a1", "cwd": ROOT, "isSidechain": False,
         "toolUseResult": {"agentId": child, "status": "completed"},
         "message": {"role": "user", "content": [
             {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}]}},
    ]  # fmt: skip
    inner: list[dict[str, Any]] = [
        {"type": "user", "uuid": "s1", "parentUuid": None, "cwd": OTHER, "isSidechain": True, "agentId": child,
         "message": {"role": "user", "content": "look elsewhere"}},
        {"type": "assistant", "uuid": "s2", "parentUuid": "s1", "cwd": OTHER, "isSidechain": True, "agentId": child,
         "message": {"id": "m2", "role": "assistant", "model": "claude-sonnet-4-5", "content": [
             {"type": "text", "text": "I'll use the pendulum because the escapement is worn."}]}},
    ]  # fmt: skip
    folder = home / ".claude" / "projects" / "-home-ann-dev-almanac"
    for name, records in ((f"{parent}.jsonl", lines), (f"{parent}/subagents/agent-{child}.jsonl", inner)):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = [
            {**common, "timestamp": f"2026-03-01T09:00:0{place}.000Z", **line}
            for place, line in enumerate(records)
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with connect(home, is_all=True) as everywhere:
        assert "pendulum" in everywhere.ask("project_brief").body
        assert f"claude:{parent}" in everywhere.ask("recent_work").body
        seen = everywhere.ask("read_session", session=parent).body
        assert "subagents: " in seen
    with connect_person(everywhere.desk.place.folder, ROOT) as near:
        assert "herons" in near.ask("project_brief").body
        for told in (
            near.ask("project_brief"),
            near.ask("read_session", session=parent),
            near.prompted("retrospective"),
        ):
            assert not any(sign in told.text for sign in ("pendulum", "subagents: ", "→ subagent", child))
