"""What holds of any rollout, whole or in pieces: nothing raises, no word is told twice, no token is counted twice."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retold import Message, Session, Text
from retold.agents import codex
from retold.agents.codex.state import MOST_TWINS
from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.model.serialization import decode_session
from support import cases
from support.codex_home import as_text, event_line, message_line, meta_line
from support.session_json import session_json

CASES = [case for case in cases.NAMES if case.startswith("codex-")]
ROLLOUTS = [
    (cases.FOLDER / case / file).read_bytes().splitlines(keepends=True)
    for case in CASES
    for file in cases.input_files(case)
    if file.name.startswith("rollout-") and file.suffix == ".jsonl"
]
ENVELOPED = [lines for lines in ROLLOUTS if b'"payload"' in lines[0]]
FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "total", "requests")
quickly = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rollout-2026-03-01T10-00-00-019ca8a0-3e80-7000-8000-000000000001.jsonl"


def read(file: Path, lines: Sequence[bytes]) -> Session | None:
    file.write_bytes(b"".join(lines))
    found = codex.read(Source(file))
    return None if isinstance(found, Problem) else codex.join(found)


def recorded(text: str, lines: Sequence[bytes]) -> int:
    """How often words were written down: each time as an item, as an event, or as both."""
    holding = [line for line in lines if json.dumps(text, ensure_ascii=False)[1:-1].encode() in line]
    items = sum(b'"response_item"' in line for line in holding)
    return max(items, sum(b'"event_msg"' in line for line in holding))


@quickly
@given(data=st.data())
def test_lines_in_any_order_never_raise_and_stay_tellable(data: st.DataObject, file: Path) -> None:
    session = read(file, data.draw(st.sampled_from(ROLLOUTS).flatmap(st.permutations)))
    if session is not None:
        assert decode_session(session_json(session)) == session


@quickly
@given(data=st.data())
def test_a_part_of_a_file_never_counts_more_than_the_whole(data: st.DataObject, file: Path) -> None:
    lines = data.draw(st.sampled_from(ROLLOUTS))
    end = data.draw(st.integers(0, len(lines)))
    whole, part = read(file, lines), read(file, lines[:end])
    if whole is not None and part is not None and not whole.usage.estimated and not part.usage.estimated:
        for name in FIGURES:
            assert (getattr(part.usage, name) or 0) <= (getattr(whole.usage, name) or 0), name


@quickly
@given(data=st.data())
def test_a_line_written_twice_counts_and_speaks_once(data: st.DataObject, file: Path) -> None:
    lines = data.draw(st.sampled_from(ROLLOUTS))
    place = data.draw(st.integers(0, len(lines) - 1))
    if b"token_" not in lines[place]:
        return
    once, twice = read(file, lines), read(file, [*lines[: place + 1], *lines[place:]])
    if once is not None and twice is not None:
        assert twice.usage == once.usage


@quickly
@given(data=st.data())
def test_words_are_told_as_often_as_they_were_written_down(data: st.DataObject, file: Path) -> None:
    lines = data.draw(
        st.sampled_from(ENVELOPED).flatmap(lambda lines: st.lists(st.sampled_from(lines), max_size=30))
    )
    session = read(file, lines)
    prompts = [entry.prompt for entry in session.timeline if isinstance(entry, Message)] if session else []
    for prompt, times in Counter(filter(None, prompts)).items():
        if "\n" not in prompt and not prompt.startswith("!"):  # answers and commands, cut out of longer texts
            assert times <= recorded(prompt, lines)


def test_of_many_words_that_were_written_once_the_latest_find_their_twin(file: Path) -> None:
    texts = [f"Answer {number}." for number in range(MOST_TWINS + 8)]
    events = [event_line(place, "agent_message", message=text) for place, text in enumerate(texts, 1)]
    item = message_line(len(texts) + 1, "assistant", texts[-1])
    lines = [meta_line("019ca8a0-3e80-7000-8000-000000000001", 0), *events, item]
    session = read(file, as_text(lines).encode().splitlines(keepends=True))
    assert session is not None
    messages = [entry for entry in session.timeline if isinstance(entry, Message)]
    assert [part.text for entry in messages for part in entry.parts if isinstance(part, Text)] == texts
