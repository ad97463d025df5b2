"""Copies are told by how they were written down, never by being equal."""

from typing import Any

from retold.agents.gemini.raw import ENVIRONMENT_ID
from retold.agents.gemini.replay import find_copies, replay
from retold.agents.gemini.state import State, merge_copies
from retold.reading.jsonl import JsonLine

Record = dict[str, Any]
CONTEXT = "<session_context>\nToday.\n</session_context>"


def user(name: str, *texts: str) -> Record:
    return {"id": name, "type": "user", "content": [{"text": text} for text in texts]}


def answer(name: str, text: str, **more: Any) -> Record:
    return {"id": name, "type": "gemini", "content": text, "model": "m", **more}


def copy(name: str, text: str, *calls: str) -> Record:
    parts: list[Record] = [
        {"text": text},
        *({"functionCall": {"id": call, "name": "glob"}} for call in calls),
    ]
    return {"id": name, "type": "gemini", "content": parts}


def copies(block: list[Record], *before: Record) -> dict[str, str]:
    held = {record["id"]: record for record in before}
    return find_copies(block, held, held)


def test_a_history_under_new_ids_is_a_copy() -> None:
    before = (user("u1", "Go."), answer("g1", "Gone."))
    block = [user("n1", CONTEXT, "Go."), copy("n2", "Gone.")]
    assert copies(block, *before) == {"n1": "u1", "n2": "g1"}


def test_lines_written_just_before_their_block_are_copies() -> None:
    block = [user("n1", CONTEXT, "Go."), copy("n2", "Gone.")]
    assert copies(block, user("u1", "Go."), answer("g1", "Gone."), *block) == {"n1": "u1", "n2": "g1"}


def test_calls_are_told_apart_by_their_ids() -> None:
    first = answer("g1", "", toolCalls=[{"id": "c1", "name": "glob"}])
    second = answer("g2", "", toolCalls=[{"id": "c2", "name": "glob"}])
    assert copies([copy("n1", "", "c2")], user("u1", "Go."), first, second) == {"n1": "g2"}


def test_results_are_told_apart_by_their_calls() -> None:
    def result(name: str, call: str) -> Record:
        return {"id": name, "type": "user", "content": [{"functionResponse": {"id": call}}]}

    assert copies([result("n1", "c2")], result("u1", "c1"), result("u2", "c2")) == {"n1": "u2"}


def test_equal_prompts_are_paired_in_order_from_the_end() -> None:
    before = (user("u1", "Go."), answer("g1", "Gone."), user("u2", "Go."), answer("g2", "Gone again."))
    block = [user("n1", "Go."), copy("n2", "Gone again.")]
    assert copies(block, *before) == {"n1": "u2", "n2": "g2"}


def test_a_prompt_typed_again_is_no_copy() -> None:
    typed_again = user("u2", "Go.")
    before = (user("u1", "Go."), answer("g1", "Gone."), typed_again)
    assert copies([user("u1", "Go."), typed_again], *before) == {}
    assert copies([typed_again], *before) == {}


def test_an_answer_of_a_model_is_no_copy() -> None:
    assert copies([answer("n1", "Gone.")], answer("g1", "Gone.")) == {}


def test_the_environment_is_nobodys_original() -> None:
    environment = user(ENVIRONMENT_ID, CONTEXT)
    assert copies([user("n1", CONTEXT)], environment) == {}


def test_a_record_that_is_listed_still_is_no_original() -> None:
    before = (user("u1", "Go."), answer("g1", "Gone."))
    assert copies([before[0], user("n1", "Go.")], *before) == {}


def test_ids_that_come_and_go_close_no_circle() -> None:
    lists = [[user(name, "Go.")] for name in ("u1", "u2", "u1", "u2", "u3", "u1")]
    lines = [JsonLine(number, {"$set": {"messages": block}}) for number, block in enumerate(lists, 1)]
    state = replay(State("x"), lines)
    for copy in state.copies:
        line = [copy]
        while line[-1] in state.copies:
            line.append(state.copies[line[-1]])
            assert len(line) == len(set(line))


def test_copies_of_two_files_close_no_circle() -> None:
    assert merge_copies({"a": "b"}, {"b": "a"}) == {"a": "b"}
    assert merge_copies({"a": "b"}, {"c": "a", "b": "d"}) == {"a": "b", "c": "b", "b": "d"}
