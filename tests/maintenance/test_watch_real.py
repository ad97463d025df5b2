"""The real Gemini CLI in a terminal, watched: each prompt, answer, call and result appears exactly once."""

from collections import Counter
from pathlib import Path

import pytest

from support.person import Json, Person
from support.real_gemini import Driver, Finished, Gemini
from support.watch_process import WatchProcess, event_texts, start_watch

pytestmark = [pytest.mark.shared, pytest.mark.real_cli]

SCRIPT = """\
ARGS --yolo
WAIT 6
TYPE first question about the project
ENTER
EXPECT 15 Fake answer to
TYPE SCENARIO:full look at main.py
ENTER
EXPECT 40 Done. I changed
TYPE the same again
ENTER
EXPECT 15 Fake answer to
TYPE the same again
ENTER
EXPECT 15 Fake answer to
WAIT 1
TYPE /quit
ESC
ENTER
WAIT 3
"""

TYPED = [
    "first question about the project",
    "SCENARIO:full look at main.py",
    "the same again",
    "the same again",
]


def assert_ended_well(run: Finished) -> None:
    assert run.returncode == 0, run.stdout + run.stderr


def assert_told_once(watch: WatchProcess, person: Person) -> None:
    """What was told is what the archive has: all of it, each once."""
    told = Counter(map(identity, watch.events))
    kept: Counter[tuple[str, ...]] = Counter()
    keys = [key for key, row in person.rows().items() if row["kind"] not in ("checkpoint", "prompts-only")]
    for key in keys:
        events = person.run("events", "--text", "--json", key).objects
        kept.update(identity(event) for event in events if event["event"] != "session_end")
    assert told == kept


def identity(event: Json) -> tuple[str, ...]:
    return event["session"], event["event"], event.get("call_id") or event.get("text") or ""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "home")


def test_each_turn_of_a_running_session_appears_once(
    driven_gemini: Driver, person: Person, tmp_path: Path
) -> None:
    script = tmp_path / "turns.txt"
    script.write_text(SCRIPT)
    with start_watch(person, "--json", "--agent", "gemini") as watch:
        assert_ended_well(driven_gemini("0.61.0", person.folder, tmp_path / "project", str(script)))
        watch.settle()
        events = watch.events
        assert [text for text in event_texts(events, "user_prompt") if text in TYPED] == TYPED
        used = [event["call_id"] for event in watch.told("tool_use")]
        assert len(used) > 8
        assert len(used) == len(set(used))
        assert sorted(event["call_id"] for event in watch.told("tool_result")) == sorted(used)
        keys = {event["session"] for event in events}
        assert {key.partition("-")[0] for key in keys} == {"gemini:session"}  # not that of a lost one
        assert any("/" in key for key in keys)  # the subagent's
        assert_told_once(watch, person)

        # Everything is recorded once more by a resume, and some of it dropped by a rewind.
        run = driven_gemini("0.61.0", person.folder, tmp_path / "project", "resume-and-rewind.txt")
        assert_ended_well(run)
        watch.settle()
        later = watch.events[len(events) :]
        *resumed, last = event_texts(later, "user_prompt")
        assert resumed == ["interactive resumed question", "second interactive question"]
        assert last.endswith("after rewind question")
        assert len(event_texts(later, "assistant_text")) == 3
        assert_told_once(watch, person)
        assert watch.stop().code == 130


def test_a_cancelled_turn_is_told_once(driven_gemini: Driver, person: Person, tmp_path: Path) -> None:
    """Esc makes the CLI write its history down under new ids."""
    with start_watch(person, "--json") as watch:
        assert_ended_well(driven_gemini("0.61.0", person.folder, tmp_path / "project", "cancel.txt"))
        watch.settle()
        assert event_texts(watch.events, "user_prompt") == ["SCENARIO:full cancel test", "plain after cancel"]
        assert_told_once(watch, person)


def test_a_file_that_is_written_anew_with_each_turn_is_told_once(
    real_gemini: Gemini, person: Person, tmp_path: Path
) -> None:
    """0.38 writes its session as one JSON document."""
    options = ("-m", "gemini-2.5-flash", "--yolo", "-p", "SCENARIO:full please look at @main.py and fix it")
    with start_watch(person, "--json") as watch:
        real_gemini("0.38.2", person.folder, tmp_path / "project", *options)
        watch.settle()
        used = [event["call_id"] for event in watch.told("tool_use")]
        assert len(used) > 8
        assert len(used) == len(set(used))
        assert_told_once(watch, person)
