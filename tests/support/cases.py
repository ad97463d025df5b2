"""The cases: one folder per behaviour, with the smallest files that show it and the expected sessions."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retold.agents.registry import NotASession, read
from retold.model.serialization import to_builtins
from retold.model.session import Session, View

FOLDER = Path(__file__).parents[1] / "cases"
EXPECTED = "expected.json"
ACTIVE = "active.json"
"""The file with the ids of the active view, where it differs from the full view."""
MODIFIED_AT = 1_772_355_900.0
"""2026-03-01T09:05:00Z, the mtime of every case file; some session times come only from it."""

NAMES = sorted(folder.name for folder in FOLDER.iterdir())
Json = dict[str, Any]
Expected = list[Json] | dict[str, str]

every_case = pytest.mark.parametrize("case", NAMES)


def input_files(case: str) -> list[Path]:
    """Return a case's files that may be sessions, relative to its folder."""
    files = (file.relative_to(FOLDER / case) for file in (FOLDER / case).rglob("*") if file.is_file())
    return sorted(file for file in files if file.name not in (EXPECTED, ACTIVE) and not _is_beside(file))


def _is_beside(file: Path) -> bool:
    return not {"tool-outputs", "tool-results"}.isdisjoint(file.parts)


def copy_case(case: str, into: Path) -> Path:
    """Copy a case into a folder of its own, with fixed file times."""
    folder = into / "case"
    shutil.copytree(FOLDER / case, folder, ignore=shutil.ignore_patterns(EXPECTED, ACTIVE))
    for file in folder.rglob("*"):
        os.utime(file, (MODIFIED_AT, MODIFIED_AT))
    return folder


def case_sessions(case: str, folder: Path, view: View = "full") -> Iterator[Session]:
    """Yield the sessions of a case's files; raises NotASession."""
    for file in input_files(case):
        yield from read(folder / file, view)


def read_case(case: str, folder: Path) -> Expected:
    """Return the full view of a case as JSON, with paths relative to the case."""
    try:
        return [with_relative_paths(to_builtins(session), folder) for session in case_sessions(case, folder)]
    except NotASession as refusal:
        return {"refused": refusal.problem.code}


def with_relative_paths(tree: Json, folder: Path) -> Json:
    """Return the tree with paths relative to the case's folder."""
    for holder in (*tree["sources"], *tree["problems"]):
        holder["path"] = Path(holder["path"]).relative_to(folder).as_posix()
    return json.loads(json.dumps(tree))  # type: ignore[no-any-return]


def entry_ids(session: Session) -> list[str | None]:
    return [entry.id for entry in session.timeline]


def expected_sessions(case: str) -> Expected:
    found: Expected = json.loads((FOLDER / case / EXPECTED).read_text(encoding="utf-8"))
    return found


def expected_active_ids(case: str) -> list[list[str | None]] | None:
    file = FOLDER / case / ACTIVE
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def strings(tree: Any) -> Iterator[str]:
    """Yield every string in a tree."""
    match tree:
        case str():
            yield tree
        case dict():
            for value in tree.values():
                yield from strings(value)
        case list() | tuple():
            for value in tree:
                yield from strings(value)
