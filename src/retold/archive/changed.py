"""Files that sessions changed: each by its whole path, however a call named it."""

from __future__ import annotations

from retold.archive.conditions import Condition, clause
from retold.archive.reports import CONVERSATION

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.record import Store

    Row = tuple[Any, ...]

_PLAIN = "replace(files.path, '\\', '/')"
_IS_ELSEWHERE = f"{_PLAIN} GLOB '[/~]*' OR {_PLAIN} GLOB '../*' OR substr({_PLAIN}, 2, 2) = ':/'"
_BELOW = f"iif({_PLAIN} GLOB './*', substr({_PLAIN}, 3), {_PLAIN})"
_FOLDER = "rtrim(replace(sessions.root, '\\', '/'), '/')"
WHOLE = f"iif(sessions.root IS NULL OR {_IS_ELSEWHERE}, {_PLAIN}, {_FOLDER} || '/' || {_BELOW})"
"""The same as `projects.matching.whole_path`."""
_NOWHERE = 2**31
"""Behind every path: an empty name ends each of them."""
_NAMED = "substr(files.path, ?) = ?"
"""The end of a path alone tells nearly all others apart, and is compared faster."""
_CHANGED = Condition("files.changes > 0")
_FROM = "FROM files JOIN sessions ON sessions.id = files.session"


def with_part(part: str) -> Condition:
    """Return the condition that a path has a text in it."""
    return Condition(f"instr(lower({WHOLE}), lower(?))", part)


def with_end(end: str) -> Condition:
    """Return the condition that a whole path is this one, or ends with it behind a folder's name."""
    is_it = f"{WHOLE} = ? OR substr({WHOLE}, ?) = ?"
    return Condition(f"{_NAMED} AND ({is_it})", *_named(end), end, -len(end) - 1, f"/{end}")


def changed_rows(
    record: Store, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> Iterator[Row]:
    """Yield the files that were changed most: whole path, a root, calls, conversations, when last."""
    which, values = clause([_CHANGED, *conditions])
    return record.rows(
        f"SELECT {WHOLE}, max(sessions.root), sum(changes), count(DISTINCT {CONVERSATION}), max(sessions.ended_at)"
        f" {_FROM} WHERE {which} GROUP BY 1 ORDER BY 3 DESC, 4 DESC, 1 LIMIT ? OFFSET ?",
        [*values, limit, offset],
    )


def changer_rows(
    record: Store, path: str, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> Iterator[Row]:
    """Yield the sessions that changed a file, the newest first: key, agent, title, kind, end, root, calls."""
    is_it = Condition(f"{_NAMED} AND {WHOLE} = ?", *_named(path), path)
    which, values = clause([_CHANGED, is_it, *conditions])
    return record.rows(
        "SELECT sessions.key, sessions.agent, sessions.title, sessions.kind, sessions.ended_at, sessions.root, sum(changes)"
        f" {_FROM} WHERE {which} GROUP BY sessions.id ORDER BY sessions.ended_at DESC, 1 DESC LIMIT ? OFFSET ?",
        [*values, limit, offset],
    )


def paths_changed(record: Store, key: str) -> Iterator[Row]:
    """Yield the files that a session and its subagents changed, those with most changes first: whole path, a root, calls."""
    here = "sessions.root IS (SELECT root FROM sessions above WHERE above.key = sessions.parent)"
    below = f"sessions.key = ? OR sessions.kind = 'subagent' AND sessions.parent = ? AND {here}"
    return record.rows(
        f"SELECT {WHOLE}, max(sessions.root), sum(changes) {_FROM}"
        f" WHERE {_CHANGED.sql} AND ({below}) GROUP BY 1 ORDER BY 3 DESC, 1",
        (key, key),
    )


def _named(path: str) -> tuple[int, str]:
    name = path.rpartition("/")[2]
    return -len(name) or _NOWHERE, name
