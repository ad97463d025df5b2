"""What the real Codex CLI writes down is read back whole: it is run here against a fake API, and then its files are read."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import retold
from conftest import available, unavailable
from retold import Event, Message, Session, Thinking, ToolCall
from retold.model.session import View
from support.fake_openai import PARALLEL, TASK, THOUGHT, run_fake_openai, total
from support.real_codex import (
    HEADLESS,
    SCRIPTING_MODEL,
    SEALING_PROVIDER,
    AppServer,
    CodexHome,
    install_codex,
    make_codex_home,
)
from support.real_gemini import cache_folder, missing_programs
from support.synced_archive import sync_archive

pytestmark = pytest.mark.real_cli

NEWEST = "0.166.0"
EXECUTED = ("0.42.0", "0.118.0", "0.148.0", NEWEST)
DRIVEN = ("0.118.0", "0.148.0", NEWEST)
TYPED = (
    "THINK about this folder, then LIST it",
    "Now FAIL at something",
    "Do two things in PARALLEL",
    "PATCH a note into the folder",
)
IN_FORK = "What if we had asked this instead?"
FIRST, SECOND, UNDONE = "Where do we begin?", "And what comes second?", "This was a mistake"
AFTER, LAST = "Let us try another way", "What is left to do?"
KEPT_AWAY = "This one goes to the archive"
STOPPED = "HANG until somebody stops you"
REFUSED = "REFUSE to answer this"
DELEGATED = "SPAWN a helper"

Threads = Mapping[str, str]


@dataclass(frozen=True)
class Work:
    """What was done in one place, with the ids of the conversations by what they are to the tests."""

    place: CodexHome
    threads: Threads

    def session(self, name: str, view: View = "full") -> Session:
        return conversations(self.place, view)[self.threads[name]]


def conversations(place: CodexHome, view: View = "full") -> dict[str, Session]:
    """Every conversation of a home, by its native id, whatever the number of files it lies in."""
    with TemporaryDirectory() as folder:
        archive = sync_archive(folder, {"CODEX_HOME": str(place.home)}, agents=["codex"])
        assert not archive.problems
        assert archive.refusals() == []
        sessions = archive.sessions(view)
    by_id = {str(session.native_id): session for session in sessions}
    assert len(by_id) == len(sessions), "a conversation was read twice"
    return by_id


def messages(session: Session) -> list[Message]:
    return [entry for entry in session.timeline if isinstance(entry, Message)]


def prompts(session: Session) -> list[str]:
    return [message.prompt for message in messages(session) if message.prompt is not None and message.own]


def calls(session: Session) -> list[ToolCall]:
    return [part for message in messages(session) for part in message.parts if isinstance(part, ToolCall)]


def events(session: Session, kind: str) -> list[Event]:
    return [entry for entry in session.timeline if isinstance(entry, Event) and entry.kind == kind]


def assert_spent_as_served(work: Work, name: str) -> None:
    """Hold a session's usage against what the API said; we count reasoning apart from output."""
    served = work.place.fake.served_to(work.threads[name])
    spent, usage = total(served), work.session(name).usage
    assert (usage.input, usage.cached, usage.output, usage.reasoning, usage.total) == (
        spent.input,
        spent.cached,
        spent.output - spent.reasoning,
        spent.reasoning,
        spent.input + spent.output,
    )
    assert usage.requests == len(served) > 0
    assert not usage.estimated


def first_record(rollout: Path) -> dict[str, Any]:
    with rollout.open(encoding="utf-8") as lines:
        record: dict[str, Any] = json.loads(next(lines))
    return record


@dataclass(frozen=True)
class Workshop:
    """Has each piece of work done once in a test process, in a place with an API of its own."""

    folders: pytest.TempPathFactory
    fakes: ExitStack
    finished: dict[tuple[str, str], Work]

    def work(self, done: Callable[[CodexHome], Threads], version: str, **config: str) -> Work:
        made = (done.__name__, version)
        if made not in self.finished:
            with available():
                program = install_codex(cache_folder(os.environ), version)
            fake = self.fakes.enter_context(run_fake_openai())
            place = make_codex_home(program, version, self.folders.mktemp("codex"), fake, **config)
            self.finished[made] = Work(place, done(place))
        return self.finished[made]


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    if missing := missing_programs():
        unavailable(f"not on PATH: {', '.join(missing)}")
    with ExitStack() as fakes:
        yield Workshop(tmp_path_factory, fakes, {})


