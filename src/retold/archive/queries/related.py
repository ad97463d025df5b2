"""Files that sessions changed: each by its whole path, however a call named it."""

from __future__ import annotations

from retold.archive.queries.conditions import Condition, clause
from retold.archive.queries.reports import CONVERSATION

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from retold.archive.store import Store

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


_TOLD = "other.key, other.title, other.agent, other.kind, other.ended_at"
_FAMILY = f"""
SELECT iif(other.key = mine.parent, 'parent', iif(other.kind = 'subagent', 'subagent', 'child')), {_TOLD}
FROM sessions mine JOIN sessions other ON other.key = mine.parent OR other.parent = mine.key
WHERE mine.key = ? AND other.id <> mine.id ORDER BY 1, other.started_at, other.key LIMIT ?
"""  # noqa: S608 - ours
_SHARING = f"""
SELECT count(*), {_TOLD} FROM sessions mine JOIN messages said ON said.session = mine.id
JOIN messages again ON again.name = said.name AND again.session <> mine.id JOIN sessions other ON other.id = again.session
WHERE mine.key = ? GROUP BY other.id ORDER BY 1 DESC, other.key LIMIT ?
"""  # noqa: S608 - ours
_NAMESAKES = f"""
SELECT {_TOLD} FROM sessions mine JOIN sessions other ON other.native_id = mine.native_id AND other.agent = mine.agent
WHERE mine.key = ? AND other.id <> mine.id AND other.is_spoken ORDER BY other.started_at, other.key LIMIT ?
"""  # noqa: S608 - ours
# A path may be told from the project's root on: it is the same file only in the same project, unless it is told from
# the root of the disk on.
_WITH_FILES = f"""
WITH mine AS (SELECT id, coalesce(root, hash, native_key) AS project FROM sessions WHERE key = ?),
changed AS (SELECT path FROM files WHERE session = (SELECT id FROM mine) AND changes > 0 LIMIT ?)
SELECT files.path, {_TOLD} FROM files JOIN changed ON changed.path = files.path JOIN sessions other ON other.id = files.session
WHERE files.changes > 0 AND other.id <> (SELECT id FROM mine)
AND (substr(files.path, 1, 1) IN ('/', '~') OR substr(files.path, 2, 1) = ':'
    OR coalesce(other.root, other.hash, other.native_key) = (SELECT project FROM mine))
"""  # noqa: S608 - ours
_NEAR = f"""
SELECT CAST(unixepoch(other.started_at) - unixepoch(mine.started_at) AS INTEGER), {_TOLD}
FROM sessions mine JOIN sessions other
ON coalesce(other.root, other.hash, other.native_key) = coalesce(mine.root, mine.hash, mine.native_key)
WHERE mine.key = ? AND other.id <> mine.id AND other.kind IN ('main', 'fork', 'prompts-only') AND other.is_spoken
AND abs(unixepoch(other.started_at) - unixepoch(mine.started_at)) <= ? ORDER BY abs(unixepoch(other.started_at) - unixepoch(mine.started_at)), other.key LIMIT ?
"""  # noqa: S608 - ours
MOST_FILES = 500
"""Files of a session by which others are looked for."""


def relatives(record: Store, key: str, most: int) -> Iterator[Row]:
    """Yield `parent`, `subagent` or `child`, and key, title, agent, kind and end of each session that belongs to one."""
    return record.rows(_FAMILY, (key, most))


def sharers(record: Store, key: str, most: int) -> Iterator[Row]:
    """Yield how many messages it shares with each other session, and the same of that."""
    return record.rows(_SHARING, (key, most))


def namesakes(record: Store, key: str, most: int) -> Iterator[Row]:
    """Yield the sessions that the agent calls by the same id."""
    return record.rows(_NAMESAKES, (key, most))


def co_changers(record: Store, key: str) -> Iterator[Row]:
    """Yield each file that it and another session were to change, and that session."""
    return record.rows(_WITH_FILES, (key, MOST_FILES))


def neighbours(record: Store, key: str, seconds: int, most: int) -> Iterator[Row]:
    """Yield the sessions of the same project that began around the same time, and how many seconds later they did."""
    return record.rows(_NEAR, (key, seconds, most))
