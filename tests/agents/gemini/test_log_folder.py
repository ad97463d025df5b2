"""The folder by which a log of prompts and the sessions beside it know each other."""

import json
from pathlib import Path

import pytest

from retold.agents import gemini as agent
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem
from retold.sessions.conversations import group_scraps, join_conversations
from support.gemini_home import ROOT, GeminiHome, metadata, session_id, user

SAID = [user("u1", 1, "How high is the tide?")]


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    return GeminiHome(tmp_path / "ann")


def read(path: Path) -> list[Reading]:
    readings = agent.read(Source(path))
    assert not isinstance(readings, Problem)
    return list(readings)


def test_a_log_and_a_main_session_have_the_folder_of_their_project(made: GeminiHome) -> None:
    made.logs("almanac", [(1, "How high is the tide?")])
    files = [
        made.json("almanac", 1, 1, SAID),
        made.lines("almanac", 2, 2, SAID),
        made.gemini / "tmp/almanac/logs.json",
    ]
    folders = {agent.log_folder(reading) for file in files for reading in read(file)}
    assert folders == {str(made.gemini / "tmp/almanac")}


def test_a_subagent_has_none(made: GeminiHome) -> None:
    beside = made.json("almanac", 1, 1, SAID, kind="subagent")
    text = json.dumps({**metadata(2, 2, ROOT), "messages": SAID})
    inside = made.write(f"tmp/almanac/chats/{session_id(1)}/k3x9qa.json", text)
    assert [agent.log_folder(reading) for file in (beside, inside) for reading in read(file)] == [None, None]


def test_readings_of_one_folder_and_id_are_one_conversation(made: GeminiHome) -> None:
    file = made.json("almanac", 1, 1, SAID)
    made.logs("almanac", [(1, "How high is the tide?"), (2, "Where is the old harbour?")])
    recorded, logged = read(file), read(made.gemini / "tmp/almanac/logs.json")
    assert agent.group_key(recorded[0]) != agent.group_key(logged[0])
    ((group, told, session),) = join_conversations(agent, recorded, group_scraps(agent, logged))
    assert group == agent.group_key(recorded[0])
    assert [reading.format for reading in told] == ["gemini-json", "gemini-logs"]
    assert {reading.native_id for reading in told} == {session.native_id} == {session_id(1)}


def test_copies_of_a_log_are_one_group_and_logs_that_share_no_prompt_are_two(made: GeminiHome) -> None:
    made.mark("harbour", ROOT)
    for project in ("almanac", "harbour"):
        made.logs(project, [(1, "How high is the tide?")])
    logs = [made.gemini / f"tmp/{project}/logs.json" for project in ("almanac", "harbour")]
    readings = [reading for log in logs for reading in read(log)]
    assert len({agent.group_key(reading) for reading in readings}) == 2
    assert [len(said) for said in group_scraps(agent, readings).groups.values()] == [2]
    made.logs("harbour", [(1, "Something else")])
    readings = [reading for log in logs for reading in read(log)]
    assert [len(said) for said in group_scraps(agent, readings).groups.values()] == [1, 1]
