"""The tokens of Codex responses: a record that stands there twice, and a running total of which one figure falls."""

import json
from pathlib import Path

import pytest

from retold.agents.registry import read
from retold.model.session import Message
from support.conversation_files import FORMS, Json, at, turns


def usage_record(second: int, response: str) -> Json:
    figures = {
        "input_tokens": 700,
        "cached_input_tokens": 0,
        "output_tokens": 30,
        "reasoning_output_tokens": 0,
    }
    payload = {"response_id": response, "usage": {**figures, "total_tokens": 730}}
    return {"timestamp": at(second), "type": "token_usage_record", "payload": payload}


@pytest.mark.parametrize(
    ("responses", "requests"), [(["r1"], 2), (["r1", "r1"], 2), (["r1", "r2"], 3), (["r1", "r2", "r1"], 3)]
)
def test_a_response_that_is_recorded_twice_counts_once(
    tmp_path: Path, responses: list[str], requests: int
) -> None:
    file = FORMS["codex"].write(tmp_path, 1, turns("herons"))
    with file.open("a") as end:
        for second, response in enumerate(responses, 20):
            end.write(json.dumps(usage_record(second, response)) + "\n")
    (session,) = read(file)
    assert session.usage.requests == requests
    assert session.usage.input == 100 + 700 * (requests - 1)
    assert session.counts.messages == 4 + requests - 1


def test_a_total_of_which_one_figure_falls_is_another_threads(tmp_path: Path) -> None:
    file = FORMS["codex"].write(tmp_path, 1, turns("herons", "otters"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    (_, later) = [line["payload"]["info"] for line in lines if line["payload"].get("type") == "token_count"]
    later["total_token_usage"] = {"input_tokens": 900, "output_tokens": 4, "total_tokens": 904}
    later["last_token_usage"] = {"input_tokens": 70, "output_tokens": 3, "total_tokens": 73}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (session,) = read(file)
    assert (session.usage.input, session.usage.output) == (100 + 70, 10 + 3)


def test_a_total_that_fell_counts_nothing_where_nothing_tells_the_last_response(tmp_path: Path) -> None:
    file = FORMS["codex"].write(tmp_path, 1, turns("herons", "otters"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    (_, later) = [line["payload"]["info"] for line in lines if line["payload"].get("type") == "token_count"]
    later["total_token_usage"] = {"input_tokens": 60, "output_tokens": 4, "total_tokens": 64}
    del later["last_token_usage"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (session,) = read(file)
    assert (session.usage.requests, session.usage.input, session.usage.output) == (1, 100, 10)


@pytest.mark.parametrize("number", [1, 2, 3, 9])
def test_a_rollback_of_more_turns_than_there_are_removes_all(tmp_path: Path, number: int) -> None:
    file = FORMS["codex"].write(tmp_path, 1, turns("herons", "otters"))
    rollback = {"type": "thread_rolled_back", "num_turns": number}
    with file.open("a") as end:
        end.write(json.dumps({"timestamp": at(30), "type": "event_msg", "payload": rollback}) + "\n")
    (session,) = read(file)
    prompts = [
        entry.fate for entry in session.timeline if isinstance(entry, Message) and entry.prompt is not None
    ]
    assert prompts == {1: ["live", "rewound"]}.get(number, ["rewound", "rewound"])
