"""What the real CLI writes down is read back whole: it is run here, and then its files are read."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from retold.agents import gemini
from retold.agents.protocol import Reading, Source
from retold.model.session import Attachment, Message, Session, Thinking, ToolCall
from support.real_gemini import Driver, Finished, Gemini, Oracle, record_ids

pytestmark = [pytest.mark.shared, pytest.mark.real_cli]

TYPED = "SCENARIO:full please look at @main.py and fix it"
RESUMED = "a resumed question"
OPTIONS = ("-m", "gemini-2.5-flash", "--yolo")
TOOLS = {
    "read_file": "file_read",
    "run_shell_command": "shell_exec",
    "write_file": "file_write",
    "replace": "file_edit",
    "list_directory": "file_read",
    "glob": "file_search",
    "grep_search": "file_search",
    "write_todos": "planning",
    "no_such_tool": "other",
}
MORE_TOOLS = {
    "0.38.2": {"save_memory": "memory", "codebase_investigator": "file_search"},
    "0.61.0": {"invoke_agent": "agent"},
}
FIGURES = {
    "input": "input",
    "cached": "cached",
    "output": "output",
    "thoughts": "reasoning",
    "tool": "tool",
    "total": "total",
}
"""The CLI's names of token counts, and ours."""


@dataclass(frozen=True)
class Work:
    """One version's session with everything in it, and the subagent's."""

    version: str
    project: Path
    file: Path
    main: Session
    subagent: Session


def readings(home: Path) -> Iterator[Reading]:
    """Yield what the session files of a home say; other files do not count here."""
    (found,) = gemini.find_homes({"HOME": str(home)})
    for source in gemini.find_sources(found):
        assert isinstance(source, Source), source
        if "chats" in source.path.parts:
            read = gemini.read(source)
            assert isinstance(read, Sequence), read
            yield from read


def conversations(home: Path) -> Sequence[Session]:
    """Every conversation of a home, whatever the number of files it lies in; there is one with its subagents."""
    by_group: dict[str | None, list[Reading]] = {}
    for reading in readings(home):
        by_group.setdefault(gemini.group_key(reading), []).append(reading)
    return gemini.relate([gemini.join(group) for group in by_group.values()])


def main_session(home: Path) -> Session:
    (found,) = (session for session in conversations(home) if session.kind == "main")
    return found


def messages(session: Session) -> list[Message]:
    return [entry for entry in session.timeline if isinstance(entry, Message)]


def prompts(session: Session) -> list[str]:
    return [message.prompt for message in messages(session) if message.prompt is not None]


def calls(session: Session) -> list[ToolCall]:
    return [part for message in messages(session) for part in message.parts if isinstance(part, ToolCall)]


def big_call(session: Session) -> ToolCall:
    """The call whose output is so big that the CLI moves it to a file."""
    (found,) = (call for call in calls(session) if call.arguments.get("command") == "seq 1 30000")
    return found


def repeated_calls(session: Session) -> list[str]:
    return [call_id for call_id, times in Counter(call.id for call in calls(session)).items() if times > 1]


