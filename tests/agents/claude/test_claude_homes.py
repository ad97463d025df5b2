"""Homes of Claude Code, made up: what is found in them, what belongs together, and what is nobody's business."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from retold.agents import claude
from retold.agents.protocol import AgentHome, Source
from retold.model.session import Message, Session, ToolCall
from support.session_json import session_json
from support.synced_archive import sync_archive, sync_conversations

Json = dict[str, Any]
FIRST = "5b1f0c7e-2a94-4d3b-9c61-7e0d4f82a6b3"
SECOND = "0d9c8b7a-6f5e-4d3c-8b2a-190817263544"
PROJECT = "-home-ann-dev-almanac"
CWD = "/home/ann/dev/almanac"
TASK = "Look in the attic."


def line(kind: str, uuid: str, minute: int, message: Json, **more: Any) -> Json:
    told = {"parentUuid": None, "isSidechain": False, "cwd": CWD, "sessionId": FIRST, "version": "2.1.30"}
    at = f"2026-03-01T09:{minute:02}:00.000Z"
    return {**told, "type": kind, "uuid": uuid, "timestamp": at, "message": message, **more}


def said(uuid: str, minute: int, text: str, **more: Any) -> Json:
    return line("user", uuid, minute, {"role": "user", "content": text}, **more)


def answered(uuid: str, minute: int, *content: Json, **more: Any) -> Json:
    usage = {
        "input_tokens": 3,
        "output_tokens": 40,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 7,
    }
    message = {"id": f"msg_{uuid}", "role": "assistant", "model": "claude-opus-4-5", "content": list(content)}
    return line("assistant", uuid, minute, {**message, "usage": usage}, requestId=f"req_{uuid}", **more)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(name: str, **given: Any) -> Json:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}


def result(uuid: str, minute: int, words: str, **more: Any) -> Json:
    content = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": words}]
    return line("user", uuid, minute, {"role": "user", "content": content}, **more)


TALK = [said("u1", 1, "How high is the tide?"), answered("a1", 2, text("Two metres."), parentUuid="u1")]
MORE = [
    said("u2", 3, "And tomorrow?", parentUuid="a1"),
    answered("a2", 4, text("A little more."), parentUuid="u2"),
]
DELEGATED = [
    said("u1", 1, "Find the chart."),
    answered("a1", 2, call("Task", prompt=TASK, description="Find it"), parentUuid="u1"),
    result(
        "u2", 5, "In the attic.", parentUuid="a1", toolUseResult={"agentId": "a9f8", "status": "completed"}
    ),
    answered("a2", 6, text("In the attic."), parentUuid="u2"),
]


def subagent(agent_id: str = "a9f8", task: str = TASK, session: str = FIRST) -> list[Json]:
    told = {"isSidechain": True, "agentId": agent_id, "sessionId": session}
    names = [f"{agent_id}-1", f"{agent_id}-2"]
    return [
        said(names[0], 3, task, **told),
        answered(names[1], 4, text("In the attic."), parentUuid=names[0], **told),
    ]


class Made:
    """A `.claude` folder to put transcripts into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.projects = folder / ".claude" / "projects"
        self.projects.mkdir(parents=True)

    def write(self, name: str, lines: Sequence[Json], project: str = PROJECT) -> Path:
        file = self.projects / project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(record) + "\n" for record in lines), encoding="utf-8")
        return file


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "ann")


def home_of(folder: Path) -> AgentHome:
    home = claude.find_home(folder)
    assert home is not None
    return home


def everything(*folders: Path) -> list[Session]:
    return sorted(sync_conversations(*folders, agent="claude"), key=lambda session: session.key)


def found_in(folder: Path) -> list[str]:
    home = home_of(folder)
    sources = [source for source in claude.find_sources(home) if isinstance(source, Source)]
    return [source.path.relative_to(home.sessions).as_posix() for source in sources]


def prompts(session: Session) -> list[str]:
    messages = [entry for entry in session.timeline if isinstance(entry, Message)]
    return [message.prompt for message in messages if message.prompt is not None]


def calls(session: Session) -> list[ToolCall]:
    messages = [entry for entry in session.timeline if isinstance(entry, Message)]
    return [part for message in messages for part in message.parts if isinstance(part, ToolCall)]


