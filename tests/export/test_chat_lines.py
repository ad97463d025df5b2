"""Chat messages for training: roles alternate, and each call has exactly one result."""

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from retold.agents.registry import NotASession
from retold.export.formats.jsonl import encode_chat
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.session import Context, Session, Text, Thinking
from support import cases
from support.cases import every_case
from support.full_session import agent, call, everything, session, session_with_text, user

Json = dict[str, Any]


def lines(*told: Session | ExportSession, choice: ExportOptions = ExportOptions()) -> list[Json]:  # noqa: B008 - a frozen value
    tellings = [one if isinstance(one, ExportSession) else ExportSession(one) for one in told]
    return [json.loads(line) for line in b"".join(encode_chat(tellings, choice)).splitlines()]


def assert_well_formed(messages: list[Json]) -> None:
    """What templates ask for: results right behind their calls, in order, and no speaker twice in a row."""
    waiting: list[str] = []
    before = None
    for message in messages:
        role = message["role"]
        assert isinstance(message["content"], str)
        if role == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            assert role != before
            waiting = [made["id"] for made in message.get("tool_calls", ())]
            assert len(set(waiting)) == len(waiting)
            assert all(
                isinstance(json.loads(made["function"]["arguments"]), dict)
                for made in message.get("tool_calls", ())
            )
        before = role
    assert not waiting


def test_everything(snapshot: SnapshotAssertion) -> None:
    found = lines(everything(), choice=ExportOptions(thoughts=True))
    assert json.dumps(found, indent=1, ensure_ascii=False) == snapshot


@every_case
def test_every_case_is_well_formed(case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    try:
        found = list(cases.case_sessions(case, folder))
    except NotASession:
        pytest.skip("refused")
    for choice in (ExportOptions(), ExportOptions(thoughts=True, notices=True), ExportOptions(tools="none")):
        for line in lines(*found, choice=choice):
            assert line["messages"]
            assert_well_formed(line["messages"])


def test_subagents_are_lines_of_their_own() -> None:
    parent, child = lines(everything())
    assert child["metadata"]["parent"] == parent["metadata"]["key"]


def test_only_what_is_live_is_told() -> None:
    (line,) = lines(session(user(1, "gone", fate="rewound"), user(2, "here")))
    assert [message["content"] for message in line["messages"]] == ["here"]


def test_pieces_of_one_response_are_one_message_with_parallel_calls() -> None:
    first = agent(1, Text("Two."), call("a", result="1"), response="r")
    second = agent(1, call("b", result="2"), response="r")
    (line,) = lines(session(first, second, agent(2, Text("Done."))))
    roles = [message["role"] for message in line["messages"]]
    assert roles == ["assistant", "tool", "tool", "assistant"]
    assert [made["function"]["name"] for made in line["messages"][0]["tool_calls"]] == ["a", "b"]


def test_an_id_that_was_given_twice_is_told_apart() -> None:
    (line,) = lines(session(agent(1, call("a", result="1"), call("a"))))
    assert [made["id"] for made in line["messages"][0]["tool_calls"]] == ["a-1", "a-1~2"]
    assert [message["content"] for message in line["messages"][1:]] == ["1", ""]


def test_what_the_agent_added_comes_when_it_is_asked_for() -> None:
    told = session(user(1, "ask", Context("hook", "added")), agent(2, Thinking(None, "hm"), Text("ok")))
    (line,) = lines(told)
    assert line["messages"][0]["content"] == "ask"
    assert "reasoning_content" not in line["messages"][1]
    (line,) = lines(told, choice=ExportOptions(notices=True, thoughts=True))
    assert line["messages"][0]["content"] == "ask\nadded"
    assert line["messages"][1]["reasoning_content"] == "hm"


@pytest.mark.parametrize("text", ["a\x00b", "\u2028\n\r", "</s><|im_end|>", "潮 🌊", "x" * 100_000])
def test_one_conversation_is_one_line(text: str) -> None:
    written = b"".join(
        encode_chat(
            [ExportSession(session_with_text(text)), ExportSession(session_with_text(text))], ExportOptions()
        )
    )
    assert written.count(b"\n") == 2
    assert json.loads(written.split(b"\n")[0])["messages"][0]["content"] == text


def test_a_session_in_which_nobody_spoke_is_no_line() -> None:
    assert lines(session()) == []
