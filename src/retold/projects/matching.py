"""Projects found by a part of their name."""

import re
from collections.abc import Iterable

from retold.model.project import Project


def last_name(root: str) -> str:
    """Return the last name of a path, of either kind."""
    return re.split(r"[/\\]", root.rstrip("/\\"))[-1]


def is_called(project: Project, wanted: str) -> bool:
    """Tell whether a filter means this project: a path, a hash or its first 8 characters, or part of the last name."""
    if project.hash is not None and wanted in (project.hash, project.hash[:8]):
        return True
    if project.root is None:
        return wanted == project.native_key
    return wanted.rstrip("/\\") == project.root or wanted.casefold() in last_name(project.root).casefold()


def closeness(name: str, wanted: str) -> int | None:
    """Return how well a name fits, 0 the best; None if the letters of `wanted` are not in it in their order."""
    name, wanted = name.casefold(), wanted.casefold()
    if name.startswith(wanted):
        return 0
    if wanted in name:
        return 1
    return 2 if _has_letters(name, wanted) else None


def _has_letters(name: str, wanted: Iterable[str]) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in wanted)