def records(file: Path) -> list[dict[str, Any]]:
    """Every record of a file as it stands there, of lines or of a whole document."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        return list(json.loads(text)["messages"])
    return [json.loads(line) for line in text.split("\n") if line]


def recorded_tokens(file: Path) -> Counter[str]:
    """The sum of all `tokens` in a file, those of one message once."""
    by_id = {record["id"]: record["tokens"] for record in records(file) if record.get("tokens")}
    tokens = Counter({"requests": len(by_id)})
    for counted in by_id.values():
        tokens.update({ours: counted[theirs] for theirs, ours in FIGURES.items()})
    return tokens


def recorded_calls(file: Path) -> set[str]:
    return {call["id"] for record in records(file) for call in record.get("toolCalls") or ()}


def assert_ended_well(finished: Finished) -> None:
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-2000:]


def assert_active_as_loaded(home: Path, oracle: Oracle) -> None:
    found = list(readings(home))
    loaded = oracle([reading.source.path for reading in found])
    active = [[entry.id for entry in gemini.join([reading], "active").timeline] for reading in found]
    assert active == [record_ids(record) for record in loaded]


# A session with everything in it


@pytest.fixture(scope="module", params=sorted(MORE_TOOLS))
def work(
    request: pytest.FixtureRequest, real_gemini: Gemini, tmp_path_factory: pytest.TempPathFactory
) -> Work:
    folder = tmp_path_factory.mktemp("work")
    home, project = folder / "home", folder / "project"
    assert_ended_well(real_gemini(request.param, home, project, *OPTIONS, "-p", TYPED))
    main, subagent = sorted(conversations(home), key=lambda session: session.kind)
    return Work(request.param, project, Path(main.sources[0].path), main, subagent)


def test_the_prompt_is_what_was_typed(work: Work) -> None:
    assert prompts(work.main) == [TYPED]
    assert work.main.first_prompt == work.main.last_prompt == work.main.title == TYPED


def test_a_file_that_the_prompt_refers_to_is_attached(work: Work) -> None:
    (asked,) = (message for message in messages(work.main) if message.prompt)
    assert [part.path for part in asked.parts if isinstance(part, Attachment)] == ["main.py"]


def test_tools_have_their_canonical_names(work: Work) -> None:
    assert {call.name: call.canonical for call in calls(work.main)} == TOOLS | MORE_TOOLS[work.version]


def test_every_call_is_there_once(work: Work) -> None:
    assert {call.id for call in calls(work.main)} == recorded_calls(work.file)
    assert not repeated_calls(work.main)


def test_a_tool_that_failed_tells_its_error(work: Work) -> None:
    failed = {call.name: call for call in calls(work.main) if call.status == "error"}
    assert failed.keys() == {"read_file", "no_such_tool"}
    assert failed["read_file"].error == f"File not found: {work.project / 'does-not-exist.txt'}"
    assert failed["read_file"].result is None


def test_a_command_that_failed_is_a_success_with_an_exit_code(work: Work) -> None:
    (failed,) = (call for call in calls(work.main) if call.exit_code is not None)
    assert (failed.name, failed.status, failed.exit_code) == ("run_shell_command", "success", 3)


def test_thoughts_are_kept(work: Work) -> None:
    thoughts = [
        part for message in messages(work.main) for part in message.parts if isinstance(part, Thinking)
    ]
    assert [(thought.subject, thought.text) for thought in thoughts] == [
        ("Planning the work", "I will read a file and run a shell command."),
        ("Second thought", "More reasoning."),
        ("Looking wider", "Searching."),
        ("Wrapping up", "All done."),
    ]


def test_usage_is_the_sum_of_what_is_recorded(work: Work) -> None:
    tokens = recorded_tokens(work.file)
    assert tokens["total"] > 0
    assert {name: getattr(work.main.usage, name) for name in tokens} == tokens
    assert not work.main.usage.estimated


def test_every_call_tells_how_long_it_took(work: Work) -> None:
    assert work.main.started_at is not None
    assert work.main.ended_at is not None
    whole = (work.main.ended_at - work.main.started_at).total_seconds() * 1000
    for call in calls(work.main):
        assert call.took_ms is not None, call.name
        assert 0 < call.took_ms < whole, call.name


def test_models_and_status_are_told(work: Work) -> None:
    assert work.main.models == ("gemini-2.5-flash",)
    assert work.main.status == "success"


def test_nothing_in_a_file_of_the_real_cli_is_a_problem(work: Work) -> None:
    assert work.main.problems == ()
    assert work.subagent.problems == ()
    assert work.main.coverage.opaque == work.subagent.coverage.opaque == 0


def test_the_subagent_is_a_session_of_its_own_below_its_parent(work: Work) -> None:
    assert (work.main.kind, work.subagent.kind) == ("main", "subagent")
    assert work.subagent.parent == work.main.key
    assert work.main.children == (work.subagent.key,)
    assert work.subagent.key.startswith(work.main.key + "/")
    assert prompts(work.subagent) == []
    assert [call.name for call in calls(work.subagent)] == ["list_directory", "complete_task"]


def test_the_call_that_started_the_subagent_leads_to_it(work: Work) -> None:
    assert [call.child for call in calls(work.main) if call.child is not None] == [work.subagent.key]


def test_an_output_that_was_moved_out_is_found_whole(work: Work) -> None:
    (moved,) = work.file.parents[1].glob("tool-outputs/*/*.txt")
    big = big_call(work.main)
    assert big.full_result == moved.read_bytes().decode()
    assert len(big.full_result) > len(big.result or "")


def test_the_active_view_is_what_the_loader_returns(work: Work, oracle: Oracle) -> None:
    assert_active_as_loaded(work.project.parent / "home", oracle)


# A session whose tokens were lost in part


def test_tokens_that_0_20_lost_are_told(real_gemini: Gemini, tmp_path: Path) -> None:
    """The second response is nothing but calls: its tokens wait for a message, and the next response's take their place."""
    home = tmp_path / "home"
    assert_ended_well(real_gemini("0.20.2", home, tmp_path / "project", *OPTIONS, "-p", TYPED))
    session = main_session(home)
    assert session.usage.requests == recorded_tokens(Path(session.sources[0].path))["requests"] == 5
    assert [(problem.code, problem.message) for problem in session.problems] == [
        ("tokens-unrecorded", "at least 1 of 6 responses have no token count")
    ]
    assert all(call.took_ms for call in calls(session))


