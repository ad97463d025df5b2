"""Replay holds what the CLI's own Map would hold, and can be continued anywhere."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retold.agents.gemini.replay import replay
from retold.agents.gemini.state import State, active_records
from retold.reading.jsonl import JsonLine

Record = dict[str, Any]
IDS = "abcdef"
META: Record = {"sessionId": "s", "projectHash": "h", "startTime": "2026-03-01T09:00:00.000Z"}

texts = st.sampled_from(["", "Hello.", "Again.", "<session_context>x</session_context>Hello."])
contents = texts | st.lists(st.builds(lambda text: {"text": text}, texts), max_size=2)
messages = st.builds(
    lambda name, kind, content, more: {"id": name, "type": kind, "content": content, **more},
    st.sampled_from(IDS),
    st.sampled_from(["user", "gemini", "info"]),
    contents,
    st.sampled_from([{}, {"model": "m"}, {"toolCalls": [{"id": "c", "name": "glob", "args": {}}]}]),
)
operations: st.SearchStrategy[Any] = st.one_of(
    messages,
    messages,
    st.builds(lambda name: {"$rewindTo": name}, st.sampled_from(IDS + "z")),
    st.builds(lambda listed: {"$set": {"messages": listed}}, st.lists(messages, max_size=4)),
    st.builds(lambda text: {"$set": {"summary": text}}, texts),
    st.just(META),
    st.builds(lambda listed: {**META, "messages": listed}, st.lists(messages, max_size=3)),
    st.just({"unknown": 1}),
)
logs = st.lists(operations, max_size=25)


def as_the_cli_does(log: list[Record]) -> list[Record]:
    """`loadConversationRecord` of 0.61.0, transcribed: a Map keeps the place where a key came first."""
    held: dict[str, Record] = {}
    for record in log:
        match record:
            case {"$rewindTo": str(target)}:
                names = list(held)
                dropped = names[names.index(target) :] if target in held else names
                for name in dropped:
                    del held[name]
            case {"id": str(name)}:
                held[name] = record
            case {"$set": dict(changes)}:
                if isinstance(changes.get("messages"), list):
                    held.clear()
                    held |= {message["id"]: message for message in changes["messages"]}
            case {"sessionId": str(), "projectHash": str(), "messages": list(listed)}:
                held |= {message["id"]: message for message in listed}
    return list(held.values())


def folded(log: list[Record], start: State, first: int = 1) -> State:
    return replay(start, [JsonLine(number, record) for number, record in enumerate(log, first)])


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(logs)
def test_the_active_records_are_those_of_the_clis_map(log: list[Record]) -> None:
    assert list(active_records(folded([META, *log], State("file")))) == as_the_cli_does(log)


@settings(max_examples=500, deadline=None)
@given(logs, st.data())
def test_folding_in_two_steps_is_folding_at_once(log: list[Record], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log)))
    before = folded(log[:cut], State("file"))
    kept = folded(log[:cut], State("file"))
    assert folded(log[cut:], before, cut + 1) == folded(log, State("file"))
    assert before == kept, "a state is a value: going on from it leaves it as it was"


@settings(max_examples=500, deadline=None)
@given(logs)
def test_every_version_that_says_something_new_is_kept(log: list[Record]) -> None:
    state = folded(log, State("file"))
    listed = [message for record in log for message in written(record)]
    assert {message["id"] for message in listed} <= set(state.versions)
    for message in listed:
        versions = [version for version, _ in state.versions[message["id"]]]
        assert any(version["content"] == message["content"] for version in versions)


def written(record: Record) -> list[Record]:
    """The messages that a record writes down."""
    if "id" in record:
        return [record]
    holder = record.get("$set", record)
    listed: list[Record] = holder.get("messages", [])
    return listed


@settings(max_examples=300, deadline=None)
@given(logs)
def test_what_is_not_live_says_why(log: list[Record]) -> None:
    state = folded(log, State("file"))
    assert set(state.fates) | set(state.live) == {key for key in state.versions if isinstance(key, str)}
