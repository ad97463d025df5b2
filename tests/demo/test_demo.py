"""The made-up home: read by the readers themselves without a complaint, whole, the same each time, and in its place."""

import os
import shlex
import stat
import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from retold.agents.registry import AGENTS
from retold.cli.commands import demo
from retold.cli.console import Console
from retold.demo.home import MARKER, DemoHome, OccupiedError, home_files, make_home
from retold.demo.story import parse_stories, stories
from retold.demo.timeline import StorySetting
from retold.model.session import Event, Message, Opaque, Session, Text, Thinking, ToolCall
from support.synced_archive import SyncedArchive, sync_archive

NOW = datetime(2026, 11, 16, 2, 10, tzinfo=UTC)
LISTED = ("main", "fork", "prompts-only")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps permissions in another way")


class Demo(NamedTuple):
    """A home, and what an archive makes of it."""

    made: DemoHome
    sessions: list[Session]
    archive: SyncedArchive


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    made = make_home(tmp_path_factory.mktemp("made") / "demo", NOW)
    archive = sync_archive(made.variables["RETOLD_HOME"], made.variables)
    return Demo(made, archive.sessions(), archive)


def messages(session: Session) -> Iterator[Message]:
    return (entry for entry in session.timeline if isinstance(entry, Message))


def calls(session: Session) -> Iterator[ToolCall]:
    return (part for message in messages(session) for part in message.parts if isinstance(part, ToolCall))


def titled(played: Demo, start: str) -> Session:
    (session,) = [one for one in played.sessions if (one.title or "").startswith(start)]
    return session


