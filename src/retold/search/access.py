"""Access scopes: the sessions that a request may see, which are all or those of one project."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256

import msgspec

from retold.archive.queries.listing import Condition, folder_condition, hashes_condition, roots_condition
from retold.search.listing import is_within


class AccessScope(msgspec.Struct, frozen=True):
    """A limit that no request can exceed."""

    folders: tuple[str, ...] = ()
    """Paths of one folder; none if everything may be seen."""
    is_recursive: bool = True
    """Whether folders below belong to it."""

    def conditions(self) -> list[Condition]:
        """Return the condition of a session in the scope. Some projects are known by the hash of their folder only."""
        if not self.folders:
            return []
        one_of = [hashes_condition(map(_gemini_hash, self.folders))]
        if self.is_recursive:
            one_of += map(folder_condition, self.folders)
        else:
            one_of.append(roots_condition(self.folders))
        values = [value for one in one_of for value in one.values]
        return [Condition(" OR ".join(f"({one.sql})" for one in one_of), *values)]


EVERYTHING = AccessScope()


def resolve_project_scope(
    roots: Iterable[str | None], here: str, home: str, named: str | None = None
) -> AccessScope:
    """Return the scope of the project that a folder is in.

    The root of the project is the nearest folder above with a `.git`, else the nearest with sessions, else the folder
    itself. The user's home and the folders above it are no projects: a session there would give access to all others.
    `named` is the path of the folder in the shell, which agents may have recorded if a link leads to the folder.
    """
    known = {root.rstrip("/\\") for root in roots if root}
    names = [_project(here, home, known)]
    if named and os.path.realpath(named) == os.path.realpath(here):
        names.append(_project(named, home, known))
    return AccessScope(
        tuple(dict.fromkeys(names)), is_recursive=not any(_is_home(home, name) for name in names)
    )


def _project(here: str, home: str, known: set[str]) -> str:
    above = [folder for folder in _above(here) if not _is_home(home, folder)]
    repository = next((one for one in above if os.path.exists(os.path.join(one, ".git"))), None)
    return repository or next((one for one in above if one.rstrip("/\\") in known), here)


def _is_home(home: str, folder: str) -> bool:
    """Return whether a folder is the user's home or above it, also by a link."""
    return is_within(home, folder) or is_within(os.path.realpath(home), os.path.realpath(folder))


def _above(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, the nearest first."""
    yield folder
    while folder != (folder := os.path.dirname(folder)):
        yield folder


def _gemini_hash(folder: str) -> str:
    """Return the hash by which Gemini CLI names a project."""
    return sha256((folder.rstrip("/\\") or folder).encode("utf-8", "surrogateescape")).hexdigest()
