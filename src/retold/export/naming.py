"""Names for the files of an export: readable, and harmless wherever they are put."""

import os
import re
from collections.abc import Collection

from retold.export.zone import day
from retold.model.session import Session

_LONGEST = 48
_OTHERS = re.compile(r"[\W_]+")


def file_name(session: Session, suffix: str, taken: Collection[str] = ()) -> str:
    """Return a name that no other file of the export has: the day, the title and the start of the id."""
    began = day(session.started_at) if session.started_at else "undated"
    # Letters of every script stay; no dot, separator or control character does.
    title = _OTHERS.sub("-", (session.title or "untitled").lower())[:_LONGEST].strip("-")
    known = _OTHERS.sub("-", session.native_id or session.key).strip("-")[:8]
    stem = "-".join(part for part in (began, title, known) if part)
    number, name = 2, f"{stem}{suffix}"
    while name in taken:
        number, name = number + 1, f"{stem}-{number}{suffix}"
    return name


def free_path(folder: str, name: str) -> str:
    """Return a path in a folder at which nothing lies yet: the name, or one with a number."""
    stem, suffix = os.path.splitext(name)
    number, path = 2, os.path.join(folder, name)
    while os.path.lexists(path):
        number, path = number + 1, os.path.join(folder, f"{stem}-{number}{suffix}")
    return path
