"""What a session has to do with others: by what it holds, by the files it changed, by where and when it took place."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from retold.archive.record import Store

    Row = tuple[Any, ...]

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
