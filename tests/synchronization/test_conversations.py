"""Every conversation of a home, once in the archive: whatever its files, their order and their state."""

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from retold.agents import gemini as agent
from retold.agents.protocol import AgentHome, Reading, Source
from retold.model.problem import Problem
from retold.model.session import Message, Session, ToolCall, View
from support.gemini_home import ROOT, GeminiHome, Json, call, gemini, session_id, sha, user
from support.session_json import session_json
from support.synced_archive import sync_archive, sync_conversations

pytestmark = pytest.mark.slow


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    return GeminiHome(tmp_path / "ann")


def everything(*folders: Path, view: View = "full") -> list[Session]:
    return sync_conversations(*folders, agent="gemini", view=view)


def prompts(session: Session) -> list[str]:
    return [
        entry.prompt for entry in session.timeline if isinstance(entry, Message) and entry.prompt is not None
    ]


TALK = [user("u1", 1, "How high is the tide?"), gemini("g1", 2, "Two metres.")]
MORE = [user("u2", 3, "And tomorrow?"), gemini("g2", 4, "A little more.")]


def test_a_copied_folder_is_one_conversation(made: GeminiHome) -> None:
    made.json(sha(ROOT), 1, 1, TALK)
    made.json("almanac", 1, 1, TALK)
    (session,) = everything(made.folder)
    assert prompts(session) == ["How high is the tide?"]
    assert session.usage.total == 115
    assert [Path(source.path).parts[-3] for source in session.sources] == [sha(ROOT), "almanac"]
    assert session.project.native_key == "almanac"


def test_twins_of_both_forms_are_one_conversation(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, TALK)
    made.lines("almanac", 1, 1, [*TALK, *MORE])
    (session,) = everything(made.folder)
    assert prompts(session) == ["How high is the tide?", "And tomorrow?"]
    assert {entry.fate for entry in session.timeline} == {"live"}


def test_what_a_split_left_behind_is_compacted(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, TALK)
    made.json("almanac", 1, 3, MORE)
    (session,) = everything(made.folder)
    assert [(entry.id, entry.fate) for entry in session.timeline] == [
        ("u1", "compacted"),
        ("g1", "compacted"),
        ("u2", "live"),
        ("g2", "live"),
    ]
    assert session.key == f"gemini:session-2026-03-01T09-01-{session_id(1)[:8]}"


def test_the_active_view_of_a_split_is_what_a_resume_loads(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, TALK)
    made.json("almanac", 1, 3, MORE)
    (session,) = everything(made.folder, view="active")
    assert [entry.id for entry in session.timeline] == ["u2", "g2"]


def test_a_ghost_adds_nothing(made: GeminiHome) -> None:
    context = {
        "id": "d04923d38bb0f6017037e74183378ef4",
        "type": "user",
        "content": [{"text": "<session_context>x</session_context>"}],
    }
    made.lines("almanac", 1, 1, TALK)
    made.lines("almanac", 1, 9, [{"$set": {"messages": [context]}}])
    (session,) = everything(made.folder)
    assert prompts(session) == ["How high is the tide?"]
    assert [entry.fate for entry in session.timeline if entry.id in ("u1", "g1")] == ["live", "live"]
    assert len(session.sources) == 2


def test_a_scrap_without_an_id_belongs_to_the_file_of_its_name(made: GeminiHome) -> None:
    made.json(sha(ROOT), 1, 1, TALK)
    made.write(f"{made.name('almanac', 1, 1)}.jsonl", '{"$set": {"summary": "Tides"}}\n')
    (session,) = everything(made.folder)
    assert (session.summary, prompts(session)) == ("Tides", ["How high is the tide?"])


def test_ids_that_many_sessions_share_are_not_merged(made: GeminiHome) -> None:
    for number in (1, 2):
        document = {
            "sessionId": "a2a-server",
            "projectHash": sha(ROOT),
            "messages": [user(f"u{number}", 1, f"No. {number}")],
        }
        made.write(
            f"tmp/almanac/chats/session-2026-03-01T09-0{number}-a2a-serv.json", json.dumps(document, indent=1)
        )
    assert sorted(prompts(session)[0] for session in everything(made.folder)) == ["No. 1", "No. 2"]


def test_files_of_such_ids_that_share_a_message_are_one(made: GeminiHome) -> None:
    for name, messages in (("1", TALK), ("2", [*TALK, *MORE])):
        document = {"sessionId": "a2a-server", "projectHash": sha(ROOT), "messages": messages}
        made.write(
            f"tmp/almanac/chats/session-2026-03-01T09-0{name}-a2a-serv.json", json.dumps(document, indent=1)
        )
    (session,) = everything(made.folder)
    assert len(prompts(session)) == 2


