"""What was left open."""

import pytest

from retold.insights.digest import collect_insights
from retold.insights.open_ends import OpenEnd
from retold.model.session import Entry, Event, Text, Todo, TodosDisplay, ToolCall
from support.dialogue_sessions import assistant, call, user


def only(*entries: Entry) -> OpenEnd:
    (end,) = collect_insights(entries).open_ends
    return end


def plan(**more: object) -> ToolCall:
    return call(**{"name": "update_plan", "canonical": "planning", "category": "Plan", **more})


def event(kind: str, text: str) -> Event:
    return Event(None, kind, None, "live", text)  # type: ignore[arg-type]


def test_a_question_of_the_agent_that_nobody_answered() -> None:
    end = only(user("Go"), assistant(Text("It is done. Shall I push it?")))
    assert (end.kind, end.text, end.place.turn) == ("question", "Shall I push it?", 1)
    assert collect_insights([user("Go"), assistant(Text("Shall I? It is done."))]).open_ends == ()
    assert (
        only(user("潮"), assistant(Text("直しました。続けますか\N{FULLWIDTH QUESTION MARK}"))).kind
        == "question"
    )


def test_words_of_a_person_that_nobody_answered() -> None:
    assert only(user("And the moon")).kind == "unanswered"
    assert only(assistant(Text("Done.")), user("And the moon?")).text == "And the moon?"


@pytest.mark.parametrize("words", ["thanks!", "Perfekt, danke!", "👍", "ありがとう", "/quit", "LGTM"])
def test_a_farewell_leaves_nothing_open(words: str) -> None:
    assert collect_insights([assistant(Text("Done.")), user(words)]).open_ends == ()


def test_an_error_at_the_end() -> None:
    end = only(user("And the moon?"), event("error", "[API Error: overloaded]"))
    assert (end.kind, end.text) == ("error", "And the moon?: [API Error: overloaded]")
    failed = call(status="error", error="File not found: moon.py")
    assert only(user("Go"), assistant(failed)).text == "File not found: moon.py"
    assert (
        collect_insights([user("Go"), event("error", "overloaded"), assistant(Text("Done."))]).open_ends == ()
    )


def test_what_was_broken_off() -> None:
    assert only(user("Go on"), event("warning", "interrupted")).kind == "interrupted"
    stopped = call(name="sh", canonical="shell_exec", arguments={"command": "rm tides"}, status="cancelled")
    end = only(user("Go"), assistant(stopped))
    assert (end.kind, end.text) == ("interrupted", "rm tides")
    end = only(user("Go"), assistant(call(arguments={"path": "moon.py"})))
    assert (end.kind, end.text) == ("interrupted", "moon.py")


@pytest.mark.parametrize(
    "told",
    [
        {"arguments": {"plan": [{"step": "A", "status": "completed"}, {"step": "B", "status": "pending"}]}},
        {
            "arguments": {
                "todos": [
                    {"content": "A", "status": "completed"},
                    {"content": "B", "status": "in_progress"},
                    7,
                ]
            }
        },
        {"arguments": {}, "display": TodosDisplay((Todo("A", "completed"), Todo("B", None)))},
    ],
)
def test_things_to_do_that_are_not_done(told: dict[str, object]) -> None:
    end = only(user("Go"), assistant(plan(**told)), assistant(Text("Done.")))
    assert (end.kind, end.items, end.place.seq) == ("todos", ("B",), 1)


def test_the_last_list_counts() -> None:
    first, last = ({"plan": [{"step": "A", "status": status}]} for status in ("pending", "completed"))
    assert (
        collect_insights(
            [assistant(plan(arguments=first)), assistant(plan(arguments=last)), assistant(Text("Done."))]
        ).open_ends
        == ()
    )


def test_tasks_that_come_one_by_one() -> None:
    made = [
        plan(
            name="TaskCreate",
            arguments={"subject": name},
            result=f"Task #{number} created successfully: {name}",
        )
        for number, name in enumerate("AB", 1)
    ]
    done = plan(name="TaskUpdate", arguments={"taskId": "1", "status": "completed"})
    assert only(assistant(*made, done), assistant(Text("Done."))).items == ("B",)
    other = plan(name="TaskUpdate", arguments={"taskId": "9", "status": "completed"})
    assert only(assistant(*made, other), assistant(Text("Done."))).items == ("A", "B")


@pytest.mark.parametrize(
    "heading", ["Next steps:", "**Remaining work:**", "## TODO", "Still open:", "What's left:"]
)
def test_what_the_last_answer_says_is_left(heading: str) -> None:
    words = f"The table is right.\n\n- read it\n\n{heading}\n\n- the moon\n- the **sun**\n\nThat is all."
    end = only(user("Go"), assistant(Text(words)))
    assert (end.kind, end.items) == ("remaining", ("the moon", "the sun"))
    assert collect_insights([assistant(Text(words)), user("thanks")]).open_ends == ()


def test_boxes_that_are_not_ticked() -> None:
    assert only(assistant(Text("- [x] the sun\n- [ ] the moon"))).items == ("the moon",)


def test_a_command_that_never_worked_is_told_once() -> None:
    failed = call(
        name="sh", canonical="shell_exec", arguments={"command": "make"}, exit_code=2, result="error: no zone"
    )
    end = only(user("Go"), assistant(failed), assistant(failed), assistant(Text("I could not.")))
    assert (end.kind, end.text, end.place.seq) == ("failure", "make: error: no zone", 2)
    assert only(user("Go"), assistant(failed)).kind == "error"


def test_what_was_taken_back_leaves_nothing_open() -> None:
    assert collect_insights([assistant(Text("Done.")), user("And the moon?", fate="rewound")]).open_ends == ()
    assert collect_insights([]).open_ends == ()
