"""Files made to hang or overflow a reader: many openings without ends, endless rewrites, deep values.

Nothing is timed here: with work that grows with the square of the input, these would run for minutes.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import retold
from retold.agents.protocol import Source
from retold.agents.registry import AGENTS
from retold.export.transcript import TranscriptOptions, format_transcript
from retold.model.problem import Problem
from retold.model.serialization import decode_session
from retold.projects.resolver import named_paths, recorded_folder
from support.conversation_files import FORMS, turns
from support.session_json import session_json
from support.synced_archive import sync_conversations

META = {
    "sessionId": "7c1e5a90-3b2d-4f68-9a01-5d2e8c4b6f13",
    "projectHash": "h",
    "startTime": "2026-03-01T09:00:00.000Z",
}
MANY = 50_000


def lines(path: Path, *records: Any) -> Path:
    file = path / ".gemini" / "tmp" / "almanac" / "chats" / "session-2026-03-01T09-00-7c1e5a90.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in (META, *records)), encoding="utf-8")
    return file


def only(file: Path) -> retold.Session:
    """The session of a file; where the file lies in a home, an archive tells the same."""
    (session,) = retold.read(file)
    if file.parent.name == "chats":
        (kept,) = sync_conversations(file.parents[4], agent="gemini")
        assert kept.timeline == session.timeline
    return session


def prompts(text: str) -> Iterator[Any]:
    yield {"id": "u1", "type": "user", "timestamp": "2026-03-01T09:00:01.000Z", "content": text}


@pytest.mark.parametrize(
    "opening",
    [
        "<hook_context>",
        "</hook_context><hook_context>",
        "<session_context>",
        "User hints: <user_input>",
        "--- Content from referenced files ---",
        "--- Content from referenced files ---\n--- End of content ---",
        "\nContent from @",
        "Workspace Directories:** \n \n",
    ],
)
def test_openings_without_end_are_read_through(tmp_path: Path, opening: str) -> None:
    session = only(lines(tmp_path, *prompts("Hello. " + opening * MANY)))
    assert session.first_prompt is not None
    assert session.first_prompt.startswith("Hello.")
    recorded_folder(session)


def test_an_id_that_is_written_again_and_again(tmp_path: Path) -> None:
    versions = [{"id": "u1", "type": "user", "content": f"Version {number}."} for number in range(5_000)]
    session = only(lines(tmp_path, *versions))
    assert len(session.timeline) == 5_000
    assert session.timeline[-1].fate == "live"


def test_lists_that_replace_each_other(tmp_path: Path) -> None:
    blocks = [
        {"$set": {"messages": [{"id": f"u{number % 3}", "type": "user", "content": "Go."}]}}
        for number in range(5_000)
    ]
    assert only(lines(tmp_path, *blocks)).counts.prompts >= 1


def test_a_tools_title_of_brackets(tmp_path: Path) -> None:
    call = {
        "id": "c",
        "name": "x",
        "args": {},
        "status": "success",
        "displayName": " (" * MANY + " MCP Server)",
    }
    session = only(lines(tmp_path, {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}))
    assert session.counts.tool_calls == 1


def test_shared_markdown_with_fences_without_end(tmp_path: Path) -> None:
    file = tmp_path / "shared.md"
    file.write_text("## USER 🧑‍💻\n\n" + "**Tool Command**:\n```json\n" * MANY, encoding="utf-8")
    assert only(file).counts.messages == 1


@pytest.mark.parametrize("depth", [100, 400, 900])
def test_deep_values_that_can_be_decoded_can_be_told(tmp_path: Path, depth: int) -> None:
    deep: Any = "/home/ann/dev/almanac/x.py"
    for level in range(depth):
        deep = {"a": deep} if level % 2 else [deep]
    call = {"id": "c", "name": "x", "args": {"deep": deep}, "status": "success", "new": deep, "result": deep}
    said = {"id": "u", "type": "user", "content": [deep, {"text": deep}]}
    session = only(
        lines(tmp_path, said, {"id": "g", "type": "gemini", "content": "", "toolCalls": [call], "x": deep})
    )
    if not any(problem.code == "nested-too-deep" for problem in session.problems):
        assert named_paths(session) == ["/home/ann/dev/almanac/x.py"]
    assert b"almanac" in session_json(session) or depth > 400
    assert list(
        format_transcript(session, TranscriptOptions("full", thoughts=True, tokens=True, notices=True))
    )
    if depth <= 400:
        assert decode_session(session_json(session)) == session


DEEP_LINES = {
    "codex": [
        '{"type": DEEP}', '{"timestamp": DEEP, "type": "event_msg", "payload": {"type": DEEP}}',
        '{"type": "response_item", "payload": {"type": DEEP}}',
        '{"type": "response_item", "payload": {"type": "message", "role": DEEP, "content": [DEEP]}}',
        '{"type": "response_item", "payload": {"type": "function_call_output", "call_id": DEEP, "output": DEEP}}',
    ],
    "claude": ['{"type": DEEP}', '{"type": "user", "timestamp": DEEP, "message": {"role": "user", "content": DEEP}}'],
    "gemini": ['{"id": "u", "type": DEEP}', '{"id": "u", "type": "user", "timestamp": DEEP, "content": [DEEP]}'],
}  # fmt: skip


@pytest.mark.parametrize("agent", DEEP_LINES)
def test_values_as_deep_as_can_be_decoded_are_read_wherever_they_stand(tmp_path: Path, agent: str) -> None:
    file = FORMS["gemini-lines" if agent == "gemini" else agent].write(tmp_path, 1, turns("herons"))
    before = file.read_bytes()
    for depth in range(880, 970):
        deep = ("[" * depth + "]" * depth) if depth % 2 else ('{"a":' * depth + "1" + "}" * depth)
        lines = "".join(line.replace("DEEP", deep) + "\n" for line in DEEP_LINES[agent])
        file.write_bytes(before + lines.encode())
        found = AGENTS[agent].read(Source(file))
        assert not isinstance(found, Problem)
        session = AGENTS[agent].join(found)
        assert session.first_prompt == "asked herons"
