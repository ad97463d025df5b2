"""Which files were changed, and by which sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from retold.archive.queries.conditions import Condition
from retold.archive.queries.related import changed_rows, changer_rows, paths_changed, with_end, with_part
from retold.archive.store import Store
from retold.projects.matching import in_project, whole_path
from retold.query.dates import moment_of
from retold.query.question import ReportQuery


class Changed(msgspec.Struct, frozen=True):
    """A file, and how often it was changed."""

    path: str
    """From the root of all."""
    name: str
    """By the name of its project and its place there, where it lies in one."""
    changes: int
    """Calls that were to change it."""
    sessions: int
    last_at: datetime | None


class Changer(msgspec.Struct, frozen=True):
    """A session that changed a file."""

    key: str
    agent: str
    title: str | None
    kind: str
    ended_at: datetime | None
    root: str | None
    changes: int


def changed(question: ReportQuery, part: str, limit: int, offset: int = 0) -> list[Changed]:
    """Return the files that were changed most, of those with a text in their paths."""
    conditions: list[Condition] = [*question.sessions, *([with_part(part)] if part else [])]
    rows = changed_rows(question.record, conditions, limit, offset)
    return [_changed(row) for row in rows]


def _changed(row: Sequence[Any]) -> Changed:
    path, root, changes, sessions, last_at = row
    return Changed(path, in_project(path, root), changes, sessions, moment_of(last_at))


def files_meant(question: ReportQuery, typed: str, limit: int) -> list[Changed]:
    """Return the changed files that a path may mean: itself, else the one at that place in its project, else by its end."""
    end = typed.strip().replace("\\", "/").removeprefix("./").rstrip("/")
    rows = list(
        changed_rows(question.record, [*question.sessions, with_end(end.lstrip("/"))], limit) if end else ()
    )
    itself = [row for row in rows if row[0] == end]
    there = [row for row in rows if row[1] is not None and row[0] == whole_path(end, row[1])]
    return [_changed(row) for row in itself or there or rows]


def names_changed(record: Store, key: str) -> list[str]:
    """Return the files that a session and its subagents changed, by their places in its project; the most changed first."""
    return [in_project(path, root) for path, root, _ in paths_changed(record, key)]


def changers(question: ReportQuery, path: str, limit: int, offset: int = 0) -> list[Changer]:
    """Return the sessions that changed a file, the newest first."""
    rows = changer_rows(question.record, path, question.sessions, limit, offset)
    return [
        Changer(key, agent, title, kind, moment_of(ended), root, changes)
        for key, agent, title, kind, ended, root, changes in rows
    ]