# A session that was resumed


@pytest.fixture(scope="module")
def resumed(real_gemini: Gemini, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which a session was resumed: the CLI writes its whole history down once more."""
    folder = tmp_path_factory.mktemp("resumed")
    home, project = folder / "home", folder / "project"
    assert_ended_well(real_gemini("0.61.0", home, project, *OPTIONS, "-p", TYPED))
    assert_ended_well(real_gemini("0.61.0", home, project, *OPTIONS, "--resume", "latest", "-p", RESUMED))
    return home


def test_a_resumed_session_shows_each_prompt_once(resumed: Path) -> None:
    assert prompts(main_session(resumed)) == [TYPED, RESUMED]


def test_a_resumed_session_shows_each_call_once(resumed: Path) -> None:
    session = main_session(resumed)
    assert {call.name for call in calls(session)} == (TOOLS | MORE_TOOLS["0.61.0"]).keys()
    assert not repeated_calls(session)
    assert all(call.status in ("success", "error") for call in calls(session))


def test_a_resumed_session_still_has_its_moved_output_to_the_last_line(resumed: Path) -> None:
    # Asked of 0.61.0 only: 0.38.2 itself loses the end of an output on a busy machine.
    full = big_call(main_session(resumed)).full_result or ""
    numbers = re.findall(r"^(?:Output: )?(\d+)$", full, re.MULTILINE)
    assert numbers == [str(number) for number in range(1, 30_001)]


def test_a_resumed_session_counts_tokens_once(resumed: Path) -> None:
    session = main_session(resumed)
    files = [Path(source.path) for source in session.sources]
    assert session.usage.total == sum(recorded_tokens(file)["total"] for file in files)
    assert "tokens-unrecorded" not in {problem.code for problem in session.problems}


def test_the_active_view_of_a_resumed_session_is_what_the_loader_returns(
    resumed: Path, oracle: Oracle
) -> None:
    assert_active_as_loaded(resumed, oracle)


# A session whose turn was cancelled


def test_a_cancelled_session_shows_everything_once(
    driven_gemini: Driver, oracle: Oracle, tmp_path: Path
) -> None:
    """Esc makes the CLI write its history down under new ids; only these are active then."""
    home = tmp_path / "home"
    assert_ended_well(driven_gemini("0.61.0", home, tmp_path / "project", "cancel.txt"))
    session = main_session(home)
    assert prompts(session) == ["SCENARIO:full cancel test", "plain after cancel"]
    assert "cancelled" in {call.status for call in calls(session)}
    assert "tokens-unrecorded" not in {problem.code for problem in session.problems}
    assert not repeated_calls(session)
    assert_active_as_loaded(home, oracle)
