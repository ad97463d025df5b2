"""Transcripts made to hang a reader: with work that grows with the square of the input, these would run for minutes."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from retold.agents import claude
from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.model.session import Session

pytestmark = pytest.mark.slow

Json = dict[str, Any]
SESSION = "5b1f0c7e-2a94-4d3b-9c61-7e0d4f82a6b3"
MANY = 20_000


def line(kind: str, uuid: str, parent: str | None, message: Json, **more: Any) -> Json:
    told = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "isSidechain": False}
    return {**told, "timestamp": "2026-03-01T09:00:00.000Z", "message": message, **more}


def said(number: int, text: str, parent: str | None = None, **more: Any) -> Json:
    return line("user", f"u{number}", parent, {"role": "user", "content": text}, **more)


def answered(number: int, response: str, parent: str | None = None, **more: Any) -> Json:
    usage = {"input_tokens": 1, "output_tokens": number}
    content = [{"type": "text", "text": "Yes."}]
    message = {"id": response, "model": "claude-opus-4-5", "content": content, "usage": usage}
    return line("assistant", f"a{number}", parent, message, **more)


def sessions(folder: Path, records: Iterable[Json]) -> list[Session]:
    file = folder / f"{SESSION}.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    found = claude.read(Source(file))
    assert not isinstance(found, Problem)
    return list(claude.relate([claude.join([reading]) for reading in found]))


@pytest.mark.parametrize(
    "text",
    [
        "<command-name>x</command-name>" + "<command-args>" * MANY,
        "<system-reminder>" * MANY,
        "<system-reminder>x</system-reminder>" * MANY + "hello",
        "[Request interrupted by user" * MANY,
        "<bash-input>" * MANY,
    ],
)
def test_openings_without_end_are_read_through(tmp_path: Path, text: str) -> None:
    (session,) = sessions(tmp_path, [said(0, text)])
    assert session.first_prompt is not None


def test_a_response_over_very_many_lines_counts_once(tmp_path: Path) -> None:
    (session,) = sessions(tmp_path, (answered(number, "msg") for number in range(MANY)))
    assert (session.usage.requests, session.usage.output) == (1, MANY - 1)


def test_very_many_subagents_in_one_file(tmp_path: Path) -> None:
    records = [
        record
        for number in range(MANY // 2)
        for record in (
            said(number, "Look.", isSidechain=True),
            answered(number, f"msg {number}", f"u{number}", isSidechain=True),
        )
    ]
    assert len(sessions(tmp_path, [said(MANY, "Look everywhere."), *records])) == MANY // 2 + 1


def test_very_many_equal_words_in_the_queue(tmp_path: Path) -> None:
    queued = [
        {
            "type": "queue-operation",
            "operation": "enqueue",
            "content": "go on",
            "sessionId": SESSION,
            "timestamp": at,
        }
        for at in (f"2026-03-01T09:00:00.{number:06}Z" for number in range(MANY))
    ]
    (session,) = sessions(tmp_path, [*queued, *(said(number, "go on") for number in range(MANY))])
    assert session.counts.prompts == MANY


@pytest.mark.parametrize("parent", ["u{before}", "lost", "u{number}"])
def test_very_long_and_very_many_chains(tmp_path: Path, parent: str) -> None:
    names = [parent.format(before=number - 1, number=number) for number in range(MANY)]
    (session,) = sessions(tmp_path, (said(number, "On.", name) for number, name in enumerate(names)))
    assert session.counts.prompts == MANY


def test_a_line_written_again_very_often(tmp_path: Path) -> None:
    (session,) = sessions(tmp_path, (said(0, f"No. {number}") for number in range(MANY)))
    assert [entry.fate for entry in session.timeline].count("live") == 1
