"""What was decided: by whom, where, and in which words."""

import pytest

from retold.insights.decisions import Decision
from retold.insights.digest import collect_insights
from retold.model.session import Context, Entry, Event, Message, Text
from support.dialogue_sessions import assistant, call, user


def texts(*entries: Entry) -> list[str]:
    return [one.text for one in collect_insights(entries).decisions]


def only(*entries: Entry) -> Decision:
    (decision,) = collect_insights(entries).decisions
    return decision


@pytest.mark.parametrize(
    "sentence",
    [
        "Let's use the moon's table for both harbours.",
        "lets stick to UTC everywhere",
        "Actually, let\N{RIGHT SINGLE QUOTATION MARK}s go with the second form.",
        "Actually, let's try a table instead - I need it sorted",
        "We go with SQLite.",
        "From now on write the zone with every time.",
        "Never round a height.",
        "ok, always ask before you delete a table",
        "Don't guess the zone, take the harbour's instead.",
        "use uv, not pip: uv add tides",
        "Use the harbour's clock rather than ours.",
        "And put the pictures in docs/tides instead",
        "Prefer two small tables over a large one.",
        "Agreed, after the spring tide.",
        "We decided to leave the old pages alone.",
        "Decision: heights are in centimetres.",
        "We never commit to main.",
    ],
)
def test_words_with_which_a_person_decides(sentence: str) -> None:
    found = only(user(f"The tide is late. {sentence}" if sentence[0].isupper() else sentence))
    assert (found.by, found.source, found.text) == ("person", "said", sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Should we use the moon's table instead?",
        "Maybe let's use the moon's table.",
        "Never mind the tests.",
        "Let's see why the tide is late.",
        "Let's call it a day.",
        "Write a test that does not touch the disk.",
        "Why don't we know the zone?",
        "The page shows UTC instead of the harbour's time.",
        "Use the tide tool to read the table.",
        "We never see the error.",
        "潮汐表を直してください。",
        "Sollen wir immer runden?",
        "```\nLet's use the moon's table.\n```",
        "> Let's use the moon's table.",
    ],
)
def test_words_that_decide_nothing(sentence: str) -> None:
    assert texts(user(sentence)) == []


@pytest.mark.parametrize(
    ("sentence", "is_one"),
    [
        ("I'll use a table because the moon is regular.", 1),
        ("I chose UTC so that summer time does not matter.", 1),
        ("As agreed, the old pages stay.", 1),
        ("**Decision:** heights are in centimetres.", 1),
        ("I will use the tool.", 0),
        ("Let's use a table.", 0),
        ("We decided whether it rains.", 0),
    ],
)
def test_words_with_which_an_agent_decides(sentence: str, is_one: int) -> None:
    assert [one.by for one in collect_insights([assistant(Text(sentence))]).decisions] == ["agent"] * is_one


def test_a_proposal_that_is_accepted_is_decided() -> None:
    proposal = assistant(
        Text("It is late by an hour.\n\nI would store the zone with each height. It costs a column.")
    )
    found = only(user("Why is it late?"), proposal, user("Yes, do that."))
    assert (found.by, found.source) == ("person", "accepted")
    assert (found.text, found.context) == ("I would store the zone with each height.", "Yes, do that.")
    assert (found.place.seq, found.place.turn) == (2, 2)
    assert texts(user("Why?"), proposal, user("And the moon?")) == []
    assert texts(user("Why?"), proposal, user("Agreed, with a column.")) == [found.text]


def test_a_decision_tells_what_it_answers_and_its_paragraph() -> None:
    found = only(
        assistant(Text("There are two tables. One is enough.")),
        user("The first is old.\n\nIt is late. Let's use the second.\n\nThanks."),
    )
    assert found.answers == "One is enough."
    assert found.context == "It is late. Let's use the second."


def test_plans_count_when_they_were_approved() -> None:
    plan = {"plan": "# Give heights a zone\n\n1. A column.\n2. The page."}
    told = {"name": "ExitPlanMode", "canonical": "planning", "category": "Plan", "arguments": plan}
    found = only(assistant(call(**told)))
    assert (found.source, found.text) == ("plan", "Give heights a zone")
    assert found.context == "# Give heights a zone 1. A column. 2. The page."
    assert texts(assistant(call(**told, status="cancelled"))) == []
    assert texts(assistant(call(**{**told, "arguments": {"plan": "  \n"}}))) == []


def test_summaries_keep_decisions() -> None:
    summary = "Summary:\n\n## Key decisions\n\n- Heights in **centimetres**\n- The zone is the harbour's\n\n## Files\n\n- tides.py"
    snapshot = Message("s", "user", None, "live", None, None, None, (Context("snapshot", summary),))
    found = collect_insights([snapshot]).decisions
    assert [one.text for one in found] == ["Heights in centimetres", "The zone is the harbour's"]
    assert {one.source for one in found} == {"summary"}
    told = Event(None, "compaction", None, "live", "We agreed to use centimetres.")
    assert [one.source for one in collect_insights([told]).decisions] == ["summary"]


def test_each_thing_is_decided_once_and_not_where_it_was_taken_back() -> None:
    assert texts(user("Let's use UTC."), user("let's use utc.")) == ["Let's use UTC."]
    assert texts(user("Let's use UTC.", fate="rewound"), user("Let's use UTC.", own=False)) == []
    assert texts(user("Let's use UTC.", fate="compacted")) == ["Let's use UTC."]
