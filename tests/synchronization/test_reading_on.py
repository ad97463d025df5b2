"""A file that has grown: reading it on from its bookmark makes the same archive and index as reading it whole."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import msgspec
import pytest

from retold.synchronization import cluster, growth, run
from retold.synchronization.update import SyncOptions, update
from support import cases
from support.archive_contents import archive_contents, differences

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
LONG_AGO = 1_600_000_000
ID = "5b1f0c7e-2a94-4d3b-9c61-7e0d4f82a6b3"
NAMES = {
    "claude": f".claude/projects/-home-ann-almanac/{ID}.jsonl",
    "codex": f".codex/sessions/2026/03/01/rollout-2026-03-01T09-00-00-{ID}.jsonl",
    "gemini": f".gemini/tmp/almanac/chats/session-2026-03-01T09-00-{ID[:8]}.jsonl",
}
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def small_files_have_bookmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_LARGE", 0)


class Home:
    """A home with one session file, and its archive."""

    def __init__(self, folder: Path, agent: str, data: bytes) -> None:
        self.archive, self._home = folder / "archive", folder / "home"
        self.file = self._home / NAMES[agent]
        self.file.parent.mkdir(parents=True)
        self.file.write_bytes(data)
        if agent == "gemini":
            (self.file.parents[1] / ".project_root").write_text("/home/ann/almanac")
        for path in (self._home, *self._home.rglob("*")):
            os.utime(path, (LONG_AGO, LONG_AGO))
        self.sync()

    def append(self, data: bytes) -> None:
        """Append bytes to the file."""
        with self.file.open("ab") as end:
            end.write(data)
            size = end.tell()
        os.utime(self.file, (LONG_AGO + size, LONG_AGO + size))

    def sync(self, archive: Path | None = None) -> bool:
        """Sync; return whether that was done without a whole sync."""
        options = SyncOptions(str(archive or self.archive), {"HOME": str(self._home)})
        with patch.object(run, "sync", wraps=run.sync) as whole_sync:
            update(options, lambda: None, lambda _done, _size: None)
        return not whole_sync.called

    def sync_both_ways(self) -> bool:
        """Sync, and check that a copy of the archive without bookmarks becomes the same; return whether the file was read on."""
        copy = self.archive.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.archive, copy)
        connection = apsw.Connection(str(copy / "archive.db"))
        connection.execute("DELETE FROM bookmarks")
        connection.close()
        is_read_on = self.sync()
        assert not self.sync(copy)
        assert not list(differences(archive_contents(self.archive), archive_contents(copy)))
        return is_read_on


def lines(*records: Json) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def at(number: int) -> str:
    return f"2026-03-01T{9 + number // 60:02}:{number % 60:02}:00.000Z"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def gemini_turn(turn: int) -> bytes:
    """Return a prompt, and an answer that is written again with its tokens and a call."""
    call = {
        "id": f"read_file-{turn}",
        "name": "read_file",
        "args": {"path": f"src/{turn}.py"},
        "status": "success",
        "timestamp": at(turn),
        "result": [
            {"functionResponse": {"id": f"{turn}", "name": "read_file", "response": {"output": "tide"}}}
        ],
    }
    tokens = {"input": 9, "output": 2, "cached": 1, "thoughts": 0, "tool": 0, "total": 11}
    answer: Json = {
        "id": uuid(2 * turn + 1),
        "timestamp": at(turn),
        "type": "gemini",
        "content": f"Done {turn}.",
    }
    answer["model"] = "gemini-2.5-pro"
    return lines(
        {"id": uuid(2 * turn), "timestamp": at(turn), "type": "user", "content": f"Mend step {turn}."},
        answer,
        answer | {"tokens": tokens, "toolCalls": [call]},
        {"$set": {"lastUpdated": at(turn)}},
    )


def claude_turn(turn: int) -> bytes:
    """Return a prompt, a call with its result, and an answer."""
    common = {"isSidechain": False, "cwd": "/home/ann/almanac", "sessionId": ID, "version": "2.0.14"}
    usage = {"input_tokens": 9, "output_tokens": 2}
    call = {
        "type": "tool_use",
        "id": f"toolu_{turn}",
        "name": "Read",
        "input": {"file_path": f"src/{turn}.py"},
    }
    result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": "tide"}
    contents: list[tuple[str, Json]] = [
        ("user", {"role": "user", "content": f"Mend step {turn}."}),
        (
            "assistant",
            {"role": "assistant", "id": f"msg_{turn}a", "model": "m", "content": [call], "usage": usage},
        ),
        ("user", {"role": "user", "content": [result]}),
        (
            "assistant",
            {
                "role": "assistant",
                "id": f"msg_{turn}b",
                "model": "m",
                "content": [{"type": "text", "text": f"Done {turn}."}],
                "usage": usage,
            },
        ),
    ]
    records = []
    for step, (kind, message) in enumerate(contents, 4 * turn):
        links = {"uuid": uuid(step), "parentUuid": uuid(step - 1) if step else None, "timestamp": at(turn)}
        records.append({**links, **common, "type": kind, "message": message})
    return lines(*records)


def codex_turn(turn: int) -> bytes:
    """Return a prompt, a call with its result, an answer and a count."""
    figures = {"cached_input_tokens": 0, "reasoning_output_tokens": 0}
    last = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, **figures}
    total = {name: count * (turn + 1) for name, count in last.items()}
    words = f"Mend step {turn}."
    items: list[tuple[str, Json]] = [
        (
            "response_item",
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]},
        ),
        ("event_msg", {"type": "user_message", "message": words}),
        (
            "response_item",
            {
                "type": "function_call",
                "name": "shell",
                "arguments": '{"command":["ls"]}',
                "call_id": f"c{turn}",
            },
        ),
        ("response_item", {"type": "function_call_output", "call_id": f"c{turn}", "output": "tide"}),
        (
            "response_item",
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": f"Done {turn}."}],
            },
        ),
        (
            "event_msg",
            {"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": last}},
        ),
    ]
    return lines(*({"timestamp": at(turn), "type": kind, "payload": payload} for kind, payload in items))


HEADS = {
    "claude": b"",
    "codex": lines(
        {
            "timestamp": at(0),
            "type": "session_meta",
            "payload": {"id": ID, "timestamp": at(0), "cwd": "/home/ann/almanac", "cli_version": "0.46.0"},
        }
    ),
    "gemini": lines(
        {"sessionId": ID, "projectHash": "0" * 64, "startTime": at(0), "lastUpdated": at(0), "kind": "main"}
    ),
}
TURNS: dict[str, Callable[[int], bytes]] = {"claude": claude_turn, "codex": codex_turn, "gemini": gemini_turn}
every_agent = pytest.mark.parametrize("agent", TURNS)


@every_agent
def test_each_turn_is_read_on_and_makes_the_same_archive(agent: str, tmp_path: Path) -> None:
    home = Home(tmp_path, agent, HEADS[agent] + TURNS[agent](0) + TURNS[agent](1))
    for turn in range(2, 6):
        home.append(TURNS[agent](turn))
        assert home.sync_both_ways()


@every_agent
def test_a_line_that_is_written_in_two_steps(agent: str, tmp_path: Path) -> None:
    home = Home(tmp_path, agent, HEADS[agent] + TURNS[agent](0) + TURNS[agent](1))
    data = TURNS[agent](2)
    for part in (data[:30], data[30:200], data[200:]):
        home.append(part)
        home.sync_both_ways()


@every_agent
def test_a_file_whose_beginning_changed_is_read_whole(agent: str, tmp_path: Path) -> None:
    home = Home(tmp_path, agent, HEADS[agent] + TURNS[agent](0) + TURNS[agent](1))
    data = home.file.read_bytes()
    assert b"step 0" in data
    home.file.write_bytes(data.replace(b"step 0", b"step x") + TURNS[agent](2))
    assert not home.sync()


@every_agent
def test_an_index_that_lacks_the_session_makes_the_sync_whole(agent: str, tmp_path: Path) -> None:
    home = Home(tmp_path, agent, HEADS[agent] + TURNS[agent](0) + TURNS[agent](1))
    for number in range(2):
        shard = apsw.Connection(str(home.archive / "index" / f"text-{number}.db"))
        shard.execute("UPDATE entries SET stamp = x'00'")
        shard.close()
    home.append(TURNS[agent](2))
    assert not home.sync_both_ways()


@every_agent
def test_a_damaged_index_makes_the_sync_whole_and_is_rebuilt(agent: str, tmp_path: Path) -> None:
    home = Home(tmp_path, agent, HEADS[agent] + TURNS[agent](0) + TURNS[agent](1))
    shard = apsw.Connection(str(home.archive / "index" / "text-0.db"))
    shard.execute("DROP TABLE docs")
    shard.close()
    home.append(TURNS[agent](2))
    assert not home.sync()
    home.append(TURNS[agent](3))
    assert home.sync_both_ways()


@every_agent
def test_a_sync_that_was_killed_before_the_index_was_written_is_repaired(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, agent, HEADS[agent] + TURNS[agent](0) + TURNS[agent](1))
    copy = tmp_path / "copy"
    shutil.copytree(home.archive, copy)
    home.append(TURNS[agent](2))
    with monkeypatch.context() as patched:
        patched.setattr("retold.synchronization.continuation.GrowthReader.write_index", interrupt)
        with pytest.raises(KeyboardInterrupt):
            home.sync()
    assert not home.sync()
    home.sync(copy)
    assert not list(differences(archive_contents(home.archive), archive_contents(copy)))


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_rewind_of_earlier_messages_is_read_whole(tmp_path: Path) -> None:
    home = Home(tmp_path, "gemini", HEADS["gemini"] + gemini_turn(0) + gemini_turn(1))
    home.append(lines({"$rewindTo": uuid(2)}))
    assert not home.sync_both_ways()


def test_a_large_growth_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "LARGEST_GROWTH", 100)
    home = Home(tmp_path, "gemini", HEADS["gemini"] + gemini_turn(0) + gemini_turn(1))
    home.append(gemini_turn(2))
    assert not home.sync_both_ways()


def samples(files: list[Path], agents: dict[str, str], most: int) -> Iterator[tuple[str, bytes]]:
    """Yield the agent and the content of some files of lines, steadily chosen."""
    random.Random(7).shuffle(files)  # noqa: S311 - steady, not secret
    found = 0
    for file in files:
        agent = next((agent for word, agent in agents.items() if word in str(file)), None)
        data = file.read_bytes()
        if agent is not None and data.count(b"\n") > 3 and len(data) < 400_000 and found < most:
            found += 1
            yield agent, data


def check_splits(agent: str, data: bytes, folder: Path, seed: int) -> int:
    """Grow a file in random steps, and sync each both ways; return how often it was read on."""
    rng = random.Random(seed)  # noqa: S311 - steady, not secret
    cuts = sorted({data.rfind(b"\n", 0, rng.randrange(1, len(data))) + 1 for _ in range(3)} - {0})
    cuts = [*cuts, rng.randrange(cuts[-1], len(data)) if cuts else 1, len(data)]
    home = Home(folder, agent, data[: cuts[0]])
    read_on = 0
    for start, end in pairwise(cuts):
        if start < end:
            home.append(data[start:end])
            read_on += home.sync_both_ways()
    return read_on


@pytest.mark.slow
def test_random_splits_of_the_cases(tmp_path: Path) -> None:
    files = [cases.FOLDER / case / file for case in cases.NAMES for file in cases.input_files(case)]
    agents = {"/claude-": "claude", "/codex-": "codex", "/session-": "gemini"}
    lines_only = [file for file in files if file.suffix == ".jsonl"]
    read_on = sum(
        check_splits(agent, data, tmp_path / str(number), number)
        for number, (agent, data) in enumerate(samples(lines_only, agents, 120))
    )
    assert read_on > 0


@pytest.mark.slow
@pytest.mark.shared
def test_random_splits_of_the_corpus(tmp_path: Path) -> None:
    files = sorted(CORPUS.rglob("*.jsonl"))
    agents = {"claude": "claude", "codex": "codex", "gemini": "gemini"}
    read_on = sum(
        check_splits(agent, data, tmp_path / str(number), number)
        for number, (agent, data) in enumerate(samples(files, agents, 80))
    )
    assert read_on > 0