@pytest.mark.parametrize(
    "place",
    [
        f"{FIRST}/subagents/agent-a9f8.jsonl",
        f"{FIRST}/subagents/workflows/w1/agent-a9f8.jsonl",
        "agent-a9f8.jsonl",
    ],
)
def test_a_subagent_is_linked_to_its_parent_and_to_its_call(made: Made, place: str) -> None:
    made.write(f"{FIRST}.jsonl", DELEGATED)
    made.write(place, subagent())
    parent, child = everything(made.folder)
    assert (child.key, child.kind, child.parent) == (f"claude:{FIRST}/a9f8", "subagent", parent.key)
    assert (child.native_id, prompts(child)) == ("a9f8", [])
    assert parent.children == (child.key,)
    assert [made_call.child for made_call in calls(parent)] == [child.key]
    assert (parent.usage.total, child.usage.total) == (300, 150)
    assert {(session.project.root, session.project.native_key) for session in (parent, child)} == {
        (CWD, PROJECT)
    }


def test_subagents_in_the_main_file_are_linked_by_what_they_were_asked(made: Made) -> None:
    sides = [subagent("first", "Look in the cellar."), subagent("second", "Look in the attic.")]
    aside = [
        {key: value for key, value in record.items() if key != "agentId"} for side in sides for record in side
    ]
    started = answered(
        "a1",
        2,
        {**call("Task", prompt="Look in the attic."), "id": "toolu_attic"},
        {**call("Task", prompt="Look in the cellar."), "id": "toolu_cellar"},
        parentUuid="u1",
    )
    made.write(f"{FIRST}.jsonl", [said("u1", 1, "Find the chart."), started, *aside])
    parent, cellar, attic = everything(made.folder)
    assert [session.key for session in (cellar, attic)] == [
        f"claude:{FIRST}/first-1",
        f"claude:{FIRST}/second-1",
    ]
    assert parent.children == (cellar.key, attic.key)
    assert {made_call.id: made_call.child for made_call in calls(parent)} == {
        "toolu_attic": attic.key,
        "toolu_cellar": cellar.key,
    }


def test_what_is_no_transcript_is_not_even_found(made: Made) -> None:
    made.write(f"{FIRST}.jsonl", TALK)
    made.write(f"{FIRST}/subagents/agent-a9f8.jsonl", subagent())
    for name in (
        "memory/notes.jsonl",
        "memory/agent-x.jsonl",
        f"{FIRST}/subagents/workflows/w1/journal.jsonl",
        f"{FIRST}/subagents/agent-a9f8.meta.json",
        f"{FIRST}/tool-results/b1.txt",
        f"{FIRST}/session.jsonl",
        "sessions-index.json",
        ".session-aliases",
    ):
        made.write(name, [{"type": "started", "agentId": "a9f8"}])
    for name in ("history.jsonl", "settings.json", ".credentials.json", f"todos/{FIRST}-agent-{FIRST}.json"):
        file = made.projects.parent / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}")
    (made.projects / "loose.jsonl").write_text("{}")
    assert found_in(made.folder) == [
        f"{PROJECT}/{FIRST}/subagents/agent-a9f8.jsonl",
        f"{PROJECT}/{FIRST}.jsonl",
    ]


def test_a_file_that_is_no_session_is_told(made: Made, tmp_path: Path) -> None:
    made.write(f"{FIRST}.jsonl", TALK)
    empty = made.write(f"{SECOND}.jsonl", [{"type": "summary", "summary": "Tides", "leafUuid": "a1"}])
    archive = sync_archive(tmp_path / "retold", {"HOME": str(made.folder)})
    assert len(archive.sessions()) == 1
    refusals = [(problem.code, problem.path) for problem in archive.refusals()]
    assert refusals == [("nothing-said", str(empty))]


def test_links_are_not_followed(made: Made, tmp_path: Path) -> None:
    made.write(f"{FIRST}.jsonl", TALK)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{SECOND}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in TALK))
    (made.projects / "-loop").symlink_to(made.projects, target_is_directory=True)
    (made.projects / "-outside").symlink_to(outside, target_is_directory=True)
    (made.projects / PROJECT / f"{SECOND}.jsonl").symlink_to(outside / f"{SECOND}.jsonl")
    (made.projects / PROJECT / FIRST).mkdir()
    (made.projects / PROJECT / FIRST / "subagents").symlink_to(outside, target_is_directory=True)
    (made.projects / "-itself").symlink_to(made.projects / "-itself")
    assert found_in(made.folder) == [f"{PROJECT}/{FIRST}.jsonl"]


