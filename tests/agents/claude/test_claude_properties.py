"""What holds of every transcript, whatever became of its lines on the way: shuffled, repeated, cut, damaged."""

import json
import os
import random
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as some

from retold.agents import claude
from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.model.serialization import to_builtins
from retold.model.session import Message, Session, View
from support import cases

CASES = [case for case in cases.NAMES if case.startswith("claude-")]
FILES = [cases.FOLDER / case / file for case in CASES for file in cases.input_files(case)]
WHOLE = [file for file in FILES if file.read_bytes().endswith(b"\n") and b"\r" not in file.read_bytes()]
"""Files that consist of whole lines: others cannot be put together in another order."""
COUNTED = re.compile(rb'"(?:input|output|cache_read_input|cache_creation_input)_tokens":(\d+)')
every_claude_case = pytest.mark.parametrize("case", CASES)
a_few_hundred = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def read(file: Path, view: View = "full") -> list[Session]:
    """The sessions of a file; none, if it was refused."""
    found = claude.read(Source(file))
    return [] if isinstance(found, Problem) else [claude.join([reading], view) for reading in found]


def read_again(place: Path, original: Path, data: bytes | Iterable[bytes]) -> list[Session]:
    """The sessions of a file with another content under the same name."""
    file = place / original.name
    file.write_bytes(data if isinstance(data, bytes) else b"".join(data))
    os.utime(file, (cases.MODIFIED_AT, cases.MODIFIED_AT))
    return read(file)


@cache
def original(file: Path) -> list[Session]:
    return read(file)


def prompts(sessions: Iterable[Session]) -> list[str]:
    return [
        entry.prompt
        for session in sessions
        for entry in session.timeline
        if isinstance(entry, Message) and entry.prompt is not None
    ]


def requests(sessions: Iterable[Session]) -> list[str]:
    return [
        entry.usage.request
        for session in sessions
        for entry in session.timeline
        if isinstance(entry, Message) and entry.usage is not None
    ]


def total(sessions: Iterable[Session]) -> int:
    return sum(session.usage.total or 0 for session in sessions if not session.usage.estimated)


@a_few_hundred
@given(some.sampled_from(WHOLE), some.randoms(use_true_random=False))
def test_in_any_order_no_request_counts_twice_and_none_is_lost(
    tmp_path: Path, file: Path, order: random.Random
) -> None:
    lines = lines_of(file)
    shuffled = read_again(tmp_path, file, order.sample(lines, len(lines)))
    found = [name for name in requests(shuffled) if "/" not in name]
    assert sorted(found) == sorted(set(found))
    if {session.kind for session in shuffled} == {session.kind for session in original(file)} == {"main"}:
        assert set(found) == {name for name in requests(original(file)) if "/" not in name}


@a_few_hundred
@given(some.sampled_from(WHOLE), some.randoms(use_true_random=False))
def test_in_any_order_no_tokens_come_from_nowhere(tmp_path: Path, file: Path, order: random.Random) -> None:
    lines = lines_of(file)
    whole = sum(spent(line) for line in lines)
    assert total(read_again(tmp_path, file, order.sample(lines, len(lines)))) <= whole


def spent(line: bytes) -> int:
    """What the numbers of a line come to, if each of them were to count."""
    return sum(map(int, COUNTED.findall(line)))


@a_few_hundred
@given(some.sampled_from(WHOLE), some.data())
def test_a_line_that_stands_there_twice_changes_nothing(
    tmp_path: Path, file: Path, data: some.DataObject
) -> None:
    lines = lines_of(file)
    place = data.draw(some.integers(0, len(lines) - 1))
    again = data.draw(some.integers(place + 1, len(lines))) if is_named(lines[place]) else place + 1
    assume(
        all(name_of(lines[place]) != name_of(line) for line in lines[place + 1 : again])
    )  # the last one counts
    found = read_again(tmp_path, file, [*lines[:again], lines[place], *lines[again:]])
    assert list(map(told, found)) == list(map(told, read_again(tmp_path, file, lines)))


def is_named(line: bytes) -> bool:
    """Whether a copy can be told by its id; others only where it follows at once."""
    return name_of(line) is not None


def name_of(line: bytes) -> str | None:
    """The id of a line, if it has one."""
    try:
        return str(json.loads(line)["uuid"])
    except (ValueError, TypeError, KeyError):
        return None


def told(session: Session) -> object:
    """Everything but how many lines there were, and on which of them something is odd."""
    tree = to_builtins(session)
    del tree["coverage"], tree["sources"]
    tree["problems"] = {(problem["code"], problem["message"]) for problem in tree["problems"]}
    if any(problem.code in ("malformed-json", "unknown-record") for problem in session.problems):
        tree["timeline"] = [entry for entry in tree["timeline"] if not entry.get("opaque")]
    return tree


@a_few_hundred
@given(some.sampled_from(FILES), some.data())
def test_what_is_left_of_a_cut_file_was_in_the_whole(
    tmp_path: Path, file: Path, data: some.DataObject
) -> None:
    content = file.read_bytes()
    cut = read_again(tmp_path, file, content[: data.draw(some.integers(0, len(content)))])
    assert total(cut) <= sum(spent(line) for line in content.splitlines())
    said = prompts(original(file))
    queued = [json.loads(line).get("content") for line in content.splitlines() if b"enqueue" in line]
    assert set(prompts(cut)) <= {*said, *(words for words in queued if isinstance(words, str))}


@a_few_hundred
@given(some.sampled_from(FILES), some.data())
def test_damage_is_read_around(tmp_path: Path, file: Path, data: some.DataObject) -> None:
    content = file.read_bytes()
    start = data.draw(some.integers(0, len(content)))
    end = data.draw(some.integers(start, min(start + 60, len(content))))
    filler = data.draw(
        some.one_of(some.binary(max_size=12), some.sampled_from([b"\n", b"}{", b"null", b'""']))
    )
    damaged = tmp_path / file.name
    damaged.write_bytes(content[:start] + filler + content[end:])
    for session in (*read(damaged), *read(damaged, "active")):
        to_builtins(session)


@every_claude_case
def test_every_prompt_is_told_once(case: str) -> None:
    for file in cases.input_files(case):
        for session in original(cases.FOLDER / case / file):
            entries = [entry for entry in session.timeline if isinstance(entry, Message) and entry.prompt]
            named = [(entry.id, entry.fate) for entry in entries if entry.id is not None]
            assert len(named) == len(set(named))
