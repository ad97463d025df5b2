"""Files that sessions changed, and sessions that are related by family, shared messages, files, project and time."""

from __future__ import annotations

from retold.archive.queries.listing import Condition, join_conditions
from retold.archive.queries.reports import CONVERSATION

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.store import Store

    Row = tuple[Any, ...]


_SLASHED = "replace(files.path, '\\', '/')"
_IS_ELSEWHERE = f"{_SLASHED} GLOB '[/~]*' OR {_SLASHED} GLOB '../*' OR substr({_SLASHED}, 2, 2) = ':/'"
_BELOW = f"iif({_SLASHED} GLOB './*', substr({_SLASHED}, 3), {_SLASHED})"
_FOLDER = "rtrim(replace(sessions.root, '\\', '/'), '/')"
WHOLE_PATH = f"iif(sessions.root IS NULL OR {_IS_ELSEWHERE}, {_SLASHED}, {_FOLDER} || '/' || {_BELOW})"
"""SQL for the same as `projects.matching.whole_path`."""
_NOWHERE = 2**31
"""Beyond every path: an empty name ends each of them."""
_HAS_NAME = "substr(files.path, ?) = ?"
"""The last name of a path is compared first: that is faster, and excludes nearly all other paths."""
_CHANGED = Condition("files.changes > 0")
_FROM = "FROM files JOIN sessions ON sessions.id = files.session"


def path_part_condition(part: str) -> Condition:
    """Return the condition that a path contains a text."""
    return Condition(f"instr(lower({WHOLE_PATH}), lower(?))", part)


def path_end_condition(end: str) -> Condition:
    """Return the condition that a whole path is a path, or ends with it after a slash."""
    is_it = f"{WHOLE_PATH} = ? OR substr({WHOLE_PATH}, ?) = ?"
    return Condition(f"{_HAS_NAME} AND ({is_it})", *_name_values(end), end, -len(end) - 1, f"/{end}")