def contents(folder: Path) -> dict[str, tuple[bytes, float]]:
    """Every file below a folder, with its bytes and its time."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime) for path in files}


def test_every_file_is_read_without_a_problem(played: Demo) -> None:
    archive = played.archive
    assert (list(archive.problems), archive.refusals(), archive.coverage.problems) == ([], [], 0)
    assert archive.coverage.read == archive.coverage.found > 40
    assert not [problem for session in played.sessions for problem in session.problems]


def test_nothing_in_it_is_opaque(played: Demo) -> None:
    assert {session.coverage.opaque for session in played.sessions} == {0}
    parts = [part for session in played.sessions for message in messages(session) for part in message.parts]
    assert parts
    assert not [part for part in parts if isinstance(part, Opaque)]


def test_each_story_is_a_conversation(played: Demo) -> None:
    found = Counter(session.agent for session in played.sessions if session.kind in LISTED)
    assert found == played.made.conversations
    assert min(found.values()) >= 10
    assert 40 <= found.total() <= 60
    assert len({session.project.root for session in played.sessions} - {None}) == played.made.projects == 5


def test_conversations_are_short_and_long(played: Demo) -> None:
    sizes = sorted(session.counts.messages for session in played.sessions if session.kind in LISTED)
    assert sizes[0] <= 2
    assert len([size for size in sizes if size >= 30]) >= 5
    assert sizes[-1] >= 80


def test_titles_are_all_different(played: Demo) -> None:
    titles = [session.title for session in played.sessions if session.kind in LISTED]
    assert None not in titles
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("time zone bug", "Pickup times"),
        ("flaky test", "Flaky test"),
        ("oven sensor calibration", "Oven sensor calibration"),
        ("移動平均", "温度センサー"),
        ("eine gute prise", "Deutsche Maße"),
    ],
)
def test_a_topic_leads_to_its_conversation(played: Demo, words: str, title: str) -> None:
    found = [
        session.title or ""
        for session in played.sessions
        for message in messages(session)
        for part in message.parts
        if message.own and isinstance(part, Text) and words in part.text.lower()
    ]
    assert any(name.startswith(title) for name in found)


def test_tools_of_every_kind_are_used_by_every_agent(played: Demo) -> None:
    everywhere = {"shell_exec", "file_edit", "web_access", "planning", "agent", "mcp"}
    for agent in AGENTS:
        used = {call.canonical for one in played.sessions if one.agent == agent for call in calls(one)}
        assert everywhere <= used, agent
    looked = {call.canonical for one in played.sessions for call in calls(one)}
    assert {"file_read", "file_search", "file_write"} <= looked


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_calls_succeed_fail_and_are_stopped(played: Demo, agent: str) -> None:
    statuses = Counter(
        call.status for session in played.sessions if session.agent == agent for call in calls(session)
    )
    assert {"success", "error", "cancelled"} <= set(statuses)
    assert "unknown" not in statuses


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_several_models_think(played: Demo, agent: str) -> None:
    own = [session for session in played.sessions if session.agent == agent]
    assert len({model for session in own for model in session.models}) >= 2
    assert any(
        isinstance(part, Thinking) for one in own for message in messages(one) for part in message.parts
    )


def test_subagents_know_their_parents(played: Demo) -> None:
    keys = {session.key: session for session in played.sessions}
    subagents = [session for session in played.sessions if session.kind == "subagent"]
    assert {session.agent for session in subagents} == set(AGENTS)
    for session in subagents:
        assert session.key in keys[session.parent or ""].children
    started = {call.child for session in played.sessions for call in calls(session)}
    assert {session.key for session in subagents} <= started


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_fork_begins_with_copies_that_do_not_count(played: Demo, agent: str) -> None:
    (fork,) = [one for one in played.sessions if one.agent == agent and one.kind == "fork"]
    (parent,) = [one for one in played.sessions if one.key == fork.parent]
    assert any(not message.own for message in messages(fork))
    assert 0 < fork.usage.requests < parent.usage.requests


def test_something_was_taken_back(played: Demo) -> None:
    for title in ("Flaky test", "Dark mode", "What did the ovens cost"):
        rewound = [message.prompt for message in messages(titled(played, title)) if message.fate == "rewound"]
        assert [prompt for prompt in rewound if prompt]


@pytest.mark.parametrize("title", ["Why is the order list", "Christmas", "Disk is"])
def test_something_was_summed_up(played: Demo, title: str) -> None:
    session = titled(played, title)
    assert [entry for entry in session.timeline if isinstance(entry, Event) and entry.kind == "compaction"]
    assert {"live", "compacted"} <= {message.fate for message in messages(session)}


def test_of_deleted_sessions_the_prompts_are_left(played: Demo) -> None:
    lost = [session for session in played.sessions if session.kind == "prompts-only"]
    assert Counter(session.agent for session in lost) == {"gemini": 2, "codex": 1}
    assert all(session.counts.prompts >= 2 for session in lost)


def test_a_resumed_document_has_a_twin_and_a_ghost(played: Demo) -> None:
    session = titled(played, "LVGL 9")
    assert Counter(source.format for source in session.sources) == {"gemini-json": 1, "gemini-jsonl": 2}
    assert session.counts.prompts == 4
    assert {message.fate for message in messages(session)} == {"live"}


def test_a_checkpoint_was_saved(played: Demo) -> None:
    (saved,) = [session for session in played.sessions if session.kind == "checkpoint"]
    assert saved.key == "gemini:hearth-sensor/checkpoint-calibrated two points"


def test_the_program_itself_speaks_up(played: Demo) -> None:
    events = [entry for one in played.sessions for entry in one.timeline if isinstance(entry, Event)]
    assert {"error", "warning", "info"} <= {event.kind for event in events}


def test_a_project_behind_a_hash_is_found(played: Demo) -> None:
    hashed = [session for session in played.sessions if session.project.evidence == "hash"]
    assert {Path(session.project.root or "").name for session in hashed} == {"harbour"}


def test_conversations_end_in_every_way(played: Demo) -> None:
    assert {session.status for session in played.sessions} == {"success", "failure", "interrupted"}


def test_an_old_session_is_about_to_be_deleted(played: Demo) -> None:
    ages = {
        session.title: NOW - session.ended_at
        for session in played.sessions
        if session.agent == "gemini" and session.kind == "main" and session.project.evidence != "hash"
        if session.ended_at is not None
    }
    assert max(ages.values()) < timedelta(days=30), "Gemini CLI would have deleted it"
    assert timedelta(days=29) < ages["Oven sensor calibration with an ice bath"]


def test_a_conversation_goes_on_for_days(played: Demo) -> None:
    for title in ("Christmas", "MQTT", "LVGL"):
        session = titled(played, title)
        assert session.started_at is not None
        assert session.ended_at is not None
        assert session.ended_at - session.started_at > timedelta(hours=20)


def test_tokens_add_up_and_prompts_grow(played: Demo) -> None:
    for session in played.sessions:
        used = [message.usage for message in messages(session) if message.usage is not None and message.own]
        for usage in used:
            assert usage.total == (usage.input or 0) + (usage.output or 0) + (usage.reasoning or 0)
            assert (usage.cached or 0) <= (usage.input or 0)
        if session.kind in ("main", "fork"):
            assert not session.usage.estimated
            assert session.usage.requests == len(used) > 0
        sizes = [usage.input or 0 for usage in used]
        is_compacted = any(message.fate == "compacted" for message in messages(session))
        assert is_compacted or sizes == sorted(sizes)


@pytest.mark.parametrize("hour", [0, 2, 12, 23])
def test_nothing_is_said_in_the_future(hour: int) -> None:
    now = NOW.replace(hour=hour, minute=1)
    setting = StorySetting(Path("/somewhere/demo"), now)
    assert max(file.at for file in home_files(stories(), setting)) < now


def test_the_same_moment_makes_the_same_home(tmp_path: Path) -> None:
    make_home(tmp_path / "demo", NOW)
    first = contents(tmp_path / "demo")
    make_home(tmp_path / "demo", NOW)
    assert contents(tmp_path / "demo") == first
    make_home(tmp_path / "demo", NOW + timedelta(days=1))
    assert contents(tmp_path / "demo") != first


def test_files_are_as_old_as_what_is_in_them(played: Demo) -> None:
    session = titled(played, "Ampersands")
    (source,) = session.sources
    assert session.ended_at is not None
    assert abs(Path(source.path).stat().st_mtime - session.ended_at.timestamp()) < 60


@POSIX
def test_only_the_owner_may_look(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_home(tmp_path / "new" / "demo", NOW)
    finally:
        os.umask(before)
    for path in (tmp_path / "new" / "demo").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_nothing_outside_its_folder_is_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    made = make_home(tmp_path / "demo", NOW)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "mine.txt"]
    assert all(Path(value).is_relative_to(tmp_path / "demo") for value in made.variables.values())
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [MARKER, "home", "retold"]


def test_a_folder_with_anything_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OccupiedError):
        make_home(tmp_path, NOW)
    with pytest.raises(OccupiedError):
        make_home(tmp_path / "mine.txt", NOW)
    assert contents(tmp_path).keys() == {"mine.txt"}


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    make_home(tmp_path, NOW)
    assert (tmp_path / MARKER).is_file()


def test_made_again_it_keeps_what_others_put_there(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    make_home(folder, NOW)
    mine = folder / "home" / "code" / "ladle" / "mine.txt"
    mine.write_text("mine")
    (folder / "retold" / "archive.db").write_text("of the demo before")
    stale = next((folder / "home" / ".codex").rglob("rollout-*"))
    make_home(folder, NOW + timedelta(days=3))
    assert mine.read_text() == "mine"
    assert not stale.exists()
    assert not (folder / "retold" / "archive.db").exists()


@POSIX
def test_a_marker_leads_to_nothing_outside(tmp_path: Path) -> None:
    folder, outside = tmp_path / "demo", tmp_path / "mine.txt"
    outside.write_text("mine")
    make_home(folder, NOW)
    (folder / "way-out").symlink_to(tmp_path)
    with (folder / MARKER).open("a") as marker:
        marker.write(f"../mine.txt\n{outside}\nway-out/mine.txt\n")
    make_home(folder, NOW)
    assert outside.read_text() == "mine"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("you:", "you said"),
        lambda text: text.replace("you:", "yuo:"),
        lambda text: text.replace("id:", "name:"),
    ],
)
def test_a_script_with_a_mistake_is_not_played(spoil: Callable[[str], str]) -> None:
    script = "# Hm\nid: hm\nagent: codex\nproject: p\nmodel: m\nwhen: 1 09:00\n\nyou: Hello\n"
    assert [story.prompts() for story in parse_stories(script)] == [("Hello",)]
    with pytest.raises(ValueError, match=r"nobody knows|no beat"):
        list(parse_stories(spoil(script)))


class Spoken(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str


def run(*arguments: str) -> Spoken:
    parser = ArgumentParser()
    demo.add_arguments(parser)
    out, err = StringIO(), StringIO()
    code = demo.run(parser.parse_args(arguments), Console(os.environ, out, err))
    return Spoken(code, out.getvalue(), err.getvalue())


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RETOLD_HOME", str(tmp_path / "own"))
    for name in demo.OVERRIDES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "own"


@POSIX
def test_the_command_prints_what_a_shell_can_eval(own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "it's a demo"
    spoken = run(str(folder))
    assert spoken.code == 0
    assert not own.exists()
    show = 'eval "$1"; printf "%s\\n" "$RETOLD_HOME" "$GEMINI_CLI_HOME" "$CLAUDE_CONFIG_DIR" "$CODEX_HOME"'
    told = subprocess.run(("sh", "-c", show, "sh", spoken.out), capture_output=True, text=True, check=True)
    home = folder / "home"
    assert told.stdout.splitlines() == [
        str(folder / "retold"),
        str(home),
        str(home / ".claude"),
        str(home / ".codex"),
    ]


@pytest.mark.usefixtures("own")
def test_the_command_tells_people_what_it_made(tmp_path: Path) -> None:
    spoken = run(str(tmp_path / "a demo"))
    assert f"{len(stories())} invented conversations of three agents in 5 projects" in spoken.err
    assert f"eval \"$(retold demo '{tmp_path / 'a demo'}')\"" in spoken.err
    assert spoken.err.count("\n  retold ") == len(demo.EXAMPLES)


def test_it_lies_in_retolds_own_folder_unless_told(own: Path) -> None:
    spoken = run()
    assert spoken.code == 0
    assert 'eval "$(retold demo)"' in spoken.err
    assert (own / "demo" / MARKER).is_file()


def test_a_demo_within_the_demo_is_the_same_one(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setenv("RETOLD_HOME", str(own / "demo" / "retold"))
    assert run().code == 0
    assert not list((own / "demo" / "retold").iterdir())


@pytest.mark.usefixtures("own")
def test_the_command_refuses_a_folder_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    spoken = run(str(tmp_path))
    assert (spoken.code, spoken.out) == (1, "")
    assert str(tmp_path) in spoken.err
    assert spoken.err.count("\n") == 1


def test_variables_that_would_win_are_taken_away() -> None:
    env = {"CODEX_SESSIONS_DIR": "/elsewhere"}
    lines = list(demo.shell_lines({"CODEX_HOME": "/a b"}, env, "linux"))
    assert lines == ["unset CODEX_SESSIONS_DIR", "export CODEX_HOME='/a b'"]
    assert shlex.split(lines[1]) == ["export", "CODEX_HOME=/a b"]
    assert list(demo.shell_lines({"CODEX_HOME": "C:\\a b"}, env, "win32")) == [
        "set CODEX_SESSIONS_DIR=",
        'set "CODEX_HOME=C:\\a b"',
    ]
