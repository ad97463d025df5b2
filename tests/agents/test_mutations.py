"""No reader raises, whatever JSON types stand in a file: the cases and exports, with values replaced at random.

`make test-heavy` tries 200,000 inputs. `RETOLD_MUTATIONS` sets another seed; an error names the seed and the number.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random

import pytest

from retold.agents.protocol import Agent, Reading, Source
from retold.agents.registry import AGENTS
from retold.archive.index.documents import make_documents
from retold.archive.rows import make_session_rows
from retold.export.transcript import TranscriptOptions, format_transcript
from retold.insights.digest import collect_insights
from retold.model.problem import Problem
from retold.model.session import Session
from retold.reading.own_exports import read_own_export
from retold.sessions.conversations import Scraps, join_conversations
from support.mutations import case_files, exported_files, mutated
from support.session_json import session_json

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("RETOLD_MUTATIONS", "20"))
FILES = case_files()
EXPORTS = exported_files()
FEW, MANY = 3_000, 200_000


def check(agent: Agent, paths: Sequence[Path], chance: Random) -> None:
    """Read files of one cluster as a sync does, in both views, and make everything of them that is kept or shown."""
    readings: list[Reading] = []
    sources = [Source(path) for path in paths]
    for source in sources:
        found = agent.read(source)
        readings += [] if isinstance(found, Problem) else found
    for view in ("full", "active"):
        for _, _, session in join_conversations(agent, readings, Scraps(), view):
            check_session(session, is_shown=chance.random() < 0.1)


def check_session(session: Session, *, is_shown: bool) -> None:
    """Make everything of a session that is kept; also what is shown of it, which takes longer."""
    assert session_json(session)
    make_session_rows(session, 1, b"", None, ())
    for spoken in make_documents(session):
        assert spoken.docs is not None
    if is_shown:
        collect_insights(session.timeline)
        assert list(
            format_transcript(session, TranscriptOptions("full", thoughts=True, tokens=True, notices=True))
        )


def check_exports(path: Path) -> None:
    for view in ("full", "active"):
        found = read_own_export(path, view)
        for session in found if isinstance(found, list) else ():
            check_session(session, is_shown=True)


def run(folder: Path, numbers: Iterator[int], inputs: int) -> None:
    """Try so many files, one to three of them at a time as one cluster."""
    while inputs > 0:
        number = next(numbers)
        chance = Random(SEED * 1_000_003 + number)  # noqa: S311 - the same in every run
        chosen = chance.choices(EXPORTS if number % 10 == 0 else FILES, k=chance.choice((1, 1, 1, 2, 3)))
        inputs -= len(chosen)
        paths = []
        for place, ((_, name, _), data) in enumerate(
            zip(chosen, mutated([data for *_, data in chosen], chance), strict=True)
        ):
            path = folder / f"{number % 50}" / f"{place}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            paths.append(path)
        try:
            for path in paths:
                check_exports(path)
            for agent in AGENTS.values():
                check(agent, paths, chance)
        except Exception as error:
            error.add_note(f"seed {SEED}, number {number}: {[(case, str(name)) for case, name, _ in chosen]}")
            raise


@pytest.mark.parametrize("part", range(4))
def test_no_reader_raises_whatever_types_its_input_has(tmp_path: Path, part: int) -> None:
    run(tmp_path, count(part, 4), FEW // 4)


@pytest.mark.heavy
@pytest.mark.parametrize("part", range(20))
def test_no_reader_raises_on_very_many_files(tmp_path: Path, part: int) -> None:
    run(tmp_path, count(FEW + part, 20), MANY // 20)
