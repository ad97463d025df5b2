"""Everything that real versions and other people's users wrote: read whole, counted exactly, and nothing lost."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from retold.agents import gemini
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem
from retold.model.serialization import decode_session, schemas, to_builtins
from support.cases import strings
from support.session_json import session_json

pytestmark = [pytest.mark.shared, pytest.mark.slow]

CORPORA = ("gemini-cli", "public/gemini")
RENDERED = re.compile(r"\*\*(.*?)\*\* (.*)", re.DOTALL)
"""A thought as the CLI writes it into content: `**subject** description`."""


class Told(NamedTuple):
    """What reading a corpus amounts to."""

    files: int
    formats: dict[str, int]
    refused: dict[str, int]
    problems: dict[str, int]
    opaque: int


EXPECTED = {
    "gemini-cli": Told(
        files=310,
        formats={
            "gemini-checkpoint": 7, "gemini-json": 29, "gemini-json-output": 2, "gemini-jsonl": 45,
            "gemini-logs": 9, "gemini-restore-point": 2, "gemini-share-json": 7, "gemini-share-markdown": 7,
            "gemini-stream-json": 4,
        },
        refused={"not-a-session": 198},
        problems={"no-metadata": 1, "tokens-unrecorded": 8},
        opaque=0,
    ),
    "public/gemini": Told(
        files=98,
        formats={
            "gemini-checkpoint": 2, "gemini-json": 68, "gemini-jsonl": 7, "gemini-logs": 3, "gemini-stream-json": 1,
        },
        refused={"foreign-format": 2, "not-a-session": 17},
        problems={
            "bad-timestamp": 1, "no-metadata": 4, "token-total-mismatch": 10, "tokens-unrecorded": 2,
            "unexpected-shape": 3, "unknown-part": 20, "unknown-type": 11, "unreadable-by-agent": 2,
        },
        opaque=34,
    ),
}  # fmt: skip


def files(shared: Path, corpus: str) -> list[Path]:
    return sorted(file for file in (shared / "corpus" / corpus).rglob("*") if file.is_file())


def readings(shared: Path, corpus: str) -> Iterator[Reading | Problem]:
    for file in files(shared, corpus):
        found = gemini.read(Source(file))
        yield from [found] if isinstance(found, Problem) else found


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_file_is_read_or_refused_and_counted(shared: Path, corpus: str) -> None:
    formats: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    opaque = 0
    for reading in readings(shared, corpus):
        if isinstance(reading, Problem):
            refused[reading.code] += 1
            continue
        session = gemini.join([reading])
        formats[reading.format] += 1
        problems.update(problem.code for problem in session.problems)
        opaque += session.coverage.opaque
    told = Told(len(files(shared, corpus)), formats, refused, problems, opaque)
    assert told == EXPECTED[corpus]


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_session_is_valid_in_both_views(shared: Path, corpus: str) -> None:
    validator = Draft202012Validator(schemas()["session"])
    for reading in readings(shared, corpus):
        if isinstance(reading, Problem):
            continue
        for view in ("full", "active"):
            session = gemini.join([reading], view)
            wire = session_json(session)
            validator.validate(json.loads(wire))
            assert decode_session(wire) == session


@pytest.mark.parametrize("corpus", CORPORA)
def test_nothing_that_was_said_is_lost(shared: Path, corpus: str) -> None:
    for file in files(shared, corpus):
        found = gemini.read(Source(file))
        if isinstance(found, Problem) or found[0].format not in ("gemini-json", "gemini-jsonl"):
            continue
        held = "\x00".join(told(to_builtins(gemini.join(found))))
        lost = [text for text in said(records(file)) if not is_held(text, held)]
        assert not lost, file


def is_held(text: str, held: str) -> bool:
    if text in held:
        return True
    halves = RENDERED.fullmatch(text)
    return halves is not None and all(half in held for half in halves.groups())


def told(tree: dict[str, Any]) -> Iterator[str]:
    """Every text of a session; those of a message's parts also in one, as they were before they were cut up."""
    yield from strings(tree)
    for entry in tree["timeline"]:
        yield "".join(part.get("text") or "" for part in entry.get("parts", ()))


def records(file: Path) -> Iterator[Any]:
    """Every version of every message in a session file, read without any help of ours."""
    data = file.read_bytes()
    try:
        lines = [json.loads(data)]
    except ValueError:
        lines = [json.loads(line) for line in data.splitlines() if is_json(line)]
    for line in lines:
        if isinstance(line, dict):
            yield line
            for holder in (line, line.get("$set")):
                messages = holder.get("messages") if isinstance(holder, dict) else None
                yield from messages if isinstance(messages, list) else ()


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def said(messages: Iterator[Any]) -> Iterator[str]:
    """Every text that a user, a model, a thought or a tool's result holds in these records."""
    for message in messages:
        if isinstance(message, dict):
            for key in ("content", "displayContent"):
                yield from texts(message.get(key))
            for thought in listed(message.get("thoughts")):
                yield from (thought[key] for key in ("subject", "description") if thought.get(key))
            for call in listed(message.get("toolCalls")):
                yield from texts(call.get("result"))


def listed(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(content: Any) -> Iterator[str]:
    """The texts of content in any of its forms: text, a part, or a list of either."""
    match content:
        case str():
            yield content
        case list():
            for part in content:
                yield from texts(part)
        case {"text": str(text)}:
            yield text
        case {"functionResponse": {"response": dict(response)}}:
            yield from (text for text in response.values() if isinstance(text, str))
