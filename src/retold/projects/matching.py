"""Projects found by a part of their name."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable

ORDER = ("recorded", "registry", "hash", "guessed", "none")
"""How much a piece of evidence weighs, the heaviest first."""


def last_name(root: str) -> str:
    """Return the last name of a path, of either kind."""
    return root.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


def in_project(path: str, root: str | None) -> str:
    """Return a path by the name of its project and its place there; one that lies elsewhere as it is."""
    if root is None:
        return path
    plain, folder = path.replace("\\", "/"), root.replace("\\", "/").rstrip("/")
    if plain.startswith(f"{folder}/"):
        return f"{last_name(root)}/{plain[len(folder) + 1 :]}"
    return path if _is_elsewhere(plain) else f"{last_name(root)}/{plain.removeprefix('./')}"


def whole_path(path: str, root: str | None) -> str:
    """Return a path from the root of all: one that is told from a project's root begins with that."""
    plain = path.replace("\\", "/")
    if root is None or _is_elsewhere(plain):
        return plain
    folder = root.replace("\\", "/").rstrip("/")
    return f"{folder}/{plain.removeprefix('./')}"


def _is_elsewhere(plain: str) -> bool:
    return plain.startswith(("/", "~", "../")) or plain[1:3] == ":/"


def is_meant(root: str | None, native_key: str | None, project_hash: str | None, wanted: str) -> bool:
    """Return whether a filter means a project: a path, a hash or its first 8 characters, or part of the last name.

    A path is compared with the root and, through its hash, with projects of which only the hash is known.
    """
    if project_hash is not None and wanted in (project_hash, project_hash[:8]):
        return True
    paths = _paths(wanted)
    if root in paths or project_hash in paths.values():
        return True
    if root is None:
        return wanted == native_key
    return wanted.rstrip("/\\") == root or (not paths and wanted.casefold() in last_name(root).casefold())


def is_path(wanted: str) -> bool:
    """Return whether a filter is a path, and not a hash or a part of a name."""
    return "/" in wanted or "\\" in wanted or wanted in (".", "..")


_KNOWN_PATHS: dict[tuple[str, str], dict[str | None, str]] = {}
"""The folders that a filter names, by the filter and the working directory: it is compared with every project."""


def _paths(wanted: str) -> dict[str | None, str]:
    """Return the folders that a filter names as a path, with their hashes: as typed, and with links resolved.

    A path of Windows may be that of another machine, so it is also taken as it is, and in small letters.
    """
    if not is_path(wanted):
        return {}
    try:
        asked = wanted, "" if os.path.isabs(wanted) else os.getcwd()
    except FileNotFoundError:  # the working directory is gone
        return {}
    if asked not in _KNOWN_PATHS:
        path = os.path.abspath(os.path.expanduser(wanted))
        paths = (path, os.path.realpath(path), *_windows_paths(wanted))
        _KNOWN_PATHS[asked] = {one: _hash(one) for one in paths}
    return _KNOWN_PATHS[asked]


def _windows_paths(wanted: str) -> tuple[str, ...]:
    if wanted[1:3] not in (":\\", ":/"):
        return ()
    from ntpath import normpath  # noqa: PLC0415 - seldom needed

    path = normpath(wanted)
    return path, path.lower()


def _hash(root: str) -> str:
    from retold.model.session import root_hash  # noqa: PLC0415 - hashlib takes 3 ms to import

    return root_hash(root)


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
