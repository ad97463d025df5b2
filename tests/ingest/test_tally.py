"""The ledger straight from the files is the ledger of an archive, whatever the files hold."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retold import processes
from retold.agents.protocol import Source
from retold.agents.registry import AGENTS
from retold.ingest import shares
from retold.ingest.counted import Counted, settled
from retold.ingest.tally import Tally
from retold.model.metered import Metered
from retold.model.project import Project
from retold.model.request import Request
from support import cases, fake_agent
from support.gemini_home import DAY, ROOT, GeminiHome, Json, at, gemini, metadata, user
from support.home_ledgers import copy_into_home, count_both_ways, homes_in, ledger_from_files
from support.person import Person

pytestmark = pytest.mark.slow

Line = Json
APART = 1 << 28
"""Sessions whose numbers lie so far apart are of different clusters."""
THREAD = "019ca8a0-3e80-7000-8000-00000000000{}"
CLAUDE_SESSION = "5b1f0c7e-2a94-4d3b-9c61-7e0d4f82a6b{}"


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    return GeminiHome(tmp_path / "ann")


def write_lines(path: Path, lines: Sequence[Line]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8"
    )
    return path


# What is there to be read ------------------------------------------------------------------------------------------


@cases.every_case
def test_every_case_is_counted_as_it_is_read(case: str, tmp_path: Path) -> None:
    files = [cases.FOLDER / case / file for file in cases.input_files(case)]
    count_both_ways(copy_into_home(files, tmp_path / "ann"))


def test_the_homes_that_the_real_cli_wrote_are_counted_as_they_are_read(shared: Path) -> None:
    homes = homes_in(shared / "corpus" / "gemini-cli", ".gemini")
    tallies = [count_both_ways(home) for home in homes]
    assert len(homes) > 30
    assert sum(tally.whole for tally in tallies) < sum(len(tally.clusters) for tally in tallies) / 2


def test_what_others_published_is_counted_as_it_is_read(shared: Path, tmp_path: Path) -> None:
    for repository in sorted((shared / "corpus" / "public").glob("*/*")):
        files = sorted(file for file in repository.rglob("*") if file.suffix in (".json", ".jsonl"))
        count_both_ways(copy_into_home(files, tmp_path / repository.parent.name / repository.name))


def test_the_rollouts_of_the_real_codex_are_counted_as_they_are_read(shared: Path, tmp_path: Path) -> None:
    files = sorted((shared / "corpus" / "codex-cli").glob("*.jsonl"))
    count_both_ways(copy_into_home(files, tmp_path / "ann"))


def test_a_home_with_every_copy_twin_and_ghost_is_counted_to_the_token(shared: Path, tmp_path: Path) -> None:
    maker = [sys.executable, str(shared / "truth" / "make_home.py"), str(tmp_path / "ann")]
    subprocess.run(maker, check=True, stdout=subprocess.DEVNULL)
    count_both_ways(tmp_path / "ann")


def test_the_invented_home_is_counted_as_it_is_read(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    assert person.run("demo", str(tmp_path / "demo")).code == 0
    tally = count_both_ways(tmp_path / "demo" / "home")
    assert {cluster.agent for cluster in tally.clusters} == set(AGENTS)
    assert tally.whole * 10 < len(tally.clusters)


# Whatever becomes of files -----------------------------------------------------------------------------------------


def talk(number: int, count: int) -> list[Line]:
    """Return the lines of a session: each answer is written twice, some are taken back, one list is set."""
    lines: list[Line] = [metadata(number, 1)]
    for turn in range(count):
        asked = user(f"{number}-u{turn}-{'x' * 16}", turn, f"question {turn}")
        told = gemini(f"{number}-g{turn}-{'x' * 16}", turn, f"answer {turn}")
        early = {key: value for key, value in told.items() if key not in ("tokens", "toolCalls")}
        lines += [asked, early, {"$set": {"lastUpdated": at(turn)}}, told]
        if turn % 3 == 2:
            lines.append({"$rewindTo": asked["id"]})
    return lines


ODD: list[Callable[[Line], Line]] = [
    lambda line: line | {"tokens": {"input": 5}},
    lambda line: line | {"tokens": None},
    lambda line: line | {"model": ""},
    lambda line: line | {"timestamp": "2026-03-01T10:00:00+01:00"},
    lambda line: line | {"timestamp": None},
    lambda line: line | {"type": "user"},
    lambda line: line | {"id": 7},
    lambda line: {"$set": {"messages": [line, {**line, "model": None}]}},
    lambda line: {
        "$set": {"messages": [{**line, "id": f"{line.get('id')}-again", "model": None, "tokens": None}]}
    },
    lambda line: line | {"tokens": {**gemini("", 1, "")["tokens"], "input": 2**70}},
    lambda line: line | {"tokens": {**gemini("", 1, "")["tokens"], "output": 11}},
    lambda line: line | {"content": "", "toolCalls": [], "thoughts": []},
    lambda line: line | {"retold": {"sessionId": "x"}},
    lambda line: {"sessionId": line.get("id"), "projectHash": "0" * 64, "kind": "subagent"},
]


@st.composite
def homes(draw: st.DrawFn) -> dict[str, bytes]:
    """Files of a home: sessions that were copied, split, shuffled, and written by somebody else in places."""
    files: dict[str, bytes] = {}
    for number in draw(
        st.lists(st.sampled_from((1, 2, APART, 2 * APART)), min_size=1, max_size=3, unique=True)
    ):
        lines = talk(number, draw(st.integers(1, 4)))
        for place in draw(st.lists(st.integers(1, len(lines) - 1), max_size=2)):
            lines[place] = draw(st.sampled_from(ODD))(lines[place])
        if draw(st.booleans()):
            tail = lines[1:]
            draw(st.randoms(use_true_random=False)).shuffle(tail)
            lines = [lines[0], *tail]
        cut = draw(st.integers(1, len(lines)))
        parts = (
            [lines, [lines[0], *lines[cut:]]]
            if draw(st.booleans())
            else [lines[:cut], [lines[0], *lines[cut:]]]
        )
        for minute, part in enumerate(draw(st.permutations(parts))):
            name = f"session-{DAY}T09-{minute:02}-{metadata(number, 1)['sessionId'][:8]}"
            project = draw(st.sampled_from(("almanac", "0" * 64)))
            if draw(st.booleans()):
                said = [line for line in part if "id" in line]
                data = json.dumps({**lines[0], "messages": said}, indent=2).encode()
                files[f"{project}/chats/{name}.json"] = data
            else:
                data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in part)
                files[f"{project}/chats/{name}.jsonl"] = data[
                    : -draw(st.sampled_from((0, 0, 0, 1, 9))) or None
                ]
    if draw(st.booleans()):
        logged = {"sessionId": metadata(1, 1)["sessionId"], "messageId": 0, "type": "user", "message": "hm"}
        files["almanac/logs.json"] = json.dumps([logged | {"timestamp": at(1)}]).encode()
    return files


@settings(max_examples=60, deadline=None)
@given(homes())
def test_copies_splits_and_odd_lines_are_counted_as_they_are_read(files: dict[str, bytes]) -> None:
    with TemporaryDirectory() as folder:
        for name, data in files.items():
            path = Path(folder, ".gemini", "tmp", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        count_both_ways(Path(folder))


PLAIN = [
    cases.FOLDER / case / file
    for case in cases.NAMES
    for file in cases.input_files(case)
    if file.suffix == ".jsonl" and case.startswith(("claude-", "codex-"))
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PLAIN), st.sampled_from(PLAIN), st.randoms(use_true_random=False))
def test_lines_of_claude_and_codex_in_any_order_are_counted_as_they_are_read(
    file: Path, other: Path, chance: random.Random
) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if chance.random() < 0.9]
    place = chance.randrange(len(kept) + 1)
    kept[place:place] = chance.choices([*lines, *other.read_bytes().splitlines(keepends=True)], k=2)
    with TemporaryDirectory() as folder:
        made = Path(folder, file.name)
        made.write_bytes(b"".join(kept))
        count_both_ways(copy_into_home([made, other], Path(folder, "ann")))


# Which way was taken -----------------------------------------------------------------------------------------------


def answered(number: int, place: int, **more: object) -> Line:
    usage = {
        "input_tokens": 3,
        "output_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 7,
    }
    said = {
        "id": f"msg_{number}{place}",
        "model": "claude-x",
        "role": "assistant",
        "type": "message",
        "usage": usage,
    }
    content = [{"type": "text", "text": "done"}]
    return {"type": "assistant", "message": {**said, "content": content}, **chained(number, place), **more}


def chained(number: int, place: int) -> Line:
    session = CLAUDE_SESSION.format(number)
    above = None if place == 0 else f"{number}-{place - 1}"
    return {
        "uuid": f"{number}-{place}",
        "parentUuid": above,
        "sessionId": session,
        "timestamp": at(place),
        "cwd": "/x",
    }


def asked(number: int, place: int) -> Line:
    return {"type": "user", "message": {"role": "user", "content": "please"}, **chained(number, place)}


def claude_home(folder: Path) -> None:
    lines = [
        asked(1, 0),
        answered(1, 1),
        answered(1, 2),
        {"type": "summary", "summary": "s", "leafUuid": "1-2"},
    ]
    write_lines(folder / ".claude" / "projects" / "-x" / f"{CLAUDE_SESSION.format(1)}.jsonl", lines)


def codex_lines(number: int, total: int = 10) -> list[Line]:
    spent = {
        "cached_input_tokens": 0,
        "output_tokens": 1,
        "reasoning_output_tokens": 0,
        "total_tokens": total + 1,
    }
    spent = {"input_tokens": total, **spent}
    said = [{"type": "output_text", "text": "done"}]
    thread = THREAD.format(number)
    payloads: list[tuple[str, Line]] = [
        ("session_meta", {"id": thread, "timestamp": at(0), "cwd": "/x"}),
        ("turn_context", {"model": "gpt-x"}),
        (
            "response_item",
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        ),
        ("response_item", {"type": "message", "role": "assistant", "content": said}),
        ("event_msg", {"type": "agent_message", "message": "done"}),
        (
            "event_msg",
            {"type": "token_count", "info": {"total_token_usage": spent, "last_token_usage": spent}},
        ),
    ]
    return [
        {"timestamp": at(place), "type": kind, "payload": payload}
        for place, (kind, payload) in enumerate(payloads)
    ]


def codex_home(folder: Path) -> Path:
    name = f"rollout-2026-03-01T09-00-00-{THREAD.format(1)}.jsonl"
    return write_lines(folder / ".codex" / "sessions" / "2026" / "03" / "01" / name, codex_lines(1))


def test_plain_sessions_of_every_agent_are_only_counted(made: GeminiHome) -> None:
    made.lines("almanac", 1, 1, talk(1, 3)[1:])
    made.json("almanac", APART, 2, [user("u", 2, "hello"), gemini("g", 3, "there")])
    claude_home(made.folder)
    codex_home(made.folder)
    tally = count_both_ways(made.folder)
    assert (len(tally.clusters), tally.whole) == (4, 0)


def test_a_subagent_is_counted_under_its_parent(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, [user("u", 1, "hello"), gemini("g", 2, "there")])
    child = {
        **metadata(1, 2),
        "sessionId": "k3x9qa",
        "kind": "subagent",
        "messages": [gemini("s", 3, "found it")],
    }
    made.write(f"tmp/almanac/chats/{metadata(1, 1)['sessionId']}/k3x9qa.json", json.dumps(child, indent=2))
    tally = count_both_ways(made.folder)
    assert tally.whole == 0


def test_what_several_sessions_hold_belongs_to_the_earliest(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-x"
    for number in (1, 2):
        name = CLAUDE_SESSION.format(number)
        lines = [line | {"sessionId": name} for line in (asked(1, 0), answered(1, 1))]
        lines = [line | {"timestamp": at(3 - number + place)} for place, line in enumerate(lines)]
        write_lines(folder / f"{name}.jsonl", lines)
    tally = count_both_ways(tmp_path)
    assert tally.whole == 0


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_whatever_is_odd_is_read_or_counted_the_same(made: GeminiHome, odd: int) -> None:
    lines = talk(1, 3)[1:]
    made.lines("almanac", 1, 1, [*lines[:-1], ODD[odd](lines[-1])])
    count_both_ways(made.folder)


def test_of_versions_that_disagree_the_one_counts_that_reading_keeps_last(made: GeminiHome) -> None:
    first = gemini("g", 2, "there")
    second = {**first, "content": "or here", "tokens": {**first["tokens"], "output": 99}, "model": "gemini-x"}
    third = {key: value for key, value in first.items() if key != "toolCalls"}
    made.lines("almanac", 1, 1, [user("u", 1, "hello"), first, second, third])
    assert count_both_ways(made.folder).whole == 1


def test_an_answer_without_words_counts_for_nothing_beside_a_log_of_prompts(made: GeminiHome) -> None:
    made.mark("almanac", ROOT)
    made.lines("almanac", 1, 1, [gemini("g", 2, "")])
    made.logs("almanac", [(1, "hello")])
    assert count_both_ways(made.folder).whole == 1
    assert Tally({"HOME": str(made.folder)}).conversations() == []


def test_an_answer_that_a_list_repeats_under_another_id_counts_once(made: GeminiHome) -> None:
    answer = gemini("g1", 2, "there")
    copy = {key: value for key, value in answer.items() if key != "model"} | {"id": "g2"}
    made.lines("almanac", 1, 1, [user("u", 1, "hello"), answer, {"$set": {"messages": [copy]}}])
    assert count_both_ways(made.folder).whole == 1


def test_a_response_over_several_lines_counts_at_the_last_of_them(tmp_path: Path) -> None:
    again = answered(1, 2) | {"message": answered(1, 1)["message"]}
    name = f"{CLAUDE_SESSION.format(1)}.jsonl"
    write_lines(tmp_path / ".claude" / "projects" / "-x" / name, [asked(1, 0), answered(1, 1), again])
    assert count_both_ways(tmp_path).whole == 0


def test_a_message_that_is_spread_over_keys_is_counted_as_it_is_read(tmp_path: Path) -> None:
    said = {"id": "msg_12", "model": "claude-x", "usage": {"input_tokens": 5, "output_tokens": 7}}
    stream = f"data: {json.dumps({'type': 'message_start', 'message': said})}\n"
    spread = {str(place): character for place, character in enumerate(stream)}
    line = answered(1, 2) | {
        "message": {**spread, "role": "assistant", "content": [], "usage": {"input_tokens": 0}}
    }
    name = f"{CLAUDE_SESSION.format(1)}.jsonl"
    write_lines(tmp_path / ".claude" / "projects" / "-x" / name, [asked(1, 0), answered(1, 1), line])
    count_both_ways(tmp_path)
    (counted,) = Tally({"HOME": str(tmp_path)}).conversations()
    assert [request.figures[0] for request in counted.requests] == [110, 5]


def test_what_only_reading_tells_is_read(made: GeminiHome) -> None:
    silent = {key: value for key, value in gemini("g", 2, "there").items() if key != "tokens"}
    made.lines("almanac", 1, 1, [user("u", 1, "hello"), silent])
    torn = made.lines("almanac", APART, 2, talk(2, 2)[1:])
    torn.write_bytes(torn.read_bytes()[:-20])
    claude_home(made.folder)
    session = made.folder / ".claude" / "projects" / "-x" / f"{CLAUDE_SESSION.format(1)}.jsonl"
    session.write_bytes(session.read_bytes() + b"{\n")
    rollout = codex_home(made.folder)
    aside = {"timestamp": at(9), "type": "response_item", "payload": {"type": "reasoning", "summary": []}}
    write_lines(rollout, [*codex_lines(1), aside, codex_lines(1)[2]])
    tally = count_both_ways(made.folder)
    assert (len(tally.clusters), tally.whole) == (4, 4)


def test_projects_that_are_excluded_are_not_counted(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, [user("u", 1, "hello"), gemini("g", 2, "there")])
    assert Tally({"HOME": str(made.folder)}, excluded=("almanac",)).conversations() == []
    assert len(Tally({"HOME": str(made.folder)}, excluded=("other",)).conversations()) == 1


def test_an_agent_that_counts_nothing_is_read(tmp_path: Path) -> None:
    with fake_agent.registered():
        tally = Tally({fake_agent.HOME_VARIABLE: str(tmp_path)}, agents=("made",))
        assert tally.conversations() == []


# In two halves -----------------------------------------------------------------------------------------------------


@pytest.fixture
def many(made: GeminiHome, monkeypatch: pytest.MonkeyPatch) -> GeminiHome:
    monkeypatch.setattr(shares, "_MUCH", 0)
    monkeypatch.setattr(shares, "can_fork", lambda: sys.platform == "linux")
    for number in range(1, 8):
        made.lines("almanac", number * APART, number, talk(number, 3)[1:])
    return made


def test_two_processes_count_what_one_does(many: GeminiHome) -> None:
    tally = count_both_ways(many.folder)
    assert (len(tally.clusters), tally.whole) == (7, 0)


def test_what_a_process_did_not_give_is_counted_all_the_same(
    many: GeminiHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ledger_from_files(Tally({"HOME": str(many.folder)}).conversations())
    meter, parent = AGENTS["gemini"].meter, os.getpid()

    def killed(sources: Sequence[Source]) -> Sequence[Metered] | None:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return meter(sources)

    monkeypatch.setattr(AGENTS["gemini"], "meter", killed)
    assert ledger_from_files(Tally({"HOME": str(many.folder)}).conversations()) == expected


def test_a_count_that_nobody_asks_for_leaves_no_process_behind(
    many: GeminiHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def recorded(work: Callable[[], None]) -> int:
        started.append(processes.fork(work))
        return started[-1]

    monkeypatch.setattr(shares, "fork", recorded)
    tally = Tally({"HOME": str(many.folder)})
    del tally
    assert len(started) == (2 if sys.platform == "linux" else 0)
    # Other tests of this process may have children of their own, so only these are looked for.
    for process in started:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def test_counting_imports_nothing_that_reading_takes(made: GeminiHome) -> None:
    made.lines("almanac", 1, 1, talk(1, 3)[1:])
    claude_home(made.folder)
    codex_home(made.folder)
    code = (
        "import sys; from retold.ingest.tally import Tally; import os\n"
        "assert len(Tally({'HOME': os.environ['HOME']}).conversations()) == 3\n"
        "print(*sys.modules)"
    )
    # Where coverage is measured, that imports more than we do.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    env |= {"HOME": str(made.folder)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert not modules & {
        f"retold.agents.{name}.{part}" for name in AGENTS for part in ("read", "join", "restore")
    }
    assert not modules & {"apsw", "retold.archive.record", "multiprocessing"}


def test_a_request_that_two_conversations_hold_belongs_to_the_one_that_began_first() -> None:
    """Not to the one that ended first."""
    shared = Request("msg_1", "m", None, (100, None, None, 5, None, None, 105, None))

    def conversation(key: str, began: int, ended: int) -> Counted:
        started_at, ended_at = (datetime(2026, 3, 1, 9, minute, tzinfo=UTC) for minute in (began, ended))
        project = Project("/home/ann", None, None, "recorded")
        return Counted("made", key, key, "main", None, project, started_at, ended_at, f"/{key}", [shared])

    found = settled([conversation("later", 2, 4), conversation("earlier", 1, 8)], {})
    assert {one.key: one.requests for one in found} == {"later": [], "earlier": [shared]}