# Headless, and resumed


def asked_and_resumed(place: CodexHome) -> Threads:
    thread = place.ask(TYPED[0])
    for prompt in TYPED[1:]:
        place.ask(prompt, "resume", thread)
    return {"main": thread}


@pytest.fixture(params=EXECUTED)
def executed(request: pytest.FixtureRequest, workshop: Workshop) -> Work:
    return workshop.work(asked_and_resumed, request.param)


def test_the_cli_writes_one_file_for_a_resumed_conversation(executed: Work) -> None:
    (rollout,) = executed.place.rollouts()
    meta = first_record(rollout)["payload"]
    assert (meta["id"], meta["cli_version"]) == (executed.threads["main"], executed.place.version)


def test_every_prompt_is_there_once_and_in_order(executed: Work) -> None:
    session = executed.session("main")
    assert prompts(session) == list(TYPED)
    assert (session.first_prompt, session.last_prompt) == (TYPED[0], TYPED[-1])


def test_a_file_read_by_itself_tells_the_same(executed: Work) -> None:
    whole = executed.session("main")
    (rollout,) = executed.place.rollouts()
    (alone,) = retold.read(rollout)
    assert (alone.key, prompts(alone), alone.usage) == (whole.key, prompts(whole), whole.usage)


def test_calls_have_their_results_and_exit_codes(executed: Work) -> None:
    listed, failed, *parallel, patched = calls(executed.session("main"))
    assert "main.py" in (listed.result or "")
    assert "broken" in (failed.result or failed.error or "")
    assert [listed.exit_code, failed.exit_code] == [0, 3]
    assert [
        line.removeprefix("echo ") in (call.result or "")
        for line, call in zip(PARALLEL, parallel, strict=True)
    ] == [True, True]
    assert "note.txt" in (patched.result or "")
    assert {call.status for call in (listed, *parallel, patched)} == {"success"}


def test_calls_have_canonical_names(executed: Work) -> None:
    *commands, patched = calls(executed.session("main"))
    assert {call.canonical for call in commands} == {"shell_exec"}
    if patched.name == "apply_patch":
        assert patched.canonical in {"file_edit", "file_write"}


def test_every_call_has_an_id_of_its_own(executed: Work) -> None:
    ids = [call.id for call in calls(executed.session("main"))]
    assert len(set(ids)) == len(ids) == 5


def test_a_thought_is_told_once(executed: Work) -> None:
    parts = [part for message in messages(executed.session("main")) for part in message.parts]
    thoughts = [part for part in parts if isinstance(part, Thinking)]
    assert len(thoughts) == 1
    assert THOUGHT.split("\n")[-1] in thoughts[0].text


def test_usage_of_a_resumed_conversation_is_what_the_api_said(executed: Work) -> None:
    assert_spent_as_served(executed, "main")


def test_what_the_cli_recorded_about_the_session_is_told(executed: Work) -> None:
    session = executed.session("main")
    assert (session.agent, session.kind, session.status) == ("codex", "main", "success")
    assert session.key == f"codex:{executed.threads['main']}"
    assert (session.project.root, session.project.evidence) == (str(executed.place.project), "recorded")
    assert session.models == (executed.place.model,)
    assert session.extra["cli_version"] == executed.place.version


def test_nothing_that_the_cli_wrote_is_a_problem(executed: Work) -> None:
    session = executed.session("main")
    assert session.problems == ()
    assert session.coverage.opaque == 0


# Before there was a kind on every line


def asked_once(place: CodexHome) -> Threads:
    return {"main": place.ask(TYPED[0])}


@pytest.fixture
def early(workshop: Workshop) -> Work:
    return workshop.work(asked_once, "0.29.0")


def test_an_early_file_tells_what_it_has(early: Work) -> None:
    session = early.session("main")
    assert prompts(session) == [TYPED[0]]
    (listed,) = calls(session)
    assert (listed.canonical, listed.status, listed.exit_code) == ("shell_exec", "success", 0)
    assert "main.py" in (listed.result or "")


def test_an_early_file_records_no_tokens_so_they_are_estimated(early: Work) -> None:
    assert early.session("main").usage.estimated


# Forked headless


