"""A walk through the usual development folders, in search of the roots behind project hashes."""

import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec

from retold.model.session import root_hash
from retold.projects.matching import last_name

PLACES = (
    "",
    "dev",
    "projects",
    "src",
    "code",
    "work",
    "Documents",
    "repos",
    "git",
    "workspace",
    "Developer",
    "Projects",
)
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
"""Bounds of a walk for one name, which nobody asked for by a command of its own."""


def scan(
    user: Path, wanted: Collection[str], tell: Callable[[int], None], seconds: float = SECONDS
) -> tuple[dict[str, str], bool]:
    """Return hash to root for the wanted hashes found, and whether the walk came to its end in time."""
    left, found = set(wanted), {}
    ends = time.monotonic() + seconds
    for seen, folder in enumerate(_folders(user)):
        name = root_hash(folder)
        if name in left:
            found[name] = folder
            left.discard(name)
        if not left:
            break
        if seen % 256 == 0:
            tell(seen)
            if time.monotonic() > ends:
                return found, False
    return found, True


class FolderWalk(msgspec.Struct, frozen=True):
    """What a walk through folders found."""

    roots: dict[str, str]
    """Roots by their hashes."""
    seen: int
    """How many folders were looked at."""
    is_done: bool
    """Whether it came to its end within its bounds."""


def find_named(
    user: Path, name: str, wanted: Collection[str], seconds: float = NAMED_SECONDS, most: int = NAMED_FOLDERS
) -> FolderWalk:
    """Look for folders with a text in their names, in any case, whose hashes are among the wanted ones."""
    text, found, seen = name.casefold(), dict[str, str](), 0
    ends = time.monotonic() + seconds
    for folder in _folders(user):
        if seen == most or (seen % 256 == 0 and time.monotonic() > ends):
            return FolderWalk(found, seen, is_done=False)
        seen += 1
        if text in last_name(folder).casefold() and (known := root_hash(folder)) in wanted:
            found[known] = folder
    return FolderWalk(found, seen, is_done=True)


def _folders(user: Path) -> Iterator[str]:
    """Yield folders level by level; each once, no link followed, dependencies and version control left out."""
    level = [os.path.join(user, place) if place else str(user) for place in PLACES]
    seen: set[str] = set()
    for _ in range(DEPTH + 1):
        below: list[str] = []
        for folder in level:
            if folder not in seen:
                seen.add(folder)
                yield folder
                below.extend(_below(folder))
        level = below


def _below(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                hidden = entry.name.startswith(".") or entry.name in SKIPPED
                if not hidden and entry.is_dir(follow_symlinks=False):
                    yield entry.path
    except OSError:
        return  # unreadable, or gone meanwhile: a scan only ever finds more
