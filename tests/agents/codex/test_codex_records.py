"""Codex 0.166 records each response by its id: a record that stands there twice is one response."""

import json
from pathlib import Path

import pytest

from retold.agents.registry import read
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
