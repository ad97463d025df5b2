"""All that a session comes to: whatever its timeline is, of every agent, and as the archive tells it."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retold.archive.store import Store
from retold.insights.digest import Insights, collect_insights, load_insights, load_many_insights
from retold.insights.text import place_entries
from retold.model import CATEGORIES
from retold.model.session import Entry, Event, Text
from retold.search.filters import Filters
from retold.sessions.load import load_session
from retold.sessions.slices import load_turns
from support import conversation_files
from support.dialogue_sessions import TIMELINES, assistant, call, user
from support.hostile_texts import TEXTS as HOSTILE
from support.synced_archive import sync_archive

ANYTHING = st.recursive(
    st.none()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["make && x", "*** Begin Patch\n*** Add File: a\n+b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["command", "cmd", "file_path", "plan", "todos", "taskId", "subject", "status", "input", "old_string"]
)
CALLS = st.builds(
    call,
    name=st.sampled_from(["Bash", "ExitPlanMode", "update_plan", ""]),
    canonical=st.sampled_from(sorted(CATEGORIES)),
    status=st.sampled_from(["success", "error", "cancelled", "unknown"]),
    arguments=st.dictionaries(NAMES, ANYTHING, max_size=3),
    exit_code=st.none() | st.integers(-1, 2),
    result=st.none() | st.sampled_from(["Error: x", "Process running with session ID 7", "\ud800"]),
)


@given(TIMELINES, st.lists(CALLS, max_size=4))
def test_no_timeline_makes_it_raise(entries: list[Entry], calls: list[object]) -> None:
    told = [*entries, assistant(*calls), *entries]
    found = collect_insights(told)
    assert found == collect_insights(iter(told))
    places = [one.place for one in found.failures] + [one.place for one in found.open_ends]
    assert all(0 <= place.seq < len(told) for place in places)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_texts(text: str) -> None:
    failed = call(canonical="shell_exec", arguments={"command": text}, status="error", error=text)
    found = collect_insights(
        [user(text), assistant(Text(text), failed), Event(None, "error", None, "live", text)]
    )
    assert len(found.failures) == 1 + bool(text.strip())


@pytest.mark.parametrize(
    "text",
    [
        "#" * 20_000, "`" * 20_000, "- " * 10_000, "I use " * 4_000, "let's " * 4_000, "'" * 20_000, "." * 20_000 + "x", "* " * 9_000 + "decisions",
        "next " * 5_000, "\n" * 20_000, " \n\t" * 7_000, "```\n" * 5_000, "=" * 100_000, "a" * 300_000, "(" * 20_000, "?!" * 10_000, "\\" * 20_000,
    ],
)  # fmt: skip
def test_no_text_takes_long(text: str) -> None:
    failed = call(canonical="shell_exec", arguments={"command": text}, status="error", error=text)
    began = time.process_time()
    collect_insights([user(text), assistant(Text(text), failed), user(text[::-1]), assistant(Text(text))])
    assert time.process_time() - began < 2


def test_of_many_entries_what_is_told_is_bounded() -> None:
    long = "The zone is wrong because of the moon. " * 40
    failed = call(
        canonical="shell_exec",
        arguments={"command": f"make {long}"},
        status="error",
        error=f"error {long}\n" * 50,
    )
    found = collect_insights(
        [user(f"Let's use UTC. {long}"), assistant(Text(long), failed), assistant(Text(f"{long}?"))]
    )
    assert all(len(one.target) <= 200 and len(one.error) <= 1_000 for one in found.failures)
    assert all(len(one.text) <= 300 and len(one.context) <= 600 for one in found.decisions)
    assert found.decisions


@pytest.mark.parametrize("agent", conversation_files.FORMS)
def test_every_agent_is_gleaned_from_its_archive(agent: str, tmp_path: Path) -> None:
    said = [
        conversation_files.Turn(
            "Why is the tide late?", "a table", "I would store the zone with each height."
        ),
        conversation_files.Turn(
            "Yes. And from now on heights are in centimetres.", "done", "Shall I push it?"
        ),
    ]
    form = conversation_files.FORMS[agent]
    form.write(tmp_path / "home", 7, said)
    with Store(sync_archive(tmp_path / "retold", {"HOME": str(tmp_path / "home")}).folder) as record:
        key = form.key(7)
        (found,) = load_many_insights(record, Filters())
        assert found == load_insights(record, key)
        assert found.session.key == key
        assert found.session.timeline == ()
        whole = load_session(record, key)
        assert whole is not None
        assert found.insights == collect_insights(whole.timeline)
        assert [one.text for one in found.insights.decisions] == [
            "I would store the zone with each height.",
            "And from now on heights are in centimetres.",
        ]
        assert [(one.kind, one.place.turn) for one in found.insights.open_ends] == [("question", 2)]


def test_turns_are_counted_as_an_outline_counts_them(demo_env: dict[str, str]) -> None:
    with Store(demo_env["RETOLD_HOME"]) as record:
        for (key,) in list(record.rows("SELECT key FROM sessions")):
            session, outline = load_session(record, key), load_turns(record, key)
            assert session is not None
            for one in place_entries(session.timeline):
                assert one.place.turn == sum(turn.seq <= one.place.seq for turn in outline), key


def test_a_session_that_is_not_there_comes_to_nothing(demo_env: dict[str, str]) -> None:
    with Store(demo_env["RETOLD_HOME"]) as record:
        assert load_insights(record, "gemini:nothing") is None
    assert collect_insights([]) == Insights()