def load_changed_files(
    store: Store, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> Iterator[Row]:
    """Yield the files with most changes: whole path, a root, calls, conversations, and when last."""
    which, values = join_conditions([_CHANGED, *conditions])
    return store.rows(
        f"SELECT {WHOLE_PATH}, max(sessions.root), sum(changes), count(DISTINCT {CONVERSATION}), max(sessions.ended_at)"
        f" {_FROM} WHERE {which} GROUP BY 1 ORDER BY 3 DESC, 4 DESC, 1 LIMIT ? OFFSET ?",
        [*values, limit, offset],
    )


def load_changers(
    store: Store, path: str, conditions: Iterable[Condition], limit: int, offset: int = 0
) -> Iterator[Row]:
    """Yield the sessions that changed a file, the newest first: key, agent, title, kind, end, root, calls."""
    is_it = Condition(f"{_HAS_NAME} AND {WHOLE_PATH} = ?", *_name_values(path), path)
    which, values = join_conditions([_CHANGED, is_it, *conditions])
    return store.rows(
        "SELECT sessions.key, sessions.agent, sessions.title, sessions.kind, sessions.ended_at, sessions.root, sum(changes)"
        f" {_FROM} WHERE {which} GROUP BY sessions.id ORDER BY sessions.ended_at DESC, 1 DESC LIMIT ? OFFSET ?",
        [*values, limit, offset],
    )


def load_changed_paths(store: Store, key: str) -> Iterator[Row]:
    """Yield the files that a session and its subagents changed, those with most changes first: whole path, a root, calls."""
    here = "sessions.root IS (SELECT root FROM sessions above WHERE above.key = sessions.parent)"
    below = f"sessions.key = ? OR sessions.kind = 'subagent' AND sessions.parent = ? AND {here}"
    return store.rows(
        f"SELECT {WHOLE_PATH}, max(sessions.root), sum(changes) {_FROM}"
        f" WHERE {_CHANGED.sql} AND ({below}) GROUP BY 1 ORDER BY 3 DESC, 1",
        (key, key),
    )


def _name_values(path: str) -> tuple[int, str]:
    name = path.rpartition("/")[2]
    return -len(name) or _NOWHERE, name


_SESSION_COLUMNS = "other.key, other.title, other.agent, other.kind, other.ended_at"
_FAMILY = f"""
SELECT iif(other.key = mine.parent, 'parent', iif(other.kind = 'subagent', 'subagent', 'child')), {_SESSION_COLUMNS}
FROM sessions mine JOIN sessions other ON other.key = mine.parent OR other.parent = mine.key
WHERE mine.key = ? AND other.id <> mine.id ORDER BY 1, other.started_at, other.key LIMIT ?
"""  # noqa: S608 - ours
_SHARING = f"""
SELECT count(*), {_SESSION_COLUMNS} FROM sessions mine JOIN messages said ON said.session = mine.id
JOIN messages again ON again.uid = said.uid AND again.session <> mine.id JOIN sessions other ON other.id = again.session
WHERE mine.key = ? GROUP BY other.id ORDER BY 1 DESC, other.key LIMIT ?
"""  # noqa: S608 - ours
_NAMESAKES = f"""
SELECT {_SESSION_COLUMNS} FROM sessions mine JOIN sessions other ON other.native_id = mine.native_id AND other.agent = mine.agent
WHERE mine.key = ? AND other.id <> mine.id AND other.is_spoken ORDER BY other.started_at, other.key LIMIT ?
"""  # noqa: S608 - ours
# A relative path is the same file only in the same project.
_WITH_FILES = f"""
WITH mine AS (SELECT id, coalesce(root, hash, native_key) AS project FROM sessions WHERE key = ?),
changed AS (SELECT path FROM files WHERE session = (SELECT id FROM mine) AND changes > 0 LIMIT ?)
SELECT files.path, {_SESSION_COLUMNS} FROM files JOIN changed ON changed.path = files.path JOIN sessions other ON other.id = files.session
WHERE files.changes > 0 AND other.id <> (SELECT id FROM mine)
AND (substr(files.path, 1, 1) IN ('/', '~') OR substr(files.path, 2, 1) = ':'
    OR coalesce(other.root, other.hash, other.native_key) = (SELECT project FROM mine))
"""  # noqa: S608 - ours
_NEIGHBOURS = f"""
SELECT CAST(unixepoch(other.started_at) - unixepoch(mine.started_at) AS INTEGER), {_SESSION_COLUMNS}
FROM sessions mine JOIN sessions other
ON coalesce(other.root, other.hash, other.native_key) = coalesce(mine.root, mine.hash, mine.native_key)
WHERE mine.key = ? AND other.id <> mine.id AND other.kind IN ('main', 'fork', 'prompts-only') AND other.is_spoken
AND abs(unixepoch(other.started_at) - unixepoch(mine.started_at)) <= ? ORDER BY abs(unixepoch(other.started_at) - unixepoch(mine.started_at)), other.key LIMIT ?
"""  # noqa: S608 - ours
MOST_FILES = 500
"""Files of a session by which related sessions are found."""


def load_relatives(store: Store, key: str, most: int) -> Iterator[Row]:
    """Yield the parent, children and subagents of a session: relation, key, title, agent, kind and end."""
    return store.rows(_FAMILY, (key, most))


def load_sharers(store: Store, key: str, most: int) -> Iterator[Row]:
    """Yield the sessions that share messages with a session: number of messages, and the columns of a session."""
    return store.rows(_SHARING, (key, most))


def load_namesakes(store: Store, key: str, most: int) -> Iterator[Row]:
    """Yield the sessions with the same native id."""
    return store.rows(_NAMESAKES, (key, most))


def load_co_changers(store: Store, key: str) -> Iterator[Row]:
    """Yield each file that a session and another were to change, and the other session."""
    return store.rows(_WITH_FILES, (key, MOST_FILES))


def load_neighbours(store: Store, key: str, seconds: int, most: int) -> Iterator[Row]:
    """Yield the sessions of the same project that started around the same time, and how many seconds later they did."""
    return store.rows(_NEIGHBOURS, (key, seconds, most))
