"""Project names and paths: which projects a filter means, and paths relative to a project."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN = "unknown"
"""The name of an unknown project or model in reports and filters."""
EVIDENCE_ORDER = ("recorded", "registry", "hash", "guessed", "none")
"""The kinds of evidence for a project, the strongest first."""


def folder_name(root: str) -> str:
    """Return the last part of a path of any system."""
    return root.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


def path_in_project(path: str, root: str | None) -> str:
    """Return a path as the project's name and the path in the project; a path outside as it is."""
    if root is None:
        return path
    plain, folder = path.replace("\\", "/"), root.replace("\\", "/").rstrip("/")
    if plain.startswith(f"{folder}/"):
        return f"{folder_name(root)}/{plain[len(folder) + 1 :]}"
    return path if _is_absolute(plain) else f"{folder_name(root)}/{plain.removeprefix('./')}"


def absolute_path(path: str, root: str | None) -> str:
    """Return an absolute path; a relative one belongs to the project with this root."""
    plain = path.replace("\\", "/")
    if root is None or _is_absolute(plain):
        return plain
    folder = root.replace("\\", "/").rstrip("/")
    return f"{folder}/{plain.removeprefix('./')}"


def _is_absolute(plain: str) -> bool:
    return plain.startswith(("/", "~", "../")) or plain[1:3] == ":/"


def matches_project(root: str | None, native_key: str | None, project_hash: str | None, typed: str) -> bool:
    """Return whether a filter means a project: a path, a hash or its first 8 characters, or part of the folder's name.

    A path is compared with the root and, through its hash, with projects of which only the hash is known.
    """
    if project_hash is not None and typed in (project_hash, project_hash[:8]):
        return True
    paths = _paths(typed)
    if root in paths or project_hash in paths.values():
        return True
    if root is None:
        return typed == native_key
    return typed.rstrip("/\\") == root or (not paths and fold_name(typed) in fold_name(folder_name(root)))


def is_path(typed: str) -> bool:
    """Return whether a filter is a path, and not a hash or a part of a name."""
    return "/" in typed or "\\" in typed or typed in (".", "..")


_KNOWN_PATHS: dict[tuple[str, str], dict[str | None, str]] = {}
"""The folders that a filter means, by filter and working directory: a filter is compared with every project."""


def _paths(typed: str) -> dict[str | None, str]:
    """Return the folders that a filter means as a path, with their hashes: as typed, and with links resolved.

    A path of Windows may be one of another machine, so it also counts unchanged, and in lower case.
    """
    if not is_path(typed):
        return {}
    try:
        key = typed, "" if os.path.isabs(typed) else os.getcwd()
    except FileNotFoundError:  # the working directory is gone
        return {}
    if key not in _KNOWN_PATHS:
        from retold.model.session import root_hash  # noqa: PLC0415 - hashlib takes 3 ms to import

        path = os.path.abspath(os.path.expanduser(typed))
        paths = (path, os.path.realpath(path), *_windows_paths(typed))
        _KNOWN_PATHS[key] = {one: root_hash(one) for one in paths}
    return _KNOWN_PATHS[key]


def _windows_paths(typed: str) -> tuple[str, ...]:
    if typed[1:3] not in (":\\", ":/"):
        return ()
    from ntpath import normpath  # noqa: PLC0415 - seldom needed

    path = normpath(typed)
    return path, path.lower()


def fold_name(name: str) -> str:
    """Return the form in which names are compared: lowercase, and in one form of Unicode."""
    if name.isascii():
        return name.casefold()
    from unicodedata import normalize  # noqa: PLC0415 - seldom needed

    return normalize("NFKC", normalize("NFKC", name).casefold())


def name_rank(name: str, typed: str) -> int | None:
    """Return how well a name matches typed letters: 0 at its start, 1 inside, 2 in order; None if not at all."""
    name, typed = fold_name(name), fold_name(typed)
    if name.startswith(typed):
        return 0
    if typed in name:
        return 1
    return 2 if _has_letters(name, typed) else None


def _has_letters(name: str, letters: Iterable[str]) -> bool:
    rest = iter(name)
    return all(letter in rest for letter in letters)