def test_an_output_behind_a_link_is_not_opened(made: Made, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("nobody's business")
    moved = "<persisted-output>\nFull output saved to: b1.txt\n</persisted-output>"
    asked = [
        said("u1", 1, "List."),
        answered("a1", 2, call("Bash", command="ls"), parentUuid="u1"),
        result("u2", 3, moved, parentUuid="a1", toolUseResult={"persistedOutputPath": "b1.txt"}),
    ]
    made.write(f"{FIRST}.jsonl", asked)
    folder = made.projects / PROJECT / FIRST / "tool-results"
    folder.mkdir(parents=True)
    (folder / "b1.txt").symlink_to(secret)
    (session,) = everything(made.folder)
    assert [made_call.full_result for made_call in calls(session)] == [None]
    assert [problem.code for problem in session.problems] == ["missing-output"]


@pytest.mark.parametrize("name", ["x" * 400, "a\x00b", "..", "", "b1/", "\udcff"])
def test_an_output_under_an_impossible_name_is_missing(made: Made, name: str) -> None:
    moved = "<persisted-output>\nFull output saved to a file\n</persisted-output>"
    asked = [
        said("u1", 1, "List."),
        answered("a1", 2, call("Bash", command="ls"), parentUuid="u1"),
        result("u2", 3, moved, parentUuid="a1", toolUseResult={"persistedOutputPath": f"/far/{name}"}),
    ]
    made.write(f"{FIRST}.jsonl", asked)
    (made.projects / PROJECT / FIRST / "tool-results").mkdir(parents=True)
    (session,) = everything(made.folder)
    assert "missing-output" in [problem.code for problem in session.problems]
    session_json(session)


def test_the_same_session_in_two_homes_is_one(made: Made, tmp_path: Path) -> None:
    made.write(f"{FIRST}.jsonl", TALK)
    made.write(f"{FIRST}/subagents/agent-a9f8.jsonl", subagent())
    shutil.copytree(made.folder, tmp_path / "backup")
    newer = Made(tmp_path / "newer")
    newer.write(f"{FIRST}.jsonl", [*TALK, *MORE], project="-elsewhere")
    for homes in (
        (made.folder, tmp_path / "backup", newer.folder),
        (newer.folder, tmp_path / "backup", made.folder),
    ):
        session, child = everything(*homes)
        assert prompts(session) == ["How high is the tide?", "And tomorrow?"]
        assert (session.usage.requests, session.usage.total) == (2, 300)
        assert (len(session.sources), len(child.sources)) == (3, 2)
        assert {entry.fate for entry in session.timeline} == {"live"}


def test_copies_that_went_different_ways_are_told_whole(made: Made, tmp_path: Path) -> None:
    other = Made(tmp_path / "other")
    queued = {
        "type": "queue-operation",
        "operation": "enqueue",
        "content": "and the moon?",
        "sessionId": FIRST,
    }
    apart = [
        said("u3", 7, "And the day after?", parentUuid="a1"),
        answered("a3", 8, call("Bash", command="tide"), parentUuid="u3"),
        result("u4", 9, "2.2 m", parentUuid="a3"),
        {**queued, "timestamp": "2026-03-01T09:10:00.000Z"},
    ]
    made.write(
        f"{FIRST}.jsonl", [*TALK, *MORE, said("u5", 20, "Thanks.", parentUuid="a2"), *subagent_lines("s", 21)]
    )
    other.write(f"{FIRST}.jsonl", [*TALK, *apart])
    one = everything(made.folder, other.folder)
    assert list(map(session_json, one)) == list(map(session_json, everything(other.folder, made.folder)))
    session, child = one
    assert prompts(session) == [
        "How high is the tide?", "And tomorrow?", "And the day after?", "and the moon?", "Thanks.",
    ]  # fmt: skip
    assert session.usage.requests == 3
    assert [(made_call.status, made_call.result) for made_call in calls(session)] == [("success", "2.2 m")]
    assert [entry.id for entry in session.timeline if entry.fate == "live"] == [
        "u1",
        "a1",
        "u2",
        "a2",
        None,
        "u5",
    ]
    assert (child.key, [entry.id for entry in child.timeline]) == (f"{session.key}/s-1", ["s-1", "s-2"])


def subagent_lines(name: str, minute: int) -> list[Json]:
    """A subagent as versions 1.x kept it: in the main file."""
    return [
        said(f"{name}-1", minute, TASK, isSidechain=True),
        answered(f"{name}-2", minute, text("In the attic."), parentUuid=f"{name}-1", isSidechain=True),
    ]


def test_a_copy_that_was_cut_loses_nothing(made: Made, tmp_path: Path) -> None:
    whole = made.write(f"{FIRST}.jsonl", [*TALK, *MORE])
    other = Made(tmp_path / "other")
    other.write(f"{FIRST}.jsonl", []).write_bytes(whole.read_bytes()[:-40])
    (session,) = everything(made.folder, other.folder)
    assert [entry.id for entry in session.timeline] == ["u1", "a1", "u2", "a2"]
    assert [problem.code for problem in session.problems] == ["truncated-tail"]


def test_ids_that_are_no_uuids_are_told_apart_by_their_place(made: Made) -> None:
    for number, project in enumerate(("-one", "-two")):
        records = [{**record, "sessionId": "main", "cwd": f"/home/ann/{number}"} for record in TALK]
        made.write("session.jsonl", records, project=project)
    assert len(everything(made.folder)) == 2


def test_the_project_is_where_the_session_began_and_not_what_its_folder_is_called(made: Made) -> None:
    moved = [{**record, "cwd": "/home/ann/dev/other-almanac"} for record in MORE]
    made.write(f"{FIRST}.jsonl", [*TALK, *moved], project="-home-ann-dev-almanac")
    (session,) = everything(made.folder)
    assert (session.project.root, session.project.evidence) == (CWD, "recorded")
    assert session.project.native_key == PROJECT
    assert session.extra["cwd"] == [CWD, "/home/ann/dev/other-almanac"]


def test_where_no_folder_is_recorded_none_is_told(made: Made) -> None:
    made.write(
        f"{FIRST}.jsonl", [{key: value for key, value in record.items() if key != "cwd"} for record in TALK]
    )
    (session,) = everything(made.folder)
    assert (session.project.root, session.project.evidence, session.project.native_key) == (
        None,
        "none",
        PROJECT,
    )


def test_a_fork_owns_only_what_came_after(made: Made) -> None:
    talk = [{**record, "uuid": f"{record['uuid']}-{SECOND}"} for record in TALK]
    made.write(f"{FIRST}.jsonl", talk)
    new = [
        said("u9", 30, "Another way.", sessionId=SECOND),
        answered("a9", 31, text("Yes."), sessionId=SECOND),
    ]
    made.write(f"{SECOND}.jsonl", [*({**record, "sessionId": SECOND} for record in talk), *new])
    fork, session = everything(made.folder)
    assert (fork.kind, fork.parent, session.kind) == ("fork", session.key, "main")
    assert (fork.usage.total, session.usage.total) == (150, 150)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"HOME": "/h"}, ["/h/.claude/projects", "/h/.config/claude/projects"]),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, ["/h/.claude/projects", "/x/claude/projects"]),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, ["/c/projects"]),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c, /d,"}, ["/c/projects", "/d/projects"]),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": ""}, ["/h/.claude/projects", "/h/.config/claude/projects"]),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c,/d", "CLAUDE_PROJECTS_DIR": "/p"}, ["/p"]),
        ({"HOME": "/h", "CLAUDE_PROJECTS_DIR": "/p"}, ["/p"]),
        ({"USERPROFILE": "/u"}, ["/u/.claude/projects", "/u/.config/claude/projects"]),
    ],
)
def test_the_environment_says_where_homes_are(env: Mapping[str, str], expected: Sequence[str]) -> None:
    assert [home.sessions.as_posix() for home in claude.find_homes(env)] == expected


