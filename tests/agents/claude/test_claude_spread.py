"""Messages that a client spread over the keys of an object, character by character."""

import json
from pathlib import Path
from typing import Any

import pytest

from retold import Message, Session, Text, Thinking, ToolCall
from retold.agents.registry import read
from retold.model.session import Part

Json = dict[str, Any]
SESSION = "5b1f0c7e-2a94-4d3b-9c61-7e0d4f82a6b3"
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 70, "output_tokens": 1}
START: Json = {
    "type": "message_start",
    "message": {"id": "msg_1", "model": "claude-x", "content": [], "usage": USAGE},
}
TEXT: list[Json] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I will "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look\u2028it up."}},
    {"type": "content_block_stop", "index": 0},
]
END: list[Json] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 41}},
    {"type": "message_stop"},
]


def stream(*events: Json) -> str:
    """Return events as the API sends them."""
    return "".join(
        f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events
    )


def spread(text: str) -> Json:
    return {str(place): character for place, character in enumerate(text)}


def spread_units(text: str) -> Json:
    """Spread a text as JavaScript does: by units of UTF-16, of which an emoji has two."""
    data = text.encode("utf-16-le")
    units = (data[place : place + 2] for place in range(0, len(data), 2))
    return {str(place): unit.decode("utf-16-le", "surrogatepass") for place, unit in enumerate(units)}


def line(kind: str, name: str, **more: Any) -> Json:
    times = {"timestamp": "2026-03-01T09:00:01.000Z", "version": "2.1.81", "entrypoint": "sdk-ts"}
    return {"type": kind, "uuid": name, "sessionId": SESSION, "parentUuid": None, **times, **more}


def session_of(tmp_path: Path, *lines: Json) -> Session:
    asked = line("user", "u1", message={"role": "user", "content": "How high is the tide?"})
    file = tmp_path / f"{SESSION}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (asked, *lines)), encoding="utf-8")
    (session,) = read(file)
    return session


def parts(session: Session) -> tuple[Part, ...]:
    (message,) = [
        entry for entry in session.timeline if isinstance(entry, Message) and entry.role == "assistant"
    ]
    return message.parts


def test_a_stream_in_place_of_a_message_is_the_message(tmp_path: Path) -> None:
    message = {
        **spread(stream(START, *TEXT, *END)),
        "role": "assistant",
        "content": [],
        "usage": {"input_tokens": 0},
    }
    found = session_of(tmp_path, line("assistant", "a1", message=message))
    assert parts(found) == (Text("I will look\u2028it up."),)
    assert (found.usage.requests, found.usage.input, found.usage.cached, found.usage.output) == (
        1,
        73,
        70,
        41,
    )
    assert (found.models, found.problems, found.coverage.opaque) == (("claude-x",), (), 0)


def test_a_stream_in_place_of_a_line_is_its_message(tmp_path: Path) -> None:
    text = stream(START, *TEXT, *END)
    for spread_line in (line("assistant", "a1", **spread(text)), spread(text)):
        found = session_of(tmp_path, spread_line)
        assert parts(found) == (Text("I will look\u2028it up."),)
        assert (found.usage.output, found.problems) == (41, ())


def test_thoughts_and_calls_grow_by_deltas(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
    events: list[Json] = [
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "Tides."},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "c2ln"},
        },
        {"type": "content_block_start", "index": 1, "content_block": call},
        *(
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in ('{"command": "ti', 'de noon"}')
        ),
    ]
    found = session_of(tmp_path, line("assistant", "a1", message=spread(stream(START, *events, *END))))
    thought, called = parts(found)
    assert (thought, found.problems) == (Thinking(None, "Tides.", None, "c2ln"), ())
    assert isinstance(called, ToolCall)
    assert (called.id, called.name, called.arguments) == ("toolu_1", "Bash", {"command": "tide noon"})


def test_a_stream_that_breaks_off_keeps_what_came(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
    begun = {"type": "content_block_start", "index": 1, "content_block": call}
    piece = {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"com'},
    }
    text = stream(START, *TEXT, begun, piece) + "event: message_delta\ndata: {"
    found = session_of(tmp_path, line("assistant", "a1", message=spread(text)))
    said, called = parts(found)
    assert isinstance(called, ToolCall)
    assert (said, called.arguments) == (Text("I will look\u2028it up."), {"partial_json": '{"com'})
    assert [problem.message for problem in found.problems] == ["an event of type None in a stream"]


def test_what_no_stream_knows_is_reported_by_its_kind(tmp_path: Path) -> None:
    odd = {"type": "content_block_delta", "index": 0, "delta": {"type": "smell_delta", "smell": "x" * 5000}}
    found = session_of(
        tmp_path, line("assistant", "a1", message=spread(stream(START, *TEXT, odd, {"type": "surprise"})))
    )
    assert [problem.message for problem in found.problems] == [
        "a delta of type 'smell_delta' in a stream",
        "an event of type 'surprise' in a stream",
    ]


def test_a_string_that_is_no_stream_is_the_text_of_the_message(tmp_path: Path) -> None:
    text = "<html>Bad gateway</html>"
    found = session_of(tmp_path, line("assistant", "a1", message=spread(text)))
    assert parts(found) == (Text(text),)
    assert [(problem.code, problem.message) for problem in found.problems] == [
        ("unexpected-shape", "a message of 24 characters, each under a key of its own")
    ]


def test_the_session_of_a_request_is_a_known_field(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": "Four metres."}]}
    found = session_of(tmp_path, line("assistant", "a1", message=said, requestSessionId=SESSION))
    assert (found.problems, found.coverage.opaque) == ((), 0)
    assert found.timeline[-1].extra == {"requestSessionId": SESSION}


def test_an_emoji_that_is_spread_over_two_keys_is_one_character(tmp_path: Path) -> None:
    said = "\U0001f30a\U0001f30a at 9:00, \u6f22 \U0001f426."
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}}
    message = spread_units(stream(START, TEXT[0], delta, TEXT[-1], *END))
    found = session_of(tmp_path, line("assistant", "a1", message=message))
    assert parts(found) == (Text(said),)
    assert found.problems == ()


@pytest.mark.parametrize(
    ("units", "told"),
    [
        ({"0": "a", "1": "\ud83c", "2": "\udf0a"}, "a\U0001f30a"),
        ({"0": "\ud83c", "1": "\udf0a"}, "\U0001f30a"),
        ({"0": "a", "1": "\ud83c", "2": "b"}, "a\ufffdb"),
        ({"0": "a", "1": "\ud83c"}, "a\ufffd"),
        ({"0": "a", "1": "\udf0a", "2": "\ud83c"}, "a\ufffd\ufffd"),
    ],
)
def test_half_a_character_without_the_other_is_told_as_such(tmp_path: Path, units: Json, told: str) -> None:
    found = session_of(tmp_path, line("assistant", "a1", message={**units, "role": "assistant"}))
    assert [part.text for part in parts(found) if isinstance(part, Text)] == [told]
    assert ("replaced-bytes" in {one.code for one in found.problems}) == ("\ufffd" in told)
