"""A walk through the usual development folders, to find the roots behind project hashes."""

import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec

from retold.model.session import root_hash
from retold.projects.matching import fold_name, folder_name

START_FOLDERS = (
    "", "dev", "projects", "src", "code", "work", "Documents", "repos", "git", "workspace", "Developer", "Projects",
)  # fmt: skip
DEPTH = 4
SKIPPED = frozenset(
    (
        "node_modules", "vendor", "third_party", "venv", "env", "site-packages", "__pycache__", "target", "build",
        "dist", "out", "bin", "obj", "Library", "AppData", "Applications", "Pictures", "Music", "Movies", "Videos",
    )
)  # fmt: skip
SECONDS = 20.0
NAMED_SECONDS = 5.0
NAMED_FOLDERS = 100_000
"""Bounds of a walk for one name, which is a part of another command."""


def find_roots(
    user: Path, hashes: Collection[str], on_progress: Callable[[int], None], seconds: float = SECONDS
) -> tuple[dict[str, str], bool]:
    """Return roots by their hashes, and whether the walk finished in time."""
    left, roots = set(hashes), {}
    ends = time.monotonic() + seconds
    for seen, folder in enumerate(_walk(user)):
        found = root_hash(folder)
        if found in left:
            roots[found] = folder
            left.discard(found)
        if not left:
            break
        if seen % 256 == 0:
            on_progress(seen)
            if time.monotonic() > ends:
                return roots, False
    return roots, True


class FolderWalk(msgspec.Struct, frozen=True):
    """The result of a walk through folders."""

    roots: dict[str, str]
    """Roots by their hashes."""
    seen: int
    """Folders that were looked at."""
    is_done: bool
    """Whether the walk finished within its bounds."""


def find_roots_named(
    user: Path, name: str, hashes: Collection[str], seconds: float = NAMED_SECONDS, most: int = NAMED_FOLDERS
) -> FolderWalk:
    """Look for folders with a text in their names, in any case, that have one of some hashes."""
    text, roots, seen = fold_name(name), dict[str, str](), 0
    ends = time.monotonic() + seconds
    for folder in _walk(user):
        if seen == most or (seen % 256 == 0 and time.monotonic() > ends):
            return FolderWalk(roots, seen, is_done=False)
        seen += 1
        if text in fold_name(folder_name(folder)) and (found := root_hash(folder)) in hashes:
            roots[found] = folder
    return FolderWalk(roots, seen, is_done=True)


def _walk(user: Path) -> Iterator[str]:
    """Yield folders level by level, each once, without links, dependencies and version control."""
    level = [os.path.join(user, place) if place else str(user) for place in START_FOLDERS]
    seen: set[str] = set()
    for _ in range(DEPTH + 1):
        below: list[str] = []
        for folder in level:
            if folder not in seen:
                seen.add(folder)
                yield folder
                below.extend(_subfolders(folder))
        level = below


def _subfolders(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                is_skipped = entry.name.startswith(".") or entry.name in SKIPPED
                if not is_skipped and entry.is_dir(follow_symlinks=False):
                    yield entry.path
    except OSError:
        return  # unreadable, or gone meanwhile: a walk finds what it can