@pytest.mark.parametrize("place", [".claude", ".config/claude", "."])
def test_a_home_is_found_in_a_folder(tmp_path: Path, place: str) -> None:
    projects = tmp_path / place / "projects"
    (projects / PROJECT).mkdir(parents=True)
    (projects / PROJECT / f"{FIRST}.jsonl").write_text(json.dumps(TALK[0]) + "\n")
    assert home_of(tmp_path).sessions == projects


def test_a_folder_with_projects_of_another_kind_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "projects" / "almanac").mkdir(parents=True)
    (tmp_path / "projects" / "almanac" / "readme.md").write_text("tides")
    (tmp_path / "projects" / "itself").symlink_to(tmp_path / "projects" / "itself")
    assert claude.find_home(tmp_path) is None


def test_a_home_below_a_folder_that_is_called_subagents(tmp_path: Path) -> None:
    made = Made(tmp_path / "subagents")
    made.write(f"{FIRST}.jsonl", TALK)
    (session,) = everything(made.folder)
    assert (session.key, session.project.native_key) == (f"claude:{FIRST}", PROJECT)


@pytest.mark.shared
def test_the_made_home_gives_its_known_totals(shared: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = shared / "truth" / "make_home.py"
    subprocess.run([sys.executable, script, home], check=True, stdout=subprocess.DEVNULL)
    expected = json.loads((home / "EXPECTED.json").read_text())["claude"]
    each = expected["tokens_each"]
    sessions = everything(home)
    assert len(sessions) == expected["sessions"]
    assert sum(session.usage.requests for session in sessions) == expected["requests"]
    given = each["input"] + each["cache_read"] + each["cache_write"]
    for session in sessions:
        usage = session.usage
        assert (usage.input, usage.cached, usage.cache_write) == (
            given,
            each["cache_read"],
            each["cache_write"],
        )
        assert (usage.output, usage.total) == (each["output"], given + each["output"])
        assert session.counts.tool_calls == 1
    roots = {Path(session.project.root or "").name for session in sessions}
    assert roots == {"alpha", "beta"}
