"""Trajectories: everything that is exported is valid to the format's own validator, and nothing on the path is lost."""

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory
from hypothesis import HealthCheck, given, settings
from syrupy.assertion import SnapshotAssertion

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.session import Attachment, Context, Entry, Event, Message, Opaque, Text, Thinking, ToolCall
from support import cases, export_inputs
from support.dialogue_sessions import (
    AT,
    TIMELINES,
    assistant,
    call,
    export_session,
    sample_session,
    usage,
    user,
)
from support.export_inputs import EVERYTHING, export_bytes

Json = dict[str, Any]
GONE = ("rewound", "superseded")


def told(telling: ExportSession, choice: ExportOptions = EVERYTHING) -> Json:
    """A trajectory, after the format's own library took it without a complaint and without a loss."""
    (line,) = export_bytes("atif", [telling], choice).splitlines()
    trajectory = Trajectory.model_validate_json(line)
    found: Json = json.loads(line)
    assert trajectory.to_json_dict() == json.loads(line, parse_float=float)
    assert found["schema_version"] == "ATIF-v1.8"
    for one in (found, *_below(found)):
        refs = {
            ref["trajectory_id"]
            for step in one["steps"]
            for result in step.get("observation", {}).get("results", [])
            for ref in result.get("subagent_trajectory_ref", [])
        }
        assert refs == {child["trajectory_id"] for child in one.get("subagent_trajectories", [])}
        assert one["final_metrics"]["total_steps"] == len(one["steps"])
    return found


def _below(found: Json) -> Iterator[Json]:
    for child in found.get("subagent_trajectories", []):
        yield child
        yield from _below(child)


def kept(telling: ExportSession) -> list[Message]:
    return [
        entry for entry in telling.session.timeline if isinstance(entry, Message) and entry.fate not in GONE
    ]


