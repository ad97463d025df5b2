"""A session as events: in order, numbered, each with a time."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from retold.agents.registry import NotASession, read
from retold.export.text.events import format_event
from retold.model.events import AnyStep, ToolResult, ToolUse, steps, steps_with_messages
from retold.model.serialization import encode_step, schemas
from support import cases
from support.cases import every_case

PARALLEL = "claude-parallel-calls-each-get-their-own-result"
HISTORY: dict[str, Any] = {
    "history": [
        {"role": "user", "parts": [{"text": "Read both."}]},
        {
            "role": "model",
            "parts": [
                {"text": "I will."},
                {"functionCall": {"name": "read_file", "args": {"file_path": "a"}}},
                {"functionCall": {"name": "read_file", "args": {"file_path": "b"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "read_file", "response": {"output": "alpha"}}},
                {"functionResponse": {"name": "read_file", "response": {"error": "gone"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "One is gone."}]},
    ]
}


@pytest.fixture
def told(tmp_path: Path) -> list[AnyStep]:
    file = tmp_path / "seed-2026-03-01T09-00-00.json"
    file.write_text(json.dumps(HISTORY))
    (session,) = read(file)
    return list(steps(session, with_text=True))


def test_a_history_is_told_in_order(told: list[AnyStep]) -> None:
    assert [type(step).__struct_config__.tag for step in told] == [
        "session_start", "user_prompt", "assistant_text", "tool_use", "tool_use", "tool_result", "tool_result",
        "assistant_text", "session_end",
    ]  # fmt: skip
    assert [step.seq for step in told] == list(range(9))


def test_calls_without_ids_are_paired_by_name_and_order(told: list[AnyStep]) -> None:
    used = [(step.call_id, step.arguments["file_path"]) for step in told if isinstance(step, ToolUse)]
    results = [
        (step.call_id, step.status, step.result, step.error) for step in told if isinstance(step, ToolResult)
    ]
    assert used == [("read_file-1", "a"), ("read_file-2", "b")]
    assert results == [("read_file-1", "success", "alpha", None), ("read_file-2", "error", None, "gone")]


def test_derived_times_step_a_millisecond(told: list[AnyStep]) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert [step.at for step in told] == [start + timedelta(milliseconds=number) for number in range(9)]
    assert all(step.at_derived for step in told)


def test_without_text_only_what_happened_is_told(tmp_path: Path) -> None:
    file = tmp_path / "seed.json"
    file.write_text(json.dumps(HISTORY))
    (session,) = read(file)
    assert "assistant_text" not in {type(step).__struct_config__.tag for step in steps(session)}


def test_recorded_times_are_told_as_they_are() -> None:
    (session,) = read(Path(__file__).parents[1] / "fixtures" / "gemini_sample.json")
    told = list(steps(session))
    assert not any(step.at_derived for step in told)
    assert [f"{step.at:%H:%M:%S}" for step in told] == [
        "15:21:04",
        "15:21:04",
        "15:21:19",
        "15:21:20",
        "15:24:02",
        "15:24:40",
    ]


def test_a_response_on_several_lines_is_told_as_one(tmp_path: Path) -> None:
    folder = cases.copy_case(PARALLEL, tmp_path)
    (session,) = cases.case_sessions(PARALLEL, folder)
    told = [(type(step).__struct_config__.tag, getattr(step, "call_id", None)) for step in steps(session)]
    names = [name for kind, name in told if kind == "tool_use"]
    assert len(names) > 1
    first = told.index(("tool_use", names[0]))
    assert told[first:-1] == [(kind, name) for kind in ("tool_use", "tool_result") for name in names]


@every_case
def test_every_session_is_told_in_valid_events(case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    validator = Draft202012Validator(schemas()["event"])
    try:
        found = list(cases.case_sessions(case, folder))
    except NotASession:
        return
    for session in found:
        found_steps = [step for _, step in steps_with_messages(session, with_text=True, with_thoughts=True)]
        told = [json.loads(encode_step(step)) for step in found_steps]
        assert all(format_event(step).text for step in found_steps)
        for step in told:
            validator.validate(step)
        assert [step["seq"] for step in told] == list(range(len(told)))
        assert (told[0]["event"], told[-1]["event"]) == ("session_start", "session_end")
        derived = [(step["at"], step["seq"]) for step in told if step["at_derived"] and step["at"]]
        assert derived == sorted(derived)
        assert sum(step["event"] == "user_prompt" for step in told) == session.counts.prompts
        assert sum(step["event"] == "tool_use" for step in told) == session.counts.tool_calls
