"""Each request counts once in the ledger of an archive, whatever the files do with it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from retold.model import FIGURES
from retold.synchronization.update import SyncOptions, update
from support.gemini_home import ROOT, GeminiHome, Json, at, gemini, metadata, user
from support.home_ledgers import ledger_from_archive

CLAUDE_SESSION = "5b1f0c7e-2a94-4d3b-9c61-7e0d4f82a6b{}"


class Counted(NamedTuple):
    """A request in the ledger, without its name."""

    key: str
    kind: str
    model: str | None
    at: int
    figures: dict[str, int | None]


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    return GeminiHome(tmp_path / "ann")


def ledger(home: Path, excluded: Sequence[str] = ()) -> list[Counted]:
    """Sync a new archive beside a home and return its own requests, the earliest first."""
    folder = str(home.parent / "archive")
    update(
        SyncOptions(folder, {"HOME": str(home)}, excluded=excluded), lambda: None, lambda _done, _size: None
    )
    found: list[Counted] = []
    for _, key, kind, _, model, moment, *rest in ledger_from_archive(folder):
        *figures, estimated = rest
        assert not estimated
        found.append(Counted(key, kind, model, moment, dict(zip(FIGURES, figures, strict=True))))
    return sorted(found, key=lambda one: (one.at, one.key))


def minutes(requests: Sequence[Counted]) -> list[int]:
    """Return the minutes past nine at which requests were made."""
    return [one.at // 60_000_000 % 60 for one in requests]


def write_claude(home: Path, number: int, lines: Sequence[Json]) -> None:
    path = home / ".claude" / "projects" / "-x" / f"{CLAUDE_SESSION.format(number)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def claude_line(session: int, place: int, minute: int, **more: Any) -> Json:
    return {
        "uuid": f"line-{place}",
        "parentUuid": f"line-{place - 1}" if place else None,
        "sessionId": CLAUDE_SESSION.format(session),
        "timestamp": at(minute),
        "cwd": "/x",
        **more,
    }


def asked(session: int, place: int, minute: int) -> Json:
    return claude_line(session, place, minute, type="user", message={"role": "user", "content": "please"})


def answered(session: int, place: int, minute: int, message_id: str = "msg_1") -> Json:
    usage = {
        "input_tokens": 3,
        "output_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 7,
    }
    message = {"id": message_id, "model": "claude-x", "role": "assistant", "type": "message", "usage": usage}
    content = [{"type": "text", "text": "done"}]
    return claude_line(session, place, minute, type="assistant", message={**message, "content": content})


# One conversation -------------------------------------------------------------------------------------------------


def test_of_versions_that_disagree_the_last_counts_but_no_excerpt_of_another(made: GeminiHome) -> None:
    first = gemini("g", 2, "there")
    second = {**first, "content": "or here", "tokens": {**first["tokens"], "output": 99}, "model": "gemini-x"}
    without_calls = {key: value for key, value in first.items() if key != "toolCalls"}
    made.lines("almanac", 1, 1, [user("u", 1, "hello"), first, second, without_calls])
    (request,) = ledger(made.folder)
    assert (request.model, request.figures["output"]) == ("gemini-x", 99)


def test_an_answer_without_words_counts_for_nothing_beside_a_log_of_prompts(made: GeminiHome) -> None:
    made.mark("almanac", ROOT)
    made.lines("almanac", 1, 1, [gemini("g", 2, "")])
    made.logs("almanac", [(1, "hello")])
    assert ledger(made.folder) == []


def test_an_answer_that_a_list_repeats_under_another_id_counts_once(made: GeminiHome) -> None:
    answer = gemini("g1", 2, "there")
    copy = {key: value for key, value in answer.items() if key != "model"} | {"id": "g2"}
    made.lines("almanac", 1, 1, [user("u", 1, "hello"), answer, {"$set": {"messages": [copy]}}])
    (request,) = ledger(made.folder)
    assert (request.figures["input"], request.figures["total"]) == (100, 115)


def test_a_response_over_several_lines_counts_at_the_last_of_them(tmp_path: Path) -> None:
    write_claude(tmp_path / "ann", 1, [asked(1, 0, 0), answered(1, 1, 1), answered(1, 2, 2)])
    found = ledger(tmp_path / "ann")
    assert minutes(found) == [2]
    assert (found[0].figures["input"], found[0].figures["output"]) == (110, 5)


def test_a_message_that_is_spread_over_keys_counts(tmp_path: Path) -> None:
    said = {"id": "msg_2", "model": "claude-x", "usage": {"input_tokens": 5, "output_tokens": 7}}
    stream = f"data: {json.dumps({'type': 'message_start', 'message': said})}\n"
    spread = {str(place): character for place, character in enumerate(stream)}
    message = {**spread, "role": "assistant", "content": [], "usage": {"input_tokens": 0}}
    write_claude(
        tmp_path / "ann", 1, [asked(1, 0, 0), answered(1, 1, 1), answered(1, 2, 2) | {"message": message}]
    )
    assert [one.figures["input"] for one in ledger(tmp_path / "ann")] == [110, 5]


# Several conversations --------------------------------------------------------------------------------------------


def test_a_subagent_counts_under_its_parent(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, [user("u", 1, "hello"), gemini("g", 2, "there")])
    child = {
        **metadata(1, 2),
        "sessionId": "k3x9qa",
        "kind": "subagent",
        "messages": [gemini("s", 3, "found it")],
    }
    made.write(f"tmp/almanac/chats/{metadata(1, 1)['sessionId']}/k3x9qa.json", json.dumps(child, indent=2))
    parent, called = ledger(made.folder)
    assert (parent.kind, called.kind, called.key) == ("main", "subagent", f"{parent.key}/k3x9qa")


def test_a_request_that_two_sessions_hold_belongs_to_the_one_that_began_first(tmp_path: Path) -> None:
    """The session that ended first does not own it."""
    earlier, later = 2, 1
    write_claude(tmp_path / "ann", later, [asked(later, 0, 2), answered(later, 1, 3), asked(later, 2, 4)])
    write_claude(
        tmp_path / "ann", earlier, [asked(earlier, 0, 1), answered(earlier, 1, 3), asked(earlier, 2, 8)]
    )
    assert [one.key for one in ledger(tmp_path / "ann")] == [f"claude:{CLAUDE_SESSION.format(earlier)}"]


def test_requests_of_excluded_projects_do_not_count(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, [user("u", 1, "hello"), gemini("g", 2, "there")])
    made.json("other", 2, 1, [user("u", 1, "hello"), gemini("g", 3, "there")])
    assert minutes(ledger(made.folder, excluded=("almanac",))) == [3]
