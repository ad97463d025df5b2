"""OpenTelemetry spans: both encodings say the same, and every conversation is one well-formed tree."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from syrupy.assertion import SnapshotAssertion

from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.session import Attachment, Context, Entry, Event, Message, Opaque, Text, Thinking, ToolCall
from support import cases, export_inputs
from support.dialogue_sessions import (
    AT,
    TIMELINES,
    TIMES,
    assistant,
    call,
    export_session,
    sample_session,
    usage,
    user,
)
from support.export_inputs import EVERYTHING, export_bytes
from support.otlp import decode_json, decode_proto, span_attributes, span_tree, spans
from support.receiver_sessions import FAILING, receiver_sessions, total_tokens

OPERATIONS = {"invoke_agent", "turn", "chat", "execute_tool"}
ROLES = {"system", "user", "assistant", "tool"}


def told(telling: ExportSession, choice: ExportOptions = EVERYTHING) -> list[Any]:
    """The spans of a telling, after both encodings were found to say the same, and the tree to be one."""
    proto = decode_proto(export_bytes("otel-proto", [telling], choice))
    (line,) = export_bytes("otel", [telling], choice).splitlines()
    text = decode_json(line)
    assert spans(text) == spans(proto)
    for one, other in zip(text.resource_spans, proto.resource_spans, strict=False):
        assert (one.resource, one.schema_url) == (other.resource, other.schema_url)
        assert one.scope_spans[0].scope == other.scope_spans[0].scope
    check(telling, spans(proto))
    return spans(proto)


def check(telling: ExportSession, found: list[Any]) -> None:
    by_id = {span.span_id: span for span in found}
    assert len(by_id) == len(found)
    assert len({span.trace_id for span in found}) == 1
    assert [span.name for span in found if not span.parent_span_id] == [
        f"invoke_agent {telling.session.agent}"
    ]
    for span in found:
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert span.start_time_unix_nano <= span.end_time_unix_nano < 2**63
        assert span_attributes(span)["gen_ai.conversation.id"] == telling.session.key
        assert span_attributes(span)["gen_ai.operation.name"] in OPERATIONS
        assert span_attributes(span)["gen_ai.agent.name"]
        assert bool(span.status.code) == ("error.type" in span_attributes(span))
        if span.parent_span_id:
            above = by_id[span.parent_span_id]
            assert above.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= above.end_time_unix_nano
            assert (
                ABOVE[span_attributes(span)["gen_ai.operation.name"]]
                == span_attributes(above)["gen_ai.operation.name"]
            )
        for event in span.events:
            assert span.start_time_unix_nano <= event.time_unix_nano <= span.end_time_unix_nano


ABOVE = {"turn": "invoke_agent", "chat": "turn", "execute_tool": "turn", "invoke_agent": "execute_tool"}
"""In which span each stands."""


def sent(found: list[Any], figure: str = "input") -> int:
    return sum(span_attributes(span).get(f"gen_ai.usage.{figure}_tokens", 0) for span in found)


def called(telling: ExportSession) -> int:
    own = [
        part
        for entry in telling.session.timeline
        if isinstance(entry, Message) and entry.own
        for part in entry.parts
        if isinstance(part, ToolCall)
    ]
    return len(own) + sum(called(child) for child in telling.subagents.values())


def is_whole(telling: ExportSession) -> None:
    """Nothing is missing and nothing told twice: tokens and calls are those of the sessions."""
    found = told(telling)
    assert sent(found) == total_tokens(telling, "input")
    assert sum(span.name.startswith("execute_tool ") for span in found) == called(telling)


def test_every_conversation_of_the_demo_is_a_tree(tmp_path: Path) -> None:
    found = export_inputs.demo_sessions(tmp_path)
    assert sum(len(telling.subagents) for telling in found) == 4
    for telling in found:
        is_whole(telling)


@pytest.mark.shared
def test_every_conversation_of_the_true_home_is_a_tree(shared: Path, tmp_path: Path) -> None:
    found = export_inputs.generated_sessions(shared, tmp_path)
    assert found
    for telling in found:
        is_whole(telling)


def test_what_a_receiver_gets_is_one_trace_per_session_with_the_same_sums(tmp_path: Path) -> None:
    """`make test-heavy` sends the same bytes to a real receiver."""
    sessions = receiver_sessions(tmp_path)
    content = export_bytes("otel-proto", sessions)
    assert export_bytes("otel-proto", sessions) == content  # sent twice, spans are stored once
    found = spans(decode_proto(content))
    by_id = {span.span_id: span for span in found}
    assert len(by_id) == len(found)
    traces: dict[bytes, list[Any]] = {}
    for span in found:
        traces.setdefault(span.trace_id, []).append(span)
        assert not span.parent_span_id or by_id[span.parent_span_id].trace_id == span.trace_id
        for kind in ("input", "output"):
            messages = json.loads(span_attributes(span).get(f"gen_ai.{kind}.messages", "[]"))
            assert all(message["role"] in ROLES and message["parts"] for message in messages)
    roots = {span_attributes(trace[0])["gen_ai.conversation.id"]: trace for trace in traces.values()}
    assert len(roots) == len(traces) == len(sessions)
    for telling in sessions[1:]:
        trace = roots[telling.session.key]
        check(telling, trace)
        assert sent(trace) == total_tokens(telling, "input")
        assert sent(trace, "output") == total_tokens(telling, "output", "reasoning")
    failed = [span.name for span in roots[FAILING] if span.status.code]
    assert [name.partition(" ")[0] for name in failed] == ["execute_tool"]


@cases.every_case
def test_every_case_is_a_tree(case: str, tmp_path: Path) -> None:
    for telling in export_inputs.case_sessions(case, tmp_path):
        is_whole(telling)


def test_the_sample_as_spans(snapshot: SnapshotAssertion) -> None:
    content = export_bytes("otel", [ExportSession(sample_session())], ExportOptions(thoughts=True))
    about = json.loads(content)
    assert span_tree(decode_json(content)) == snapshot(name="tree")
    assert json.dumps(about, indent=1, ensure_ascii=False) == snapshot(name="json")


def test_a_subagent_stands_below_the_call_that_started_it(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    (telling,) = [
        one
        for one in export_inputs.demo_sessions(tmp_path)
        if one.subagents and one.session.agent == "gemini"
    ]
    content = export_bytes("otel-proto", [telling], ExportOptions())
    assert span_tree(decode_proto(content)) == snapshot


def test_several_conversations_in_one_file_are_one_request_each_or_one_in_all() -> None:
    two = [export_session(user("One?"), key="gemini:one"), export_session(user("Two?"), key="gemini:two")]
    lines = export_bytes("otel", two).splitlines()
    assert [len(spans(decode_json(line))) for line in lines] == [2, 2]
    assert len(decode_proto(export_bytes("otel-proto", two)).resource_spans) == 2


def test_a_long_conversation_is_written_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retold.export.formats.otel_proto.BATCH", 100)
    request = decode_proto(
        export_bytes("otel-proto", [export_session(user("One?"), assistant(Text("Yes.")))])
    )
    assert len(request.resource_spans) == len(spans(request)) == 3
    assert len({str(about.resource) for about in request.resource_spans}) == 1


@pytest.mark.parametrize("form", ["atif", "otel", "otel-proto"])
def test_a_conversation_is_written_before_the_next_is_read(form: str) -> None:
    many = [assistant(call(id=str(place), result="x" * 1000), id=str(place)) for place in range(100)]

    def conversations() -> Iterator[ExportSession]:
        yield export_session(*many)
        raise AssertionError("the next one was asked for")

    first: list[bytes] = []
    with pytest.raises(AssertionError, match="the next one"):
        deque(map(first.append, FORMATS[form].encode(conversations(), ExportOptions())))
    assert b"".join(first) == export_bytes(form, [export_session(*many)], ExportOptions())
    assert form == "otel-proto" or max(map(len, first)) < 10_000 < sum(map(len, first))


def test_the_same_conversation_has_the_same_ids_when_it_has_grown() -> None:
    before = told(export_session(user("One?"), assistant(call(), Text("Yes."))))
    after = told(
        export_session(
            user("One?"), assistant(call(), Text("Yes.")), user("Two?", 5), assistant(id="b", minute=6)
        )
    )
    assert {span.span_id for span in before} < {span.span_id for span in after}
    assert {span.trace_id for span in before} == {span.trace_id for span in after}


def test_records_that_share_an_id_have_spans_of_their_own() -> None:
    found = told(
        export_session(
            user("Go.", id=None), assistant(call(), call()), user("Go.", 3, id=None), assistant(call())
        )
    )
    assert len(found) == 1 + 2 + 2 + 3


def test_what_a_request_tells() -> None:
    found = told(
        export_session(
            user("Why?"),
            assistant(Thinking("Hm", "let me see"), call(), usage=usage("r1"), response="resp-1"),
            assistant(Text("So."), minute=2, id="b", usage=usage("r2")),
            models=("gemini-2.5-pro",),
        )
    )
    first, second = [span_attributes(span) for span in found if span.name == "chat gemini-2.5-pro"]
    assert first["gen_ai.provider.name"] == "gcp.gen_ai"
    assert first["gen_ai.request.model"] == first["gen_ai.response.model"] == "gemini-2.5-pro"
    assert first["gen_ai.response.id"] == "resp-1"
    figures = {name: value for name, value in first.items() if name.startswith("gen_ai.usage.")}
    assert figures == {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 15,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 5,
    }
    assert json.loads(first["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Why?"}]}
    ]
    assert json.loads(first["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "finish_reason": "tool_call",
            "parts": [
                {"type": "reasoning", "content": "Hm\nlet me see"},
                {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": "a"}},
            ],
        }
    ]
    (given,) = json.loads(second["gen_ai.input.messages"])
    assert given == {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "c1", "response": "text"}],
    }
    assert json.loads(second["gen_ai.output.messages"])[0]["finish_reason"] == "stop"


def test_a_request_in_several_pieces_is_one_span_and_counts_once() -> None:
    pieces = [
        assistant(call(id=f"c{place}"), id=f"a{place}", response="r", usage=usage("r")) for place in range(3)
    ]
    result = Message("u", "user", AT, "live", None, None, None, (Context("tool_result", None, "c0"),))
    found = told(export_session(user("Go."), pieces[0], result, *pieces[1:]))
    assert [span.name for span in found].count("chat gemini-2.5-pro") == 1
    assert sent(found) == 100


def test_a_request_that_several_answers_name_counts_once() -> None:
    twice = [assistant(Text("Yes."), id=name, response=name, usage=usage("r")) for name in ("a", "b")]
    found = told(export_session(user("Go."), *twice))
    assert [span.name for span in found].count("chat gemini-2.5-pro") == 2
    assert sent(found) == 100


def test_what_was_taken_back_is_told_as_such_and_not_put_to_the_model_again() -> None:
    found = told(
        export_session(
            Event("n", "notice", AT, "live", "psst"),
            user("Wrong.", fate="rewound"),
            assistant(call(), fate="rewound", usage=usage("r1")),
            user("Right.", 5),
            assistant(Text("Yes."), minute=6, id="b", usage=usage("r2")),
        )
    )
    rewound = [span.name for span in found if span_attributes(span).get("retold.fate") == "rewound"]
    assert sorted(rewound) == ["chat gemini-2.5-pro", "execute_tool read_file", "turn"]
    (last,) = [
        span_attributes(span)
        for span in found
        if span.name.startswith("chat") and "retold.fate" not in span_attributes(span)
    ]
    assert [one["parts"][0]["content"] for one in json.loads(last["gen_ai.input.messages"])] == ["Right."]
    assert sent(found) == 200


def test_what_was_copied_from_another_session_is_not_told_again() -> None:
    found = told(
        export_session(
            user("Old.", own=False), assistant(call(), own=False, usage=usage("r")), user("New.", 4)
        )
    )
    assert [span.name for span in found] == ["turn", "invoke_agent gemini"]


@pytest.mark.parametrize(
    ("more", "status", "kind"),
    [
        ({"status": "error", "error": "no such\nfile"}, "no such file", "tool_error"),
        ({"status": "error"}, "error", "tool_error"),
        ({"status": "cancelled"}, "cancelled", "cancelled"),
        ({"status": "success", "exit_code": 1}, "", None),
        ({"status": "unknown"}, "", None),
    ],
)
def test_what_became_of_a_call(more: dict[str, Any], status: str, kind: str | None) -> None:
    (span,) = [
        one for one in told(export_session(assistant(call(**more)))) if one.name == "execute_tool read_file"
    ]
    assert (span.status.message, span.status.code) == (status, 2 if kind else 0)
    assert span_attributes(span).get("error.type") == kind
    assert span_attributes(span).get("process.exit.code") == more.get("exit_code")


def test_what_happened_is_an_event_of_its_turn() -> None:
    happened = Event("e", "compaction", AT + timedelta(minutes=1), "live", "")
    quiet = Event("n", "notice", AT, "live", "psst", Opaque({"odd": 1}))
    empty = Event("i", "info", AT, "live", "")
    everything = told(export_session(quiet, user("Go."), happened, empty))[0]
    assert [event.name for event in everything.events] == ["retold.notice", "retold.compaction"]
    assert span_attributes(everything.events[0]) == {"retold.text": "psst", "retold.opaque": '{"odd":1}'}
    usual = told(export_session(quiet, user("Go."), happened, empty), ExportOptions())[0]
    assert [event.name for event in usual.events] == ["retold.compaction"]
    assert usual.span_id == everything.span_id


def test_only_what_was_chosen_is_told() -> None:
    parts = (
        Thinking(None, "secret thought"),
        Text("Said."),
        call(result="secret result", arguments={"a": "secret"}),
    )
    telling = export_session(user("Go."), assistant(*parts))
    names = export_bytes("otel", [telling], ExportOptions(tools="names"))
    assert b"secret" not in names
    assert b"execute_tool read_file" in names
    none = export_bytes("otel", [telling], ExportOptions(tools="none"))
    assert b"read_file" not in none
    assert b"Said." in none


def test_a_document_says_whether_secrets_were_taken_out() -> None:
    for is_redacted in (True, False):
        content = export_bytes("otel-proto", [export_session()], ExportOptions(is_redacted=is_redacted))
        (about,) = decode_proto(content).resource_spans
        (said,) = [
            pair.value.bool_value for pair in about.resource.attributes if pair.key == "retold.redacted"
        ]
        assert said == is_redacted


def test_attachments_and_what_nobody_understands_are_parts() -> None:
    image = Attachment(media_type="image/png", data="aGk=")
    file = Attachment(path="notes.txt")
    message = Message(
        "u", "user", AT, "live", "See.", None, None, (Text("See."), image, file, Opaque({"x": [1]}))
    )
    (turn, _root) = told(export_session(message))
    (given,) = json.loads(span_attributes(turn)["gen_ai.input.messages"])
    assert given["parts"][1:] == [
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGk="},
        {"type": "uri", "mime_type": None, "modality": "document", "uri": "notes.txt"},
        {"type": "opaque", "value": {"x": [1]}},
    ]


@pytest.mark.parametrize(
    "timeline",
    [
        (),
        (user("No time.", None), assistant(call(), minute=None)),
        (user("Later.", 50), assistant(call(at=AT), minute=3)),
        (assistant(minute=9), user("First.", 2)),
    ],
)
@pytest.mark.parametrize(
    "started_at", [None, AT, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
)
@pytest.mark.parametrize(
    "ended_at", [None, datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
)
def test_whatever_the_times_are_children_lie_in_their_parents(
    timeline: tuple[Entry, ...], started_at: datetime | None, ended_at: datetime | None
) -> None:
    told(export_session(*timeline, started_at=started_at, ended_at=ended_at))


def test_a_request_lasts_from_what_it_was_asked_with_to_its_answer() -> None:
    later = AT + timedelta(minutes=3)
    found = told(
        export_session(user("Go."), assistant(call(at=later)), assistant(Text("Yes."), minute=4, id="b"))
    )
    lasted = {
        (span.name, (span.start_time_unix_nano - found[-1].start_time_unix_nano) // 60_000_000_000): (
            span.end_time_unix_nano - span.start_time_unix_nano
        )
        // 60_000_000_000
        for span in found
    }
    assert lasted == {
        ("chat gemini-2.5-pro", 0): 1,
        ("execute_tool read_file", 1): 2,
        ("chat gemini-2.5-pro", 3): 1,
        ("turn", 0): 4,
        ("invoke_agent gemini", 0): 4,
    }


@pytest.mark.parametrize("given", [0, 2**63 - 1, 2**63, 10**30, -1, -(2**63) - 1])
def test_figures_of_any_size_are_told(given: int) -> None:
    found = told(export_session(assistant(usage=usage("r", given=given))))
    assert {str(span_attributes(span).get("gen_ai.usage.input_tokens", given)) for span in found} == {
        str(given)
    }


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("gemini-2.5-pro", "gcp.gen_ai"),
        ("models/Gemini-3-flash", "gcp.gen_ai"),
        ("claude-opus-4-6", "anthropic"),
        ("gpt-5.5", "openai"),
        ("o3", "openai"),
        ("openrouter/x-ai/grok-4", "x_ai"),
        ("llama-4", "unknown"),
        (None, "unknown"),
    ],
)
def test_who_makes_a_model(model: str | None, maker: str) -> None:
    found = told(export_session(assistant(model=model)))
    assert span_attributes(found[0])["gen_ai.provider.name"] == maker
    assert found[0].name == (f"chat {model}" if model else "chat")


def test_a_sum_that_no_request_has_is_told_of_the_whole() -> None:
    root = told(export_session(assistant(Text("Yes."))))[-1]
    assert span_attributes(root)["gen_ai.usage.input_tokens"] == sample_session().usage.input


def test_a_subagent_that_two_calls_name_is_told_once() -> None:
    child = export_session(user("Look."), key="gemini:one/child", kind="subagent").session
    parent = export_session(assistant(call(child=child.key), call(id="c2", child=child.key))).session
    found = told(ExportSession(parent, {child.key: ExportSession(child)}))
    assert sum(span.name == "invoke_agent gemini" for span in found) == 2


def test_what_it_cost_is_told_of_the_whole() -> None:
    root = told(export_session(user("Go."), cost_usd=Decimal("0.0123"), extra={"version": ["1.0", "1.1"]}))[
        -1
    ]
    assert span_attributes(root)["retold.cost_usd"] == "0.0123"
    assert span_attributes(root)["gen_ai.agent.version"] == "1.1"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TIMELINES, TIMES, TIMES)
def test_any_timeline_is_a_tree(
    timeline: list[Entry], started_at: datetime | None, ended_at: datetime | None
) -> None:
    told(export_session(*timeline, started_at=started_at, ended_at=ended_at))
    told(export_session(*timeline, started_at=started_at, ended_at=ended_at), ExportOptions())


@pytest.fixture
def deep() -> Callable[[int], Any]:
    def nested(depth: int) -> Any:
        value: Any = "x"
        for level in range(depth):
            value = {"a": value} if level % 2 else [value]
        return value

    return nested


@pytest.mark.parametrize("depth", [100, 900])
def test_deep_arguments_are_told(deep: Callable[[int], Any], depth: int) -> None:
    found = told(export_session(assistant(call(arguments={"deep": deep(depth)}))))
    assert span_attributes(found[1])["gen_ai.tool.call.arguments"].count("[") == depth // 2
