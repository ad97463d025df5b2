"""Files with a `history`: sessions by their names in `chats`, checkpoints elsewhere."""

import json
from pathlib import Path

import pytest

from retold.agents import gemini as agent
from retold.agents.protocol import Source
from retold.model.problem import Problem
from support.gemini_home import ROOT, GeminiHome, sha
from support.person import Person

TURNS = [
    {"role": "user", "parts": [{"text": "How high is the tide?"}]},
    {"role": "model", "parts": [{"text": "Two metres."}]},
]
HISTORY = json.dumps({"history": TURNS})
LIST = json.dumps(TURNS)
NAME = "session-2025-09-18T02-45-3b44bc68"


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    return GeminiHome(tmp_path / "ann")


def facts(path: Path) -> tuple[str, str | None, str, str]:
    readings = agent.read(Source(path))
    assert not isinstance(readings, Problem)
    session = agent.join(readings)
    return session.key, session.native_id, session.kind, readings[0].format


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (f"chats/{NAME}.json", HISTORY, (f"gemini:{NAME}", NAME, "main", "gemini-history")),
        (
            "chats/session-test.json",
            HISTORY,
            ("gemini:session-test", "session-test", "main", "gemini-history"),
        ),
        ("chats/tides.json", HISTORY, ("gemini:almanac/tides", None, "checkpoint", "gemini-checkpoint")),
        (
            "checkpoint-tides.json",
            HISTORY,
            ("gemini:almanac/checkpoint-tides", None, "checkpoint", "gemini-checkpoint"),
        ),
        (
            "checkpoints/tides.json",
            HISTORY,
            ("gemini:almanac/checkpoint-tides", None, "checkpoint", "gemini-checkpoint"),
        ),
        (
            "checkpoints/tides.json",
            LIST,
            ("gemini:almanac/checkpoint-tides", None, "checkpoint", "gemini-checkpoint"),
        ),
        (
            f"checkpoints/{NAME}.json",
            HISTORY,
            (f"gemini:almanac/checkpoint-{NAME}", None, "checkpoint", "gemini-checkpoint"),
        ),
        (
            "checkpoints/2025-09-18-tides-replace.json",
            json.dumps({"history": [], "clientHistory": TURNS, "toolCall": {"name": "replace", "args": {}}}),
            ("gemini:almanac/2025-09-18-tides-replace", None, "checkpoint", "gemini-restore-point"),
        ),
    ],
)
def test_the_place_of_a_history_tells_what_it_is(
    made: GeminiHome, path: str, text: str, expected: tuple[str, str | None, str, str]
) -> None:
    assert facts(made.write(f"tmp/almanac/{path}", text)) == expected


def test_list_shows_the_session_and_events_finds_it(made: GeminiHome) -> None:
    made.mark("almanac", ROOT)
    for project in (sha(ROOT), "almanac"):
        made.write(f"tmp/{project}/chats/{NAME}.json", HISTORY)
        made.write(f"tmp/{project}/checkpoints/tides.json", HISTORY)
    person = Person(made.folder)
    (session,) = person.run("list", "--json").objects
    assert (session["key"], session["native_id"], session["kind"]) == (f"gemini:{NAME}", NAME, "main")
    assert (session["project"]["root"], session["project"]["native_key"]) == (ROOT, "almanac")
    assert len(session["sources"]) == 2
    found = person.run("events", NAME, "--json").objects
    assert [(event["event"], event["session"]) for event in found] == [
        ("session_start", f"gemini:{NAME}"),
        ("user_prompt", f"gemini:{NAME}"),
        ("session_end", f"gemini:{NAME}"),
    ]
    assert all(event["at_derived"] and event["at"].startswith("2025-09-18T02:45") for event in found)
    (saved,) = [one for one in person.run("list", "--all", "--json").objects if one["kind"] == "checkpoint"]
    assert (saved["key"], saved["project"]["root"]) == ("gemini:almanac/checkpoint-tides", ROOT)


def test_files_of_such_a_name_share_the_cluster_of_their_session() -> None:
    assert agent.cluster_of(NAME) == agent.cluster_of("3b44bc68-3b2d-4f68-9a01-5d2e8c4b6f13")