@pytest.mark.parametrize("layout", ["named by the call", "in the parent's folder", "beside the parent"])
def test_a_subagent_is_linked_to_the_call_that_started_it(made: GeminiHome, layout: str) -> None:
    started = call("codebase_investigator", {"objective": "tides"}, 3)
    if layout == "named by the call":
        started["agentId"] = "k3x9qa"
    made.json("almanac", 1, 1, [TALK[0], gemini("g1", 2, "", [started])])
    task = [user("s1", 3, "Your task: tides"), gemini("s2", 3, "Found.")]
    if layout == "beside the parent":
        made.json("almanac", 1, 3, task, kind="subagent", startTime="2026-03-01T09:03:00.000Z")
        agent_id = f"session-2026-03-01T09-03-{session_id(1)[:8]}"
    else:
        document = {
            "sessionId": "k3x9qa",
            "projectHash": sha(ROOT),
            "startTime": "2026-03-01T09:03:00.000Z",
            "kind": "subagent",
        }
        made.write(
            f"tmp/almanac/chats/{session_id(1)}/k3x9qa.json",
            json.dumps({**document, "messages": task}, indent=1),
        )
        agent_id = "k3x9qa"
    parent, child = everything(made.folder)
    assert (child.kind, child.parent, child.key) == ("subagent", parent.key, f"{parent.key}/{agent_id}")
    assert parent.children == (child.key,)
    calls = [
        part
        for entry in parent.timeline
        if isinstance(entry, Message)
        for part in entry.parts
        if isinstance(part, ToolCall)
    ]
    assert [made_call.child for made_call in calls] == [child.key]
    assert prompts(child) == []


def test_a_call_did_not_start_a_subagent_that_began_before_it(made: GeminiHome) -> None:
    started = call("codebase_investigator", {"objective": "tides"}, 5)
    made.json("almanac", 1, 1, [TALK[0], gemini("g1", 4, "", [started])])
    task = [user("s1", 3, "Your task: tides"), gemini("s2", 3, "Found.")]
    made.json("almanac", 1, 3, task, kind="subagent", startTime="2026-03-01T09:03:00.000Z")
    parent, child = everything(made.folder)
    assert parent.children == (child.key,)
    parts = [part for entry in parent.timeline if isinstance(entry, Message) for part in entry.parts]
    assert [part.child for part in parts if isinstance(part, ToolCall)] == [None]


def test_of_a_lost_session_the_prompts_are_left(made: GeminiHome) -> None:
    made.mark("almanac", ROOT)
    made.json("almanac", 1, 1, TALK)
    made.logs("almanac", [(1, "How high is the tide?"), (2, "Where is the old harbour?")])
    lost, kept = everything(made.folder)
    assert kept.native_id == session_id(1)
    assert (lost.kind, lost.key, lost.status) == (
        "prompts-only",
        f"gemini:lost-{session_id(2)}",
        "interrupted",
    )
    assert prompts(lost) == ["Where is the old harbour?"]


def test_a_log_in_which_nothing_was_typed_is_no_news(made: GeminiHome, tmp_path: Path) -> None:
    made.write("tmp/almanac/logs.json", "[]")
    made.json("almanac", 1, 1, TALK)
    archive = sync_archive(tmp_path / "retold", {"HOME": str(made.folder)})
    assert len(archive.sessions()) == 1
    assert (archive.refusals(), archive.problems, archive.coverage.problems) == ([], (), 0)