def asked_and_forked(place: CodexHome) -> Threads:
    thread = place.ask(FIRST)
    return {"main": thread, "fork": place.ask(IN_FORK, "fork", thread)}


@pytest.fixture(params=("0.148.0", NEWEST))
def forked(request: pytest.FixtureRequest, workshop: Workshop) -> Work:
    return workshop.work(asked_and_forked, request.param)


def test_a_headless_fork_is_a_conversation_of_its_own(forked: Work) -> None:
    assert forked.session("fork").kind == "fork"
    assert prompts(forked.session("fork")) == [IN_FORK]
    assert prompts(forked.session("main")) == [FIRST]


@pytest.mark.parametrize("name", ["main", "fork"])
def test_a_headless_fork_counts_only_its_own_tokens(forked: Work, name: str) -> None:
    assert_spent_as_served(forked, name)


# Driven as an editor does it


def driven_by_an_editor(place: CodexHome) -> Threads:
    """Have a conversation that is forked, goes back, and is compacted; one that is archived, and one stopped."""
    with place.app_server() as server:
        main, fork = turned_back(server, place.project)
        server.compact(main)
        server.turn(main, LAST)
        archived = server.start(place.project)
        server.turn(archived, KEPT_AWAY)
        server.call("thread/archive", threadId=archived)
        stopped = server.start(place.project)
        stop(server, stopped, place)
    return {"main": main, "fork": fork, "archived": archived, "stopped": stopped}


def turned_back(server: AppServer, project: Path) -> tuple[str, str]:
    """Fork a conversation, then undo its last turn by the way that this version has, and go on."""
    main = server.start(project)
    server.turn(main, FIRST)
    server.turn(main, SECOND)
    fork = server.fork(main)
    server.turn(fork, IN_FORK)
    undone = server.turn(main, UNDONE)
    try:
        server.call("thread/revert", threadId=main, beforeTurnId=undone)
    except RuntimeError:  # older versions, and threads that are not paginated
        server.call("thread/rollback", threadId=main, numTurns=1)
    server.turn(main, AFTER)
    return main, fork


def stop(server: AppServer, thread: str, place: CodexHome) -> None:
    """Interrupt a turn while the API is still silent."""
    asked = len(place.fake.requests)
    turn = server.say(thread, STOPPED)
    deadline = time.monotonic() + 60
    while len(place.fake.requests) == asked and time.monotonic() < deadline:
        time.sleep(0.02)
    server.interrupt(thread, turn)


@pytest.fixture(params=DRIVEN)
def driven(request: pytest.FixtureRequest, workshop: Workshop) -> Work:
    return workshop.work(driven_by_an_editor, request.param)


def test_the_cli_keeps_an_archived_conversation_in_a_folder_of_its_own(driven: Work) -> None:
    (archived,) = driven.place.home.glob("archived_sessions/*.jsonl")
    assert driven.threads["archived"] in archived.name


def test_prompts_that_were_undone_are_still_told(driven: Work) -> None:
    assert prompts(driven.session("main")) == [FIRST, SECOND, UNDONE, AFTER, LAST]


def test_only_what_was_undone_is_rewound(driven: Work) -> None:
    session = driven.session("main")
    rewound = [message for message in messages(session) if message.fate == "rewound"]
    assert [message.prompt for message in rewound if message.prompt] == [UNDONE]
    assert "assistant" in {message.role for message in rewound}


def test_what_was_undone_is_not_active(driven: Work) -> None:
    active = prompts(driven.session("main", "active"))
    assert UNDONE not in active
    assert active[-1] == LAST


def test_a_compaction_is_an_event(driven: Work) -> None:
    assert len(events(driven.session("main"), "compaction")) == 1


def test_a_fork_tells_only_its_own_prompts_as_its_own(driven: Work) -> None:
    session = driven.session("fork")
    assert session.kind == "fork"
    assert prompts(session) == [IN_FORK]
    copied = [message.prompt for message in messages(session) if message.prompt and not message.own]
    assert copied in ([], [FIRST, SECOND])


@pytest.mark.parametrize("name", ["main", "fork", "archived"])
def test_usage_is_what_the_api_said_to_each_conversation(driven: Work, name: str) -> None:
    assert_spent_as_served(driven, name)


def test_an_archived_conversation_is_found(driven: Work) -> None:
    assert prompts(driven.session("archived")) == [KEPT_AWAY]


