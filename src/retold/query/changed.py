"""Which files were changed, and by which sessions."""

from __future__ import annotations

from datetime import datetime

import msgspec

from retold.archive.changed import changed_rows, changer_rows, with_part
from retold.archive.conditions import Condition
from retold.projects.matching import in_project
from retold.query.dates import moment_of
from retold.query.question import Question


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


def changed(question: Question, part: str, limit: int, offset: int = 0) -> list[Changed]:
    """Return the files that were changed most, of those with a text in their paths."""
    conditions: list[Condition] = [*question.sessions, *([with_part(part)] if part else [])]
    rows = changed_rows(question.record, conditions, limit, offset)
    return [
        Changed(path, in_project(path, root), changes, sessions, moment_of(last_at))
        for path, root, changes, sessions, last_at in rows
    ]


def changers(question: Question, path: str, limit: int, offset: int = 0) -> list[Changer]:
    """Return the sessions that changed a file, the newest first."""
    rows = changer_rows(question.record, path, question.sessions, limit, offset)
    return [
        Changer(key, agent, title, kind, moment_of(ended), root, changes)
        for key, agent, title, kind, ended, root, changes in rows
    ]
