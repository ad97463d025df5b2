"""The quick way and the careful way read every line as the same: each case and each real file, both ways."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from retold.agents import codex
from retold.agents.codex import replay
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem
from retold.model.session import Session
from support import cases

CASES = [case for case in cases.NAMES if case.startswith("codex-")]


def sessions(found: Sequence[Reading] | Problem) -> list[Session]:
    return [] if isinstance(found, Problem) else [codex.join([reading]) for reading in found]


def refuse(_: object) -> replay.ItemLine:
    raise msgspec.ValidationError("nothing is usual here")


def read_both_ways(files: Sequence[Path], monkeypatch: pytest.MonkeyPatch) -> int:
    """Compare what the two ways give; return how many sessions there were."""
    quick = [sessions(codex.read(Source(file))) for file in files]
    with monkeypatch.context() as patch:
        patch.setattr(replay, "_decode_checked_line", refuse)
        careful = [sessions(codex.read(Source(file))) for file in files]
    for file, one, other in zip(files, quick, careful, strict=True):
        assert one == other, file.name
    return sum(map(len, quick))


def test_cases_are_read_the_same_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [cases.FOLDER / case / file for case in CASES for file in cases.input_files(case)]
    assert read_both_ways(files, monkeypatch) > len(CASES) // 2


@pytest.mark.shared
def test_real_files_are_read_the_same_both_ways(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [*shared.glob("corpus/codex-cli/*.jsonl"), *shared.glob("corpus/public/codex/*/*.jsonl")]
    assert read_both_ways(files, monkeypatch) == len(files)