def is_whole(telling: ExportSession) -> None:
    """Every prompt, word and call of the path is there once, in order, and so are its results and tokens."""
    found = told(telling)
    messages, steps = kept(telling), found["steps"]
    prompts = [message.prompt for message in messages if message.prompt]
    users = "\n".join(_words(step["message"]) for step in steps if step["source"] != "agent")
    for prompt in prompts:
        assert prompt in users
    parts = [part for message in messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    assert [one["function_name"] for step in steps for one in step.get("tool_calls", [])] == [
        one.name for one in calls
    ]
    results = [one for step in steps for one in step.get("observation", {}).get("results", [])]
    for one in calls:
        if one.result and one.result.strip():
            assert any((one.full_result or one.result) in _words(result["content"]) for result in results)
    for message in messages:
        if message.role == "assistant":
            for part in message.parts:
                if isinstance(part, Text):
                    assert any(
                        part.text in _words(step["message"]) for step in steps if step["source"] == "agent"
                    )
    own = [message.usage for message in messages if message.usage is not None and message.own]
    billed = {one.request: one.input or 0 for one in own}
    if own:
        assert found["final_metrics"].get("total_prompt_tokens", 0) == sum(billed.values())
    for child, below in zip(telling.subagents.values(), found.get("subagent_trajectories", []), strict=True):
        assert below["trajectory_id"] == child.session.key
        is_whole(child)


def _words(content: str | list[Json]) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def test_every_conversation_of_the_demo_is_valid(tmp_path: Path) -> None:
    found = export_inputs.demo_sessions(tmp_path)
    assert sum(len(telling.subagents) for telling in found) == 4
    for telling in found:
        is_whole(telling)


@pytest.mark.shared
def test_every_conversation_of_the_true_home_is_valid(shared: Path, tmp_path: Path) -> None:
    found = export_inputs.generated_sessions(shared, tmp_path)
    assert found
    for telling in found:
        is_whole(telling)


@cases.every_case
def test_every_case_is_valid(case: str, tmp_path: Path) -> None:
    for telling in export_inputs.case_sessions(case, tmp_path):
        is_whole(telling)
        told(telling, ExportOptions())


def test_the_sample_as_a_trajectory(snapshot: SnapshotAssertion) -> None:
    found = told(ExportSession(sample_session()), ExportOptions(thoughts=True))
    assert json.dumps(found, indent=1, ensure_ascii=False) == snapshot


def test_several_are_a_document_per_line() -> None:
    two = [export_session(user("One?"), key="gemini:one"), export_session(user("Two?"), key="gemini:two")]
    lines = export_bytes("atif", two).splitlines()
    assert [Trajectory.model_validate_json(line).trajectory_id for line in lines] == [
        "gemini:one",
        "gemini:two",
    ]


def test_who_says_what() -> None:
    steps = told(
        export_session(
            Message("s", "system", AT, "live", None, None, None, (Text("Be brief."),)),
            user("Why?"),
            Message("i", "user", AT, "live", None, None, None, (Context("ide", "open: a.py"),)),
            Message("t", "user", AT, "live", None, None, None, (Context("task", "Look."),)),
            assistant(Text("So.")),
            Event("e", "compaction", AT, "live", ""),
            Event("w", "warning", AT, "live", "careful", Opaque([1])),
            Event("x", "error", AT, "live", ""),
            Event("i", "info", AT, "live", ""),
        )
    )["steps"]
    assert [(step["source"], step["message"]) for step in steps] == [
        ("system", "Be brief."),
        ("user", "Why?"),
        ("system", "open: a.py"),
        ("user", "Look."),
        ("agent", "So."),
        ("system", "The conversation was compressed here."),
        ("system", "careful"),
        ("system", "error"),
    ]
    assert [step["extra"] for step in steps[-2:]] == [{"kind": "warning", "opaque": [[1]]}, {"kind": "error"}]
    assert steps[0]["timestamp"] == "2026-03-01T09:00:00.000Z"


def test_only_what_was_chosen_is_told() -> None:
    parts = (
        Thinking(None, "secret thought"),
        Text("Said."),
        call(result="secret result", arguments={"a": "secret"}),
    )
    telling = export_session(
        user("Go."),
        Message("i", "user", AT, "live", None, None, None, (Context("ide", "secret file"),)),
        assistant(*parts, Opaque({"secret": 1})),
        Event("n", "notice", AT, "live", "secret notice"),
    )
    names = export_bytes("atif", [telling], ExportOptions(tools="names"))
    assert b"secret" not in names
    assert b"read_file" in names
    none = export_bytes("atif", [telling], ExportOptions(tools="none"))
    assert b"read_file" not in none
    everything = export_bytes("atif", [telling])
    assert everything.count(b"secret") == 6


def test_a_step_of_the_agent_has_its_calls_results_and_tokens() -> None:
    later = AT + timedelta(minutes=2)
    failed = call(
        id="c2", name="shell", status="error", result=None, error="no such file", exit_code=1, at=later
    )
    (step,) = told(
        export_session(assistant(Thinking("Hm", "see"), Text("So."), call(), failed, usage=usage("r")))
    )["steps"]
    assert step["reasoning_content"] == "Hm\nsee"
    assert [one["tool_call_id"] for one in step["tool_calls"]] == ["c1", "c2"]
    assert step["tool_calls"][0]["arguments"] == {"path": "a"}
    assert step["observation"]["results"] == [
        {"source_call_id": "c1", "content": "text", "extra": {"status": "success"}},
        {
            "source_call_id": "c2",
            "content": "no such file",
            "extra": {"status": "error", "exit_code": 1, "at": "2026-03-01T09:02:00.000Z"},
        },
    ]
    assert step["metrics"] == {
        "prompt_tokens": 100,
        "completion_tokens": 15,
        "cached_tokens": 40,
        "extra": {"reasoning_tokens": 5, "cache_write_tokens": 7, "tool_tokens": 0},
    }
    assert step["llm_call_count"] == 1
    assert step["model_name"] == "gemini-2.5-pro"


def test_a_call_that_never_came_back_has_no_result() -> None:
    (step,) = told(export_session(assistant(call(status="unknown", result=None))))["steps"]
    assert "observation" not in step


def test_calls_that_share_an_id_are_told_apart() -> None:
    (step,) = told(export_session(assistant(call(result="one"), call(result="two"))))["steps"]
    results = {one["source_call_id"]: one["content"] for one in step["observation"]["results"]}
    assert results == {"c1": "one", "c1~2": "two"}
    assert [one["tool_call_id"] for one in step["tool_calls"]] == list(results)


def test_what_was_taken_back_is_counted_and_not_a_step() -> None:
    found = told(
        export_session(
            user("Wrong.", fate="rewound"),
            assistant(Text("No."), fate="rewound", usage=usage("r1")),
            user("Older.", 2, fate="compacted"),
            user("Right.", 3),
            assistant(Text("Yes."), id="b", minute=4, usage=usage("r2")),
            cost_usd=Decimal("0.25"),
        )
    )
    assert [step["message"] for step in found["steps"]] == ["Older.", "Right.", "Yes."]
    assert found["steps"][0]["extra"] == {"fate": "compacted"}
    assert "2 rewound" in found["notes"]
    assert found["final_metrics"] == {
        "total_prompt_tokens": 100,
        "total_completion_tokens": 15,
        "total_cached_tokens": 40,
        "total_cost_usd": 0.25,
        "total_steps": 3,
    }
    assert "notes" not in told(export_session(user("Right.")))


def test_a_sum_that_no_step_has_is_told_of_the_whole() -> None:
    metrics = told(export_session(assistant(Text("Yes."))))["final_metrics"]
    assert metrics["total_prompt_tokens"] == sample_session().usage.input


def test_what_was_copied_is_marked_and_has_no_tokens() -> None:
    copied, own = told(export_session(user("Old.", own=False), assistant(Text("New."), usage=usage("r"))))[
        "steps"
    ]
    assert copied["is_copied_context"]
    assert "is_copied_context" not in own
    (step,) = told(export_session(assistant(own=False, usage=usage("r"))))["steps"]
    assert "metrics" not in step


def test_a_subagent_is_inside_and_referred_to() -> None:
    child = export_session(user("Look."), key="gemini:one/child", kind="subagent").session
    started = call(child=child.key, result=None)
    parent = export_session(assistant(started, call(id="c2", child="gemini:one/unknown"))).session
    found = told(ExportSession(parent, {child.key: ExportSession(child)}))
    one, other = found["steps"][0]["observation"]["results"]
    assert one["subagent_trajectory_ref"] == [{"trajectory_id": "gemini:one/child"}]
    assert "subagent_trajectory_ref" not in other
    assert found["subagent_trajectories"][0]["steps"][0]["message"] == "Look."


def test_pictures_are_pictures_and_other_files_are_named() -> None:
    files = (
        Attachment(media_type="image/png", data="aGk="),
        Attachment(media_type="image/webp", path="a.webp"),
        Attachment(media_type="image/svg+xml", data="PHN2Zz4="),
        Attachment(path="notes.txt"),
        Attachment(),
    )
    message = Message("u", "user", AT, "live", "See.", None, None, (Text("See."), *files))
    (step,) = told(export_session(message))["steps"]
    assert step["message"] == [
        {"type": "text", "text": "See."},
        {"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,aGk="}},
        {"type": "image", "source": {"media_type": "image/webp", "path": "a.webp"}},
        {"type": "text", "text": "[attached: image/svg+xml]"},
        {"type": "text", "text": "[attached: notes.txt]"},
        {"type": "text", "text": "[attached: a file]"},
    ]


@pytest.mark.parametrize("depth", [10, 60, 100, 900])
def test_deep_arguments_are_valid(depth: int) -> None:
    deep: Any = "x"
    for level in range(depth):
        deep = {"a": deep} if level % 2 else [deep]
    (step,) = told(export_session(assistant(call(arguments={"deep": deep}), Opaque(deep))))["steps"]
    arguments = step["tool_calls"][0]["arguments"]
    assert json.dumps(arguments).count("[") == depth // 2
    assert ("json" in arguments) == (depth > 60)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TIMELINES)
def test_any_timeline_is_valid(timeline: list[Entry]) -> None:
    told(export_session(*timeline))
    told(export_session(*timeline), ExportOptions())
