"""No reader raises, whatever JSON types stand in a file: the cases, with values replaced at random.

`make test-heavy` tries 200,000 files. `RETOLD_MUTATIONS` sets another seed; an error names the seed and the number.
"""

import os
from pathlib import Path
from random import Random

import pytest

from retold.agents.protocol import Agent, Source
from retold.agents.registry import AGENTS
from retold.archive.documents import documents
from retold.ingest.derive import Scraps, conversations
from retold.model.problem import Problem
from retold.model.wire import as_builtins
from support.mutations import case_files, mutated

SEED = int(os.environ.get("RETOLD_MUTATIONS", "20"))
FILES = case_files()
FEW, MANY = 3_000, 200_000


def check(agent: Agent, path: Path) -> None:
    """Read a file as a sync does, in both views, and make everything of it that is kept."""
    readings = agent.read(Source(path))
    if isinstance(readings, Problem):
        return
    for view in ("full", "active"):
        for _, _, session in conversations(agent, readings, Scraps(), view):
            as_builtins(session)
            for spoken in documents(session):
                assert spoken.docs is not None


def run(folder: Path, numbers: range) -> None:
    for number in numbers:
        chance = Random(SEED * 1_000_003 + number)  # noqa: S311 - the same in every run
        case, file, data = chance.choice(FILES)
        path = folder / f"{number % 50}" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(mutated(data, chance))
        for agent in AGENTS.values():
            try:
                check(agent, path)
            except Exception as error:
                error.add_note(f"{agent.NAME} on case {case}, {file}, seed {SEED}, number {number}")
                raise


@pytest.mark.parametrize("part", range(4))
def test_no_reader_raises_whatever_types_its_input_has(tmp_path: Path, part: int) -> None:
    run(tmp_path, range(part, FEW, 4))


@pytest.mark.heavy
@pytest.mark.parametrize("part", range(20))
def test_no_reader_raises_on_very_many_files(tmp_path: Path, part: int) -> None:
    run(tmp_path, range(FEW + part, FEW + MANY, 20))
