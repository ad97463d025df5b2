"""Where a person stands, and which conversations took place there."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable


class Scope:
    """A part of all conversations: those in a folder or below it; all, where there is none."""

    __slots__ = ("folder", "name")

    def __init__(self, name: str, folder: str | None = None) -> None:
        self.name, self.folder = name, folder


def scopes(roots: Iterable[str | None], here: str) -> list[Scope]:
    """Return all scopes, the widest first: everything, the project that a folder is in, and the folder itself."""
    found = [Scope("all")]
    around = [root for root in roots if root and is_within(here, root)]
    if around:
        found.append(Scope("this project", max(around, key=len)))
    if not around or found[-1].folder != here:
        found.append(Scope("this folder", here))
    return found


def is_within(path: str, folder: str) -> bool:
    """Tell whether a path is a folder, or lies below it."""
    top = folder.rstrip("/\\")
    return path == folder or path.rstrip("/\\") == top or path.startswith((f"{top}/", f"{top}{os.sep}"))
