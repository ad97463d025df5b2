"""Compressed rollouts: read as the plain ones, a piece at a time, and as far as they are whole."""

import tracemalloc
from pathlib import Path

import zstandard

from retold.agents import codex
from retold.agents.codex.discovery import find_rollout
from retold.agents.protocol import Source
from retold.model.problem import Problem
from retold.model.session import Session
from support.codex_home import as_text, line, meta_line, thread_id, turn

THREAD = thread_id(0, 1)
LINES = [
    meta_line(THREAD, 0),
    *[said for n in range(1, 40) for said in turn(n, f"Prompt {n}.", f"Answer {n}.", n)],
]
TEXT = as_text(LINES).encode()


def read(folder: Path, data: bytes) -> Session | Problem:
    file = folder / f"rollout-2026-03-01T10-00-00-{THREAD}.jsonl.zst"
    file.write_bytes(data)
    found = codex.read(Source(file))
    return found if isinstance(found, Problem) else codex.join(found)


def test_it_is_the_session_of_the_plain_file(tmp_path: Path) -> None:
    plain = tmp_path / f"rollout-2026-03-01T10-00-00-{THREAD}.jsonl"
    plain.write_bytes(TEXT)
    expected = codex.read(Source(plain))
    found = read(tmp_path, zstandard.compress(TEXT))
    assert not isinstance(expected, Problem)
    assert isinstance(found, Session)
    assert found.timeline == codex.join(expected).timeline
    assert [source.format for source in found.sources] == ["codex-jsonl-zst"]


def test_several_frames_are_one_file(tmp_path: Path) -> None:
    half = TEXT.index(b"\n", len(TEXT) // 2) + 1
    found = read(tmp_path, zstandard.compress(TEXT[:half]) + zstandard.compress(TEXT[half:]))
    assert isinstance(found, Session)
    assert found.counts.prompts == 39


def test_what_stands_before_the_damage_is_read(tmp_path: Path) -> None:
    half = TEXT.index(b"\n", len(TEXT) // 2) + 1
    found = read(tmp_path, zstandard.compress(TEXT[:half]) + b"\x00 no frame \x00" * 9)
    assert isinstance(found, Session)
    assert 0 < found.counts.prompts < 39
    assert [problem.code for problem in found.problems] == ["malformed-json"]


def test_a_file_cut_anywhere_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = zstandard.compress(TEXT)
    for size in range(0, len(data), 29):
        found = read(tmp_path, data[:size])
        if isinstance(found, Session):
            assert {problem.code for problem in found.problems} <= {"truncated-tail"}


def test_a_large_file_is_unpacked_a_piece_at_a_time(tmp_path: Path) -> None:
    repeated = line(90, "turn_context", {"cwd": "/srv/tide", "user_instructions": "lutra " * 20_000})
    lines = [*LINES, *[repeated] * 300]
    file = tmp_path / f"rollout-2026-03-01T10-00-00-{THREAD}.jsonl.zst"
    file.write_bytes(zstandard.compress(as_text(lines).encode()))
    tracemalloc.start()
    found = codex.read(Source(file))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not isinstance(found, Problem)
    assert peak < 8_000_000


def test_what_is_no_compression_and_what_is_not_there_are_refused(tmp_path: Path) -> None:
    found = read(tmp_path, b"no frame at all")
    assert isinstance(found, Problem)
    missing = codex.read(Source(tmp_path / "gone.jsonl.zst"))
    assert isinstance(missing, Problem)
    assert (found.code, missing.code) == ("not-a-session", "missing-file")


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    found = codex.read(Source(tmp_path / f"rollout-2026-03-01T10-00-00-{THREAD}.jsonl.zst"))
    assert isinstance(found, Problem)
    assert found.code == "missing-file"


def test_no_link_is_followed(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / ".codex", tmp_path / "elsewhere.jsonl"
    (home / "sessions").mkdir(parents=True)
    elsewhere.write_bytes(TEXT)
    for name in ("history.jsonl", f"sessions/rollout-2026-03-01T10-00-00-{THREAD}.jsonl"):
        (home / name).symlink_to(elsewhere)
    found = codex.find_home(tmp_path)
    assert found is not None
    assert list(codex.find_sources(found)) == []
    beside = Source(home / "sessions" / "another.jsonl", found)
    assert find_rollout(THREAD, beside) is None