def test_a_stopped_turn_leaves_an_interrupted_session(driven: Work) -> None:
    session = driven.session("stopped")
    assert prompts(session) == [STOPPED]
    assert (session.status, session.usage.requests) == ("interrupted", 0)


def test_a_conversation_in_several_files_is_one(driven: Work) -> None:
    session = driven.session("main")
    files = [path for path in driven.place.rollouts() if driven.threads["main"] in path.name]
    assert sorted(source.path for source in session.sources) == [str(path) for path in files]


def test_nothing_that_an_editor_makes_the_cli_write_is_a_problem(driven: Work) -> None:
    sessions = conversations(driven.place).values()
    assert [session.problems for session in sessions if session.problems] == []


# With a subagent


def asked_to_delegate(place: CodexHome) -> Threads:
    main = place.ask(DELEGATED)
    (subagent,) = {served.thread for served in place.fake.served if served.prompt == TASK}
    return {"main": main, "subagent": subagent}


@pytest.fixture(params=DRIVEN)
def delegated(request: pytest.FixtureRequest, workshop: Workshop) -> Work:
    return workshop.work(asked_to_delegate, request.param)


def test_a_subagent_is_a_session_below_its_parent(delegated: Work) -> None:
    main, subagent = delegated.session("main"), delegated.session("subagent")
    assert (main.kind, subagent.kind) == ("main", "subagent")
    assert (subagent.parent, main.children) == (main.key, (subagent.key,))


def test_nobody_typed_what_a_subagent_is_told(delegated: Work) -> None:
    assert prompts(delegated.session("subagent")) == []
    assert prompts(delegated.session("main")) == [DELEGATED]


def test_the_call_that_started_a_subagent_leads_to_it(delegated: Work) -> None:
    started, waited = calls(delegated.session("main"))
    assert started.child == delegated.session("subagent").key
    assert (started.canonical, waited.canonical) == ("agent", "agent")


@pytest.mark.parametrize("name", ["main", "subagent"])
def test_a_subagent_counts_its_own_tokens(delegated: Work, name: str) -> None:
    assert_spent_as_served(delegated, name)


# With a model that writes scripts, and an API that seals its summaries


def asked_for_scripts(place: CodexHome) -> Threads:
    thread = place.ask(TYPED[2])
    place.ask(TYPED[3], "resume", thread)
    return {"main": thread}


@pytest.fixture
def scripted(workshop: Workshop) -> Work:
    return workshop.work(asked_for_scripts, NEWEST, model=SCRIPTING_MODEL)


def test_a_script_is_one_call_whatever_it_calls(scripted: Work) -> None:
    session = scripted.session("main")
    assert prompts(session) == list(TYPED[2:])
    assert [call.name for call in calls(session)] == ["exec"] * 3
    assert "first" in (calls(session)[0].result or "")
    assert_spent_as_served(scripted, "main")


def compacted_by_the_api(place: CodexHome) -> Threads:
    with place.app_server() as server:
        thread = server.start(place.project)
        server.turn(thread, FIRST)
        server.compact(thread)
        server.turn(thread, LAST)
    return {"main": thread}


@pytest.fixture(params=("0.118.0", NEWEST))
def sealed(request: pytest.FixtureRequest, workshop: Workshop) -> Work:
    return workshop.work(compacted_by_the_api, request.param, provider=SEALING_PROVIDER)


def test_a_sealed_summary_is_a_compaction_too(sealed: Work) -> None:
    session = sealed.session("main")
    assert prompts(session) == [FIRST, LAST]
    assert len(events(session, "compaction")) == 1
    assert_spent_as_served(sealed, "main")


# With an API that refuses


def asked_in_vain(place: CodexHome) -> Threads:
    assert place.run(*HEADLESS, REFUSED).returncode == 1
    (rollout,) = place.rollouts()
    return {"main": first_record(rollout)["payload"]["id"]}


@pytest.fixture(params=("0.118.0", NEWEST))
def refused(request: pytest.FixtureRequest, workshop: Workshop) -> Work:
    return workshop.work(asked_in_vain, request.param)


def test_a_refused_prompt_is_kept(refused: Work) -> None:
    session = refused.session("main")
    assert prompts(session) == [REFUSED]
    assert (session.status, session.usage.requests) == ("interrupted", 0)