def test_a_file_that_vanished_is_told_and_the_rest_is_read(
    made: GeminiHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.json("almanac", 1, 1, TALK)
    gone = made.json("almanac", 2, 2, TALK)
    read = agent.read

    def late(source: Source) -> object:
        gone.unlink(missing_ok=True)
        return read(source)

    monkeypatch.setattr(agent, "read", late)
    archive = sync_archive(tmp_path / "retold", {"HOME": str(made.folder)})
    assert [session.native_id for session in archive.sessions()] == [session_id(1)]
    assert [problem.code for problem in archive.problems] == ["missing-file"]
    assert archive.coverage.problems == 1


def test_a_ghost_and_its_prompts_are_one_lost_session(made: GeminiHome) -> None:
    made.mark("almanac", ROOT)
    made.lines("almanac", 1, 1, [])
    made.logs("almanac", [(1, "Where is the old harbour?")])
    (lost,) = everything(made.folder)
    assert (lost.kind, prompts(lost), len(lost.sources)) == ("prompts-only", ["Where is the old harbour?"], 2)


def test_a_session_in_which_nobody_spoke_is_archived_by_the_name_of_its_file(made: GeminiHome) -> None:
    made.lines("almanac", 1, 1, [])
    (started,) = everything(made.folder)
    name = f"gemini:session-2026-03-01T09-01-{session_id(1)[:8]}"
    assert (started.kind, started.key, started.counts.messages) == ("main", name, 0)


def test_a_saved_history_in_a_copied_folder_is_one(made: GeminiHome) -> None:
    made.mark("almanac", ROOT)
    history = json.dumps({"history": [{"role": "user", "parts": [{"text": "Save this."}]}]})
    for project in (sha(ROOT), "almanac"):
        made.write(f"tmp/{project}/checkpoint-tides.json", history)
    (session,) = everything(made.folder)
    assert (session.key, len(session.sources)) == ("gemini:almanac/checkpoint-tides", 2)


def test_two_machines_with_the_same_session_are_one_row(made: GeminiHome, tmp_path: Path) -> None:
    made.json("almanac", 1, 1, TALK)
    shutil.copytree(made.folder, tmp_path / "backup")
    other = GeminiHome(tmp_path / "newer")
    other.json("almanac", 1, 1, [*TALK, *MORE])
    (session,) = everything(made.folder, tmp_path / "backup", other.folder)
    assert len(prompts(session)) == 2
    assert len(session.sources) == 3


def test_one_copy_truncated_loses_nothing(made: GeminiHome) -> None:
    whole = made.lines("almanac", 1, 1, [*TALK, *MORE])
    copy = made.lines(sha(ROOT), 1, 1, [*TALK, *MORE])
    copy.write_bytes(whole.read_bytes()[:-40])
    (session,) = everything(made.folder)
    assert [entry.id for entry in session.timeline] == ["u1", "g1", "u2", "g2"]
    assert [problem.code for problem in session.problems] == ["truncated-tail"]


Find = Callable[[AgentHome], Iterator[Source | Problem]]


def shuffled(find: Find, seed: int) -> Find:
    order = random.Random(seed)  # noqa: S311 - an order, no secret

    def find_in_any_order(home: AgentHome) -> Iterator[Source | Problem]:
        found = list(find(home))
        return iter(order.sample(found, len(found)))

    return find_in_any_order


@cache
def in_order(tree: Path) -> list[bytes]:
    return [session_json(session) for session in everything(tree)]


@pytest.mark.shared
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_files_does_not_matter(shared: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {tree: in_order(tree) for tree in real_trees(shared)}
    monkeypatch.setattr(agent, "find_sources", shuffled(agent.find_sources, seed))
    for tree, sessions in expected.items():
        assert [session_json(session) for session in everything(tree)] == sessions, tree


def real_trees(shared: Path) -> list[Path]:
    return sorted(
        path.parent
        for path in (shared / "corpus" / "gemini-cli").glob("*/*/.gemini")
        if (path / "tmp").is_dir()
    )


@pytest.mark.shared
def test_real_homes_give_one_row_per_conversation_and_lose_no_word(shared: Path) -> None:
    trees = real_trees(shared)
    assert len(trees) > 30
    for tree in trees:
        ids, texts = raw_facts(tree)
        sessions = everything(tree)
        rows = [session for session in sessions if session.kind in ("main", "prompts-only")]
        assert sorted(session.native_id or "" for session in rows) == sorted(ids), tree
        told = "\n".join(
            json.dumps(json.loads(session_json(session)), ensure_ascii=False) for session in sessions
        )
        for line in {line for text in texts for line in text.splitlines()}:
            assert json.dumps(line, ensure_ascii=False)[1:-1] in told, (tree, line)


def raw_facts(tree: Path) -> tuple[set[str], set[str]]:
    """Return the ids of the main sessions in a home, and every text that was said in it: read anew, and naively."""
    ids: set[str] = set()
    texts: set[str] = set()
    for file in tree.rglob("chats/**/*.json*"):
        data = file.read_text(encoding="utf-8")
        records = (
            [json.loads(data)] if file.suffix == ".json" else [json.loads(line) for line in data.splitlines()]
        )
        for record in records:
            if "sessionId" in record and file.parent.name == "chats" and record.get("kind") != "subagent":
                ids.add(record["sessionId"])
            for message in (record, *record.get("messages", ()), *record.get("$set", {}).get("messages", ())):
                texts |= said(message)
    for file in tree.rglob("logs.json"):
        ids |= {entry["sessionId"] for entry in json.loads(file.read_text(encoding="utf-8"))}
    return ids, texts


def said(message: Json) -> set[str]:
    if message.get("type") not in ("user", "gemini"):
        return set()
    content = message.get("content") or []
    parts = [{"text": content}] if isinstance(content, str) else content
    return {part["text"] for part in parts if part.get("text") and not part.get("thought")}


@pytest.mark.shared
def test_the_made_home_gives_its_known_totals(shared: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    subprocess.run(
        [sys.executable, shared / "truth" / "make_home.py", home], check=True, stdout=subprocess.DEVNULL
    )
    expected = json.loads((home / "EXPECTED.json").read_text())["gemini"]
    sessions = everything(home)
    by_kind = {
        kind: [session for session in sessions if session.kind == kind]
        for kind in ("main", "subagent", "prompts-only")
    }
    assert len(by_kind["main"]) == expected["main_sessions"]
    assert len(by_kind["subagent"]) == expected["subagent_sessions"]
    assert [prompts(session) for session in by_kind["prompts-only"]] == [
        ["prompt of a session whose chat file was deleted: aardvark"]
    ]
    recorded = [*by_kind["main"], *by_kind["subagent"]]
    names = {
        "input": "input",
        "output": "output",
        "cached": "cached",
        "thoughts": "reasoning",
        "tool": "tool",
        "total": "total",
    }
    assert {
        name: sum(getattr(session.usage, ours) for session in recorded) for name, ours in names.items()
    } == expected["tokens"]
    assert sum(session.usage.requests for session in recorded) == expected["requests"]


message_ids = some.sampled_from([f"m{number}" for number in range(8)])
messages = some.builds(
    lambda message_id, minute, text, is_user: (user if is_user else gemini)(
        message_id, minute, f"{message_id} {text}"
    ),
    message_ids,
    some.integers(0, 59),
    some.text(alphabet="abc ", min_size=1, max_size=8),
    some.booleans(),
)
operations = some.one_of(
    messages,
    some.builds(lambda listed: {"$set": {"messages": listed}}, some.lists(messages, max_size=4)),
    some.builds(lambda target: {"$rewindTo": target}, message_ids),
)
files = some.lists(some.tuples(some.booleans(), some.lists(operations, max_size=8)), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files, some.randoms(use_true_random=False))
def test_merging_is_idempotent_independent_of_order_and_loses_no_message(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[bool, list[Json]]], order: random.Random
) -> None:
    made = GeminiHome(tmp_path_factory.mktemp("merge") / "ann")
    ids: set[str] = set()
    paths = []
    for minute, (is_lines, records) in enumerate(contents):
        said_in = [record for record in records if "id" in record]
        paths.append(
            made.lines("almanac", 1, minute, records)
            if is_lines
            else made.json("almanac", 1, minute, said_in)
        )
        told = records if is_lines else said_in
        ids |= {record["id"] for record in told if "id" in record}
        ids |= {message["id"] for record in told for message in record.get("$set", {}).get("messages", ())}
    readings = [reading for path in paths for reading in _readings(path)]
    session = agent.join(readings)
    copies = [reading for path in paths for reading in _readings(path)]
    mixed = order.sample([*readings, *copies], 2 * len(readings))
    assert session_json(agent.join(order.sample(readings, len(readings)))) == session_json(session)
    assert agent.join(mixed).timeline == session.timeline
    assert {entry.id for entry in session.timeline} == ids


def _readings(path: Path) -> list[Reading]:
    readings = agent.read(Source(path))
    assert not isinstance(readings, Problem)
    return list(readings)


def test_a_log_that_is_written_anew_takes_no_conversation_away_that_said_the_same(made: GeminiHome) -> None:
    first, second = 1, 1 << 28
    made.logs("almanac", [(first, "go on"), (second, "go on")])
    folder = made.folder.parent / "archive"
    env = {"HOME": str(made.folder)}
    before = sync_archive(folder, env).sessions()
    made.logs("almanac", [(first, "go on")])
    after = sync_archive(folder, env).sessions()
    assert [one.last_prompt for one in before] == ["go on", "go on"]
    assert [(one.key, len(one.timeline)) for one in after] == [(one.key, 1) for one in before]
