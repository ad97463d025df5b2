"""How far somebody who asks may see: every conversation, or those of one project."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256

import msgspec

from retold.archive.queries.conditions import Condition, below, of_hashes, of_roots
from retold.search.listing import is_within


class AccessScope(msgspec.Struct, frozen=True):
    """The widest that is given; no question widens it."""

    folders: tuple[str, ...] = ()
    """Names of one and the same folder; none where everything may be seen."""
    is_deep: bool = True
    """Whether what lies below the folder belongs to it."""

    def conditions(self) -> list[Condition]:
        """Return what must hold of a session. A project that is known by its hash alone is known by it here, too."""
        if not self.folders:
            return []
        of_folders = [below(folder) for folder in self.folders] if self.is_deep else [of_roots(self.folders)]
        return [either([*of_folders, of_hashes(map(_hash, self.folders))])]


EVERYTHING = AccessScope()


def either(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that one of some holds."""
    found = list(conditions)
    values = [value for one in found for value in one.values]
    return Condition(" OR ".join(f"({one.sql})" for one in found), *values)


def project_reach(roots: Iterable[str | None], here: str, home: str, named: str | None = None) -> AccessScope:
    """Return the reach of the project that a folder is in.

    Its folder is the nearest above with a `.git`, or else in which conversations took place, or else the folder itself. The
    user's home, and what is above it, is nobody's project: one conversation there would open all others. `named` is
    how the shell calls the folder, which an agent may have recorded where a link leads to it.
    """
    known = {root.rstrip("/\\") for root in roots if root}
    names = [_project(here, home, known)]
    if named and os.path.realpath(named) == os.path.realpath(here):
        names.append(_project(named, home, known))
    return AccessScope(tuple(dict.fromkeys(names)), is_deep=not any(_is_home(home, name) for name in names))


def _project(here: str, home: str, known: set[str]) -> str:
    above = [folder for folder in _above(here) if not _is_home(home, folder)]
    repository = next((one for one in above if os.path.exists(os.path.join(one, ".git"))), None)
    return repository or next((one for one in above if one.rstrip("/\\") in known), here)


def _is_home(home: str, folder: str) -> bool:
    """Tell whether a folder is the user's home or above it, by any name: a link may lead there."""
    return is_within(home, folder) or is_within(os.path.realpath(home), os.path.realpath(folder))


def _above(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, the nearest first."""
    yield folder
    while folder != (folder := os.path.dirname(folder)):
        yield folder


def _hash(folder: str) -> str:
    """Return the name that Gemini CLI gives to a project's folder."""
    return sha256((folder.rstrip("/\\") or folder).encode("utf-8", "surrogateescape")).hexdigest()
