"""The quick way through usual records and the careful way through any give the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retold.agents import gemini
from retold.agents.gemini.messages import normalise_answer, normalise_unusual_answer
from retold.agents.gemini.replay import to_state
from retold.agents.gemini.state import CleanDocument, Notes, RecordContext, Transcript
from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.model.serialization import to_builtins
from retold.model.session import Message

pytestmark = pytest.mark.slow

Record = dict[str, Any]
words = st.sampled_from(
    ["", "Hello.", "Got it. Thanks for the context!", "Exit Code: 3", "<tool_output_masked>\nx"]
)
times = st.sampled_from(
    [
        "2026-03-01T09:00:00.000Z", "2026-03-01T09:00:00Z", "2026-03-01T11:00:00.5+02:00", "2026-03-01T09:00:00",
        "2026-03-01T09:00:00.1234567Z", "2026-03-01 09:00:00Z", "2026-03-01T09:00:00z", "2026-03-01",
        "0001-01-01T00:00:00+23:00", "2026-02-30T00:00:00Z", "2026-03-01T24:00:00Z", "20260301T090000Z", "yesterday",
    ]
)  # fmt: skip
odd: st.SearchStrategy[Any] = st.sampled_from([None, 0, 7, 1.0, True, "", "odd", [], {}, [{}], 2**70])
counts = st.integers(-3, 2**65) | odd


def sometimes(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what the CLI writes; now and then something else."""
    return st.one_of(strategy, strategy, strategy, odd)


def record(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Record]:
    optional = {name: sometimes(strategy) for name, strategy in fields.items()}
    return st.fixed_dictionaries({}, optional={**optional, "mood": words})


tokens = record(**dict.fromkeys(("input", "output", "cached", "thoughts", "tool", "total"), counts))
thoughts = record(subject=words, description=words, timestamp=times)
responses = record(output=words, error=words)
results = st.fixed_dictionaries({"functionResponse": record(id=words, name=words, response=responses)})
calls = record(
    id=words, name=st.sampled_from(["glob", "run_shell_command", "x"]), args=st.just({"a": 1}), status=words,
    timestamp=times, result=st.lists(results, max_size=2), displayName=st.just("a (b MCP Server)"), description=words,
    renderOutputAsMarkdown=st.booleans(), resultDisplay=words, agentId=words,
)  # fmt: skip
whole_call = st.builds(
    lambda call, result: {**call, "result": [result]},
    st.fixed_dictionaries(
        {"id": words, "name": words, "args": st.just({}), "status": words, "timestamp": times},
        optional={"displayName": words, "agentId": words, "resultDisplay": words},
    ),
    results,
)
answers = st.fixed_dictionaries(
    {"id": st.just("g1"), "type": st.just("gemini"), "timestamp": times, "content": words},
    optional={
        "thoughts": sometimes(st.lists(thoughts, max_size=2)),
        "tokens": sometimes(tokens),
        "model": sometimes(words),
        "toolCalls": sometimes(st.lists(st.one_of(whole_call, calls), max_size=2)),
        "mood": words,
    },
)


def both_ways(made: Record) -> Iterator[tuple[Message, list[Problem], int]]:
    for way in (normalise_answer, normalise_unusual_answer):
        notes = Notes("file")
        yield way(made, "live", RecordContext(notes, "s", "gemini:s")), notes.problems, notes.opaque


@settings(max_examples=1500, deadline=None)
@given(answers)
def test_both_ways_give_the_same_answer(made: Record) -> None:
    quick, careful = both_ways(made)
    assert quick == careful


@pytest.mark.shared
def test_both_ways_give_the_same_for_every_answer_of_the_corpus(shared: Path) -> None:
    met = 0
    for file in sorted((shared / "corpus").rglob("*")):
        for made in recorded_answers(file):
            quick, careful = both_ways(made)
            assert quick == careful, file
            met += 1
    assert met > 500


def recorded_answers(file: Path) -> Iterator[Record]:
    if not file.is_file() or "gemini" not in file.as_posix():
        return
    found = gemini.read(Source(file))
    for reading in () if isinstance(found, Problem) else found:
        if isinstance(reading.state, Transcript):
            for versions in to_state(reading.state.state).versions.values():
                yield from (
                    made for made, _ in versions if isinstance(made, dict) and made.get("type") == "gemini"
                )


@settings(max_examples=300, deadline=None)
@given(made=st.lists(answers, max_size=4), has_ids=st.booleans())
def test_a_usual_file_is_the_same_file_read_carefully(
    tmp_path_factory: pytest.TempPathFactory,
    made: list[Record],
    has_ids: bool,  # noqa: FBT001 - drawn
) -> None:
    messages = [{**message, "id": f"g{place}" if has_ids else "g"} for place, message in enumerate(made)]
    file = tmp_path_factory.getbasetemp() / "session-usual.json"
    file.write_text(json.dumps({"sessionId": "s", "projectHash": "h", "messages": messages}, indent=1))
    both_files_agree(file)


@pytest.mark.shared
def test_every_usual_file_of_the_corpus_is_the_same_read_carefully(shared: Path) -> None:
    usual = [
        both_files_agree(file) for file in (shared / "corpus").rglob("*.json*") if "gemini" in file.as_posix()
    ]
    assert sum(usual) > 50


def both_files_agree(file: Path) -> bool:
    """Assert that a file read the usual way, if it is, is what the careful way makes of it; tell whether it is."""
    found = gemini.read(Source(file))
    if isinstance(found, Problem) or not isinstance(found[0].state, Transcript):
        return False
    (reading,) = found
    if not isinstance(reading.state.state, CleanDocument):
        return False
    state = msgspec.structs.replace(reading.state, state=to_state(reading.state.state))
    careful = msgspec.structs.replace(reading, state=state)
    for view in ("full", "active"):
        assert to_builtins(gemini.join([reading], view)) == to_builtins(gemini.join([careful], view)), file
    return True
